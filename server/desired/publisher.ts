// The one way for revisions of services into clusters: content, then the fleet store, then the shard files (CU5). A crash in between is made good by replay at
// the next start. A commit may reach every cluster of the fleet: what is equal in them is computed once, and between two batches the server answers others.
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { isHealthRules, type ServiceRow } from '../../shared/model/desired.ts'
import type { ClusterId } from '../../shared/model/ids.ts'
import { assert } from '../../shared/runtime/assert.ts'
import type { Pace } from '../../shared/runtime/pace.ts'
import type { ContentStore } from '../store/content/content-store.ts'
import type { DesiredService } from '../store/records.ts'
import type { Store } from '../store/store.ts'
import { checkRows, decodeRenderedSet, encodeRenderedSet } from './rendered-set.ts'
import { replayClusters } from './replay.ts'
import { byShard, chunksOf } from './shard-chunks.ts'
import type { ServiceRevision, Shards } from './shards.ts'
import { inTurn } from './turns.ts'

export interface PublishDeps {
  store: Pick<Store, 'publish' | 'desiredInCluster'>
  content: ContentStore
  shards: Shards
  /** Without one, nobody else has a turn before all is done. */
  pace?: Pace
}

export interface Publication extends Omit<DesiredService, 'ordinal' | 'setSha'> {
  /** Row id → canonical JSON; empty for a tombstone or a removal order. Clusters that get the same set share one map: it is encoded and stored once. */
  objects: Objects
  /** RV3: an earlier revision of the service was aborted, and no agent may still get that one. Absent: false. */
  withdraw?: boolean
}
type Objects = ReadonlyMap<string, string>

/** One durable commit of the fleet store is for this many clusters: a few milliseconds. */
const BATCH = 128

/** Which of them changed anything, in their order. Unchanged: neither store nor shard wrote anything (RV4). What failed to reach a shard is made good by the
 *  next call, whatever that one publishes. */
export async function publishRevisions(deps: PublishDeps, publications: readonly Publication[]): Promise<boolean[]> {
  const prepared = await prepare(deps, publications)
  const changed = new Set<Publication>()
  const failures: unknown[] = []
  const order = byShard(deps.shards, publications)
  for (let start = 0; start === 0 || start < order.length; start += BATCH) {
    const batch = order.slice(start, start + BATCH)
    await inTurn(deps.shards, async (behind) => {
      failures.push(...(await catchUp(deps, behind)))
      if (batch.length === 0) return
      const { done, failed } = await publishBatch(deps, batch, prepared, behind)
      for (const publication of done) changed.add(publication)
      failures.push(...failed)
    })
    await deps.pace?.()
  }
  if (failures.length > 0) throw failures[0] // only now: a file that takes nothing keeps no other from it
  return publications.map((publication) => changed.has(publication))
}

/** What many publications share, by identity. */
interface Prepared {
  setShas: Map<Objects, string | null>
  docs: Map<ServiceRow, string>
  /** Sets that clusters had before; null: the content store has it no more. */
  before: Map<string, Objects | null>
  /** The order in which they came. */
  places: Map<Publication, number>
}

async function prepare({ content, pace }: PublishDeps, publications: readonly Publication[]): Promise<Prepared> {
  const places = new Map(publications.map((publication, index) => [publication, index]))
  const prepared: Prepared = { setShas: new Map(), docs: new Map(), before: new Map(), places }
  const { setShas, docs } = prepared
  for (const { doc, project, service, objects } of publications) {
    assert(doc !== null || objects.size === 0 || isHealthRules({ project, service }), 'a tombstone has no objects')
    if (doc !== null && !docs.has(doc)) {
      const text = canonicalJson(doc)
      checkRows([[`${project}/${service}`, text]])
      docs.set(doc, text)
    }
    if (!setShas.has(objects)) {
      checkRows(objects)
      setShas.set(objects, objects.size === 0 ? null : await content.put(encodeRenderedSet(objects)))
    }
    const turn = pace?.()
    if (turn !== undefined) await turn
  }
  return prepared
}

