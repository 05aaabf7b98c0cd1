// The one way for revisions of services into clusters: content, then the fleet store, then the shard files (CU5). A crash in between is made good by replay at
// the next start.
import { setImmediate } from 'node:timers/promises'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import type { ClusterId } from '../../shared/model/ids.ts'
import { assert } from '../../shared/runtime/assert.ts'
import type { ContentStore } from '../store/content-store.ts'
import type { DesiredService, Store } from '../store/store.ts'
import { checkRows, encodeRenderedSet } from './rendered-set.ts'
import { replayCluster } from './replay.ts'
import type { Shards } from './shards.ts'

export interface PublishDeps {
  store: Pick<Store, 'publish' | 'desiredInCluster'>
  content: ContentStore
  shards: Shards
}

export interface Publication extends Omit<DesiredService, 'ordinal' | 'setSha'> {
  /** Row id → canonical JSON; empty for a tombstone or a removal order. Clusters that get the same set share one map: it is encoded and stored once. */
  objects: ReadonlyMap<string, string>
}

/** One durable commit of the fleet store is for this many; between them the server answers others. */
const BATCH = 100

interface Turns {
  last: Promise<unknown>
  /** Clusters of which the fleet store holds more than the shard, because writing the shard failed (a full disk). */
  behind: Set<ClusterId>
}
const turnsOf = new WeakMap<Shards, Turns>()

/** Which of them changed anything, in their order. Unchanged: neither store nor shard wrote anything (RV4). What failed to reach a shard is made good by the
 *  next call, whatever that one publishes. */
export async function publishRevisions(deps: PublishDeps, publications: readonly Publication[]): Promise<boolean[]> {
  const encoded = new Map<ReadonlyMap<string, string>, string | null>()
  for (const { doc, project, service, objects } of publications) {
    assert(doc !== null || objects.size === 0, 'a tombstone has no objects')
    checkRows([[`${project}/${service}`, doc === null ? '' : canonicalJson(doc)]])
    if (encoded.has(objects)) continue
    checkRows(objects)
    encoded.set(objects, objects.size === 0 ? null : await deps.content.put(encodeRenderedSet(objects)))
  }
  const changed: boolean[] = []
  for (let start = 0; start === 0 || start < publications.length; start += BATCH) {
    if (start > 0) await setImmediate()
    const batch = publications.slice(start, start + BATCH)
    changed.push(...(await inTurn(deps.shards, (behind) => publishBatch(deps, batch, encoded, behind))))
  }
  return changed
}

async function publishBatch(
  deps: PublishDeps,
  batch: readonly Publication[],
  encoded: ReadonlyMap<ReadonlyMap<string, string>, string | null>,
  behind: Set<ClusterId>,
): Promise<boolean[]> {
  const { store, shards } = deps
  for (const clusterId of behind) {
    await replayCluster(deps, clusterId)
    behind.delete(clusterId)
  }
  if (batch.length === 0) return []
  const rows = batch.map(({ objects, ...row }) => ({ ...row, setSha: encoded.get(objects) ?? null }))
  const published = await store.publish(rows)
  const failures: unknown[] = []
  const changed = batch.map(({ clusterId, project, service, doc, objects }, index) => {
    const { changed, ordinal } = published[index] ?? { changed: false, ordinal: 0 }
    if (!changed) return false
    const serviceDoc = doc === null ? null : canonicalJson(doc)
    try {
      return shards.writeRevision({ clusterId, project, service, ordinal, serviceDoc, objects }).changed
    } catch (error) {
      behind.add(clusterId)
      failures.push(error)
      return false
    }
  })
  if (failures.length > 0) throw failures[0]
  return changed
}

/** One at a time: were a later ordinal in the shard before an earlier one, a crash between them would hide the earlier from replay (CU7). */
function inTurn<T>(shards: Shards, work: (behind: Set<ClusterId>) => Promise<T>): Promise<T> {
  const turns: Turns = turnsOf.get(shards) ?? { last: Promise.resolve(), behind: new Set() }
  const mine = turns.last.catch(() => {}).then(() => work(turns.behind))
  turnsOf.set(shards, { ...turns, last: mine })
  return mine
}
