// Kysely's own SqliteDialect over bun:sqlite. Kysely serialises everything on the one connection, so a transaction sees
// only itself; inside one, use `trx` and never the outer handle: that waits for the connection it holds itself.
import { type SqliteDatabase, SqliteDialect, type SqliteStatement } from 'kysely'
import { type Database, isCorrupt, isDiskFull, openSqlite, type SQLQueryBindings, type Statement } from '../../../shared/adapters/sqlite.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { describeError } from '../../../shared/runtime/loop.ts'

/** Prepared statements that are kept. Batches of unusual sizes push the oldest out. */
const STATEMENTS_MAX = 200

/** One connection: the rows of some thousand clusters. */
const CACHE_KIB = 8_192

/**
 * The cache of the writing connection: a commit of some thousand rows of as many clusters changes pages all over the
 * file, and pages that do not fit are written twice.
 */
const WRITER_CACHE_KIB = 32_768

/** Pages in the log at which the writer itself moves them into the file, on the server's only thread: twice of what the
 *  keeper of the log lets it become (`wal-keeper.ts`). */
const LOG_PAGES = 16_384

export function sqliteDialect(path: string, options: { readonly?: boolean; cacheKiB?: number } = {}): SqliteDialect {
  const { readonly = false, cacheKiB = readonly ? CACHE_KIB : WRITER_CACHE_KIB } = options
  const db = openSqlite(path, { synchronous: 'FULL', cacheKiB, readonly })
  if (!readonly) db.run(`PRAGMA wal_autocheckpoint=${LOG_PAGES}`)
  return dialectOver(db)
}

/** Closing it closes the connection. */
export const dialectOver = (db: Database): SqliteDialect => new SqliteDialect({ database: shim(db) })

function shim(db: Database): SqliteDatabase {
  const prepared = new Map<string, { statement: Statement; adapted: SqliteStatement }>()
  return {
    prepare(text) {
      // A read that turns into a write would lose to another process's write (SQLITE_BUSY_SNAPSHOT).
      const sql = text === 'begin' ? 'begin immediate' : text
      let held = prepared.get(sql)
      if (held === undefined) {
        const statement = named(() => db.prepare(sql))
        // A full disk or a failing one ends the transaction by itself, and a second end would hide the reason for the
        // first.
        held = { statement, adapted: adapt(statement, sql === 'rollback' ? () => db.inTransaction : undefined) }
        const oldest = prepared.size < STATEMENTS_MAX ? undefined : prepared.entries().next().value
        if (oldest !== undefined) {
          prepared.delete(oldest[0])
          oldest[1].statement.finalize()
        }
      } else prepared.delete(sql) // to the end: the map's order is by last use
      prepared.set(sql, held)
      return held.adapted
    },
    close() {
      for (const { statement } of prepared.values()) statement.finalize()
      prepared.clear()
      db.close(true)
    },
  }
}

/** `applies`: else running it does nothing. */
function adapt(statement: Statement, applies: () => boolean = () => true): SqliteStatement {
  const bindings = (parameters: readonly unknown[]) => parameters as SQLQueryBindings[]
  return {
    reader: statement.columnNames.length > 0,
    all: (parameters) => named(() => statement.all(...bindings(parameters))),
    run: (parameters) => (applies() ? named(() => statement.run(...bindings(parameters))) : NOTHING_RUN),
    iterate: (parameters) => statement.iterate(...bindings(parameters)),
  }
}

const NOTHING_RUN = { changes: 0, lastInsertRowid: 0 }

function named<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (isDiskFull(error)) throw new AppError('disk_full', { doing: 'write the fleet store' }, { cause: error })
    throw isCorrupt(error)
      ? new AppError('store_damaged', { doing: 'read the fleet store', detail: describeError(error) }, { cause: error })
      : error
  }
}
