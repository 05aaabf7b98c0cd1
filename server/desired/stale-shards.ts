// At start, before epochs and replay: what a shard file has that the fleet store does not. The store is the truth, and may be an older one than the file knows
// (a restored backup), or have lost a cluster that the file still keeps (a crash in the midst of its deletion).
import type { Logger } from '../../shared/runtime/logger.ts'
import type { Store } from '../store/store.ts'
import type { OpenedShards } from './shard-files.ts'

export interface DiscardStaleDeps {
  store: Pick<Store, 'clusterOrdinals'>
  opened: Pick<OpenedShards, 'shards' | 'held' | 'indexOf' | 'remake'>
  log: Logger
}

/** CU8: agents of a file that is ahead of the store may have pulled what nobody ordered any more, and later ordinals would be taken for known ones. */
export async function discardStale({ store, opened, log }: DiscardStaleDeps): Promise<void> {
  const ordinals = await store.clusterOrdinals()
  for (const clusterId of opened.held()) {
    const known = ordinals.get(clusterId)
    const shard = opened.indexOf(clusterId)
    const held = opened.shards.ordinal(clusterId)
    if (known === undefined || held <= known) continue // also when its file was made anew for another cluster
    log.warn('the fleet store is older than a shard file, as after a restore: the file is made anew', {
      shard,
      cluster: clusterId,
      held,
      known,
    })
    opened.remake(shard)
  }
  for (const clusterId of opened.held()) {
    if (ordinals.has(clusterId)) continue
    log.warn('a shard file holds a cluster that the fleet store does not know: it is removed', { cluster: clusterId })
    opened.shards.removeCluster(clusterId)
  }
}
