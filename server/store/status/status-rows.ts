// Writes status rows of many clusters at once. There is no other writer meanwhile: a decision about a row that was read
// holds until the commit.

import type { StatusWrite } from '../../fleet/records.ts'
import { type Bulk, runBulk } from '../bulk.ts'
import type { Tables } from '../tables.ts'
import type { Numbered } from './dictionary.ts'
import { type RowKind, type StatusColumns, statusColumns } from './status-columns.ts'
import { ROWS_A_TURN, type StatusTx } from './status-tx.ts'

/** Rows of a cluster, removed ones included: past it new keys are refused (PU8). */
export const STATUS_ROWS_PER_CLUSTER_MAX = 100_000

export type RowWrite = StatusWrite & { kind: RowKind }

/** A cluster while its rows are written. */
export interface ClusterRows {
  readonly no: number
  /** How many it has. */
  rowCount: number
  readonly nowMs: number
  /** The writes that took effect, in the order of arrival. */
  written: RowWrite[]
  /** Keys that it has no room for. */
  refused: string[]
  /** Services that say another thing than before, or have another commit. */
  reworded: RowWrite[]
}

export interface NewRow extends Numbered {
  readonly of: ClusterRows
  readonly row: RowWrite
}

type Held = Pick<Tables['status_rows'], 'cluster_no' | 'name_id' | 'rev' | 'state_id' | 'since_ms' | 'doc'>

// The casts: PostgreSQL takes parameters in a list of values for text. A cross join: SQLite would otherwise read the
// whole table to meet a few values.
const FIND_ROWS: Bulk = {
  before: 'select r.cluster_no, r.name_id, r.rev, r.state_id, r.since_ms, r.doc from (values',
  row: '(cast(? as bigint), cast(? as bigint))',
  after: ') as v cross join status_rows r where r.cluster_no = v.column1 and r.name_id = v.column2',
  types: ['bigint', 'bigint'],
}
const WRITE_ROWS: Bulk = {
  before: 'insert into status_rows (cluster_no, name_id, rev, state_id, doc, since_ms, received_ms) values',
  row: '(?, ?, ?, ?, ?, ?, ?)',
  after:
    'on conflict (cluster_no, name_id) do update set rev = excluded.rev, state_id = excluded.state_id, doc = excluded.doc, since_ms = excluded.since_ms, received_ms = excluded.received_ms',
  types: ['bigint', 'bigint', 'bigint', 'bigint', 'text', 'bigint', 'bigint'],
}

/** PU2: of several copies of a row in one push the newest. One statement cannot touch a row twice on PostgreSQL. */
export function newestOfEachKey(of: ClusterRows, rows: readonly StatusWrite[]): NewRow[] {
  const newest = new Map<string, Map<string, NewRow>>()
  for (const row of rows) {
    if (!isRow(row)) continue
    const ofKind = newest.get(row.kind) ?? new Map<string, NewRow>()
    if (ofKind.size === 0) newest.set(row.kind, ofKind)
    const held = ofKind.get(row.key)
    if (held === undefined || row.rev > held.row.rev) ofKind.set(row.key, { of, row, nameId: null })
  }
  return [...newest.values()].flatMap((ofKind) => [...ofKind.values()])
}

const isRow = (row: StatusWrite): row is RowWrite => row.kind !== 'event'

/** Names were looked for (`findNames`); no row comes twice. */
export async function writeRows(status: StatusTx, pushed: readonly NewRow[]): Promise<void> {
  // In the order of the index by name: rows of many clusters go to the same pages one after the other, which is a third
  // of what writing them costs.
  const rows = [...pushed].sort((a, b) => (a.nameId ?? 0) - (b.nameId ?? 0) || a.of.no - b.of.no)
  for (let start = 0; start < rows.length; start += ROWS_A_TURN) {
    await writeSlice(status, rows.slice(start, start + ROWS_A_TURN))
    await status.pace()
  }
}

async function writeSlice(status: StatusTx, rows: readonly NewRow[]): Promise<void> {
  const { dictionary, tx } = status
  const held = await heldOf(status, rows)
  const newer = rows.filter((one) => isNewer(one, held.get(one)) && hasRoom(one, held.get(one)))
  await dictionary.addNames(newer.filter(({ nameId }) => nameId === null))

  const columns = newer.map(({ row }) => statusColumns(row.kind, row.doc))
  const stateIds = await stateIdsOf(status, columns)
  const values = newer.map((one, index) => {
    const { of, row } = one
    const nameId = one.nameId ?? 0
    const { sinceMs = null, doc = null } = columns[index] ?? {}
    const stateId = stateIds[index] ?? null
    const before = held.get(one)
    if (before === undefined) dictionary.countName(nameId, 1)
    // An object that says the same since another time counts as it did.
    if (before === undefined || row.kind !== 'object' || before.state_id !== stateId) {
      if (before !== undefined) status.count(row, before, -1)
      status.count(row, { state_id: stateId, since_ms: sinceMs, doc }, 1)
    }
    if (row.kind === 'service' && (before?.state_id !== stateId || appliesOther(before.doc, doc))) of.reworded.push(row)
    of.written.push(row)
    return [of.no, nameId, row.rev, stateId, doc, sinceMs, of.nowMs]
  })
  await runBulk(tx.sql, dictionary.engine, WRITE_ROWS, values)
}

async function heldOf({ dictionary, tx }: StatusTx, rows: readonly NewRow[]): Promise<Map<NewRow, Held>> {
  const byCluster = new Map<number, Map<number, NewRow>>()
  const keys: Array<[number, number]> = []
  for (const one of rows) {
    const id = one.nameId
    if (id === null) continue
    keys.push([one.of.no, id])
    const ofCluster = byCluster.get(one.of.no)
    if (ofCluster === undefined) byCluster.set(one.of.no, new Map([[id, one]]))
    else ofCluster.set(id, one)
  }
  const held = new Map<NewRow, Held>()
  for (const row of await runBulk<Held>(tx.sql, dictionary.engine, FIND_ROWS, keys)) {
    const one = byCluster.get(row.cluster_no)?.get(row.name_id)
    if (one !== undefined) held.set(one, row)
  }
  return held
}

/** HI2: whether two documents of a service tell of different commits. */
function appliesOther(before: string | null, now: string | null): boolean {
  if (before === now || before === null || now === null) return false
  return commitIn(before) !== commitIn(now)
}

function commitIn(doc: string): unknown {
  const { applied, received } = JSON.parse(doc) as Record<'applied' | 'received', { commit?: unknown } | undefined>
  return (applied ?? received)?.commit
}

/** PU2: only a greater rev counts. */
const isNewer = ({ row }: NewRow, held: Held | undefined): boolean => held === undefined || row.rev > held.rev

/** PU8: whether a new key fits below the limit of its cluster. */
function hasRoom({ of, row }: NewRow, held: Held | undefined): boolean {
  if (held !== undefined) return true
  if (of.rowCount < STATUS_ROWS_PER_CLUSTER_MAX) {
    of.rowCount += 1
    return true
  }
  of.refused.push(row.key)
  return false
}

/** Null for a row without one. */
async function stateIdsOf({ dictionary }: StatusTx, columns: readonly StatusColumns[]): Promise<Array<number | null>> {
  const ids = await dictionary.stateIds(columns.flatMap(({ state }) => state ?? []))
  let next = 0
  return columns.map(({ state }) => (state === null ? null : (ids[next++] ?? null)))
}
