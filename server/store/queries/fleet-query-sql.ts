// The statements of fleet queries: numbers in, numbers out, each led by one index. What they mean as text is in the
// dictionary (fleet-dictionary.ts).
import { type RawBuilder, type Sql, sql } from 'kysely'
import type { Engine } from '../engines/engine.ts'
import type { ReadDb } from '../store-db.ts'
import type { Tables } from '../tables.ts'
import type { Position } from './fleet-queries.ts'

/** A row of status. Null means that a statement that is led by names does not have it, or its agent removed it. */
export interface StatusRow {
  cluster_no: number
  name_id: number
  state_id: number | null
  since_ms: number | null
}

/** Rows in the order of a query, and where the page ends. */
export interface RowPage {
  rows: StatusRow[]
  next: Position | null
}

/** The key of a row. */
export type RowKey = Pick<StatusRow, 'cluster_no' | 'name_id'>

/** One text for any number of values, so that it is prepared once. */
const oneOf = (engine: Engine, column: string, values: readonly number[]): RawBuilder<boolean> =>
  engine === 'sqlite'
    ? sql`${sql.ref(column)} in (select value from json_each(${JSON.stringify(values)}))`
    : sql`${sql.ref(column)} = any(${values}::bigint[])`

const COLUMNS = sql`cluster_no, name_id, state_id, since_ms`

export class StatusRows {
  readonly #db: ReadDb
  readonly #engine: Engine
  /** Rows that were fetched. */
  fetched = 0

  constructor(db: ReadDb, engine: Engine) {
    this.#db = db
    this.#engine = engine
  }

