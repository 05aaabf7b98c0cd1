// The importer of bun:sqlite. One open function, because four of SQLite's and Bun's defaults are wrong for us.
import { Database, type SQLQueryBindings, type Statement } from 'bun:sqlite'

export type { Database, SQLQueryBindings, Statement }

export interface OpenOptions {
  readonly?: boolean
  /** FULL for what exists nowhere else, NORMAL for a replica (rows and cursor roll back together), OFF for what can be
   *  rebuilt (CU5). */
  synchronous?: 'FULL' | 'NORMAL' | 'OFF'
  /**
   * DELETE only for the lock file: a WAL cannot be locked whole. MEMORY only while a file is built that no other
   * process reads, and that is dropped if that fails.
   */
  journal?: 'WAL' | 'DELETE' | 'MEMORY'
  busyTimeoutMs?: number
  /** Pages that a connection keeps; SQLite's own choice is 2,000 KiB. What many connections keep is what the process
   *  weighs. */
  cacheKiB?: number
}

export const BUSY_TIMEOUT_MS = 5_000

export function openSqlite(path: string, options: OpenOptions = {}): Database {
  return prepared(
    options.readonly
      ? new Database(path, { readonly: true, strict: true })
      : new Database(path, { create: true, readwrite: true, strict: true }),
    options,
  )
}

/** A database in memory that begins as a copy of another one (`Database.serialize`). */
export const copyInMemory = (contents: Uint8Array, options: OpenOptions = {}): Database =>
  prepared(Database.deserialize(contents, { strict: true }), options)

function prepared(db: Database, options: OpenOptions): Database {
  db.run(`PRAGMA busy_timeout=${options.busyTimeoutMs ?? BUSY_TIMEOUT_MS}`) // Bun's default is 0
  db.run('PRAGMA trusted_schema=OFF')
  db.run('PRAGMA temp_store=MEMORY') // on a read-only root a spilling sort has no other place (SQLITE_IOERR_GETTEMPPATH)
  if (options.cacheKiB !== undefined) db.run(`PRAGMA cache_size=-${options.cacheKiB}`)
  if (!options.readonly) {
    db.run(`PRAGMA journal_mode=${options.journal ?? 'WAL'}`)
    db.run(`PRAGMA synchronous=${options.synchronous ?? 'FULL'}`)
  }
  return db
}

/** A write transaction. BEGIN IMMEDIATE, because a read that turns into a write loses to a faster writer
 *  (SQLITE_BUSY_SNAPSHOT). The type refuses a promise: Bun would commit at the first await. */
export function writeTransaction<T>(db: Database, work: () => T extends Promise<unknown> ? never : T): T {
  return transactionOf(db).immediate(work) as T
}

/** One read snapshot over several statements. */
export function readTransaction<T>(db: Database, work: () => T extends Promise<unknown> ? never : T): T {
  return transactionOf(db).deferred(work) as T
}

type Transaction = ReturnType<Database['transaction']>
const transactions = new WeakMap<Database, Transaction>()

/** One for each connection: Bun needs longer to make one than a small transaction takes. */
function transactionOf(db: Database): Transaction {
  const known = transactions.get(db)
  if (known !== undefined) return known
  const made: Transaction = db.transaction((work: () => unknown) => work())
  transactions.set(db, made)
  return made
}

/** True when SQLite could not write because the disk is full or refuses writes. */
export function isDiskFull(error: unknown): boolean {
  const code = codeOf(error)
  return (
    code.startsWith('SQLITE_FULL') ||
    code === 'SQLITE_IOERR_SHMSIZE' || // the index of the log found no space: what an opening on a full disk says
    code === 'ENOSPC' ||
    code === 'disk_full' || // told by another part before
    /disk is full|no space left/i.test(error instanceof Error ? error.message : '')
  )
}

/** A check found that this program did not write the file, or that the file was changed since. */
export class DamagedFile extends Error {}

/** True when the file is not what it should be: what was asked of it can never be answered from it. */
export function isDamage(error: unknown): boolean {
  return error instanceof DamagedFile || isCorrupt(error) || /^SQLITE_(ERROR|CONSTRAINT|MISMATCH|FORMAT)/.test(codeOf(error))
}

/** True when the bytes of the file are damaged, whatever was asked of it. */
export function isCorrupt(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined
  return /^SQLITE_(CORRUPT|NOTADB|IOERR_(SHORT_READ|CORRUPTFS|DATA))/.test(codeOf(error)) || (cause !== undefined && isCorrupt(cause))
}

const codeOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '')

/** Null means that the structure is intact. Reads every row. Compares indexes with rows, too, which takes five times as
 *  long, if the file has `indexedBytesMax` at most. */
export function structureDamage(db: Database, indexedBytesMax = 0): string | null {
  const size = db.query<{ bytes: number }, []>('SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size').get()
  const check = (size?.bytes ?? 0) <= indexedBytesMax ? 'integrity_check' : 'quick_check'
  const found = db.query(`PRAGMA ${check}(1)`).values()[0]?.[0]
  return found === 'ok' ? null : `${check}: ${found ?? 'no answer'}`
}

/** About a second. */
export const INDEXED_BYTES_MAX = 64 * 1_048_576
