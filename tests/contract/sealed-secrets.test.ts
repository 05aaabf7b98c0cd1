// Secrets from a Config and a repository to a site, on a real server, a real worker process and a whole agent: what is written and sent on the way is searched for them.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { agentFiles, createAgent } from '../../agent/agent.ts'
import { createGitServer, type GitServer } from '../../scripts/local-cluster/git-http-server.ts'
import { readRenderPlace } from '../../server/render-place.ts'
import { type RunningServer, startServer } from '../../server/server.ts'
import { NO_LOG } from '../../shared/adapters/log-sync.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { fingerprint } from '../../shared/runtime/keys.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { createFakeCluster } from '../support/fake-cluster.ts'
import { eventually } from '../support/kube-cluster.ts'

const CANARIES = { manifest: 'canary-of-manifest-7f3a91c2', config: 'canary-of-config-51be08d4' }
/** As they may have been written down. */
const FORMS = Object.values(CANARIES).flatMap((text) => [
  text,
  text.toUpperCase(),
  Buffer.from(text).toString('hex'),
  // Base64 of a text that is not at the start of what was encoded begins at any of three places.
  ...[0, 1, 2].map((skip) => Buffer.from(text.slice(skip)).toString('base64').slice(0, 24)),
])

const secretFile = (number: string) =>
  `apiVersion: v1\nkind: Secret\nmetadata: {name: plain}\nstringData: {password: ${CANARIES.manifest}, number: ${number}}\n`
const FILES = {
  'shop/secret.yaml': `apiVersion: v1\nkind: Secret\nmetadata: {name: plain}\nstringData: {password: ${CANARIES.manifest}}\n`,
  'shop/derived.yaml.liquid':
    'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: derived}\ndata: {url: "https://x:{{ config.password }}@db", upper: "{{ config.password | upcase }}", coded: "{{ config.password | b64enc }}"}\n',
  'open/a.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: open}\ndata: {color: blue}\n',
}
const head = (kind: string, name: string, spec: unknown) => ({ apiVersion: 'skerry.dev/v1', kind, metadata: { name }, spec })
const targets = { selector: { matchLabels: { env: 'prod' } } }

let folder: string
let git: GitServer
let server: RunningServer
let adminToken = ''
let site: ReturnType<typeof startSite>
const cluster = createFakeCluster({ clock: systemClock })
const bodies: Buffer[] = []

function startSite(url: string, joinToken: string) {
  const agent = createAgent(
    { dataDir: join(folder, 'agent'), serverUrl: url, clusterName: 'ship', joinToken, waitSeconds: 5, version: '1' },
    {
      cluster,
      fetcher: async (to, init) => {
        if (init.body != null) bodies.push(Buffer.from(init.body as Uint8Array))
        const answer = await fetch(to, init as RequestInit)
        const copy = answer.clone()
        bodies.push(Buffer.from(await copy.arrayBuffer()))
        return answer
      },
      clock: systemClock,
      random: seededRandom(5),
      randomBytes,
      log: silentLogger,
      place: null,
      logFile: NO_LOG,
      freeMemory: () => {},
    },
  )
  const stopping = new AbortController()
  const running = agent.run(stopping.signal)
  return {
    agent,
    async stop() {
      stopping.abort()
      await running
      agent.close()
    },
  }
}

