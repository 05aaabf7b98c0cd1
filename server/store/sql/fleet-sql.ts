// Fleet queries: from the text of a caller to rows of the store. What a query may say is decided in shared/sql, which
// rows it sees in sight.ts; a runner carries it out.
import { SQL_MS_MAX, SQL_ROWS_DEFAULT, type SqlAnswer, type SqlQuestion } from '../../../shared/model/fleet-sql.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { parseQuery } from '../../../shared/sql/parse.ts'
import { writeQuery } from '../../../shared/sql/write.ts'
import type { Engine } from '../engines/engine.ts'
import type { ReadDb } from '../store-db.ts'
import { readLabels } from '../tables.ts'
import { asksLabels, type ClusterLabels, type SqlScopes, sightOf } from './sight.ts'
import { VIEW_NAMES, viewSql } from './views.ts'

export interface FleetSql {
  /** Throws `bad_query` and `query_limit`. */
  answer(question: SqlQuestion, scopes: SqlScopes, signal?: AbortSignal): Promise<SqlAnswer>
  /** Throws `bad_query` for a query that no caller can run. */
  check(sql: string): void
  close(): Promise<void>
}

export interface SqlStatement {
  sql: string
  columns: readonly string[]
  /** One row more than this is read. */
  rowsMax: number
  msMax: number
}

/** Carries out a statement over a connection that can only read, and ends it after its time. */
export interface SqlRunner {
  run(statement: SqlStatement, signal?: AbortSignal): Promise<Pick<SqlAnswer, 'rows' | 'truncated'>>
  close(): Promise<void>
}

export const timeIsUp = (msMax: number): AppError =>
  new AppError('query_limit', { doing: 'run the query', detail: `it was stopped after ${msMax / 1_000} s` })
export const memoryIsUp = (mib: number): AppError =>
  new AppError('query_limit', { doing: 'run the query', detail: `it used more than ${mib} MiB of memory` })
/** The error of a database without the values and names in its text. */
export const failedQuery = (): AppError =>
  new AppError('bad_query', {
    doing: 'run the query',
    detail: 'the database cannot compute it: a number is out of range, a CAST has no result, or texts and numbers are mixed',
  })

export interface FleetSqlOptions {
  /** The fleet is asked for when the labels of its clusters decide. */
  db(): ReadDb
  engine: Engine
  runner: SqlRunner
  clock: Clock
  msMax?: number
}

export function createFleetSql({ db, engine, runner, clock, msMax = SQL_MS_MAX }: FleetSqlOptions): FleetSql {
  return {
    answer: async ({ sql: text, limit = SQL_ROWS_DEFAULT }, scopes, signal) => {
      const startMs = clock.monotonicMs()
      const sight = sightOf(scopes, asksLabels(scopes) ? await labelsOfClusters(db()) : [])
      const nowMs = clock.nowMs()
      const view = (name: string) => viewSql(name, { engine, sight, nowMs })
      const { sql, columns } = writeQuery(parseQuery(text), { engine, nowMs, rowsMax: limit + 1, viewNames: VIEW_NAMES, view })
      const found = await runner.run({ sql, columns, rowsMax: limit, msMax }, signal)
      return { columns: [...columns], ...found, elapsedMs: Math.round(clock.monotonicMs() - startMs) }
    },
    check: (text) => {
      const view = (name: string) => viewSql(name, { engine, sight: sightOf(NOTHING, []), nowMs: 0 })
      writeQuery(parseQuery(text), { engine, nowMs: 0, rowsMax: 1, viewNames: VIEW_NAMES, view })
    },
    close: () => runner.close(),
  }
}

const NOTHING: SqlScopes = { services: [], clusters: [], repositories: [] }

async function labelsOfClusters(db: ReadDb): Promise<ClusterLabels[]> {
  const rows = await db
    .selectFrom('clusters')
    .leftJoin('resources', (join) => join.onRef('resources.name', '=', 'clusters.name').on('resources.kind', '=', 'Cluster'))
    .select(['clusters.no', 'resources.labels'])
    .execute()
  return rows.map(({ no, labels }) => ({ no, labels: labels === null ? {} : readLabels(labels) }))
}
