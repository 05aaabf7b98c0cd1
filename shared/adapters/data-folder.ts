// The one folder a program may write to.
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { AppError } from '../runtime/error.ts'
import { type Database, openSqlite } from './sqlite.ts'

export interface DataFolder {
  path: string
  /**
   * Different for each running machine and each lock file, so that no two living processes share it: a copy of the
   * folder is at another place, and the folder itself admits one process. Null means that the machine does not reveal
   * it.
   */
  place: string | null
  /** Lets another process in. The lock also ends with the process, however it ends. */
  unlock(): void
}

/** Makes the folder (0700), takes it for this process alone, and changes into it: on a read-only root SQLite has no
 *  other place for temporary files. */
export function openDataFolder(folder: string): DataFolder {
  const path = resolve(folder)
  try {
    const made = mkdirSync(path, { recursive: true, mode: 0o700 })
    if (made === undefined && (statSync(path).mode & 0o077) !== 0 && statSync(path).uid === process.getuid?.()) chmodSync(path, 0o700)
    process.chdir(path)
  } catch (error) {
    throw new AppError(
      'data_unusable',
      { doing: 'open the data folder', detail: `${path}: ${error instanceof Error ? error.message : error}` },
      { cause: error },
    )
  }
  const unlock = lock(path)
  return { path, place: placeOf(path), unlock }
}

const LOCK_FILE = 'lock.sqlite'
/** Drawn by the kernel at each boot, the same in every container of a machine. */
const BOOT_ID_FILE = '/proc/sys/kernel/random/boot_id'

/** The file is open, so its number on the device is taken. */
function placeOf(path: string): string | null {
  try {
    const { dev, ino } = statSync(join(path, LOCK_FILE), { bigint: true })
    const boot = bootId()
    return boot === null ? null : createHash('sha256').update(`${boot} ${dev} ${ino}`).digest('hex').slice(0, 32)
  } catch {
    return null // every start is as good as another place
  }
}

/** Null on another kernel, or without /proc. */
export function bootId(): string | null {
  try {
    return readFileSync(BOOT_ID_FILE, 'utf8').trim() || null
  } catch {
    return null
  }
}

/** Open locks, held here because a collected handle would close and unlock. */
const held = new Set<Database>()

/** `skerry-agent status` looks into the folder of an agent that does not run: one that starts at that moment waits for
 *  it. */
const LOCK_PATIENCE_MS = 2_000

/** An open exclusive transaction is a lock that the kernel takes back when the process dies; a pid file would stay. */
function lock(path: string): () => void {
  let db: Database | undefined
  try {
    db = openSqlite(join(path, LOCK_FILE), { journal: 'DELETE', busyTimeoutMs: LOCK_PATIENCE_MS })
    db.run('BEGIN EXCLUSIVE')
    held.add(db)
  } catch (error) {
    db?.close()
    throw new AppError('data_locked', { doing: 'open the data folder', detail: `${path} is in use by another process` }, { cause: error })
  }
  const handle = db
  return () => {
    held.delete(handle)
    handle.close()
  }
}

/** Whether a program holds the folder now. Only reads: a program that starts meanwhile is not blocked. */
export function isFolderInUse(folder: string): boolean {
  const path = join(resolve(folder), LOCK_FILE)
  if (!existsSync(path)) return false
  const db = openSqlite(path, { readonly: true, busyTimeoutMs: 0 })
  try {
    db.query('SELECT 1 FROM sqlite_master').all()
    return false
  } catch (error) {
    if (error instanceof Error && 'code' in error && String(error.code).startsWith('SQLITE_BUSY')) return true
    throw error
  } finally {
    db.close()
  }
}