  async ofClusters(numbers: readonly number[], max: number): Promise<StatusRow[]> {
    return this.#run(
      sql`select ${COLUMNS} from status_rows where ${oneOf(this.#engine, 'cluster_no', numbers)} and state_id is not null limit ${max}`,
    )
  }

  /** For these names in these clusters: a lookup in the table for each pair of them. */
  async ofClustersAndNames(numbers: readonly number[], ids: readonly number[]): Promise<StatusRow[]> {
    const [clusters, names] = [this.#each('cluster', numbers), this.#each('name', ids)]
    const looks = numbers.length * ids.length
    const rows =
      await this.#run(sql`select s.cluster_no, s.name_id, s.state_id, s.since_ms from ${clusters} cross join ${names} cross join status_rows as s
      where s.cluster_no = cluster.value and s.name_id = name.value and s.state_id is not null`)
    this.fetched += Math.max(0, looks - rows.length)
    return rows
  }

  async ofStates(ids: readonly number[], max: number): Promise<StatusRow[]> {
    return this.#run(sql`select ${COLUMNS} from status_rows where ${oneOf(this.#engine, 'state_id', ids)} limit ${max}`)
  }

  /** Without their states: removed ones are among them. */
  async bareOfNames(ids: readonly number[], max: number): Promise<StatusRow[]> {
    const nothing = this.#engine === 'sqlite' ? sql`null` : sql`null::bigint`
    return this.#run(
      sql`select cluster_no, name_id, ${nothing} as state_id, ${nothing} as since_ms from status_rows where ${oneOf(this.#engine, 'name_id', ids)} limit ${max}`,
    )
  }

  async ofNames(ids: readonly number[], max: number): Promise<StatusRow[]> {
    return this.#run(
      sql`select ${COLUMNS} from status_rows where ${oneOf(this.#engine, 'name_id', ids)} and state_id is not null limit ${max}`,
    )
  }

  /** Those that are there and not removed, in no order. */
  async ofPairs(pairs: readonly RowKey[]): Promise<StatusRow[]> {
    if (pairs.length === 0) return []
    const rows = await this.#run(
      sql`select s.cluster_no, s.name_id, s.state_id, s.since_ms from ${this.#pairs(pairs)} and s.state_id is not null`,
    )
    // Looks that find nothing cost as much.
    this.fetched += Math.max(0, pairs.length - rows.length)
    return rows
  }

  /** Their documents. */
  async docsOfPairs(pairs: readonly RowKey[]): Promise<ReadonlyArray<RowKey & { doc: string }>> {
    if (pairs.length === 0) return []
    const { rows } = await sql<RowKey & { doc: string }>`
      select s.cluster_no, s.name_id, s.doc from ${this.#pairs(pairs)} and s.doc is not null`.execute(this.#db)
    return rows
  }

  /** Values as a table of that name. */
  #each(name: string, values: readonly number[]): RawBuilder<unknown> {
    return this.#engine === 'sqlite'
      ? sql`json_each(${JSON.stringify(values)}) as ${sql.raw(name)}`
      : sql`unnest(${values}::bigint[]) as ${sql.raw(name)}(value)`
  }

  /** The whole texts of states. */
  async textsOfStates(ids: readonly number[]): Promise<Map<number, Pick<Tables['states'], 'message' | 'images'>>> {
    if (ids.length === 0) return new Map()
    const { rows } = await sql<{ id: number } & Pick<Tables['states'], 'message' | 'images'>>`
      select id, message, images from states where ${oneOf(this.#engine, 'id', ids)}`.execute(this.#db)
    return new Map(rows.map(({ id, ...texts }) => [id, texts]))
  }

  /** A cross join: planners that may choose would begin with all rows. */
  #pairs(pairs: readonly RowKey[]): RawBuilder<unknown> {
    const [numbers, ids] = [pairs.map(({ cluster_no }) => cluster_no), pairs.map(({ name_id }) => name_id)]
    return this.#engine === 'sqlite'
      ? sql`json_each(${JSON.stringify(numbers.map((no, index) => [no, ids[index]]))}) as pair cross join status_rows as s
        where s.cluster_no = (pair.value ->> 0) and s.name_id = (pair.value ->> 1)`
      : sql`unnest(${numbers}::bigint[], ${ids}::bigint[]) as pair(cluster_no, name_id) cross join status_rows as s
        where s.cluster_no = pair.cluster_no and s.name_id = pair.name_id`
  }

  /** The rows of one state, from the newest (or oldest) that is not beyond `from`. */
  async ofState(id: number, order: 'newest' | 'oldest', from: number, max: number): Promise<StatusRow[]> {
    const tail = order === 'newest' ? sql`since_ms <= ${from} order by since_ms desc` : sql`since_ms >= ${from} order by since_ms`
    return this.#run(sql`select ${COLUMNS} from status_rows where state_id = ${id} and ${tail} limit ${max}`)
  }

  /** The rows of these states, from `from` to `to`, both included. */
  async ofStatesBetween(ids: readonly number[], from: number, to: number, max: number): Promise<StatusRow[]> {
    if (ids.length === 0) return []
    return this.#run(
      sql`select ${COLUMNS} from status_rows where ${oneOf(this.#engine, 'state_id', ids)} and since_ms >= ${from} and since_ms <= ${to} limit ${max}`,
    )
  }

  /** The first (newest: last) time of these states. Null means that they have no rows. */
  async endOfStates(ids: readonly number[], end: 'newest' | 'oldest'): Promise<number | null> {
    const most = end === 'newest' ? sql`max` : sql`min`
    const from = this.#engine === 'sqlite' ? sql`json_each(${JSON.stringify(ids)}) as one` : sql`unnest(${ids}::bigint[]) as one(value)`
    const each = sql`select (select ${most}(since_ms) from status_rows where state_id = one.value) as at from ${from}`
    const { rows } = await sql<{ at: number | null }>`select ${most}(at) as at from (${each}) as each`.execute(this.#db)
    return rows[0]?.at ?? null
  }

  async #run(statement: ReturnType<Sql>): Promise<StatusRow[]> {
    const { rows } = await (statement as RawBuilder<StatusRow>).execute(this.#db)
    this.fetched += rows.length
    return rows
  }
}
