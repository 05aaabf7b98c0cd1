// Pushes of agents that are committed together, written together: what one statement costs is shared by all of them. A
// row of status has one writer, its agent; `rev` decides which of two copies is newer (PU2), never the order of
// arrival.
import type { ClusterId } from '../../../shared/runtime/ids.ts'
import type { StatusWrite } from '../../fleet/records.ts'
import { warning } from '../../messages/event-messages.ts'
import { type Bulk, runBulk, runIn } from '../bulk.ts'
import { placementKey } from '../counts/placement-counts.ts'
import type { Store } from '../store.ts'
import type { Tables } from '../tables.ts'
import { historyNotes, noteHistory } from './status-history.ts'
import { type ClusterRows, type NewRow, newestOfEachKey, STATUS_ROWS_PER_CLUSTER_MAX, writeRows } from './status-rows.ts'
import { forgetRemoved, makeRoom, nextSweep, removeOthers, removeOthersOfRange, type Sweep, sweepOf } from './status-sweep.ts'
import { noteChange, noteReports, type StatusTx } from './status-tx.ts'
import { appendEvents, fromStatus, type NewEvent } from './store-events.ts'

export interface Push {
  clusterId: ClusterId
  rows: readonly StatusWrite[]
  options: Parameters<Store['upsertStatus']>[2]
}
export type Pushed = Awaited<ReturnType<Store['upsertStatus']>>

type Cluster = Pick<
  Tables['clusters'],
  'cluster_id' | 'no' | 'name' | 'row_count' | 'status_rev' | 'status_floor' | 'sweep_from' | 'sweep_floor' | 'event_rev'
>

/** A push on its way into the store. */
interface Taken {
  push: Push
  cluster: Cluster
  newest: number
  /**
   * The bound of an inventory: a row that it does not name is gone if its rev is not greater. 0 if it is not an
   * inventory, or if nothing of it is new.
   */
  bound: number
  swept: Sweep
  events: StatusWrite[]
  /** Rows that it names. */
  named: NewRow[]
  of: ClusterRows
  gone: StatusWrite[]
}

/** Each of another cluster. */
export async function upsertStatuses(status: StatusTx, pushes: readonly Push[]): Promise<Pushed[]> {
  const clusters = await clustersOf(status, pushes)
  const taken = pushes.map((push) => {
    const cluster = clusters.get(push.clusterId)
    return cluster === undefined ? null : take(push, cluster)
  })
  const all = taken.filter((one) => one !== null)
  await status.pace()
  await status.dictionary.findNames(all.flatMap(({ named }) => named))
  for (const one of all) if (one.of.rowCount + one.named.length > STATUS_ROWS_PER_CLUSTER_MAX) await sweepForRoom(status, one)
  const rows = all.flatMap(({ named, cluster }) => named.filter(({ row }) => row.rev > cluster.status_floor))
  await writeRows(status, rows)
  for (const one of all) if (one.bound > 0) await sweep(status, one)
  await writeEvents(status, all)
  await status.pace()
  await writeClusters(status, all)
  await follow(status, all)
  return taken.map(answerTo)
}

const CLUSTER_COLUMNS = 'cluster_id, no, name, row_count, status_rev, status_floor, sweep_from, sweep_floor, event_rev'
const FIND_CLUSTERS: Bulk = {
  before: `select ${CLUSTER_COLUMNS} from clusters where cluster_id in (`,
  row: '?',
  after: ')',
  types: ['text'],
}

async function clustersOf({ tx, dictionary }: StatusTx, pushes: readonly Push[]): Promise<Map<ClusterId, Cluster>> {
  const ids = pushes.map(({ clusterId }) => clusterId)
  const found = await runIn<Cluster>(tx.sql, dictionary.engine, FIND_CLUSTERS, ids)
  return new Map(found.map((cluster) => [cluster.cluster_id, cluster]))
}

function take(push: Push, cluster: Cluster): Taken {
  const { complete, olderThan = 0, nowMs } = push.options
  const newest = push.rows.reduce((max, { rev }) => Math.max(max, rev), 0)
  const bound = complete === false ? 0 : Math.max(newest, olderThan - 1)
  const sweeps = complete !== false && bound > cluster.status_floor
  const of = { no: cluster.no, rowCount: cluster.row_count, nowMs, written: [], refused: [], reworded: [] }
  return {
    push,
    cluster,
    newest,
    bound: sweeps ? bound : 0,
    swept: sweeps ? nextSweep(cluster, complete, bound) : sweepOf(cluster),
    events: push.rows
      .filter(({ kind, doc, rev }) => kind === 'event' && doc !== null && rev > cluster.event_rev)
      .sort((a, b) => a.rev - b.rev),
    named: newestOfEachKey(of, push.rows),
    of,
    gone: [],
  }
}