async function ask(method: string, path: string, body?: unknown) {
  const init = { method, headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' } }
  const response = await fetch(`${server.url}${path}`, body === undefined ? init : { ...init, body: JSON.stringify(body) })
  const text = await response.text()
  bodies.push(Buffer.from(text))
  return { status: response.status, body: (text === '' ? {} : JSON.parse(text)) as Record<string, unknown> }
}

const live = (kind: string, name: string) =>
  cluster.object({ group: '', kind, namespace: 'shop', name }) as {
    data?: Record<string, string>
    stringData?: Record<string, string>
  } | null

async function applied(check: () => boolean): Promise<void> {
  await eventually('the site has it', async () => {
    if (!check()) throw new Error('not yet')
    return true
  })
}

const serve = () =>
  startServer(
    {
      dataDir: join(folder, 'server'),
      hostname: '127.0.0.1',
      port: 0,
      sourceAddresses: '127.0.0.0/8',
      rendering: readRenderPlace({ renderSandbox: 'limits' }, process.env),
    },
    { clock: systemClock, random: seededRandom(3), log: silentLogger },
  )

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'skerry-sealed-'))
  for (const name of ['server', 'agent']) mkdirSync(join(folder, name))
  git = await createGitServer({ dir: join(folder, 'remote') })
  await git.commit(FILES, 'all')
  server = await serve()
  adminToken = server.firstAdminToken ?? ''
  const { body } = await ask('POST', '/api/v1/join-tokens', { labels: { env: 'prod' } })
  const resources = [
    head('Repository', 'apps', { git: { url: git.url }, poll: '1h' }),
    head('Config', 'vars', { secrets: { password: CANARIES.config } }),
    head('Service', 'shop', {
      source: { repository: 'apps', path: 'shop' },
      targets,
      namespace: 'shop',
      configFrom: [{ name: 'vars' }],
      sync: { createNamespace: true },
    }),
    head('Service', 'open', { source: { repository: 'apps', path: 'open' }, targets, namespace: 'shop' }),
  ]
  site = startSite(server.url, String(body['token']))
  expect((await ask('POST', '/api/v1/apply', { resources })).status).toBe(200)
}, 60_000)
afterAll(async () => {
  await site.stop()
  await server.stop()
  await git.stop()
  rmSync(folder, { recursive: true, force: true })
})

function filesOf(at: string): string[] {
  return readdirSync(at, { withFileTypes: true }).flatMap((entry) => {
    const path = join(at, entry.name)
    return entry.isDirectory() ? filesOf(path) : statSync(path).isFile() ? [path] : []
  })
}

/** Where one of the canaries is, in clear or compressed with zstd. */
function leaks(name: string, bytes: Buffer): string[] {
  const found = FORMS.filter((form) => bytes.includes(form)).map((form) => `${name}: ${form}`)
  for (let at = bytes.indexOf(ZSTD_MAGIC); at >= 0; at = bytes.indexOf(ZSTD_MAGIC, at + 1)) {
    try {
      found.push(...leaks(`${name}@${at}`, Buffer.from(Bun.zstdDecompressSync(bytes.subarray(at)))))
    } catch {
      // four bytes of something else
    }
  }
  return found
}
const ZSTD_MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])

/** In files of server and agent, and in what went over the wire; what was committed to the repository is exempt. */
function found(): string[] {
  const own = filesOf(folder).filter((path) => !path.startsWith(join(folder, 'remote')) && !path.includes('/server/git/'))
  return [
    ...own.flatMap((path) => leaks(path.slice(folder.length), readFileSync(path))),
    ...bodies.flatMap((bytes, index) => leaks(`body ${index}`, bytes)),
  ]
}

