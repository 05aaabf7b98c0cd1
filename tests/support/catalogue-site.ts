// What the failure catalogue is written in: agents with credentials of their own on a real API server, somebody who
// breaks it, and a clock that says how long each took to notice and to be well again.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createSiteAnswerer } from '../../agent/ask/site-answerer.ts'
import { loadKubeCredentials } from '../../agent/cluster/kubeconfig.ts'
import { createRestCluster } from '../../agent/cluster/rest-cluster.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import type { ObjectStatus, ServiceStatus } from '../../shared/model/status.ts'
import type { AnswerLine, AskFrame, Question } from '../../shared/protocol/ask.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { type Logger, silentLogger } from '../../shared/runtime/logger.ts'
import { systemRandom } from '../../shared/runtime/random.ts'
import { type KubeCluster, type KubeClusterOptions, startKubeCluster } from './kube-cluster.ts'
import { createReconcileKit, type ReconcileKit, type RowOptions } from './reconcile-kit.ts'
import { tempDir } from './temp-dir.ts'
import { until } from './watch-probe.ts'

const WAIT_MS = 60_000

export interface CatalogueAgent {
  /** Its service has its name. */
  id: ServiceId
  desire(objects: readonly K8sObject[], options?: RowOptions): string
  removeService(policy: 'prune' | 'orphan'): void
  start(): void
  /** Where its token lies. Null means that it is an admin. */
  tokenFile: string | null
  /** Synced and Healthy; how long that took. */
  well(what?: string): Promise<number>
  /** The service says so, in a message that fits; how long that took. */
  says(message: RegExp, reason?: string): Promise<number>
  /** An object says so. */
  objectSays(key: string, message: RegExp): Promise<ObjectStatus>
  status(): ServiceStatus | null
  /** Names of what the inventory holds, sorted. */
  inventory(): string[]
  /** The answer to a question of a person: its lines, or the error that it ended with. */
  ask(question: Question): Promise<{ lines: AnswerLine[]; error: string | null }>
  /** Deletes that it asked for since `mark` and that were accepted, as `resource/name`. */
  deletes(since: number): string[]
}

export interface CatalogueSite {
  server: KubeCluster
  /** Each with a service of its own, one at a time. */
  agent(name: string, options?: { tokenOf?: string }): Promise<CatalogueAgent>
  apply(...objects: ReadonlyArray<K8sObject | Record<string, unknown>>): Promise<void>
  remove(kind: string, name: string, ...more: string[]): Promise<void>
  /** As JSON. Null means that it is not there. */
  live(kind: string, name: string, namespace?: string): Promise<K8sObject | null>
  /** A token of this ServiceAccount of `default`, bound to a Secret of that name, so that deleting that ends it. */
  token(account: string, secret: string): Promise<string>
  stop(): Promise<void>
}

export async function startCatalogueSite(name: string, options: KubeClusterOptions = {}): Promise<CatalogueSite> {
  const server = await startKubeCluster({ name, controllers: false, ...options })
  const running: Array<() => Promise<void>> = []
  const kubectl = (...args: string[]) => server.kubectl(args)
  const site: CatalogueSite = {
    server,
    agent: async (agentName, { tokenOf } = {}) => {
      for (const end of running.splice(0)) await end()
      const { agent, end } = await startAgent(site, agentName, tokenOf ?? null)
      running.push(end)
      return agent
    },
    apply: async (...objects) => {
      await server.kubectl(['apply', '--server-side', '--force-conflicts', '-f', '-'], {
        stdin: JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }),
      })
    },
    remove: async (kind, objectName, ...more) =>
      void (await kubectl('delete', kind, objectName, '--wait=false', '--ignore-not-found', ...more)),
    live: async (kind, objectName, namespace = 'default') => {
      const text = await kubectl('get', kind, objectName, '-n', namespace, '-o', 'json', '--ignore-not-found', '--show-managed-fields')
      return text.trim() === '' ? null : (JSON.parse(text) as K8sObject)
    },
    token: async (account, secret) =>
      (await kubectl('create', 'token', account, '--duration=10m', '--bound-object-kind=Secret', `--bound-object-name=${secret}`)).trim(),
    stop: async () => {
      for (const end of running.splice(0)) await end()
      await server.stop()
    },
  }
  return site
}

