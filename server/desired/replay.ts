// Rows of the fleet store that a shard file lacks (CU7): at the start after a crash between the two, or in a rebuilt
// file; later after a failed write, or during a rewrite.
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { Pace } from '../../shared/runtime/pace.ts'
import type { DesiredService } from '../fleet/records.ts'
import type { ContentStore } from '../store/content/content-store.ts'
import type { Store } from '../store/store.ts'
import { decodeRenderedSet } from './rendered-set.ts'
import { byShard, chunksOf } from './shard-chunks.ts'
import type { ServiceRevision, Shards } from './shards.ts'

export interface ReplayDeps {
  store: Pick<Store, 'clusterOrdinals' | 'desiredInCluster'>
  content: ContentStore
  shards: Pick<Shards, 'ordinal' | 'shardOf' | 'writeRevisions'>
  log: Logger
  pace?: Pace
}

/** Clusters that are looked up before what they lack is written; and a word in the log for each so many. */
const BATCH = 100
const TELL_AFTER = 1_000

/** Returns how many revisions were written. Fails when content is missing: serving a shard that lacks a revision would
 *  tell agents less than the truth. */
export async function replayShards({ store, content, shards, log, pace }: ReplayDeps): Promise<number> {
  const ordinals = [...(await store.clusterOrdinals())].map(([clusterId, ordinal]) => ({ clusterId, ordinal }))
  const lagging = byShard(
    shards,
    ordinals.filter(({ clusterId, ordinal }) => shards.ordinal(clusterId) < ordinal),
  )
  const sets = createSetReader(content)
  let written = 0
  for (let start = 0; start < lagging.length; start += BATCH) {
    if (start > 0 && start % TELL_AFTER === 0) log.info('shards are being replayed', { clusters: start, of: lagging.length })
    const batch = lagging.slice(start, start + BATCH).map(({ clusterId }) => clusterId)
    written += await replayClusters({ store, content, shards, sets, ...(pace === undefined ? {} : { pace }) }, batch)
  }
  if (written > 0) log.info('shards replayed from the fleet store', { revisions: written })
  return written
}

/** Writes the rows that the shards of these clusters lack, in order. */
export async function replayClusters(
  {
    store,
    content,
    shards,
    sets = createSetReader(content),
    pace,
  }: Omit<ReplayDeps, 'store' | 'log'> & {
    store: Pick<Store, 'desiredInCluster'>
    sets?: SetReader
  },
  clusterIds: readonly ClusterId[],
): Promise<number> {
  const found: Array<{ revision: ServiceRevision }> = []
  for (const clusterId of clusterIds) {
    for (const row of missing(await store.desiredInCluster(clusterId), shards.ordinal(clusterId)))
      found.push({ revision: { ...row, serviceDoc: row.doc === null ? null : canonicalJson(row.doc), objects: await sets(row) } })
    await pace?.()
  }
  for (const chunk of chunksOf(shards, found)) {
    shards.writeRevisions(chunk.map(({ revision }) => revision))
    await pace?.()
  }
  return found.length
}

const missing = (rows: readonly DesiredService[], held: number): DesiredService[] =>
  rows.filter(({ ordinal }) => ordinal > held).sort((a, b) => a.ordinal - b.ordinal)

/** The object rows of a revision. */
export type SetReader = (revision: Pick<DesiredService, 'setSha' | 'project' | 'service'>) => Promise<ReadonlyMap<string, string>>

/** Sets that are kept, because the next cluster has most likely the same: small ones, or one large one. */
const KEPT_ROWS_MAX = 20_000

export function createSetReader(content: Pick<ContentStore, 'get'>): SetReader {
  const kept = new Map<string, ReadonlyMap<string, string>>()
  let rows = 0
  return async ({ setSha, project, service }) => {
    if (setSha === null) return new Map()
    const known = kept.get(setSha)
    if (known !== undefined) return known
    const bytes = await content.get(setSha)
    if (bytes === null)
      throw new AppError('internal', { doing: 'replay shards', detail: `the content store lacks ${setSha} of ${project}/${service}` })
    const set = decodeRenderedSet(bytes)
    kept.set(setSha, set)
    rows += set.size
    for (const [oldest, { size }] of kept) {
      if (rows <= KEPT_ROWS_MAX || oldest === setSha) break
      kept.delete(oldest)
      rows -= size
    }
    return set
  }
}
