// Real clusters for end-to-end tests: one etcd for the test process, API servers of their own, and waiting for what
// kubectl shows.
import { type KubeCluster, type KubeClusterOptions, startKubeCluster as startCluster } from '../../scripts/local-cluster/local-cluster.ts'

export { type AuditEvent, WRITE_VERBS } from '../../scripts/local-cluster/audit-log.ts'
export { type Etcd, startEtcd } from '../../scripts/local-cluster/etcd.ts'
export type { KubeCluster, KubeClusterOptions }

/** Starting takes 5 to 15 s on two busy cores; give hooks that call it this time. */
export const CLUSTER_START_TIMEOUT_MS = 120_000

/** `SKERRY_TEST_KUBERNETES=older` runs a file that says nothing of it on the older minor: all that the reconciler
 *  promises is promised there, too. */
const kubernetes = process.env['SKERRY_TEST_KUBERNETES'] === 'older' ? 'older' : 'newest'

export const startKubeCluster = (options: KubeClusterOptions = {}): Promise<KubeCluster> => startCluster({ kubernetes, ...options })

/** Asks again every 100 ms until `check` answers a value other than undefined and false; throws with the last error
 *  otherwise. */
export async function eventually<T>(what: string, check: () => Promise<T | undefined | false>, timeoutMs = 30_000): Promise<T> {
  const deadline = performance.now() + timeoutMs
  let last: unknown
  for (;;) {
    try {
      const value = await check()
      if (value !== undefined && value !== false) return value
      last = undefined
    } catch (error) {
      last = error
    }
    if (performance.now() > deadline) throw new Error(`${what}: not within ${timeoutMs} ms${last ? `: ${last}` : ''}`)
    await Bun.sleep(100)
  }
}
