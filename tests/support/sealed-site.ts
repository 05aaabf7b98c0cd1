// A server and an agent with marked secrets at every place where one can enter. Everything that they write and send can
// be searched for them.
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Agent, createAgent } from '../../agent/agent.ts'
import { createGitServer } from '../../scripts/local-cluster/git-http-server.ts'
import { loadSopsKeys } from '../../server/access/sops-keys.ts'
import { readRenderPlace } from '../../server/control/render-place.ts'
import { startServer } from '../../server/server.ts'
import { NO_LOG } from '../../shared/adapters/log-sync.ts'
import { parseJoinToken } from '../../shared/protocol/join.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { CANARIES, createSearch, filesIn } from './canaries.ts'
import { createFakeCluster } from './fake-cluster.ts'
import { eventually } from './kube-cluster.ts'
import { renderProgram, searchPath } from './render-programs.ts'
import { keyFile, newAgeKey, sopsEncrypt } from './sops-kit.ts'

const secretFile = (number: string) =>
  `apiVersion: v1\nkind: Secret\nmetadata: {name: plain}\nstringData: {password: ${CANARIES.manifest}, number: ${number}}\n`
/** What a template makes of the secret of a Config, by name: its Liquid, and what has to arrive. */
const DERIVED: Readonly<Record<string, readonly [liquid: string, arrives: string]>> = {
  url: ['https://x:{{ config.password }}@db', `https://x:${CANARIES.config}@db`],
  upper: ['{{ config.password | upcase }}', CANARIES.config.toUpperCase()],
  coded: ['{{ config.password | b64enc }}', btoa(CANARIES.config)],
  twice: ['{{ config.password | b64enc | base64_encode }}', btoa(btoa(CANARIES.config))],
  hash: ['{{ config.password | sha256sum }}', new Bun.CryptoHasher('sha256').update(CANARIES.config).digest('hex')],
  escaped: ['{{ config.password | url_encode }}', encodeURIComponent(CANARIES.config)],
  slice: ['{{ config.password | slice: -8, 8 }}', CANARIES.config.slice(-8)],
  dotted: ["{{ config.password | split: '' | join: '.' }}", [...CANARIES.config].join('.')],
  back: ["{{ config.password | split: '' | reverse | join: '' }}", [...CANARIES.config].reverse().join('')],
}
export const DERIVED_DATA = Object.fromEntries(Object.entries(DERIVED).map(([name, [, arrives]]) => [name, arrives]))
const derivedFile = Object.entries(DERIVED).map(([name, [liquid]]) => `  ${name}: "${liquid}"\n`)

/** Of a service with a chart, whose values come from a file in clear, a file of SOPS, and a Config with a value from
 *  outside. */
const CHART_SECRET = ['values', 'sopsValues', 'outside'] as const
export const CHART_DATA = Object.fromEntries(CHART_SECRET.map((name) => [name, CANARIES[name]]))
const CHART = {
  'chart/Chart.yaml': 'apiVersion: v2\nname: chart\nversion: 1.0.0\n',
  'chart/values.yaml': 'broken: false\n',
  'chart/clear.yaml': `values: {password: ${CANARIES.values}}\n`,
  'chart/templates/secret.yaml': `{{- if .Values.broken }}{{ fail (printf "refused: %s %s" (upper .Values.sopsValues.password) (b64enc .Values.outside.password)) }}{{ end }}
apiVersion: v1
kind: Secret
metadata: {name: chart}
stringData:
${CHART_SECRET.map((name) => `  ${name}: {{ .Values.${name}.password | quote }}\n`).join('')}`,
}
const CHART_RENDER = {
  helm: {
    valuesFiles: ['clear.yaml', 'secrets.yaml'],
    valuesFrom: [{ name: 'outside', key: 'license', at: 'outside.password' }],
  },
}
const SHOP = {
  'shop/secret.yaml': `apiVersion: v1\nkind: Secret\nmetadata: {name: plain}\nstringData: {password: ${CANARIES.manifest}}\n`,
  'shop/derived.yaml.liquid': `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: derived}\ndata:\n${derivedFile.join('')}`,
  'open/a.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: open}\ndata: {color: blue}\n',
}
const SITE_SECRET = JSON.stringify({
  ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'of-site' } },
  stringData: { password: CANARIES.sopsManifest },
})
const head = (kind: string, name: string, spec: unknown) => ({ apiVersion: 'skerry.dev/v1', kind, metadata: { name }, spec })
const targets = { selector: { matchLabels: { env: 'prod' } } }

export type SealedSite = Awaited<ReturnType<typeof startSealedSite>>

