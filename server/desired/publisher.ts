// The one way for a revision of a service into a cluster: content, then the fleet store, then the shard file (CU5). A crash in between is made
// good by replay at the next start.
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { assert } from '../../shared/runtime/assert.ts'
import type { ContentStore } from '../store/content-store.ts'
import type { DesiredService, Store } from '../store/store.ts'
import { checkRowSizes, encodeRenderedSet } from './rendered-set.ts'
import type { Shards } from './shards.ts'

export interface PublishDeps {
  store: Pick<Store, 'publish'>
  content: ContentStore
  shards: Shards
}

const lastPublish = new WeakMap<Shards, Promise<unknown>>()

/** `objects`: row id → canonical JSON; empty for a tombstone or a removal order. Unchanged: neither store nor shard wrote anything (RV4). */
export async function publishService(
  deps: PublishDeps,
  row: Omit<DesiredService, 'ordinal' | 'setSha'>,
  objects: ReadonlyMap<string, string>,
): Promise<{ changed: boolean }> {
  assert(row.doc !== null || objects.size === 0, 'a tombstone has no objects')
  const serviceDoc = row.doc === null ? null : canonicalJson(row.doc)
  checkRowSizes([...objects, [row.service, serviceDoc ?? '']])
  const setSha = objects.size === 0 ? null : await deps.content.put(encodeRenderedSet(objects))
  // One at a time: were a later ordinal in the shard before an earlier one, a crash between them would hide the earlier from replay (CU7).
  const before = lastPublish.get(deps.shards)
  const write = (async () => {
    await before?.catch(() => {})
    const published = await deps.store.publish({ ...row, setSha })
    if (!published.changed) return { changed: false }
    const { clusterId, project, service } = row
    return deps.shards.writeRevision({ clusterId, project, service, ordinal: published.ordinal, serviceDoc, objects })
  })()
  lastPublish.set(deps.shards, write)
  return write
}
