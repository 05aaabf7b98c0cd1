// A real server and its folder: where the value of a secret could be found afterwards, and what it is used for.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createGitServer } from '../../scripts/local-cluster/git-http-server.ts'
import { loadSecretBox, secretKeyIds } from '../../server/access/secret-box.ts'
import { createBackup } from '../../server/backup/create.ts'
import { restoreBackup } from '../../server/backup/restore.ts'
import { verifyBackup } from '../../server/backup/verify.ts'
import { type RunningServer, startServer } from '../../server/server.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { eventually } from '../support/kube-cluster.ts'
import { naming } from '../support/naming.ts'
import { tempDir } from '../support/temp-dir.ts'

const SECRET = 'hunter2-and-the-rest-of-it'
let dataDir: string
let server: RunningServer
let admin: string
let logged: string[]
const note = (message: string, fields?: Record<string, unknown>) => void logged.push(`${message} ${JSON.stringify(fields ?? {})}`)
const log: Logger = { debug: note, info: note, warn: note, error: note, with: () => log }
const start = async (folder: string) => {
  server = await startServer({ dataDir: folder, hostname: '127.0.0.1', port: 0 }, { clock: systemClock, random: seededRandom(3), log })
  admin = server.firstAdminToken ?? admin
}
beforeEach(async () => {
  dataDir = tempDir()
  logged = []
  await start(dataDir)
})
afterEach(() => server.stop())

async function ask(method: string, path: string, body?: unknown): Promise<string> {
  const init = { method, headers: { authorization: `Bearer ${admin}`, 'content-type': 'application/json' } }
  return (await fetch(`${server.url}/api/v1${path}`, body === undefined ? init : { ...init, body: JSON.stringify(body) })).text()
}
const config = (secret: string) => ({
  apiVersion: 'skerry.dev/v1',
  kind: 'Config',
  metadata: { name: 'apps-git' },
  spec: { data: { color: 'blue' }, secrets: { username: secret, password: `${secret}-password` } },
})

/** Files below a folder that hold the secret, in the clear or as the JSON, base64 or hex that something might make of
 *  it. */
function holding(folder: string): string[] {
  const forms = [SECRET, Buffer.from(SECRET).toString('base64').slice(0, 32), Buffer.from(SECRET).toString('hex')]
  return readdirSync(folder, { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((path) => statSync(path).isFile())
    .filter((path) => forms.some((form) => readFileSync(path).includes(form)))
}

test('CG2 a secret that was written, used and refused is in no file, log, event or answer, while the server runs and after', async () => {
  const remote = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response(null, { status: 401 }) })
  const answers = [
    await ask('POST', '/apply', { resources: [config(SECRET)] }),
    await ask('POST', '/apply', { resources: [config(SECRET)], dryRun: true }),
    await ask('PUT', '/projects/default/configs/apps-git', config(SECRET)),
    await ask('PUT', '/projects/default/configs/apps-git', {
      ...config(SECRET),
      spec: { secrets: { x: `hmac:${'0'.repeat(16)}`, y: SECRET, z: { a: SECRET }, 'a b': SECRET } },
    }),
    await ask('PUT', '/projects/default/repositories/apps', {
      apiVersion: 'skerry.dev/v1',
      kind: 'Repository',
      metadata: { name: 'apps' },
      spec: { git: { url: `http://127.0.0.1:${remote.port}/apps.git`, auth: { secretRef: 'apps-git' } } },
    }),
    await ask('GET', '/configs'),
    await ask('GET', '/projects/default/configs/apps-git'),
    await ask('GET', '/events'),
    await ask('GET', '/repositories'),
  ]
  expect(answers[0]).toContain('"created"')
  const files = readdirSync(dataDir).filter((name) => name.startsWith('fleet.sqlite'))
  expect(files).toContain('fleet.sqlite-wal')
  expect(holding(dataDir)).toEqual([])
  await server.stop()
  remote.stop(true)
  expect(holding(dataDir)).toEqual([])
  expect([...answers, ...logged].filter((text) => text.includes(SECRET))).toEqual([])
  await start(dataDir)
  expect(await ask('GET', '/projects/default/configs/apps-git')).toMatch(/"password":"hmac:[0-9a-f]{16}"/)
})

test('CG1 CG2 BK2 a backup brings secrets back with its keys; without them it holds none, and the server still starts', async () => {
  await ask('POST', '/apply', { resources: [config(SECRET)] })
  const before = await ask('GET', '/projects/default/configs/apps-git')
  const deps = { clock: systemClock, progress: () => {}, signal: new AbortController().signal }
  const base = tempDir()
  const openFolder = (path: string) => {
    mkdirSync(path, { mode: 0o700 })
    return { path, place: null, unlock: () => {} }
  }
  const make = async (name: string, withoutKeys: boolean) => {
    const to = join(base, name)
    await createBackup({ dataDir, to, withoutKeys, postgres: false }, deps)
    expect((await verifyBackup(to, deps)).problems).toEqual([])
    expect(holding(to)).toEqual([])
    return to
  }
  const [whole, bare] = [await make('whole', false), await make('bare', true)]
  expect(statSync(join(whole, 'keys/secrets.json')).mode & 0o777).toBe(0o600)
  await server.stop()
  const restore = (folder: string, to: string, newKeys: boolean, keysFrom: string | null) =>
    restoreBackup({ folder, dataDir: join(base, to), keysFrom, newKeys }, { ...deps, openFolder })
  await restore(whole, 'a', false, null)
  await restore(bare, 'b', false, join(dataDir, 'keys'))
  await restore(bare, 'c', true, null)
  for (const folder of ['a', 'b', 'c']) {
    await start(join(base, folder))
    expect(await ask('GET', '/projects/default/configs/apps-git')).toBe(before)
    const again = await ask('POST', '/apply', { resources: [config(SECRET)], dryRun: true })
    expect(again).toContain(folder === 'c' ? '"configured"' : '"unchanged"') // sealed under a key that is not there: it is sealed anew
    await server.stop()
  }
  await start(dataDir)
}, 30_000)

