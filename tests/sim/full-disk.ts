// Disks that are full for a while: every write below a folder fails as SQLite's do, with everything of its transaction
// undone. Set in the library's own classes, so that the product has no seam for it.
import { resolve } from 'node:path'
import { type Database, openSqlite, type Statement } from '../../shared/adapters/sqlite.ts'

const full = new Map<string, () => void>()
const databases = new WeakMap<object, Database>()

class SqliteFull extends Error {
  readonly code = 'SQLITE_FULL'
  readonly errno = 13
}

/** `met` is told of each write that fails. */
export const fillDisk = (folder: string, met: () => void): void => void full.set(resolve(folder), met)
export const freeDisk = (folder: string): void => void full.delete(resolve(folder))

function failWhenFull(db: Database): void {
  if (full.size === 0) return
  // A history names its files relative to its working directory, in more than one way.
  const path = resolve(db.filename)
  for (const [folder, met] of full) {
    if (!path.startsWith(`${folder}/`)) continue
    met()
    throw new SqliteFull('database or disk is full')
  }
}

/** When this file is loaded: a statement that was prepared before would never fail, in the first history of a process
 *  alone. */
function patch(): void {
  const probe = openSqlite(':memory:')
  const database = Object.getPrototypeOf(probe) as Database
  const statement = Object.getPrototypeOf(probe.prepare('SELECT 1')) as Statement
  probe.close()
  const { transaction, prepare, query, run } = database
  const { run: runStatement, all, get } = statement

  database.transaction = function (this: Database, work: (...args: never[]) => unknown) {
    const checked = (...args: never[]) => {
      const result = work(...args)
      failWhenFull(this)
      return result
    }
    return Reflect.apply(transaction, this, [checked])
  } as typeof transaction
  const remember = (made: typeof prepare) =>
    function (this: Database, ...args: Parameters<typeof prepare>) {
      const statement = Reflect.apply(made, this, args) as Statement
      databases.set(statement, this)
      return statement
    } as typeof prepare
  database.prepare = remember(prepare)
  database.query = remember(query as typeof prepare) as typeof query
  database.run = function (this: Database, sql: string, ...rest: unknown[]) {
    if (full.size > 0 && writes(this, sql)) failWhenFull(this)
    return Reflect.apply(run, this, [sql, ...rest])
  } as typeof run
  const guard = <T extends typeof all | typeof get | typeof runStatement>(method: T): T =>
    function (this: Statement, ...args: unknown[]) {
      const db = full.size === 0 ? undefined : databases.get(this)
      if (db !== undefined && !db.inTransaction && writes(db, this.toString())) failWhenFull(db)
      return Reflect.apply(method, this, args)
    } as unknown as T
  statement.run = guard(runStatement)
  statement.all = guard(all)
  statement.get = guard(get)
}

/** What needs a new page; a table that is there already needs none. */
function writes(db: Database, sql: string): boolean {
  const table = /^\s*CREATE TABLE IF NOT EXISTS (\w+)/i.exec(sql)?.[1]
  if (table !== undefined) return db.query<{ n: number }, [string]>('SELECT 1 AS n FROM sqlite_master WHERE name = ?').get(table) === null
  return /^\s*(INSERT|UPDATE|DELETE|CREATE|BEGIN IMMEDIATE|COMMIT)/i.test(sql)
}

patch()
