// A server and an agent with marked secrets: one in a manifest, one in a Config that a template writes in several forms. Everything that they write and send can be searched for them.
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAgent } from '../../agent/agent.ts'
import { createGitServer } from '../../scripts/local-cluster/git-http-server.ts'
import { readRenderPlace } from '../../server/render-place.ts'
import { startServer } from '../../server/server.ts'
import { NO_LOG } from '../../shared/adapters/log-sync.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { createFakeCluster } from './fake-cluster.ts'
import { eventually } from './kube-cluster.ts'

export const CANARIES = { manifest: 'canary-of-manifest-7f3a91c2', config: 'canary-of-config-51be08d4' }
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

export type SealedSite = Awaited<ReturnType<typeof startSealedSite>>

export async function startSealedSite() {
  const folder = mkdtempSync(join(tmpdir(), 'skerry-sealed-'))
  for (const name of ['server', 'agent']) mkdirSync(join(folder, name))
  const git = await createGitServer({ dir: join(folder, 'remote') })
  const cluster = createFakeCluster({ clock: systemClock })
  /** Messages of both links, and lines of both logs. */
  const said: Buffer[] = []
  const log = recordingLogger((line) => said.push(Buffer.from(line)))
  const serve = () =>
    startServer(
      {
        dataDir: join(folder, 'server'),
        hostname: '127.0.0.1',
        port: 0,
        sourceAddresses: '127.0.0.0/8',
        rendering: readRenderPlace({ renderSandbox: 'limits' }, process.env),
      },
      { clock: systemClock, random: seededRandom(3), log },
    )
  const startAgent = (url: string, joinToken: string) => {
    const agent = createAgent(
      { dataDir: join(folder, 'agent'), serverUrl: url, clusterName: 'ship', joinToken, waitSeconds: 5, version: '1' },
      {
        cluster,
        fetcher: async (to, init) => {
          if (init.body != null) said.push(Buffer.from(init.body as Uint8Array))
          const answer = await fetch(to, init as RequestInit)
          said.push(Buffer.from(await answer.clone().arrayBuffer()))
          return answer
        },
        clock: systemClock,
        random: seededRandom(5),
        randomBytes,
        log,
        place: null,
        logFile: NO_LOG,
        freeMemory: () => {},
        questions: { record: () => {}, restarts: false },
      },
    )
    const stopping = new AbortController()
    const running = agent.run(stopping.signal)
    return async () => {
      stopping.abort()
      await running
      agent.close()
    }
  }

  await git.commit(FILES, 'all')
  let server = await serve()
  const adminToken = server.firstAdminToken ?? ''
  const ask = async (method: string, path: string, body?: unknown) => {
    const init = { method, headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' } }
    const response = await fetch(`${server.url}${path}`, body === undefined ? init : { ...init, body: JSON.stringify(body) })
    const text = await response.text()
    said.push(Buffer.from(text))
    const isJson = /^application\/(?:problem\+)?json/.test(response.headers.get('content-type') ?? '')
    return { status: response.status, text, body: (isJson ? JSON.parse(text) : {}) as Record<string, unknown> }
  }
  const { body: token } = await ask('POST', '/api/v1/join-tokens', { labels: { env: 'prod' } })
  let stopAgent = startAgent(server.url, String(token['token']))
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
  const { status } = await ask('POST', '/api/v1/apply', { resources })
  if (status !== 200) throw new Error(`the resources are refused: ${status}`)

  const live = (kind: string, name: string) =>
    cluster.object({ group: '', kind, namespace: 'shop', name }) as {
      data?: Record<string, string>
      stringData?: Record<string, string>
    } | null
  return {
    folder,
    git,
    ask,
    live,
    /** Between two looks: `everyMs`. */
    async applied(check: () => boolean, everyMs?: number): Promise<void> {
      const untilMs = performance.now() + 30_000
      while (everyMs !== undefined && !check() && performance.now() < untilMs) await Bun.sleep(everyMs)
      await eventually('the site has it', async () => {
        if (!check()) throw new Error('not yet')
        return true
      })
    },
    commitSecret: (number: string) => git.commit({ 'shop/secret.yaml': secretFile(number) }, `number ${number}`),
    refresh: () => ask('POST', '/api/v1/projects/default/repositories/apps/refresh'),
    /** What the site has of the newest commit. */
    secretNumber(): string | null {
      const number = live('Secret', 'plain')?.data?.['number']
      return number === undefined ? null : Buffer.from(number, 'base64').toString()
    },
    /** Both stop; `meanwhile` may change their folders. */
    async restart(meanwhile: () => void): Promise<void> {
      await stopAgent()
      await server.stop()
      meanwhile()
      server = await serve()
      stopAgent = startAgent(server.url, '')
    },
    forgetMessages: () => void said.splice(0),
    /** In files of server and agent, in messages and logs; what was committed to the repository is exempt. */
    found(): string[] {
      const own = filesOf(folder).filter((path) => !path.startsWith(join(folder, 'remote')) && !path.includes('/server/git/'))
      return [
        ...own.flatMap((path) => leaks(path.slice(folder.length), readFileSync(path))),
        ...said.flatMap((bytes, index) => leaks(`message ${index}`, bytes)),
      ]
    },
    async stop(): Promise<void> {
      await stopAgent()
      await server.stop()
      await git.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function recordingLogger(write: (line: string) => void): Logger {
  const at = (level: string) => (message: string, fields?: object) => write(JSON.stringify({ level, message, ...fields }))
  const logger: Logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), with: () => logger }
  return logger
}

function filesOf(at: string): string[] {
  return readdirSync(at, { withFileTypes: true }).flatMap((entry) => {
    const path = join(at, entry.name)
    return entry.isDirectory() ? filesOf(path) : statSync(path).isFile() ? [path] : []
  })
}

const ZSTD_MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])

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
