// The importer of cr-sqlite. Only writers of `desired` load it; every reader is a plain connection, which cannot write
// the table at all.
import { dlopen, FFIType } from 'bun:ffi'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import libraryPath from '../../build/crsqlite.so' with { type: 'file' }
import { AppError } from '../runtime/error.ts'
import { crdtDamage } from './crdt-damage.ts'
import { DamagedFile, type Database, isDiskFull, type OpenOptions, openSqlite } from './sqlite.ts'

export const CRSQLITE_VERSION = '0.16.3'

/** With rowids: a WITHOUT ROWID table gives each document of more than 1 kB a page of its own, which makes the file 1.6
 *  times as large and as slow. */
const DESIRED_SCHEMA = `CREATE TABLE desired (
  cluster TEXT NOT NULL, id TEXT NOT NULL, doc TEXT NOT NULL DEFAULT '', PRIMARY KEY (cluster, id)
)`

/**
 * Every row as a lookup finds it, for a full check: ids and their order from the key's index, documents from the table.
 */
export const ALL_DESIRED = `SELECT i.cluster AS cluster, i.id AS id, t.doc AS doc
FROM desired i INDEXED BY sqlite_autoindex_desired_1 CROSS JOIN desired t ON t.rowid = i.rowid ORDER BY i.cluster, i.id`

export interface CrdtDb {
  db: Database
  /** 32 hex digits. */
  siteId: string
  /** Call inside the transaction that writes the rows: it is the db_version they get (CU6). Called again with one above
   *  that, a later part of the same transaction has a version of its own. */
  nextDbVersion(atLeast?: number): number
  /** `crsql_finalize` first: without it each close leaks descriptors and leaves the WAL behind. */
  close(): void
}

export interface CrdtOptions extends OpenOptions {
  /** A writable 0700 folder for hosts that refuse to load code from memory. */
  libraryDir?: string
  /** The caller checked the file with `crdtDamage` just before, or built it just now. */
  checked?: boolean
  opening?: Opening
}

/** Runs code that loads native code on a file, and records the file in case the process ends there. */
export type Opening = <T>(path: string, open: () => T) => T

/** Opens a file with the one replicated table `desired(cluster, id, doc)`, or creates both in an empty one. Throws
 *  `DamagedFile` before native code sees a file that is not complete: native code on such a file can end the process.
 */
export function openCrdtDb(path: string, options: CrdtOptions = {}): CrdtDb {
  const db = openSqlite(path, options)
  try {
    const isEmpty = db.query('SELECT 1 FROM sqlite_master LIMIT 1').get() === null
    const damage = isEmpty || options.checked === true ? null : crdtDamage(db)
    if (damage !== null) throw new DamagedFile(damage)
    const load = () => loadCrsqlite(db, options.libraryDir)
    if (options.opening === undefined) load()
    else options.opening(path, load)
    if (isEmpty) {
      db.run(DESIRED_SCHEMA)
      db.run("SELECT crsql_as_crr('main', 'desired')") // the one-argument form fails with SQLITE_NOMEM
    }
  } catch (error) {
    db.close()
    throw error
  }
  const next = db.query<{ v: number }, [number]>('SELECT crsql_next_db_version(?) AS v')
  const site = db.query<{ id: string }, []>('SELECT lower(hex(crsql_site_id())) AS id').get()
  return {
    db,
    siteId: site?.id ?? '',
    nextDbVersion: (atLeast = 0) => next.get(atLeast)?.v ?? 0,
    close() {
      db.run('SELECT crsql_finalize()')
      db.close()
    },
  }
}

const ENTRY_POINT = 'sqlite3_crsqlite_init' // SQLite would guess it from the file name

/** The library and a connection that keeps it loaded. SQLite unloads a library whose initialization failed, and the
 *  process would crash in the functions that the library had registered by then. */
let library: { path: string; keeper: Database } | undefined

function loadCrsqlite(db: Database, libraryDir: string | undefined): void {
  library ??= openLibrary(libraryDir)
  try {
    db.loadExtension(library.path, ENTRY_POINT)
  } catch (error) {
    if (isDiskFull(error)) throw error
    throw new DamagedFile(error instanceof Error ? error.message : String(error), { cause: error }) // the library itself is loaded
  }
}

/** For the start of a program, before it opens files: a library that cannot be loaded says nothing about them. Throws
 *  `native_library`. */
export function loadNativeLibrary(libraryDir: string): void {
  try {
    library ??= openLibrary(libraryDir)
  } catch (error) {
    throw new AppError('native_library', { doing: 'load cr-sqlite', detail: error instanceof Error ? error.message : String(error) })
  }
}

/** From source the library is an ordinary file. In a compiled binary it lies in the executable, where the loader cannot
 *  see it: it goes through a memory file, or, where the host refuses that (no FFI under a tight memory limit, noexec
 *  policies), through a file in `libraryDir`. */
function openLibrary(libraryDir: string | undefined): NonNullable<typeof library> {
  const candidates = libraryPath.startsWith('/$bunfs') ? [memoryFile, () => dataFile(libraryDir)] : [() => libraryPath]
  const failures: string[] = []
  for (const candidate of candidates) {
    const keeper = openSqlite(':memory:')
    try {
      const path = candidate()
      keeper.loadExtension(path, ENTRY_POINT)
      return { path, keeper }
    } catch (error) {
      keeper.close()
      failures.push(error instanceof Error ? error.message : String(error))
    }
  }
  throw new Error(`cr-sqlite cannot be loaded: ${failures.join('; ')}`)
}

function memoryFile(): string {
  const libc = dlopen('libc.so.6', { memfd_create: { args: [FFIType.cstring, FFIType.u32], returns: FFIType.i32 } })
  const [CLOEXEC, EXEC] = [1, 8]
  const name = Buffer.from('crsqlite\0')
  let fd = libc.symbols.memfd_create(name, CLOEXEC | EXEC)
  if (fd < 0) fd = libc.symbols.memfd_create(name, CLOEXEC) // kernels before 6.3 do not know EXEC
  if (fd < 0) throw new Error('memfd_create was refused')
  const bytes = readFileSync(libraryPath)
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done)
  return `/proc/self/fd/${fd}`
}

function dataFile(dir: string | undefined): string {
  if (dir === undefined) throw new Error('a copy on disk needs a folder')
  const bytes = readFileSync(libraryPath)
  const path = join(dir, `crsqlite-${createHash('sha256').update(bytes).digest('hex').slice(0, 16)}.so`)
  // A copy that a power loss cut short would end the process with SIGBUS.
  if (!existsSync(path) || !readFileSync(path).equals(bytes)) {
    mkdirSync(dir, { recursive: true, mode: 0o700 })
    const staged = `${path}.${process.pid}`
    writeFileSync(staged, bytes, { mode: 0o500 })
    renameSync(staged, path)
  }
  return path
}
