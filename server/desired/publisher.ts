// The one way for revisions of services into clusters: content, then the fleet store, then the shard files (CU5). A
// crash in between is made good by replay at the next start. A commit may reach every cluster of the fleet: what is
// equal in them is computed once, and between two batches the server answers others.
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { isFleetRows, objectRowPrefix, type ServiceRow } from '../../shared/model/desired.ts'
import { assert } from '../../shared/runtime/assert.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import type { Pace } from '../../shared/runtime/pace.ts'
import type { DesiredService } from '../fleet/records.ts'
import type { ContentStore } from '../store/content/content-store.ts'
import type { Store } from '../store/store.ts'
import { catchUp, FAILURES_MAX } from './catch-up.ts'
import { checkRows, decodeRenderedSet, encodeRenderedSet } from './rendered-set.ts'
import { byShard, chunksOf } from './shard-chunks.ts'
import type { ServiceRevision, Shards } from './shards.ts'
import { inTurn } from './turns.ts'

export interface PublishDeps {
  store: Pick<Store, 'publish' | 'desiredInCluster'>
  content: ContentStore
  shards: Shards
  /** Without one, no other work runs before all is done. */
  pace?: Pace
}

export interface Publication extends Omit<DesiredService, 'ordinal' | 'setSha'> {
  /** Row id → canonical JSON; empty for a tombstone or a removal order. Clusters that get the same set share one map:
   *  it is encoded and stored once. */
  objects: Objects
  /** RV3: an earlier revision of the service was aborted, and no agent may still get that one. Absent means false. */
  withdraw?: boolean
}
type Objects = ReadonlyMap<string, string>

/** One durable commit of the fleet store is for this many clusters: a few milliseconds. */
const BATCH = 128

/** Which of them changed anything, in their order. Unchanged: neither store nor shard wrote anything (RV4). A shard
 *  file that takes nothing fails no publication: its clusters are noted in `shards.behind` and catch up later (CU7).
 *  Throws what fails before: content, the fleet store, a row past the limits. */
export async function publishRevisions(deps: PublishDeps, publications: readonly Publication[]): Promise<boolean[]> {
  const prepared = await prepare(deps, publications)
  const changed = new Set<Publication>()
  const order = byShard(deps.shards, publications)
  for (let start = 0; start < order.length; start += BATCH) {
    const batch = order.slice(start, start + BATCH)
    await inTurn(deps.shards, async () => {
      await catchUp(deps, [...new Set(batch.map(({ clusterId }) => clusterId))])
      for (const publication of await publishBatch(deps, batch, prepared)) changed.add(publication)
    })
    await deps.pace?.()
  }
  return publications.map((publication) => changed.has(publication))
}

/** Parts that many publications share, by identity. */
interface Prepared {
  setShas: Map<Objects, string | null>
  docs: Map<ServiceRow, string>
  /** Sets that clusters had before. Null means that the content store has it no more. */
  before: Map<string, Objects | null>
  /** The order in which they came. */
  places: Map<Publication, number>
}