/** Of each file that takes nothing still, the failure of one cluster. */
async function catchUp(deps: PublishDeps, behind: Set<ClusterId>): Promise<unknown[]> {
  const failed = new Map<number, unknown>()
  for (const clusterId of behind) {
    const shard = deps.shards.shardOf(clusterId)
    if (failed.has(shard)) continue
    try {
      await replayClusters(deps, [clusterId])
      behind.delete(clusterId)
    } catch (error) {
      failed.set(shard, error)
    }
  }
  return [...failed.values()]
}

interface BatchOutcome {
  done: Publication[]
  /** Why files did not take theirs. */
  failed: unknown[]
}

async function publishBatch(
  deps: PublishDeps,
  batch: readonly Publication[],
  prepared: Prepared,
  behind: Set<ClusterId>,
): Promise<BatchOutcome> {
  await refreshContent(deps, batch, prepared)
  // By service, as they came: that is how the store writes them at once. Of one cluster both orders are the same.
  const ofStore = batch.toSorted((a, b) => (prepared.places.get(a) ?? 0) - (prepared.places.get(b) ?? 0))
  const published = await deps.store.publish(
    ofStore.map(({ objects, withdraw: _, ...row }) => ({ ...row, setSha: prepared.setShas.get(objects) ?? null })),
  )
  const revisions: Array<{ publication: Publication; revision: ServiceRevision }> = []
  for (const [index, publication] of ofStore.entries()) {
    const { changed, ordinal, before } = published[index] ?? { changed: false, ordinal: 0, before: null }
    if (!changed) continue
    const { clusterId, project, service, doc, objects, withdraw = false } = publication
    const serviceDoc = doc === null ? null : (prepared.docs.get(doc) ?? null)
    const held = before === null ? null : await setBefore(deps.content, prepared, before.setSha)
    const known = before === null || held === null ? {} : { before: { serviceDoc: before.doc, objects: held } }
    revisions.push({ publication, revision: { clusterId, project, service, ordinal, serviceDoc, objects, withdraw, ...known } })
  }
  await deps.pace?.()
  const inShards = byShard(
    deps.shards,
    revisions.map((one) => ({ ...one, clusterId: one.revision.clusterId })),
  )
  return writeShards(deps, inShards, behind)
}

/** ST12: what the commit begins to refer to counts as just put, however long ago that was. */
async function refreshContent({ content }: PublishDeps, batch: readonly Publication[], { setShas }: Prepared): Promise<void> {
  for (const objects of new Set(batch.map(({ objects }) => objects))) {
    const setSha = setShas.get(objects) ?? null
    if (setSha !== null && !(await content.refresh(setSha))) await content.put(encodeRenderedSet(objects))
  }
}

async function writeShards(
  { shards, pace }: PublishDeps,
  revisions: ReadonlyArray<{ publication: Publication; revision: ServiceRevision }>,
  behind: Set<ClusterId>,
): Promise<BatchOutcome> {
  const done: Publication[] = []
  const failed: unknown[] = []
  for (const chunk of chunksOf(shards, revisions)) {
    // After a revision that a cluster's shard could not take, a later one would hide it from replay (CU7).
    const writable = chunk.filter(({ revision }) => !behind.has(revision.clusterId))
    try {
      const written = shards.writeRevisions(writable.map(({ revision }) => revision))
      for (const [index, { publication }] of writable.entries()) if (written[index]?.changed) done.push(publication)
    } catch (error) {
      for (const { revision } of writable) behind.add(revision.clusterId)
      failed.push(error)
    }
    await pace?.(true) // the polls that were woken are answered before more are
  }
  return { done, failed }
}

const NOTHING: Objects = new Map()
/** Sets that are kept for a call. Clusters that follow one service have one or two; with more of them it costs less to read the shards. */
const SETS_BEFORE_MAX = 8

async function setBefore(content: ContentStore, { before, setShas }: Prepared, setSha: string | null): Promise<Objects | null> {
  if (setSha === null) return NOTHING
  const known = before.get(setSha)
  if (known !== undefined) return known
  if (before.size >= SETS_BEFORE_MAX) return null
  for (const [objects, sha] of setShas) if (sha === setSha) before.set(setSha, objects) // only the service's own row changed
  if (!before.has(setSha)) {
    const bytes = await content.get(setSha)
    before.set(setSha, bytes === null ? null : decodeRenderedSet(bytes))
  }
  return before.get(setSha) ?? null
}
