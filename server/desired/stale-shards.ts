// At start, before epochs and replay: what a shard file has that the fleet store does not. The store is the truth, and may be an older one than the file knows
// (a restored backup), or have lost a cluster that the file still keeps (a crash in the midst of its deletion).
import type { ClusterId } from '../../shared/model/ids.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { Store } from '../store/store.ts'
import type { OpenedShards } from './shard-files.ts'

export interface DiscardStaleDeps {
  store: Pick<Store, 'clusterOrdinals'>
  opened: Pick<OpenedShards, 'shards' | 'held' | 'indexOf' | 'remake'>
  log: Logger
  /** The store was set back (RP2). */
  onAhead?(clusterId: ClusterId, ordinal: number): Promise<void>
}

/** CU8: agents of a file that is ahead of the store may have pulled what nobody ordered any more, and later ordinals would be taken for known ones. */
export async function discardStale({ store, opened, log, onAhead }: DiscardStaleDeps): Promise<void> {
  const ordinals = await store.clusterOrdinals()
  const stale = new Set<number>()
  for (const clusterId of opened.held()) {
    const known = ordinals.get(clusterId)
    const shard = opened.indexOf(clusterId)
    const held = opened.shards.ordinal(clusterId)
    if (known === undefined || held <= known) continue
    log.warn('the fleet store is older than a shard file, as after a restore: the file is made anew', {
      shard,
      cluster: clusterId,
      held,
      known,
    })
    stale.add(shard)
    await onAhead?.(clusterId, held) // before the file that shows it is gone
  }
  for (const shard of stale) opened.remake(shard)
  for (const clusterId of opened.held()) {
    if (ordinals.has(clusterId)) continue
    log.warn('a shard file holds a cluster that the fleet store does not know: it is removed', { cluster: clusterId })
    opened.shards.removeCluster(clusterId)
  }
}
