// One push of an agent. A row of status has one writer, its agent; `rev` decides which of two copies is newer (PU2), never the order of arrival.
import type { ClusterId } from '../../shared/model/ids.ts'
import { type Bulk, runBulk, runIn } from './bulk.ts'
import { nameText } from './dictionary.ts'
import { type RowKind, type StatusColumns, statusColumns } from './status-columns.ts'
import { historyNotes, noteHistory } from './status-history.ts'
import { forgetRemoved, nextSweep, removeOthers, removeOthersOfRange, sweepOf } from './status-sweep.ts'
import { noteReports, ROWS_A_TURN, type StatusTx } from './status-tx.ts'
import type { StatusWrite, Store } from './store.ts'
import { appendEvents, fromStatus } from './store-events.ts'
import type { Tables } from './tables.ts'

type Pushed = Awaited<ReturnType<Store['upsertStatus']>>
export type RowWrite = StatusWrite & { kind: RowKind }

export async function upsertStatus(
  status: StatusTx,
  clusterId: ClusterId,
  rows: readonly StatusWrite[],
  { complete, olderThan = 0, nowMs }: Parameters<Store['upsertStatus']>[2],
): Promise<Pushed> {
  const { sql: trx } = status.tx
  const cluster = await trx.selectFrom('clusters').selectAll().where('cluster_id', '=', clusterId).executeTakeFirst()
  if (cluster === undefined) return { ack: 0, had: 0, changed: [] }
  const newest = rows.reduce((max, row) => Math.max(max, row.rev), 0)
  /** What an inventory is about: a row that it does not name is gone if its rev is no greater. */
  const bound = complete === false ? 0 : Math.max(newest, olderThan - 1)

  const current = newestOfEachKey(rows.filter(isRow))
  await status.dictionary.findNames(current)
  const written = await writeRows(
    status,
    cluster.no,
    current.filter((row) => row.rev > cluster.status_floor),
    nowMs,
  )
  const sweeps = complete !== false && bound > cluster.status_floor
  let gone: { rows: StatusWrite[]; count: number } = { rows: [], count: 0 }
  if (sweeps && complete === true) gone = await removeOthers(status, cluster.no, current, bound)
  if (sweeps && complete !== true) gone = await removeOthersOfRange(status, cluster.no, current, bound, complete)
  const swept = sweeps ? nextSweep(cluster, complete, bound) : sweepOf(cluster)
  const forgotten = swept.floor > cluster.status_floor && complete !== true ? await forgetRemoved(status, cluster.no, swept.floor) : 0

  const events = rows.filter((row) => row.kind === 'event' && row.doc !== null && row.rev > cluster.event_rev).sort((a, b) => a.rev - b.rev)
  const said = events.map((row) => fromStatus(cluster.name, row.doc))
  await appendEvents(status.tx, status.dictionary.engine, said, clusterId)

  const ack = Math.max(cluster.status_rev, newest)
  await trx
    .updateTable('clusters')
    .set({
      status_rev: ack,
      status_floor: swept.floor,
      sweep_from: swept.from,
      sweep_floor: swept.pending,
      event_rev: events.at(-1)?.rev ?? cluster.event_rev,
      row_count: cluster.row_count + written.added - gone.count - forgotten,
    })
    .where('cluster_id', '=', clusterId)
    .execute()
  const changedRows = [...written.changed, ...gone.rows]
  await noteReports(status, clusterId, changedRows)
  await noteHistory(trx, cluster.no, historyNotes(written.changed), nowMs)
  noteChange(status, clusterId, changedRows)
  return { ack, had: cluster.status_rev, changed: [...changedRows, ...events] }
}

export function noteChange({ tx }: StatusTx, clusterId: ClusterId, rows: ReadonlyArray<{ kind: string; key: string }>): void {
  if (rows.length > 0) tx.changes.add({ topic: 'status', cluster: clusterId, keys: rows.map(({ kind, key }) => `${kind}/${key}`) })
}

const isRow = (row: StatusWrite): row is RowWrite => row.kind !== 'event'

