// Schema 3, the rows that agents reported: from text to numbers. It runs once, maybe over millions of rows: cluster by
// cluster in slices, so that memory does not grow with the fleet, all in the transaction of the migration.
import { sql, type Transaction } from 'kysely'
import {
  type NameParts,
  nameParts,
  type RowKind,
  type StateParts,
  type StatusColumns,
  stateDigest,
  stateText,
  statusColumns,
} from '../status/status-columns.ts'
import type { Tables } from '../tables.ts'
import type { Ddl } from './ddl.ts'

/** Rows of schema 2. */
export type OldStatuses = {
  statuses: { cluster_id: string; kind: RowKind; key: string; rev: number; doc: string | null; received_ms: number }
}
type OldRow = OldStatuses['statuses']
type OldTrx = Transaction<Tables & OldStatuses>
type NewState = StateParts & { digest: string }

/** Rows that are read at once. */
const SLICE_ROWS = 2_000
/** Rows in one statement. */
const BATCH_ROWS = 500
/** Names and states that are remembered; the others are looked up again. */
const REMEMBERED_MAX = 200_000

export async function moveStatuses({ trx, progress }: Ddl): Promise<void> {
  const old = trx.withTables<OldStatuses>()
  const dictionary = createDictionary(trx)
  const { total } = await old
    .selectFrom('statuses')
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow()
  let done = 0
  // In the order of their numbers, so that the new table only grows at its end.
  for (const cluster of await trx.selectFrom('clusters').select(['cluster_id', 'no']).orderBy('no').execute()) {
    for (let after: OldRow | null = null; ; ) {
      const rows: OldRow[] = await readSlice(old, cluster.cluster_id, after)
      await insertRows(trx, cluster.no, rows, dictionary)
      done += rows.length
      progress?.({ what: 'status rows', done, total: Number(total) })
      after = rows.at(-1) ?? null
      if (rows.length < SLICE_ROWS) break
    }
  }
}

/** After the indices are there. */
export async function countReferences({ trx }: Ddl): Promise<void> {
  const rows = (column: 'name_id' | 'state_id', id: string) =>
    sql<number>`(select count(*) from status_rows where status_rows.${sql.ref(column)} = ${sql.ref(id)})`
  await trx
    .updateTable('names')
    .set({ refs: rows('name_id', 'names.id') })
    .execute()
  await trx
    .updateTable('states')
    .set({ refs: rows('state_id', 'states.id') })
    .execute()
  const ofCluster = sql<number>`(select count(*) from status_rows where status_rows.cluster_no = clusters.no)`
  await trx.updateTable('clusters').set({ row_count: ofCluster }).execute()
}

async function readSlice(old: OldTrx, clusterId: string, after: OldRow | null): Promise<OldRow[]> {
  let query = old
    .selectFrom('statuses')
    .selectAll()
    .where('cluster_id', '=', clusterId as Tables['clusters']['cluster_id'])
  if (after !== null) query = query.where(sql<boolean>`(kind, key) > (${after.kind}, ${after.key})`)
  return query.orderBy('kind').orderBy('key').limit(SLICE_ROWS).execute()
}

async function insertRows(trx: Transaction<Tables>, clusterNo: number, rows: readonly OldRow[], dictionary: Dictionary): Promise<void> {
  for (let start = 0; start < rows.length; start += BATCH_ROWS) {
    const batch = rows.slice(start, start + BATCH_ROWS).map((row) => ({ row, said: whatItSays(row) }))
    const nameIds = await dictionary.names(batch.map(({ row }) => nameParts(row.kind, row.key)))
    const stateIds = await dictionary.states(batch.flatMap(({ said }) => said.state ?? []))
    const values = batch.flatMap(({ row, said }): Array<Tables['status_rows']> => {
      const name_id = nameIds.get(nameKey(row))
      if (name_id === undefined) return []
      return [
        {
          cluster_no: clusterNo,
          name_id,
          rev: row.rev,
          state_id: said.state === null ? null : (stateIds.get(said.state.digest) ?? null),
          doc: said.doc,
          since_ms: said.sinceMs,
          received_ms: row.received_ms,
        },
      ]
    })
    await trx.insertInto('status_rows').values(values).execute()
  }
}

interface Said extends Omit<StatusColumns, 'state'> {
  state: NewState | null
}

const REMOVED: Said = { state: null, sinceMs: null, doc: null }

/** An unreadable document counts as removed: its agent reports it again with its next change. */
function whatItSays({ kind, doc }: Pick<OldRow, 'kind' | 'doc'>): Said {
  if (doc === null) return REMOVED
  const parsed = parseObject(doc)
  if (parsed === null) return REMOVED
  const { state, ...columns } = statusColumns(kind, parsed)
  return { ...columns, state: state && { ...state, digest: stateDigest(stateText(state)) } }
}

function parseObject(doc: string): object | null {
  try {
    const parsed: unknown = JSON.parse(doc)
    return typeof parsed === 'object' ? parsed : null
  } catch {
    return null
  }
}

const nameKey = ({ kind, key }: Pick<OldRow, 'kind' | 'key'>): string => `${kind} ${key}`

interface Dictionary {
  /** By `kind key`. */
  names(columns: readonly NameParts[]): Promise<ReadonlyMap<string, number>>
  /** By digest. */
  states(columns: readonly NewState[]): Promise<ReadonlyMap<string, number>>
}

function createDictionary(trx: Transaction<Tables>): Dictionary {
  const names = new Map<string, number>()
  const states = new Map<string, number>()
  return {
    names: async (columns) => {
      if (names.size > REMEMBERED_MAX) names.clear()
      const missing = new Map(columns.filter((one) => !names.has(nameKey(one))).map((one) => [nameKey(one), one]))
      if (missing.size === 0) return names
      const keys = sql.join([...missing.values()].map(({ kind, key }) => sql`(${kind}, ${key})`))
      const found = await trx
        .selectFrom('names')
        .select(['id', 'kind', 'key'])
        .where(sql<boolean>`(kind, key) in (values ${keys})`)
        .execute()
      for (const row of found) {
        names.set(nameKey(row), row.id)
        missing.delete(nameKey(row))
      }
      if (missing.size === 0) return names
      const values = [...missing.values()].map((one) => ({ ...one, refs: 0 }))
      const added = await trx.insertInto('names').values(values).returning(['id', 'kind', 'key']).execute()
      for (const row of added) names.set(nameKey(row), row.id)
      return names
    },
    states: async (columns) => {
      if (states.size > REMEMBERED_MAX) states.clear()
      const missing = new Map(columns.filter(({ digest }) => !states.has(digest)).map((one) => [one.digest, one]))
      if (missing.size === 0) return states
      const found = await trx
        .selectFrom('states')
        .select(['id', 'digest'])
        .where('digest', 'in', [...missing.keys()])
        .execute()
      for (const row of found) {
        states.set(row.digest, row.id)
        missing.delete(row.digest)
      }
      if (missing.size === 0) return states
      const values = [...missing.values()].map((one) => ({ ...one, refs: 0 }))
      const added = await trx.insertInto('states').values(values).returning(['id', 'digest']).execute()
      for (const row of added) states.set(row.digest, row.id)
      return states
    },
  }
}