export async function startSealedSite() {
  const folder = mkdtempSync(join(tmpdir(), 'skerry-sealed-'))
  for (const name of ['server', 'agent', 'given/server', 'given/site', 'given/values/default'])
    mkdirSync(join(folder, name), { recursive: true })
  const [operatorKey, siteKey] = await Promise.all([newAgeKey(), newAgeKey()])
  writeFileSync(join(folder, 'given/server/operator.agekey'), keyFile(operatorKey))
  writeFileSync(join(folder, 'given/site/site.agekey'), keyFile(siteKey))
  writeFileSync(join(folder, 'given/values/default/license.txt'), CANARIES.outside)
  const sopsKeys = await loadSopsKeys(join(folder, 'given/server'))
  const git = await createGitServer({ dir: join(folder, 'remote'), login: { username: 'robot', password: CANARIES.credential } })
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
        rendering: readRenderPlace({ renderSandbox: 'limits', helm: renderProgram('helm') }, { PATH: searchPath().join(':') }),
        valueFiles: join(folder, 'given/values'),
        sopsKeys,
      },
      { clock: systemClock, random: seededRandom(3), log },
    )
  let takeOver: Agent['order'] = () => ({ kind: 'refused', message: 'there is no agent' })
  const startAgent = (url: string, joinToken: string) => {
    const agent = createAgent(
      {
        ...{ dataDir: join(folder, 'agent'), serverUrl: url, clusterName: 'ship', joinToken, waitSeconds: 5, version: '1' },
        sopsKeys: join(folder, 'given/site'),
      },
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
    takeOver = (order) => agent.order(order)
    const stopping = new AbortController()
    const running = agent.run(stopping.signal)
    return async () => {
      stopping.abort()
      await running
      agent.close()
    }
  }

  const sops = {
    'chart/secrets.yaml': sopsEncrypt('secrets.yaml', `sopsValues: {password: ${CANARIES.sopsValues}}\n`, { to: [operatorKey] }),
    'site/secret.yaml': sopsEncrypt('secret.yaml', SITE_SECRET, { to: [siteKey], rule: { encrypted_regex: '^(data|stringData)$' } }),
  }
  await git.commit({ ...SHOP, ...CHART, ...sops }, 'all')
  let server = await serve()
  const adminToken = server.firstAdminToken ?? ''
  const ask = async (method: string, path: string, body?: unknown, { quietly = false } = {}) => {
    const init = { method, headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' } }
    const response = await fetch(`${server.url}${path}`, body === undefined ? init : { ...init, body: JSON.stringify(body) })
    const text = await response.text()
    if (!quietly) said.push(Buffer.from(text))
    const isJson = /^application\/(?:problem\+)?json/.test(response.headers.get('content-type') ?? '')
    return { status: response.status, text, body: (isJson ? JSON.parse(text) : {}) as Record<string, unknown> }
  }
  /** Secrets that the server makes, and answers once. */
  const made: string[] = []
  const secretOf = async (path: string, field: string, body?: unknown): Promise<string> => {
    const secret = (await ask('POST', path, body, { quietly: true })).body[field]
    if (typeof secret !== 'string') throw new Error(`${path} answers no ${field}`)
    made.push(parseJoinToken(secret)?.secret ?? secret) // the other parts of a join token are public
    return secret
  }
  const joinToken = () => secretOf('/api/v1/join-tokens', 'token', { labels: { env: 'prod' } })
  let stopAgent = startAgent(server.url, await joinToken())
  const service = (name: string, spec: object = {}) =>
    head('Service', name, { source: { repository: 'apps', path: name }, targets, namespace: 'shop', ...spec })
  const resources = [
    head('Repository', 'apps', { git: { url: git.url, auth: { secretRef: 'git' } }, poll: '1h' }),
    head('Config', 'git', { secrets: { username: 'robot', password: CANARIES.credential } }),
    head('Config', 'vars', { secrets: { password: CANARIES.config } }),
    head('Config', 'outside', { valueFrom: [{ name: 'license', file: 'license.txt' }] }),
    service('shop', { configFrom: [{ name: 'vars' }], sync: { createNamespace: true } }),
    service('open'),
    service('chart', { render: CHART_RENDER }),
    service('site'),
  ]
  const { status, text: refused } = await ask('POST', '/api/v1/apply', { resources })
  if (status !== 200) throw new Error(`the resources are refused: ${refused}`)
  await secretOf('/api/v1/projects/default/repositories/apps/webhook', 'secret')

  const live = (kind: string, name: string) =>
    cluster.object({ group: '', kind, namespace: 'shop', name }) as {
      data?: Record<string, string>
      stringData?: Record<string, string>
    } | null
  return {
    folder,
    git,
    cluster,
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
    async withoutAgent(work: () => Promise<void>): Promise<void> {
      await stopAgent()
      await work()
      stopAgent = startAgent(server.url, '')
    },
    /** The agent comes back on an empty disk, with a token of its own, and takes over as a person tells it. */
    async loseDisk(): Promise<void> {
      await stopAgent()
      rmSync(join(folder, 'agent'), { recursive: true })
      mkdirSync(join(folder, 'agent'))
      await ask('DELETE', '/api/v1/clusters/ship')
      stopAgent = startAgent(server.url, await joinToken())
      const order = { kind: 'take_over', by: 'test', why: 'the disk was lost' } as const
      await eventually('the agent takes over', async () => takeOver(order).kind === 'done')
    },
    forgetMessages: () => void said.splice(0),
    /** In files of server and agent, in messages and logs. Exempt is what the test gave them, and in clones of the
     *  repository its content. */
    found(): string[] {
      const committed: string[] = [CANARIES.manifest, CANARIES.values]
      const all = Object.values(CANARIES)
      const search = createSearch(all, made)
      const searchClone = createSearch(
        all.filter((text) => !committed.includes(text)),
        made,
      )
      const own = ['server', 'agent', ...readdirSync(folder).filter((name) => name.startsWith('backup'))].flatMap((name) => [
        ...filesIn(join(folder, name)),
      ])
      return [
        ...own.flatMap(({ path, bytes }) => (path.includes('/server/git/') ? searchClone : search)(path.slice(folder.length), bytes)),
        ...said.flatMap((bytes, index) => search(`message ${index}`, bytes)),
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