/** One statement cannot touch a row twice on PostgreSQL. */
function newestOfEachKey(rows: readonly RowWrite[]): RowWrite[] {
  const byKey = new Map<string, RowWrite>()
  for (const row of rows) {
    const text = nameText(row.kind, row.key)
    const held = byKey.get(text)
    if (held === undefined || row.rev > held.rev) byKey.set(text, row)
  }
  return [...byKey.values()]
}

type Held = Pick<Tables['status_rows'], 'name_id' | 'rev' | 'state_id' | 'since_ms' | 'doc'>

const FIND_ROWS: Bulk = {
  before: 'select name_id, rev, state_id, since_ms, doc from status_rows where cluster_no = ? and name_id in (',
  row: '?',
  after: ')',
}
const WRITE_ROWS: Bulk = {
  before: 'insert into status_rows (cluster_no, name_id, rev, state_id, doc, since_ms, received_ms) values',
  row: '(?, ?, ?, ?, ?, ?, ?)',
  after:
    'on conflict (cluster_no, name_id) do update set rev = excluded.rev, state_id = excluded.state_id, doc = excluded.doc, since_ms = excluded.since_ms, received_ms = excluded.received_ms',
}

interface Written {
  changed: StatusWrite[]
  /** Rows that there are more of now. */
  added: number
}

async function writeRows(status: StatusTx, clusterNo: number, rows: readonly RowWrite[], nowMs: number): Promise<Written> {
  const all: Written = { changed: [], added: 0 }
  for (let start = 0; start < rows.length; start += ROWS_A_TURN) {
    const slice = rows.slice(start, start + ROWS_A_TURN)
    const { changed, added } = await writeSlice(status, clusterNo, slice, nowMs)
    all.changed.push(...changed)
    all.added += added
    await status.pace()
  }
  return all
}

async function writeSlice(status: StatusTx, clusterNo: number, rows: readonly RowWrite[], nowMs: number): Promise<Written> {
  const { dictionary, tx } = status
  const idOf = (row: RowWrite): number | undefined => dictionary.nameId(nameText(row.kind, row.key))
  const ids = rows.flatMap((row) => idOf(row) ?? [])
  const found = await runIn<Held>(tx.sql, dictionary.engine, FIND_ROWS, ids, [clusterNo])
  const held = new Map(found.map((row) => [row.name_id, row]))
  // Nobody else writes meanwhile: what is decided here holds until the commit.
  const changed = rows.filter((row) => isNewer(row, held.get(idOf(row) ?? 0)))
  await dictionary.addNames(changed.filter((row) => idOf(row) === undefined))

  const columns = changed.map(({ kind, doc }) => statusColumns(kind, doc))
  const stateIds = await stateIdsOf(status, columns)
  let added = 0
  const values = changed.map((row, index) => {
    const nameId = idOf(row) ?? 0
    const { sinceMs = null, doc = null } = columns[index] ?? {}
    const stateId = stateIds[index] ?? null
    const before = held.get(nameId)
    if (before === undefined) {
      added += 1
      dictionary.countName(nameId, 1)
    } else status.count({ ...before, kind: row.kind, key: row.key }, -1)
    status.count({ kind: row.kind, key: row.key, state_id: stateId, since_ms: sinceMs, doc }, 1)
    return [clusterNo, nameId, row.rev, stateId, doc, sinceMs, nowMs]
  })
  await runBulk(tx.sql, dictionary.engine, WRITE_ROWS, values)
  return { changed, added }
}

/** PU2 */
const isNewer = (row: RowWrite, held: Held | undefined): boolean => held === undefined || row.rev > held.rev

/** Null for a row without one. */
async function stateIdsOf({ dictionary }: StatusTx, columns: readonly StatusColumns[]): Promise<Array<number | null>> {
  const ids = await dictionary.stateIds(columns.flatMap(({ state }) => state ?? []))
  let next = 0
  return columns.map(({ state }) => (state === null ? null : (ids[next++] ?? null)))
}
