// Which rows of a cluster go because an inventory, whole or in ranges, does not name them (PU4), and rows that go with their service or cluster.

import { type InventoryRange, inRange } from '../../shared/protocol/status.ts'
import { type Bulk, runIn } from './bulk.ts'
import { byteOrder } from './byte-order.ts'
import { nameText } from './dictionary.ts'
import type { RowKind } from './status-columns.ts'
import { ROWS_A_TURN, type StatusTx } from './status-tx.ts'
import type { StatusWrite } from './store.ts'
import type { Tables } from './tables.ts'

/** A row with its name. */
export interface NamedRow {
  name_id: number
  kind: RowKind
  key: string
  rev: number
  state_id: number | null
  since_ms: number | null
  /** Of kind cluster only. */
  doc: string | null
}
export type Named = StatusWrite & { kind: RowKind }
export interface Gone {
  rows: StatusWrite[]
  /** Rows that there are fewer of now. */
  count: number
}

/** PU4: what a complete inventory does not name is gone, and so is the memory of earlier removals: the floor stands for both. */
export async function removeOthers(status: StatusTx, clusterNo: number, named: readonly Named[], floor: number): Promise<Gone> {
  const kept = idsOf(status, named)
  const rows: StatusWrite[] = []
  let count = 0
  for await (const held of heldRows(status, clusterNo)) {
    const gone = held.filter((row) => row.rev <= floor && !kept.has(row.name_id))
    count += gone.length
    rows.push(...gone.filter(isThere).map(({ kind, key }) => ({ kind, key, rev: floor, doc: null })))
    await dropRows(status, clusterNo, gone)
  }
  return { rows: rows.sort(byName), count }
}

/** PU4: as above, but only of a part. What goes stays as removed until a whole inventory, or ranges that make one, stand for it. */
export async function removeOthersOfRange(
  status: StatusTx,
  clusterNo: number,
  named: readonly Named[],
  bound: number,
  range: InventoryRange,
): Promise<Gone> {
  const kept = idsOf(status, named)
  const rows: StatusWrite[] = []
  for await (const held of heldRows(status, clusterNo)) {
    const gone = held.filter(
      (row) => row.rev <= bound && isThere(row) && !kept.has(row.name_id) && inRange(`${row.kind}/${row.key}`, range),
    )
    rows.push(...gone.map(({ kind, key }) => ({ kind, key, rev: bound, doc: null })))
    for (const row of gone) status.count(row, -1)
    await runIn(status.tx.sql, status.dictionary.engine, MARK_REMOVED, ids(gone), [bound, clusterNo])
  }
  return { rows: rows.sort(byName), count: 0 }
}

interface Sweep {
  /** `status_floor`. */
  floor: number
  /** Where the next range has to begin; null: none is under way. */
  from: string | null
  /** The floor when the last range has come. */
  pending: number
}
export const sweepOf = (cluster: Tables['clusters']): Sweep => ({
  floor: cluster.status_floor,
  from: cluster.sweep_from,
  pending: cluster.sweep_floor,
})

/** Ranges from the open beginning to the open end, each beginning where the one before it ended, are as good as one whole inventory. */
export function nextSweep(cluster: Tables['clusters'], complete: true | InventoryRange, bound: number): Sweep {
  const { floor, from, pending } = sweepOf(cluster)
  if (complete === true) return { floor: bound, from: null, pending: 0 }
  const { after, upTo } = complete
  if (after !== null && after !== from) return { floor, from, pending } // a repeated one, or one of another sweep
  const reached = after === null ? bound : Math.min(pending, bound)
  return upTo === null ? { floor: Math.max(floor, reached), from: null, pending: 0 } : { floor, from: upTo, pending: reached }
}

/** The floor stands for those now. Returns how many. */
export async function forgetRemoved(status: StatusTx, clusterNo: number, floor: number): Promise<number> {
  let count = 0
  for await (const held of heldRows(status, clusterNo)) {
    const gone = held.filter((row) => row.rev <= floor && !isThere(row))
    count += gone.length
    await dropRows(status, clusterNo, gone)
  }
  return count
}

const DROP_ROWS: Bulk = { before: 'delete from status_rows where cluster_no = ? and name_id in (', row: '?', after: ')' }
const MARK_REMOVED: Bulk = {
  before: 'update status_rows set state_id = null, since_ms = null, doc = null, rev = ? where cluster_no = ? and name_id in (',
  row: '?',
  after: ')',
}

/** With what they count. `row_count` is for the caller. */
export async function dropRows(status: StatusTx, clusterNo: number, rows: readonly NamedRow[]): Promise<void> {
  for (const row of rows) {
    status.count(row, -1)
    status.dictionary.countName(row.name_id, -1)
  }
  await runIn(status.tx.sql, status.dictionary.engine, DROP_ROWS, ids(rows), [clusterNo])
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
const idsOf = ({ dictionary }: StatusTx, named: readonly Named[]): Set<number> =>
  new Set(named.flatMap(({ kind, key, doc }) => (doc === null ? [] : (dictionary.nameId(nameText(kind, key)) ?? []))))
const byName = (a: StatusWrite, b: StatusWrite): number => byteOrder(a.kind, b.kind) || byteOrder(a.key, b.key)
