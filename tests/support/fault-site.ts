// An agent in the middle of a revision on a real API server, with something between them that can be broken at the n-th
// write.
import type { Cluster } from '../../agent/cluster/cluster.ts'
import { loadKubeCredentials } from '../../agent/cluster/kubeconfig.ts'
import { createRestCluster } from '../../agent/cluster/rest-cluster.ts'
import { type K8sObject, refKey } from '../../shared/kube/object.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { systemRandom } from '../../shared/runtime/random.ts'
import type { KubeCluster } from './kube-cluster.ts'
import { configMap, createReconcileKit, type ReconcileKit, type RowOptions } from './reconcile-kit.ts'
import { until } from './watch-probe.ts'

export const OBJECTS = 30
const DROPPED = 3
const name = (n: number): string => `m${String(n).padStart(2, '0')}`
/** The first revision names m00 to m29, the second m03 to m32, all with the revision as their value. */
const objectsOf = (namespace: string, revision: number): K8sObject[] =>
  Array.from({ length: OBJECTS }, (_, n) => configMap(name(n + (revision - 1) * DROPPED), { v: String(revision) }, namespace))

export interface FaultSite {
  kit: ReconcileKit
  id: ServiceId
  /** Names of objects whose delete was asked for. */
  deletes: string[]
  writes(): number
  desire(revision: number, options?: RowOptions): string
  /** Resolves when so many writes more were begun. */
  afterWrites(count: number): Promise<void>
  /** Resolves when so many writes more were begun; later ones are not sent before `resume`. */
  stallAfterWrites(count: number): Promise<{ resume(): void }>
  /** The service or one of its objects says so. */
  says(message: RegExp): Promise<void>
  /** Everything is as that revision wants it, in the cluster, in the inventory and in the words. */
  converged(revision: number, timeoutMs?: number): Promise<void>
  stop(): Promise<void>
}

interface FaultSiteOptions {
  /** Instead of the API server's own address. */
  url?: string
  insecure?: boolean
  incarnation?: number
}

export async function startFaultSite(server: KubeCluster, namespace: string, options: FaultSiteOptions = {}): Promise<FaultSite> {
  const deps = {
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
    userAgent: `skerry-agent/${namespace}-${options.incarnation ?? 1}`,
  }
  const own = await loadKubeCredentials({ kubeconfig: server.kubeconfigPath, env: {} }, deps)
  const plain = { read: async () => ({ tls: { insecure: false }, authorization: null }) }
  const credentials = { ...own, ...(options.url === undefined ? {} : { server: options.url }), ...(options.insecure ? plain : {}) }
  const rest = createRestCluster(credentials, deps)
  const deletes: string[] = []
  let writes = 0
  const waiting = new Set<{ at: number; wake: () => void }>()
  const count = () => {
    writes += 1
    for (const one of waiting) if (writes >= one.at) one.wake()
  }
  let stalled = Promise.resolve()
  const cluster: Cluster = {
    ...rest,
    apply: async (...args) => {
      if (args[1].metadata.namespace === namespace) {
        const before = stalled
        count()
        await before
      }
      return rest.apply(...args)
    },
    delete: (...args) => {
      deletes.push(args[1].name)
      return rest.delete(...args)
    },
  }
  const id: ServiceId = { project: 'faults', service: namespace }
  const kit = createReconcileKit({
    cluster,
    clock: systemClock,
    agentId: namespace,
    incarnation: options.incarnation ?? 1,
  })
  const live = async (): Promise<Record<string, string>> => {
    const answer = await fetch(`${server.server}/api/v1/namespaces/${namespace}/configmaps`, {
      headers: { authorization: `Bearer ${server.token}` },
      tls: { ca: server.caPem },
      keepalive: false,
    })
    const { items } = (await answer.json()) as { items: K8sObject[] }
    const ours = items.filter(({ metadata }) => metadata.labels?.['skerry.dev/service'] !== undefined)
    return Object.fromEntries(ours.map(({ metadata, data }) => [metadata.name, (data as { v: string }).v]))
  }
  const afterWrites = (more: number, act = () => {}) =>
    new Promise<void>((resolve) => {
      const one = {
        at: writes + more,
        wake: () => {
          waiting.delete(one)
          act()
          resolve()
        },
      }
      waiting.add(one)
    })
  return {
    kit,
    id,
    deletes,
    writes: () => writes,
    desire: (revision, rowOptions) => kit.desire(objectsOf(namespace, revision), rowOptions, id),
    afterWrites,
    async stallAfterWrites(more) {
      const { promise, resolve } = Promise.withResolvers<void>()
      await afterWrites(more, () => {
        stalled = promise
      })
      return { resume: resolve }
    },
    says: async (message) => {
      const texts = () => [
        kit.service(id)?.message ?? '',
        ...kit.state.inventory(id).map(({ ref }) => kit.object(refKey(ref), id)?.message ?? ''),
      ]
      await until(`somebody says ${message}`, () => texts().some((text) => message.test(text)), 40_000).catch((error: Error) => {
        throw new Error(`${error.message}; they say ${[...new Set(texts())].join(' / ')}`)
      })
    },
    async converged(revision, timeoutMs = 60_000) {
      const wanted = objectsOf(namespace, revision)
      const expected = Object.fromEntries(wanted.map(({ metadata }) => [metadata.name, String(revision)]))
      const names = Object.keys(expected).sort()
      const isThere = async () => {
        const inventory = kit.state.inventory(id).map(({ ref }) => ref.name)
        return kit.service(id)?.reason === 'Synced' && Bun.deepEquals(inventory.sort(), names) && Bun.deepEquals(await live(), expected)
      }
      await until(`revision ${revision} of ${namespace}`, isThere, timeoutMs).catch(async (error: Error) => {
        throw new Error(`${error.message}; it says ${JSON.stringify(kit.service(id))}, and holds ${JSON.stringify(await live())}`)
      })
    },
    async stop() {
      await kit.stop()
      rest.close()
    },
  }
}

/** What the second revision drops, and nothing else may be deleted. */
export const DROPPED_NAMES: readonly string[] = Array.from({ length: DROPPED }, (_, n) => name(n))
