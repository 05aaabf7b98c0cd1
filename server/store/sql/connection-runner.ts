// Runs fleet queries over a connection of the server: on PostgreSQL in a read-only transaction that the database ends
// after its time, and on a store in memory.
import { type Kysely, sql } from 'kysely'
import { fitting } from '../../../shared/model/fleet-sql.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import type { Connections } from '../store-db.ts'
import type { Tables } from '../tables.ts'
import { failedQuery, type SqlRunner, type SqlStatement, timeIsUp } from './fleet-sql.ts'
import { createTurns, stopping } from './sqlite-runner.ts'

/** Others need connections, too. */
const AT_ONCE = 2
/** Rows that are read at once: an answer that is too large is noticed before all of it is in memory. */
const ROWS_A_TIME = 200
const WORK_MEMORY = '64MB'

type Row = Record<string, unknown>

export function createConnectionRunner({ reader, engine }: Pick<Connections, 'reader' | 'engine'>, clock: Clock): SqlRunner {
  const turns = createTurns(AT_ONCE, clock)
  return {
    run: (statement, signal) =>
      turns.run(async () => {
        const rows = engine === 'postgres' ? await inTransaction(reader, statement) : await inMemory(reader, statement)
        return fitting(rows, statement.rowsMax)
      }, signal),
    close: async () => turns.end(stopping),
  }
}

async function inMemory(reader: Kysely<Tables>, { sql: text, columns }: SqlStatement): Promise<unknown[][]> {
  const { rows } = await sql<Row>`${sql.raw(text)}`.execute(reader).catch(() => {
    throw failedQuery()
  })
  return rows.map((row) => columns.map((name) => row[name]))
}

async function inTransaction(reader: Kysely<Tables>, { sql: text, columns, rowsMax, msMax }: SqlStatement): Promise<unknown[][]> {
  try {
    return await reader.transaction().execute(async (trx) => {
      await sql`set transaction read only`.execute(trx)
      await sql`set local statement_timeout = ${sql.raw(String(msMax))}`.execute(trx)
      await sql`set local work_mem = ${sql.raw(`'${WORK_MEMORY}'`)}`.execute(trx)
      await sql`set local cursor_tuple_fraction = 1`.execute(trx)
      await sql`set local max_parallel_workers_per_gather = 0`.execute(trx)
      await sql`declare answer no scroll cursor for ${sql.raw(text)}`.execute(trx)
      const found: unknown[][] = []
      for (;;) {
        const { rows } = await sql<Row>`fetch ${sql.raw(String(ROWS_A_TIME))} from answer`.execute(trx)
        found.push(...rows.map((row) => columns.map((name) => row[name])))
        if (rows.length < ROWS_A_TIME || found.length > rowsMax || fitting(found, rowsMax).truncated) return found
      }
    })
  } catch (error) {
    if (codeOf(error) === QUERY_CANCELED) throw timeIsUp(msMax)
    throw error instanceof AppError ? error : failedQuery()
  }
}

const QUERY_CANCELED = '57014'

function codeOf(error: unknown): unknown {
  for (let at = error; at instanceof Error; at = at.cause)
    if ('code' in at && typeof at.code === 'string' && /^[0-9A-Z]{5}$/.test(at.code)) return at.code
  return null
}
