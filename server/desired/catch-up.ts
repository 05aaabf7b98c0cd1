// Brings shard files that could not take a publication to where the fleet store is (CU7): with the next publication of
// a cluster, and by itself after a backoff.

import { type BackoffLimits, backoffMs } from '../../shared/runtime/backoff.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import type { Pace } from '../../shared/runtime/pace.ts'
import type { Random } from '../../shared/runtime/random.ts'
import type { ContentStore } from '../store/content/content-store.ts'
import type { Store } from '../store/store.ts'
import { replayClusters } from './replay.ts'
import type { Shards } from './shards.ts'
import { inTurn } from './turns.ts'

export interface CatchUpDeps {
  store: Pick<Store, 'desiredInCluster'>
  content: ContentStore
  shards: Shards
  pace?: Pace
}

/** Attempts in a row that may fail before the other clusters of a file are left for later. One cluster that fails by
 *  itself must not keep its neighbours behind. */
export const FAILURES_MAX = 2
/** Clusters that catch up before publications have their turn. */
const CLUSTERS_A_TURN = 20
const RETRY: BackoffLimits = { baseMs: 1_000, capMs: 60_000 }

/** In the turn of the caller. What still fails stays noted in `shards.behind`. `failures`: in a row, by file. */
export async function catchUp(deps: CatchUpDeps, clusterIds: readonly ClusterId[], failures = new Map<number, number>()): Promise<void> {
  const { shards } = deps
  for (const clusterId of clusterIds) {
    const shard = shards.shardOf(clusterId)
    const failed = failures.get(shard) ?? 0
    if (failed >= FAILURES_MAX || shards.behind.of(clusterId) === null) continue
    try {
      await replayClusters(deps, [clusterId])
      shards.behind.caughtUp(clusterId)
      failures.delete(shard)
    } catch (error) {
      shards.behind.failed(clusterId, error)
      failures.set(shard, failed + 1)
    }
  }
}

/** Once, in portions. The clusters that are behind still. */
export async function catchUpAll(deps: CatchUpDeps): Promise<ClusterId[]> {
  const { shards } = deps
  const clusterIds = shards.behind.list()
  const failures = new Map<number, number>()
  for (let start = 0; start < clusterIds.length; start += CLUSTERS_A_TURN)
    await inTurn(shards, () => catchUp(deps, clusterIds.slice(start, start + CLUSTERS_A_TURN), failures))
  return shards.behind.list()
}

/** Until the signal. */
export async function keepCaughtUp(deps: CatchUpDeps & { clock: Clock; random: Random; log: Logger }, signal: AbortSignal): Promise<void> {
  const { shards, clock, random, log } = deps
  let bell = new AbortController()
  shards.behind.onFailed(() => bell.abort())
  while (!signal.aborted) {
    while (shards.behind.size === 0) {
      bell = new AbortController()
      await clock.sleep(WAIT_MS, AbortSignal.any([signal, bell.signal]))
      if (signal.aborted) return
    }
    const startMs = clock.nowMs()
    for (let attempt = 0, left = shards.behind.list(); left.length > 0; attempt += 1) {
      const [first] = left
      const retryInMs = backoffMs(attempt, RETRY, random)
      if (first !== undefined && attempt === 0)
        log.warn('clusters are behind: cannot write to their shard files', { clusters: left.length, first, ...shards.behind.of(first) })
      await clock.sleep(retryInMs, signal)
      if (signal.aborted) return
      const before = left.length
      left = await catchUpAll(deps).catch((error: unknown) => {
        log.warn('cannot read the clusters that are behind', { error: describeError(error) })
        return shards.behind.list()
      })
      if (left.length < before) attempt = 0
    }
    log.info('shard files caught up', { ms: clock.nowMs() - startMs })
  }
}

const WAIT_MS = 3_600_000