test('CG6 a repository is read with the secrets of its Config; one that is wrong says so, and the right one is used as soon as it is written', async () => {
  await server.stop()
  const allowed = { sourceAddresses: '127.0.0.0/8' }
  server = await startServer({ dataDir, hostname: '127.0.0.1', port: 0, ...allowed }, { clock: systemClock, random: seededRandom(3), log })
  const base = mkdtempSync(join(tmpdir(), 'skerry-config-'))
  const git = await createGitServer({ dir: base })
  const commit = await git.commit({ 'a.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n' }, 'a')
  const asked = new Set<string>()
  const remote = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const authorization = request.headers.get('authorization') ?? ''
      asked.add(authorization)
      if (authorization !== `Basic ${btoa(`robot:${SECRET}`)}`) return new Response(null, { status: 401 })
      const { pathname, search } = new URL(request.url)
      const body = request.method === 'POST' ? await request.bytes() : null
      const headers = new Headers(request.headers)
      headers.delete('authorization')
      headers.delete('host')
      return fetch(`${new URL(git.url).origin}${pathname}${search}`, { method: request.method, headers, body, decompress: false })
    },
  })
  const url = git.url.replace(new URL(git.url).origin, `http://127.0.0.1:${remote.port}`)
  const withSecrets = (secrets: Record<string, string>) => ({ ...config(''), spec: { secrets } })
  const repository = {
    apiVersion: 'skerry.dev/v1',
    kind: 'Repository',
    metadata: { name: 'apps' },
    spec: { git: { url, auth: { secretRef: 'apps-git' } }, poll: '1h' },
  }
  const until = (text: string): Promise<string> =>
    eventually(text, async () => {
      const answer = await ask('GET', '/projects/default/repositories/apps')
      if (!answer.includes(text)) throw new Error(answer)
      return answer
    })
  try {
    await ask('POST', '/apply', { resources: [repository] })
    expect(await until('CredentialMissing')).toEqual(naming('Config apps-git', 'project default'))
    await ask('POST', '/apply', { resources: [withSecrets({ username: 'robot', password: 'wrong' })] })
    expect(await until('refused with HTTP 401')).toEqual(naming('username and password'))
    await ask('POST', '/apply', { resources: [withSecrets({ username: 'robot', password: SECRET })] })
    expect(await until('"ready":true')).toContain(commit)
    expect([...asked].sort()).toContain(`Basic ${btoa('robot:wrong')}`)
    expect(holding(dataDir)).toEqual([])
    expect(logged.filter((line) => line.includes(SECRET))).toEqual([])
  } finally {
    remote.stop(true)
    await git.stop()
    rmSync(base, { recursive: true, force: true })
  }
}, 30_000)

test('CG7 a rotation seals every secret anew without another generation, destroys the earlier key, and goes on after it was cut off', async () => {
  await ask('POST', '/apply', { resources: [config(SECRET)] })
  const path = join(dataDir, 'keys', 'secrets.json')
  const keyIds = () => secretKeyIds(readFileSync(path, 'utf8')) ?? []
  const shown = async () => JSON.parse(await ask('GET', '/projects/default/configs/apps-git'))
  const [before, [first = '?']] = [await shown(), keyIds()]
  const earlier = readFileSync(path, 'utf8')
  expect(JSON.parse(await ask('POST', '/server-keys/rotate-secrets'))).toEqual({ configs: 1, secrets: 2, unopened: 0 })
  const after = await shown()
  expect(keyIds()).toHaveLength(1)
  expect(keyIds()).not.toContain(first)
  expect([after.metadata.generation, after.spec.data]).toEqual([before.metadata.generation, before.spec.data])
  expect(after.spec.secrets.password).not.toBe(before.spec.secrets.password)
  // What is read back as a mark is kept: it opens under the new key.
  expect(await ask('PUT', '/projects/default/configs/apps-git', { ...config(SECRET), spec: after.spec })).toContain(
    after.spec.secrets.password,
  )
  expect(JSON.parse(await ask('POST', '/apply', { resources: [config(SECRET)] })).results).toMatchObject([{ action: 'unchanged' }])

  // As if the server had ended after the new key was written and before anything was sealed under it.
  await server.stop()
  const box = loadSecretBox(join(dataDir, 'keys'))
  box.rotate()
  box.rotate()
  expect(keyIds()).toHaveLength(2)
  await start(dataDir)
  expect(JSON.parse(await ask('POST', '/server-keys/rotate-secrets'))).toEqual({ configs: 1, secrets: 2, unopened: 0 })
  expect(keyIds()).toHaveLength(1)

  // Under a key that is not here any more they stay as they are, and are told.
  await server.stop()
  writeFileSync(path, earlier)
  await start(dataDir)
  expect(JSON.parse(await ask('POST', '/server-keys/rotate-secrets'))).toEqual({ configs: 0, secrets: 0, unopened: 2 })
  const to = join(tempDir(), 'backup')
  const deps = { clock: systemClock, progress: () => {}, signal: new AbortController().signal }
  expect((await createBackup({ dataDir, to, withoutKeys: false, postgres: false }, deps)).unopened).toBe(2)
  expect((await verifyBackup(to, deps)).warnings).toHaveLength(1)
})
