// Many revisions in the order and in the portions in which shard files take them best. Neighbours in a file share its
// pages and are written together; a portion is one transaction of one file, and few milliseconds.
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { rowsToWrite } from './revision-changes.ts'
import type { ServiceRevision, Shards } from './shards.ts'

/** Rows of a portion, with what a version costs by itself and by the page that its agent then asks for. */
const CHUNK_ROWS = 350
const ROWS_OF_A_VERSION = 10

/** The order within one cluster stays. */
export function byShard<T extends { clusterId: ClusterId }>(shards: Pick<Shards, 'shardOf'>, items: readonly T[]): T[] {
  const placed = items.map((item) => ({ item, shard: shards.shardOf(item.clusterId) }))
  placed.sort((a, b) => a.shard - b.shard || compare(a.item.clusterId, b.item.clusterId))
  return placed.map(({ item }) => item)
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

export function* chunksOf<T extends { revision: ServiceRevision }>(shards: Pick<Shards, 'shardOf'>, items: readonly T[]): Iterable<T[]> {
  let chunk: T[] = []
  let [shard, rows] = [-1, 0]
  for (const item of items) {
    const of = shards.shardOf(item.revision.clusterId)
    if (chunk.length > 0 && (of !== shard || rows >= CHUNK_ROWS)) {
      yield chunk
      chunk = []
      rows = 0
    }
    shard = of
    rows += ROWS_OF_A_VERSION + rowsToWrite(item.revision)
    chunk.push(item)
  }
  if (chunk.length > 0) yield chunk
}