async function startAgent(
  site: CatalogueSite,
  name: string,
  token: string | null,
): Promise<{ agent: CatalogueAgent; end(): Promise<void> }> {
  const { server } = site
  const errors: string[] = []
  const log: Logger = { ...silentLogger, with: () => log, error: (message, data) => void errors.push(`${message} ${JSON.stringify(data)}`) }
  const deps = { clock: systemClock, random: systemRandom, log, userAgent: `skerry-agent/${name}` }
  const folder = tempDir()
  mkdirSync(folder, { recursive: true })
  const tokenFile = token === null ? null : join(folder, 'token')
  if (tokenFile !== null) {
    writeFileSync(tokenFile, token ?? '')
    writeFileSync(join(folder, 'ca.crt'), server.caPem)
  }
  const { hostname, port } = new URL(server.server)
  const env = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port }
  const credentials = await loadKubeCredentials(
    tokenFile === null ? { kubeconfig: server.kubeconfigPath, env: {} } : { env, serviceAccountFolder: folder },
    deps,
  )
  const cluster = createRestCluster(credentials, deps)
  const id: ServiceId = { project: 'web', service: name }
  const kit: ReconcileKit = createReconcileKit({ cluster, clock: systemClock, agentId: name, place: name, log })
  const timed = async (what: string, check: () => boolean): Promise<number> => {
    const startedMs = performance.now()
    const checkUnbroken = () => {
      if (errors.length > 0) throw new Error(`the agent is broken: ${errors[0]}`)
      return check()
    }
    await until(what, checkUnbroken, WAIT_MS).catch((error: unknown) => {
      throw new Error(`${error instanceof Error ? error.message : error}; it says ${JSON.stringify(kit.service(id))}`)
    })
    return Math.round(performance.now() - startedMs)
  }
  const agent: CatalogueAgent = {
    id,
    tokenFile,
    start: () => kit.start(),
    desire: (objects, rowOptions = {}) => kit.desire(objects, rowOptions, id),
    removeService: (policy) => kit.remove(policy, id, systemClock.nowMs()),
    status: () => kit.service(id),
    well: (what = 'it is well') =>
      timed(what, () => {
        const status = kit.service(id)
        return status?.sync === 'Synced' && status.health === 'Healthy' && status.reason === 'Synced'
      }),
    says: (message, reason) =>
      timed(`it says ${message}`, () => {
        const status = kit.service(id)
        return status !== null && message.test(status.message) && (reason === undefined || status.reason === reason)
      }),
    objectSays: (key, message) =>
      until(`${key} says ${message}`, () => {
        const status = kit.object(key, id)
        return status !== null && message.test(status.message) && status
      }),
    inventory: () =>
      kit.state
        .inventory(id)
        .map(({ ref }) => `${ref.kind}/${ref.name}`)
        .sort(),
    ask: async (question) => {
      const discovery = await cluster.discover()
      const answerer = createSiteAnswerer({
        ...{ cluster, logs: cluster, state: kit.state, replica: () => kit.replica, discovery: () => discovery, policy: () => null },
        ...{ record: () => {}, restarts: true, clock: systemClock },
      })
      const lines: AnswerLine[] = []
      const frame = { question, within: null } as unknown as AskFrame
      const error = await answerer
        .answer(frame, { write: async (line) => void lines.push(line) }, AbortSignal.timeout(10_000))
        .then(() => null)
        .catch(String)
      return { lines, error }
    },
    deletes: (since) =>
      server
        .auditLines({ userAgent: deps.userAgent, verbs: ['delete', 'deletecollection'], since })
        .flatMap(({ objectRef, responseStatus }) =>
          (responseStatus?.code ?? 0) < 300 ? [`${objectRef?.resource}/${objectRef?.name}`] : [],
        ),
  }
  const end = async () => {
    await kit.stop()
    cluster.close()
    // The next one is another agent, and nothing of this one shall be left to it.
    await server.kubectl(['delete', 'configmap', 'skerry-claim', '-n', 'skerry-system', '--ignore-not-found'])
  }
  return { agent, end }
}