describe('secrets on their way to a site', () => {
  test('SL1 SL4 arrive: a Secret of the repository, and what was made of a secret of a Config', async () => {
    await applied(() => live('Secret', 'plain') !== null && live('ConfigMap', 'derived') !== null && live('ConfigMap', 'open') !== null)
    expect(live('Secret', 'plain')?.data).toEqual({ password: Buffer.from(CANARIES.manifest).toString('base64') })
    expect(live('ConfigMap', 'derived')?.data).toEqual({
      url: `https://x:${CANARIES.config}@db`,
      upper: CANARIES.config.toUpperCase(),
      coded: Buffer.from(CANARIES.config).toString('base64'),
    })
  }, 60_000)

  test('SL6 a commit that changes another object of the service changes no sealed row', async () => {
    const rows = () => {
      const db = openSqlite(agentFiles(join(folder, 'agent')).replica, { readonly: true })
      const docs = db
        .query<{ id: string; doc: string }, []>("SELECT id, doc FROM desired WHERE id LIKE 'object/default/shop/%' ORDER BY id")
        .all()
      db.close()
      return docs
    }
    const before = rows()
    expect(before.map(({ doc }) => doc.startsWith('{"$sealed":'))).toEqual([true, true])
    await git.commit({ 'shop/more.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\ndata: {a: b}\n' }, 'more')
    await ask('POST', '/api/v1/projects/default/repositories/apps/refresh')
    await applied(() => live('ConfigMap', 'more') !== null)
    const after = new Map(rows().map(({ id, doc }) => [id, doc]))
    for (const { id, doc } of before) expect(after.get(id)).toBe(doc)
    expect(after.size).toBe(3)
  }, 60_000)

  test('SL9 a fleet that wrote rows in clear is sealed by a command, which says when nothing is left', async () => {
    await site.stop()
    await server.stop()
    rmSync(join(folder, 'server', 'keys', 'sealing.json'))
    server = await serve()
    site = startSite(server.url, '')
    expect((await ask('GET', '/api/v1/secrets/seal')).body).toMatchObject({ step: 'off', key: null })
    await git.commit({ 'shop/secret.yaml': secretFile('two') }, 'in clear')
    await ask('POST', '/api/v1/projects/default/repositories/apps/refresh')
    await applied(() => live('Secret', 'plain')?.data?.['number'] !== undefined)
    expect(found()).not.toEqual([])
    expect((await ask('POST', '/api/v1/secrets/seal', {})).body).toMatchObject({ key: expect.stringMatching(/^[0-9a-f]{8}$/) })
    await eventually('all is sealed', async () => {
      const { body } = await ask('GET', '/api/v1/secrets/seal')
      if (body['step'] !== 'finished') throw new Error(JSON.stringify(body))
      expect(body).toMatchObject({ left: [], shards: 16 })
      return true
    })
    bodies.length = 0
    await eventually('the site has sealed rows only', async () => {
      expect(found()).toEqual([])
      return true
    })
    await git.commit({ 'shop/secret.yaml': secretFile('three') }, 'sealed')
    await ask('POST', '/api/v1/projects/default/repositories/apps/refresh')
    await applied(() => live('Secret', 'plain')?.data?.['number'] === Buffer.from('three').toString('base64'))
    expect(found()).toEqual([])
  }, 90_000)

  test('SL10 SL11 another recipient key, without a new join: the rows are fetched anew and the former key is deleted', async () => {
    const keys = () => JSON.parse(readFileSync(join(folder, 'agent', 'agent-keys.json'), 'utf8'))
    const agentOf = async () => ((await ask('GET', '/api/v1/agents')).body['items'] as Array<Record<string, string>>)[0] ?? {}
    const before = await agentOf()
    expect(before['recipient']).toBe(fingerprint(keys().recipient.publicKey))
    expect((await ask('POST', `/api/v1/agents/${before['id']}/rotate-recipient`)).status).toBe(204)
    await eventually('another key is in use', async () => {
      const { recipient, rotating } = await agentOf()
      if (recipient === before['recipient'] || String(rotating) !== 'false') throw new Error('not yet')
      const held = keys()
      if (held.former?.length !== 0) throw new Error('the former key is still there')
      expect(fingerprint(held.recipient.publicKey)).toBe(String(recipient))
      return true
    })
    await git.commit({ 'shop/secret.yaml': secretFile('four') }, 'to the new recipient')
    await ask('POST', '/api/v1/projects/default/repositories/apps/refresh')
    await applied(() => live('Secret', 'plain')?.data?.['number'] === Buffer.from('four').toString('base64'))
  }, 60_000)

  test('SL12 another sealing key: everything is sealed anew and the earlier key is destroyed', async () => {
    const before = (await ask('GET', '/api/v1/secrets/seal')).body['key']
    const asked = await ask('POST', '/api/v1/secrets/seal', { newKey: true })
    expect(asked.body).toMatchObject({ formerKeys: [before] })
    await eventually('the earlier key is gone', async () => {
      const { body } = await ask('GET', '/api/v1/secrets/seal')
      if (body['step'] !== 'finished') throw new Error(JSON.stringify(body))
      expect(body).toMatchObject({ left: [], formerKeys: [] })
      expect(body['key']).not.toBe(before)
      return true
    })
    expect(readFileSync(join(folder, 'server', 'keys', 'sealing.json'), 'utf8')).not.toContain(String(before))
    await git.commit({ 'shop/secret.yaml': secretFile('five') }, 'under the new key')
    await ask('POST', '/api/v1/projects/default/repositories/apps/refresh')
    await applied(() => live('Secret', 'plain')?.data?.['number'] === Buffer.from('five').toString('base64'))
  }, 60_000)

  test('SL7 nothing that was written or sent holds them', () => {
    expect(found()).toEqual([])
  })
})
