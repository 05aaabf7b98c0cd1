// Removes what is left of services that left their clusters: status rows that a killed server left behind, and then the
// tombstones in the fleet store. A tombstone is kept until the shard file has had it for an hour: a power loss may take
// the newest revisions from a file, which are then replayed from the store (CU7).

import type { Clock } from '../../shared/runtime/clock.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import type { Pace } from '../../shared/runtime/pace.ts'
import type { Random } from '../../shared/runtime/random.ts'
import type { Tombstone } from '../fleet/records.ts'
import type { Store } from '../store/store.ts'
import type { Shards } from './shards.ts'

export interface TombstoneDeps {
  store: Pick<Store, 'tombstones' | 'dropTombstones' | 'deleteStatusOfService'>
  shards: Pick<Shards, 'ordinal'>
  pace?: Pace
}

/** The ordinals that a shard file holds for each cluster with tombstones. */
export type ReachedOrdinals = ReadonlyMap<ClusterId, number>

const FIRST_AFTER_MS = 60_000
const ROUND_MS = 3_600_000
/** Tombstones that are read, and at most removed, together: a few milliseconds. */
const BATCH = 200

/** Until the signal. */
export async function keepTombstonesFew(
  deps: TombstoneDeps & { clock: Clock; random: Random; log: Logger },
  signal: AbortSignal,
): Promise<void> {
  const { clock, random, log } = deps
  await clock.sleep(FIRST_AFTER_MS * (1 + random()), signal)
  for (let reached: ReachedOrdinals = new Map(); !signal.aborted; ) {
    try {
      const round = await collectTombstones(deps, reached, signal)
      reached = round.reached
      if (round.removed > 0) log.info('tombstones of removed services collected', { removed: round.removed })
    } catch (error) {
      log.warn('cannot collect tombstones of removed services', { error: describeError(error) })
    }
    await clock.sleep(ROUND_MS * (1 + random() / 4), signal)
  }
}

/** One round. `before`: what the round before answered as `reached`. */
export async function collectTombstones(
  { store, shards, pace }: TombstoneDeps,
  before: ReachedOrdinals,
  signal?: AbortSignal,
): Promise<{ reached: ReachedOrdinals; removed: number }> {
  const reached = new Map<ClusterId, number>()
  let removed = 0
  for (let after: Tombstone | undefined; signal?.aborted !== true; ) {
    const some = await store.tombstones({ limit: BATCH, ...(after === undefined ? {} : { after }) })
    for (const tombstone of some) {
      const { clusterId, hasStatus } = tombstone
      if (hasStatus) await store.deleteStatusOfService(clusterId, tombstone)
      if (!reached.has(clusterId)) reached.set(clusterId, shards.ordinal(clusterId))
      await pace?.()
    }
    const old = some.filter(({ clusterId, ordinal }) => ordinal <= (before.get(clusterId) ?? -1))
    if (old.length > 0) removed += await store.dropTombstones(old)
    after = some.at(-1)
    if (some.length < BATCH) break
  }
  return { reached, removed }
}