async function prepare({ content, pace }: PublishDeps, publications: readonly Publication[]): Promise<Prepared> {
  const places = new Map(publications.map((publication, index) => [publication, index]))
  const prepared: Prepared = { setShas: new Map(), docs: new Map(), before: new Map(), places }
  const { setShas, docs } = prepared
  for (const { doc, project, service, objects } of publications) {
    assert(doc !== null || objects.size === 0 || isFleetRows({ project, service }), 'a tombstone has no objects')
    const { value: first } = objects.keys().next()
    const isOwn = first === undefined || isFleetRows({ project, service }) || first.startsWith(objectRowPrefix({ project, service }))
    assert(isOwn, 'objects of another service')
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

type Stored = Awaited<ReturnType<PublishDeps['store']['publish']>>[number]
type Revised = { publication: Publication; revision: ServiceRevision }

/** Those that changed anything. */
async function publishBatch(deps: PublishDeps, batch: readonly Publication[], prepared: Prepared): Promise<Publication[]> {
  await refreshContent(deps, batch, prepared)
  // By service, as they came: that is how the store writes them at once. Of one cluster both orders are the same.
  const ofStore = batch.toSorted((a, b) => (prepared.places.get(a) ?? 0) - (prepared.places.get(b) ?? 0))
  const rows = ofStore.map(({ objects, withdraw: _, ...row }) => ({ ...row, setSha: prepared.setShas.get(objects) ?? null }))
  const stored = await deps.store.publish(rows).catch((error: unknown) => {
    for (const { clusterId } of rows) deps.shards.behind.failed(clusterId, error) // a lost connection does not say whether it was committed
    throw error
  })
  const changed = ofStore.flatMap((publication, index) => {
    const answer = stored[index]
    return answer?.changed === true ? [{ publication, answer }] : []
  })
  try {
    return await writeShards(deps, await revisionsOf(deps, changed, prepared))
  } catch (error) {
    for (const { publication } of changed) deps.shards.behind.failed(publication.clusterId, error) // the fleet store has them
    return changed.map(({ publication }) => publication)
  }
}

/** In the order in which shard files take them best. */
async function revisionsOf(
  { content, shards, pace }: PublishDeps,
  changed: ReadonlyArray<{ publication: Publication; answer: Stored }>,
  prepared: Prepared,
): Promise<Revised[]> {
  const revisions: Array<Revised & { clusterId: ClusterId }> = []
  for (const { publication, answer } of changed) {
    const { clusterId, project, service, doc, objects, withdraw = false, unproven } = publication
    const { ordinal, before } = answer
    const serviceDoc = doc === null ? null : (prepared.docs.get(doc) ?? null)
    const held = before === null ? null : await setBefore(content, prepared, before.setSha)
    const known = before === null || held === null ? {} : { before: { serviceDoc: before.doc, objects: held } }
    const mark = unproven === undefined ? {} : { unproven }
    const revision = { clusterId, project, service, ordinal, serviceDoc, objects, withdraw, ...known, ...mark }
    revisions.push({ clusterId, publication, revision })
  }
  await pace?.()
  return byShard(shards, revisions)
}

/** ST12: what the commit begins to refer to counts as just put, however long ago that was. */
async function refreshContent({ content }: PublishDeps, batch: readonly Publication[], { setShas }: Prepared): Promise<void> {
  for (const objects of new Set(batch.map(({ objects }) => objects))) {
    const setSha = setShas.get(objects) ?? null
    if (setSha !== null && !(await content.refresh(setSha))) await content.put(encodeRenderedSet(objects))
  }
}

async function writeShards({ shards, pace }: PublishDeps, revisions: readonly Revised[]): Promise<Publication[]> {
  const done: Publication[] = []
  for (const chunk of chunksOf(shards, revisions)) {
    // After a revision that a cluster's shard could not take, a later one would hide it from replay (CU7).
    const isLate = ({ revision }: Revised) => shards.behind.of(revision.clusterId) !== null
    for (const one of chunk) if (isLate(one)) done.push(one.publication)
    const writable = chunk.filter((one) => !isLate(one))
    try {
      done.push(...writeChunk(shards, writable))
    } catch (error) {
      done.push(...writeSingly(shards, writable, error))
    }
    await pace?.(true) // the polls that were woken are answered before more are
  }
  return done
}

function writeChunk(shards: Shards, chunk: readonly Revised[]): Publication[] {
  const written = shards.writeRevisions(chunk.map(({ revision }) => revision))
  return chunk.flatMap(({ publication }, index) => (written[index]?.changed === true ? [publication] : []))
}

/** Cluster by cluster, after all of them together failed: one of them alone may be why. */
function writeSingly(shards: Shards, chunk: readonly Revised[], error: unknown): Publication[] {
  const done: Publication[] = []
  let failures = 0
  let last = error
  for (const [clusterId, ofCluster] of Map.groupBy(chunk, ({ revision }) => revision.clusterId)) {
    try {
      if (failures >= FAILURES_MAX) throw last
      done.push(...writeChunk(shards, ofCluster))
      failures = 0
    } catch (error) {
      last = error
      failures += 1
      shards.behind.failed(clusterId, error)
      done.push(...ofCluster.map(({ publication }) => publication)) // the fleet store has it
    }
  }
  return done
}

const NOTHING: Objects = new Map()
/** Sets that are kept for a call. Clusters that follow one service have one or two; with more of them it costs less to
 *  read the shards. */
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