/** PU8: removed rows make room, as far as needed, before new rows are refused. */
async function sweepForRoom(status: StatusTx, taken: Taken): Promise<void> {
  const { of, named, bound, push, gone } = taken
  const { complete } = push.options
  // All named rows stay here, removed or not: their own rows decide about them.
  const kept = named.map(({ row, nameId }) => ({ nameId, doc: row }))
  if (bound > 0 && complete === true) gone.push(...(await removeOthers(status, of, kept, bound)))
  if (bound > 0 && typeof complete === 'object') gone.push(...(await removeOthersOfRange(status, of, kept, bound, complete)))
  await makeRoom(status, of, named)
}

async function sweep(status: StatusTx, { of, cluster, named, bound, swept, push, gone }: Taken): Promise<void> {
  const { complete } = push.options
  const kept = named.map(({ row, nameId }) => ({ nameId, doc: row.doc }))
  if (complete === true) gone.push(...(await removeOthers(status, of, kept, bound)))
  if (typeof complete !== 'object') return
  gone.push(...(await removeOthersOfRange(status, of, kept, bound, complete)))
  if (swept.floor > cluster.status_floor) await forgetRemoved(status, of, swept.floor)
}

async function writeEvents({ tx, dictionary, eventBounds }: StatusTx, all: readonly Taken[]): Promise<void> {
  const ofClusters = all.map(({ events, cluster, of }) => {
    const told = events.map(({ doc }): NewEvent => ({ ...fromStatus(cluster.name, doc), clusterId: cluster.cluster_id }))
    return { cluster, admitted: eventBounds.admit(cluster.name, [...told, ...refusals(cluster, of)], of.nowMs) }
  })
  await appendEvents(
    tx,
    dictionary.engine,
    ofClusters.flatMap(({ admitted }) => admitted),
  )
  for (const { cluster, admitted } of ofClusters) if (admitted.length > 0) await eventBounds.prune(tx, cluster.name, admitted.length)
}

/** PU8: viewers of the cluster miss something. */
function refusals({ name, cluster_id }: Cluster, { refused, nowMs }: ClusterRows): NewEvent[] {
  const [first] = refused
  if (first === undefined) return []
  const said = warning('StatusRowsRefused', { most: STATUS_ROWS_PER_CLUSTER_MAX, count: refused.length, first })
  const about = { cluster: name, clusterId: cluster_id, project: null, service: null, object: null }
  return [{ ...about, ...said, atMs: nowMs }]
}

// The casts: PostgreSQL takes parameters in a list of values for text.
const WRITE_CLUSTERS: Bulk = {
  before: `update clusters set status_rev = v.column2, status_floor = v.column3, sweep_from = v.column4, sweep_floor = v.column5, event_rev = v.column6,
    row_count = v.column7 from (values`,
  row: `(${['bigint', 'bigint', 'bigint', 'text', 'bigint', 'bigint', 'bigint'].map((type) => `cast(? as ${type})`).join(', ')})`,
  after: ') as v where clusters.no = v.column1',
  types: ['bigint', 'bigint', 'bigint', 'text', 'bigint', 'bigint', 'bigint'],
}

const ackOf = ({ cluster, newest }: Taken): number => Math.max(cluster.status_rev, newest)

/**
 * A push without a change (a comparison, a repetition) writes nothing: ten thousand comparisons after an outage are no
 * reason to sync the disk.
 */
const isUnchanged = ({ cluster, newest, bound, events, of }: Taken): boolean =>
  newest <= cluster.status_rev && bound === 0 && events.length === 0 && of.rowCount === cluster.row_count

async function writeClusters({ tx, dictionary }: StatusTx, all: readonly Taken[]): Promise<void> {
  const changed = all.filter((taken) => !isUnchanged(taken))
  const values = changed.map((taken) => {
    const { cluster, swept, events, of } = taken
    return [cluster.no, ackOf(taken), swept.floor, swept.from, swept.pending, events.at(-1)?.rev ?? cluster.event_rev, of.rowCount]
  })
  await runBulk(tx.sql, dictionary.engine, WRITE_CLUSTERS, values)
}

/** Updates all that depends on changed rows. */
async function follow(status: StatusTx, all: readonly Taken[]): Promise<void> {
  const reports = all.flatMap(({ cluster, of, gone }) =>
    [...of.written, ...gone].map(({ kind, key, doc }) => ({ clusterId: cluster.cluster_id, kind, key, doc })),
  )
  const placed = await noteReports(status, reports)
  await status.pace()
  const notes = all.flatMap(({ of, cluster }) =>
    historyNotes(of.reworded).flatMap((note) =>
      // Keys that an agent invents have no history: it would grow without end.
      placed.has(placementKey(cluster.cluster_id, note)) ? [{ ...note, clusterNo: of.no, nowMs: of.nowMs }] : [],
    ),
  )
  await noteHistory(status.tx, notes)
  for (const { cluster, of, gone } of all) noteChange(status, cluster.cluster_id, [...of.written, ...gone])
}

function answerTo(taken: Taken | null): Pushed {
  if (taken === null) return { ack: 0, had: 0, changed: [] }
  const { of, gone, events, cluster } = taken
  const answer = { ack: ackOf(taken), had: cluster.status_rev, changed: [...of.written, ...gone, ...events] }
  return of.refused.length === 0 ? answer : { ...answer, tooMany: of.refused }
}
