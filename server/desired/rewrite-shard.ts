// Rewrites a shard file while the server serves it: for compaction (RP3), or after damage. The new file is filled from
// the fleet store, the source of truth, beside the old one; publications meanwhile follow, and the last of them while
// nothing is published. Then the clusters' epochs are raised, and only then is the new file served. After a crash at
// any step, the next start finds one whole file: the old one, or the new one with its epochs raised.
import type { ClusterId } from '../../shared/runtime/ids.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { Pace } from '../../shared/runtime/pace.ts'
import type { ContentStore } from '../store/content/content-store.ts'
import type { Store } from '../store/store.ts'
import { createSetReader, replayClusters, type SetReader } from './replay.ts'
import { createShardFile, NEW_FILE, putInPlace, removeShardFile, type ShardFile } from './shard-file.ts'
import type { OpenedShards } from './shard-files.ts'
import type { ShardOrigin } from './shard-reader.ts'
import type { ServiceRevision } from './shards.ts'
import { inTurn } from './turns.ts'

export interface RewriteDeps {
  store: Pick<Store, 'clusterOrdinals' | 'desiredInCluster' | 'adoptShards'>
  content: ContentStore
  opened: Pick<OpenedShards, 'shards' | 'indexOf' | 'pathOf' | 'held' | 'reopen'>
  /** 128 random bits in hex. */
  newId(): string
  /** Epochs were raised in the fleet store: pages must carry them from now on. */
  onEpochsRaised(clusterIds: readonly ClusterId[]): Promise<void>
  pace: Pace
  log: Logger
  libraryDir?: string
}

/** Most of the file is copied during publications; the rest in the turn without any. */
const LAPS_MAX = 5

export async function rewriteShard(deps: RewriteDeps, index: number, origin: Exclude<ShardOrigin, 'created'>): Promise<void> {
  const { opened, store, newId, libraryDir } = deps
  const path = opened.pathOf(index) + NEW_FILE
  removeShardFile(path)
  const file = createShardFile({ path, newDbId: newId, ...(libraryDir === undefined ? {} : { libraryDir }) }, origin)
  let open = true
  const close = () => {
    if (open) file.close()
    open = false
  }
  try {
    const sets = createSetReader(deps.content)
    for (let lap = 0; lap < LAPS_MAX && (await follow(deps, index, file, sets)) > 0; ) lap += 1
    await inTurn(opened.shards, async () => {
      await follow(deps, index, file, sets)
      const { dbId } = file
      close()
      const clusterIds = await clustersOf(deps, index)
      await store.adoptShards([{ index, dbId, clusterIds }])
      await deps.onEpochsRaised(clusterIds)
      for (const clusterId of clusterIds) opened.shards.endTransfers(clusterId)
      opened.reopen(index, (old) => putInPlace(path, old))
      for (const clusterId of clusterIds) opened.shards.behind.caughtUp(clusterId)
      // Deleted while it was copied for the last time.
      const known = await store.clusterOrdinals()
      for (const clusterId of opened.held())
        if (opened.indexOf(clusterId) === index && !known.has(clusterId)) opened.shards.removeCluster(clusterId)
    })
  } finally {
    close()
    removeShardFile(path)
  }
}

const clustersOf = async ({ store, opened }: RewriteDeps, index: number): Promise<ClusterId[]> =>
  [...(await store.clusterOrdinals()).keys()].filter((clusterId) => opened.indexOf(clusterId) === index)

/** Clusters that are looked up before what they have is written. */
const BATCH = 50

/** Brings the new file to where the fleet store is; how many revisions that took. */
async function follow(deps: RewriteDeps, index: number, file: ShardFile, sets: SetReader): Promise<number> {
  const { store, content, opened, pace } = deps
  const shards = {
    shardOf: () => index,
    ordinal: (clusterId: ClusterId) => file.ordinal(clusterId),
    writeRevisions: (revisions: readonly ServiceRevision[]) => file.write(revisions).map((head) => ({ changed: head !== null })),
  }
  const ordinals = await store.clusterOrdinals()
  const lagging: ClusterId[] = []
  for (const [clusterId, ordinal] of ordinals)
    if (opened.indexOf(clusterId) === index && file.ordinal(clusterId) < ordinal) lagging.push(clusterId)
  let followed = 0
  for (let start = 0; start < lagging.length; start += BATCH)
    followed += await replayClusters({ store, content, shards, sets, pace }, lagging.slice(start, start + BATCH))
  for (const clusterId of file.clusters()) if (!ordinals.has(clusterId)) file.removeCluster(clusterId)
  return followed
}
