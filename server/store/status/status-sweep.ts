// Which rows of a cluster go because an inventory, whole or in ranges, does not name them (PU4), and rows that go with
// their service or cluster.

import { type InventoryRange, inRange } from '../../../shared/protocol/status.ts'
import type { StatusWrite } from '../../fleet/records.ts'
import { type Bulk, runIn } from '../bulk.ts'
import { byteOrder } from '../byte-order.ts'
import type { Tables } from '../tables.ts'
import type { RowKind } from './status-columns.ts'
import { type ClusterRows, type NewRow, STATUS_ROWS_PER_CLUSTER_MAX } from './status-rows.ts'
import { ROWS_A_TURN, type StatusTx } from './status-tx.ts'

/** A row with its name. */
export interface NamedRow {
  name_id: number
  kind: RowKind
  key: string
  rev: number
  state_id: number | null
  since_ms: number | null
  /** Only for the kind cluster. */
  doc: string | null
}
/** A row of a push. With `doc: null` the row is gone. */
export interface Named {
  nameId: number | null
  doc: unknown
}

/** PU4: what a complete inventory does not name is gone, and so is the memory of earlier removals: the floor stands for
 *  both. */
export async function removeOthers(status: StatusTx, of: ClusterRows, named: readonly Named[], floor: number): Promise<StatusWrite[]> {
  const kept = idsOf(named)
  const rows: StatusWrite[] = []
  for await (const held of heldRows(status, of.no)) {
    const gone = held.filter((row) => row.rev <= floor && !kept.has(row.name_id))
    rows.push(...gone.filter(isThere).map(({ kind, key }) => ({ kind, key, rev: floor, doc: null })))
    await dropRows(status, of, gone)
  }
  return rows.sort(byName)
}

/** PU4: as above, but only of a part. What goes stays as removed until a whole inventory, or ranges that make one,
 *  stand for it. */
export async function removeOthersOfRange(
  status: StatusTx,
  of: ClusterRows,
  named: readonly Named[],
  bound: number,
  range: InventoryRange,
): Promise<StatusWrite[]> {
  const kept = idsOf(named)
  const rows: StatusWrite[] = []
  for await (const held of heldRows(status, of.no)) {
    const gone = held.filter(
      (row) => row.rev <= bound && isThere(row) && !kept.has(row.name_id) && inRange(`${row.kind}/${row.key}`, range),
    )
    rows.push(...gone.map(({ kind, key }) => ({ kind, key, rev: bound, doc: null })))
    for (const row of gone) status.count(row, row, -1)
    await runIn(status.tx.sql, status.dictionary.engine, MARK_REMOVED, ids(gone), [bound, of.no])
  }
  return rows.sort(byName)
}

export interface Sweep {
  /** `status_floor`. */
  floor: number
  /** Where the next range has to begin. Null means none is under way. */
  from: string | null
  /** The floor when the last range has come. */
  pending: number
}
type Swept = Pick<Tables['clusters'], 'status_floor' | 'sweep_from' | 'sweep_floor'>
export const sweepOf = (cluster: Swept): Sweep => ({ floor: cluster.status_floor, from: cluster.sweep_from, pending: cluster.sweep_floor })

/** Ranges from the open beginning to the open end, each beginning where the one before it ended, are as good as one
 *  whole inventory. */
export function nextSweep(cluster: Swept, complete: true | InventoryRange, bound: number): Sweep {
  const { floor, from, pending } = sweepOf(cluster)
  if (complete === true) return { floor: bound, from: null, pending: 0 }
  const { after, upTo } = complete
  if (after !== null && after !== from) return { floor, from, pending } // a repeated one, or one of another sweep
  const reached = after === null ? bound : Math.min(pending, bound)
  return upTo === null ? { floor: Math.max(floor, reached), from: null, pending: 0 } : { floor, from: upTo, pending: reached }
}

/** The floor stands for those now. */
export async function forgetRemoved(status: StatusTx, of: ClusterRows, floor: number): Promise<void> {
  for await (const held of heldRows(status, of.no))
    await dropRows(
      status,
      of,
      held.filter((row) => row.rev <= floor && !isThere(row)),
    )
}

