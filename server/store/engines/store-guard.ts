// Checks a fleet store's SQLite file before it is opened for writing. Nothing else holds its content: a damaged one is
// refused with the next step, and left unchanged.
import { existsSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { INDEXED_BYTES_MAX, isDamage, openSqlite, structureDamage } from '../../../shared/adapters/sqlite.ts'
import { syncPath } from '../../../shared/adapters/sync-path.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { describeError } from '../../../shared/runtime/loop.ts'
import { findLogLoss } from './log-loss.ts'

/** Throws `store_damaged`. */
export function refuseDamagedStore(path: string): void {
  const loss = findLogLoss(`${path}-wal`)
  if (loss !== null)
    throw storeDamaged(`${path}-wal is damaged at byte ${loss.at}, and SQLite would drop the ${loss.commits} commits after it`, {
      remedy: `${STEPS} Without a backup, \`truncate --size=${loss.at} ${path}-wal\` drops these commits and keeps the rest.`,
    })
  const damage = structureOf(path)
  if (damage !== null) throw storeDamaged(`${path}: ${damage}`)
}

/** A server whose keys are there had a store: without one it would begin empty, and every cluster and service would be
 *  gone. Throws `store_damaged`. */
export function refuseLostStore(path: string, hadStore: boolean): void {
  if (!hadStore || (existsSync(path) && !isEmpty(path))) return
  const remedy = `${STEPS} If the store is a database, set --store. To start with an empty store, move the folder keys elsewhere: all agents must then join again.`
  throw storeDamaged(`${path} is ${existsSync(path) ? 'empty' : 'missing'}, but the keys of its server exist`, { remedy })
}

/** The file that was being read, or a row of it, is not as the server wrote it. */
export const storeDamaged = (detail: string, { cause, remedy }: { cause?: unknown; remedy?: string } = {}): AppError =>
  new AppError('store_damaged', { doing: 'open the fleet store', detail, ...(remedy === undefined ? {} : { remedy }) }, { cause })

const STEPS = 'Stop the server, keep a copy of the data folder, and restore the newest backup (`skerry backup restore`).'

/** Creates the file under a temporary name, so that a crash leaves a whole store or none. */
export function createStoreFile(path: string, fill: (path: string) => void): void {
  const staged = `${path}.new`
  for (const suffix of ['', '-wal', '-shm']) rmSync(staged + suffix, { force: true })
  fill(staged)
  syncPath(staged)
  renameSync(staged, path)
  syncPath(dirname(path))
}

const structureOf = (path: string): string | null => looked(path, (db) => structureDamage(db, INDEXED_BYTES_MAX))

const isEmpty = (path: string): boolean =>
  looked(path, (db) => (db.query('SELECT 1 FROM sqlite_master LIMIT 1').get() === null ? '' : null)) === ''

/** Calls `look`; for a file that cannot be read, returns the reason. */
function looked(path: string, look: (db: ReturnType<typeof openSqlite>) => string | null): string | null {
  try {
    const db = openSqlite(path, { readonly: true })
    try {
      return look(db)
    } finally {
      db.close()
    }
  } catch (error) {
    if (isDamage(error)) return describeError(error)
    throw error
  }
}
