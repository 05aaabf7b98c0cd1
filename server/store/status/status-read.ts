// Statuses as they were written, from the columns that hold them: in slices, and by the way that leads to few rows.
import { setImmediate } from 'node:timers/promises'
import type { ClusterId } from '../../../shared/runtime/ids.ts'
import type { StatusEntry } from '../../fleet/records.ts'
import { AFTER_EVERY_KEY, byteOrder } from '../byte-order.ts'
import { SLICE_ROWS } from '../read-slices.ts'
import type { Store } from '../store.ts'
import type { ReadDb } from '../store-db.ts'
import type { Tables } from '../tables.ts'
import { isOfCluster, type RowKind, statusDoc } from './status-columns.ts'

type Query = Parameters<Store['listStatus']>[0]

/** Read whole rather than by names: other clusters may make up very many of them. */
const SMALL_CLUSTER_ROWS = 2_000
/** Names in one statement that looks for their rows. */
const NAMES_A_TIME = 200

export async function listStatus(db: () => ReadDb, { clusterId, kind, key, keyPrefix }: Query): Promise<StatusEntry[]> {
  const range = { kind, ...(key === undefined ? {} : { key }), ...(keyPrefix === undefined ? {} : { keyPrefix }) }
  const found: StatusEntry[] = []
  // Parsed slice by slice: of ten thousand clusters that is most of the work.
  const add = (rows: readonly StatusRow[]) => {
    for (const row of rows)
      if (row.kind === kind && (keyPrefix === undefined || row.key.startsWith(keyPrefix)) && (row.state_id !== null || row.doc !== null))
        found.push(toEntry(row))
  }
  if (clusterId === undefined) {
    for await (const names of nameSlices(db, range)) for await (const rows of rowsOfNames(db, names)) add(rows)
  } else {
    const cluster = await db().selectFrom('clusters').select(['no', 'row_count']).where('cluster_id', '=', clusterId).executeTakeFirst()
    if (cluster === undefined) return []
    // Each key has one name. For one service, or for services of a large cluster, names lead to fewer rows than the
    // cluster has.
    const isSmall = cluster.row_count <= SMALL_CLUSTER_ROWS
    const byName = isOfCluster(kind) || key !== undefined || (!isSmall && (kind === 'service' || keyPrefix !== undefined))
    const rows = byName ? namesInCluster(db, cluster.no, range) : rowsOfCluster(db, cluster.no, isSmall ? kind : null)
    for await (const some of rows) add(some)
  }
  return found.sort((a, b) => byteOrder(a.key, b.key) || byteOrder(a.clusterId, b.clusterId))
}

interface NameRange {
  kind: RowKind
  key?: string
  keyPrefix?: string
}

/** Numbers of the names in the range. */
async function* nameSlices(db: () => ReadDb, { kind, key, keyPrefix }: NameRange): AsyncGenerator<number[]> {
  let ofKind = db().selectFrom('names').select(['id', 'key']).where('kind', '=', kind)
  if (key !== undefined) ofKind = ofKind.where('key', '=', key)
  if (keyPrefix !== undefined) ofKind = ofKind.where('key', '>=', keyPrefix).where('key', '<', keyPrefix + AFTER_EVERY_KEY)
  const ordered = ofKind.orderBy('key').limit(NAMES_A_TIME)
  for (let after: string | null = null; ; ) {
    const names: Array<{ id: number; key: string }> = await (after === null ? ordered : ordered.where('key', '>', after)).execute()
    if (names.length > 0) yield names.map(({ id }) => id).sort((a, b) => a - b)
    if (names.length < NAMES_A_TIME) return
    after = names.at(-1)?.key ?? after
    await setImmediate()
  }
}

async function* rowsOfNames(db: () => ReadDb, ids: readonly number[]): AsyncGenerator<StatusRow[]> {
  let rest = ids
  while (rest.length > 0) {
    const rows: StatusRow[] = await statusRows(db())
      .where('name_id', 'in', rest)
      .orderBy('name_id')
      .orderBy('cluster_no')
      .limit(SLICE_ROWS)
      .execute()
    yield rows
    const last = rows.at(-1)
    if (last === undefined || rows.length < SLICE_ROWS) return
    await setImmediate()
    yield* restOfName(db, last)
    rest = rest.filter((id) => id > last.name_id)
  }
}

async function* restOfName(db: () => ReadDb, { name_id, cluster_no }: StatusRow): AsyncGenerator<StatusRow[]> {
  for (let after = cluster_no; ; ) {
    const ofName = statusRows(db()).where('name_id', '=', name_id).where('cluster_no', '>', after)
    const rows: StatusRow[] = await ofName.orderBy('cluster_no').limit(SLICE_ROWS).execute()
    yield rows
    if (rows.length < SLICE_ROWS) return
    after = rows.at(-1)?.cluster_no ?? after
    await setImmediate()
  }
}

async function* namesInCluster(db: () => ReadDb, no: number, range: NameRange): AsyncGenerator<StatusRow[]> {
  for await (const ids of nameSlices(db, range))
    yield await statusRows(db()).where('cluster_no', '=', no).where('name_id', 'in', ids).execute()
}

/** `kind`: only of this one; of many rows that would make a slice as long as all of them. */
async function* rowsOfCluster(db: () => ReadDb, no: number, kind: RowKind | null): AsyncGenerator<StatusRow[]> {
  for (let after = 0; ; ) {
    let ofCluster = statusRows(db()).where('cluster_no', '=', no).where('name_id', '>', after)
    if (kind !== null) ofCluster = ofCluster.where('names.kind', '=', kind)
    const rows: StatusRow[] = await ofCluster.orderBy('name_id').limit(SLICE_ROWS).execute()
    yield rows
    if (rows.length < SLICE_ROWS) return
    after = rows.at(-1)?.name_id ?? after
    await setImmediate()
  }
}

const statusRows = (db: ReadDb) =>
  db
    .selectFrom('status_rows')
    .innerJoin('names', 'names.id', 'status_rows.name_id')
    .innerJoin('clusters', 'clusters.no', 'status_rows.cluster_no')
    .leftJoin('states', 'states.id', 'status_rows.state_id')
    .select(['clusters.cluster_id', 'names.kind', 'names.key', 'status_rows.cluster_no', 'status_rows.name_id', 'status_rows.state_id'])
    .select(['status_rows.rev', 'status_rows.doc', 'status_rows.since_ms', 'status_rows.received_ms'])
    .select(['states.sync', 'states.health', 'states.reason', 'states.message', 'states.images'])

type StatusRow = Omit<Tables['status_rows'], never> & { cluster_id: ClusterId; kind: RowKind; key: string } & {
  [K in 'sync' | 'health' | 'reason' | 'message' | 'images']: Tables['states'][K] | null
}

function toEntry({ sync, health, reason, message, images, ...row }: StatusRow): StatusEntry {
  const known = sync !== null && health !== null && reason !== null && message !== null
  const state = known ? { sync, health, reason, message, images } : null
  const doc = statusDoc({ state, sinceMs: row.since_ms, doc: row.doc })
  return { clusterId: row.cluster_id, kind: row.kind, key: row.key, rev: row.rev, doc, receivedMs: row.received_ms }
}