/** Removed rows to read, of which the older half may be deleted. */
const REMOVED_A_TIME = 2_000

/** PU8: of the rows that were removed, the oldest are forgotten when others need their room. A late copy of them would
 *  be taken for new then; a row that is refused would be missed. */
export async function makeRoom(status: StatusTx, of: ClusterRows, rows: readonly NewRow[]): Promise<void> {
  const named = new Set(rows.map(({ nameId }) => nameId))
  for (;;) {
    const missing = of.rowCount + rows.length - STATUS_ROWS_PER_CLUSTER_MAX
    if (missing <= 0) return
    const removed = await removedRows(status, of.no)
    const oldest = removed.filter(({ name_id }) => !named.has(name_id)).sort((a, b) => a.rev - b.rev)
    if (oldest.length === 0) return
    await dropRows(status, of, oldest.slice(0, Math.max(missing, Math.ceil(oldest.length / 2))))
    await status.pace()
  }
}

/** Some of them. */
const removedRows = (status: StatusTx, clusterNo: number): Promise<NamedRow[]> =>
  namedRows(status)
    .where('state_id', 'is', null)
    .where('since_ms', 'is', null)
    .where('status_rows.cluster_no', '=', clusterNo)
    .where('status_rows.doc', 'is', null)
    .limit(REMOVED_A_TIME)
    .execute()

const DROP_ROWS: Bulk = { before: 'delete from status_rows where cluster_no = ? and name_id in (', row: '?', after: ')', types: ['bigint'] }
const MARK_REMOVED: Bulk = {
  before: 'update status_rows set state_id = null, since_ms = null, doc = null, rev = ? where cluster_no = ? and name_id in (',
  row: '?',
  after: ')',
  types: ['bigint'],
}

/** With what they count. */
export async function dropRows(status: StatusTx, of: Pick<ClusterRows, 'no' | 'rowCount'>, rows: readonly NamedRow[]): Promise<void> {
  of.rowCount -= rows.length
  for (const row of rows) {
    status.count(row, row, -1)
    status.dictionary.countName(row.name_id, -1)
  }
  await runIn(status.tx.sql, status.dictionary.engine, DROP_ROWS, ids(rows), [of.no])
}

/** All rows of a cluster, in slices between which everybody else has a turn. */
export async function* heldRows(status: StatusTx, clusterNo: number): AsyncGenerator<NamedRow[]> {
  let after = 0
  for (;;) {
    const rows = await namedRows(status)
      .where('status_rows.cluster_no', '=', clusterNo)
      .where('name_id', '>', after)
      .orderBy('name_id')
      .limit(ROWS_A_TURN)
      .execute()
    if (rows.length > 0) yield rows
    if (rows.length < ROWS_A_TURN) return
    after = rows.at(-1)?.name_id ?? after
    await status.pace()
  }
}

/** Documents are read only where they are counted: those of services may be large. */
export const namedRows = ({ tx }: StatusTx) =>
  tx.sql
    .selectFrom('status_rows')
    .innerJoin('names', 'names.id', 'status_rows.name_id')
    .select((eb) => [
      'name_id',
      'names.kind',
      'names.key',
      'rev',
      'state_id',
      'since_ms',
      eb.case().when('names.kind', '=', 'cluster').then(eb.ref('status_rows.doc')).end().as('doc'),
    ])

/** Every kind but cluster has a state. */
const isThere = ({ state_id, doc }: NamedRow): boolean => state_id !== null || doc !== null
const ids = (rows: readonly NamedRow[]): number[] => rows.map(({ name_id }) => name_id)
const idsOf = (named: readonly Named[]): Set<number> => new Set(named.flatMap(({ nameId, doc }) => (doc === null ? [] : (nameId ?? []))))
const byName = (a: StatusWrite, b: StatusWrite): number => byteOrder(a.kind, b.kind) || byteOrder(a.key, b.key)
