// At start, before epochs and replay: what a shard file has that the fleet store does not. The store is the truth, and
// may be an older one than the file knows (a restored backup), have been somewhere else meanwhile, or have lost a
// cluster that the file still keeps (a crash in the midst of its deletion).
import type { ClusterId } from '../../shared/runtime/ids.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { Store } from '../store/store.ts'
import type { OpenedShards } from './shard-files.ts'

export interface DiscardStaleDeps {
  store: Pick<Store, 'clusterOrdinals' | 'adoptedShards'>
  opened: Pick<OpenedShards, 'shards' | 'dbIds' | 'held' | 'indexOf' | 'remake'>
  log: Logger
  /** The store was set back (RP2): the ordinals that files have of clusters. Before the files that show it are gone. */
  onAhead?(ahead: ReadonlyMap<ClusterId, number>): Promise<void>
}

/**
 * CU8: agents of a file that is ahead of the store may have pulled lost revisions, and later ordinals would count as
 * known ones. In a file that is not the one that the store adopted last, the ordinals have no known meaning.
 */
export async function discardStale({ store, opened, log, onAhead }: DiscardStaleDeps): Promise<void> {
  const [ordinals, adopted] = [await store.clusterOrdinals(), await store.adoptedShards()]
  const { dbIds } = opened
  const ahead = new Map<ClusterId, number>()
  const why = new Map<number, string>()
  for (const clusterId of opened.held()) {
    const shard = opened.indexOf(clusterId)
    const dbId = adopted.get(shard)
    if (dbId !== undefined && dbId !== dbIds[shard]) why.set(shard, 'it is not the file that the fleet store recorded')
    const held = opened.shards.ordinal(clusterId)
    if (held <= (ordinals.get(clusterId) ?? held)) continue
    ahead.set(clusterId, held)
    why.set(shard, 'the fleet store is older, as after a restore')
  }
  if (ahead.size > 0) await onAhead?.(ahead)
  for (const [shard, reason] of why) {
    const clusters = [...ahead.keys()].filter((clusterId) => opened.indexOf(clusterId) === shard)
    log.warn('rebuilding a shard file', { shard, why: reason, ahead: clusters.length, first: clusters[0] })
    opened.remake(shard)
  }
  const unknown = opened.held().filter((clusterId) => !ordinals.has(clusterId))
  for (const clusterId of unknown) opened.shards.removeCluster(clusterId)
  if (unknown.length > 0)
    log.warn('removing clusters from shard files that the fleet store does not know', {
      clusters: unknown.length,
      first: unknown[0],
    })
}
