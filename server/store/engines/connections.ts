// From a file or a PostgreSQL database to connections with the newest schema, ready for the store.
import { randomBytes } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { Kysely, sql } from 'kysely'
import { createLogSync, type LogFile, type LogSync } from '../../../shared/adapters/log-sync.ts'
import { copyInMemory, isDiskFull, openSqlite } from '../../../shared/adapters/sqlite.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { bringForward, type TellProgress } from '../schema/bring-forward.ts'
import type { Connections } from '../store-db.ts'
import type { Tables } from '../tables.ts'
import { ANSWER_MS_MAX, ASKED_PLANS, listenerClient, readerDialect, writerDialect } from './postgres-dialect.ts'
import { listenForChanges } from './postgres-listen.ts'
import { createServerSession, SERVER_KEY, type ServerSession } from './postgres-session.ts'
import type { PostgresTarget } from './postgres-url.ts'
import { dialectOver, sqliteDialect } from './sqlite-dialect.ts'
import { createStoreFile, refuseDamagedStore } from './store-guard.ts'

/** Opens or creates the file and brings its schema forward. Throws `store_newer` for a file of a newer version,
 *  `store_damaged` for a damaged one. `logFile`: default the file's own. */
export async function connectSqlite(path: string, tell?: TellProgress, logFile?: LogFile): Promise<Connections> {
  if (path === ':memory:') return connectMemory()
  await prepareFile(path)
  const writer = new Kysely<Tables>({ dialect: sqliteDialect(path) })
  try {
    await bringForward(writer, 'sqlite', tell)
    const reader = new Kysely<Tables>({ dialect: sqliteDialect(path, { readonly: true }) })
    const logSync = await waitForTheDiskBeside(writer, path, logFile)
    const close = async () => {
      // The last connection that closes removes the log; that of an ended Worker exists until the process ends. Waits
      // for nothing, and may fail on a full disk.
      await sql`pragma wal_checkpoint(passive)`.execute(writer).catch(() => {})
      logSync.close()
      await closeAll(writer, reader)
    }
    return { engine: 'sqlite', writer, reader, settled: logSync.settled, close }
  } catch (error) {
    await writer.destroy()
    throw error
  }
}

/** An empty store of the newest schema, as a file has it. Tests and simulations open thousands of new stores, and the
 *  migrations take longer than most of what is done with such a store, so they run once a process. */
let emptyStore: Promise<Uint8Array> | undefined

async function connectMemory(): Promise<Connections> {
  const writer = new Kysely<Tables>({ dialect: dialectOver(copyInMemory(await newStore())) })
  return { engine: 'sqlite', writer, reader: writer, close: () => closeAll(writer, writer) }
}

const newStore = (): Promise<Uint8Array> => (emptyStore ??= makeEmptyStore())

async function makeEmptyStore(): Promise<Uint8Array> {
  const db = openSqlite(':memory:')
  const tables = new Kysely<Tables>({ dialect: dialectOver(db) })
  try {
    await bringForward(tables, 'sqlite')
    return db.serialize()
  } finally {
    await tables.destroy()
  }
}

/** ST21: from here on a commit does not wait for the disk, and its caller does. What a process before us committed may
 *  not be there yet. */
async function waitForTheDiskBeside(writer: Kysely<Tables>, path: string, logFile?: LogFile): Promise<LogSync> {
  await sql`pragma synchronous=normal`.execute(writer)
  const logSync = createLogSync(path, logFile)
  logSync.settle()
  return logSync
}

/** The mode that SQLite gives a new file. */
const STORE_MODE = 0o644

async function prepareFile(path: string): Promise<void> {
  if (existsSync(path)) return refuseDamagedStore(path)
  const contents = await newStore()
  try {
    createStoreFile(path, (staged) => writeFileSync(staged, contents, { mode: STORE_MODE }))
  } catch (error) {
    throw isDiskFull(error) ? new AppError('disk_full', { doing: 'write the fleet store' }, { cause: error }) : error
  }
}

export interface PostgresConnect {
  target: PostgresTarget
  /** For a URL without one. */
  password?: () => Promise<string | null>
  /** To be the only server of the database (ST13). Without it: one of many processes that look and write, for tools and
   *  tests. */
  only?: {
    /** How long a server before us may take to end. */
    patienceMs: number
    /** Another server took the database while it was out of our reach, or it came back without what was committed:
     *  nothing can be written any more. */
    onTaken(error: AppError): void
  }
  /** After so long without an answer a connection is taken for dead; default a minute. */
  answerMs?: number
}

/** How soon the writer tries again to get back what makes it the only one. */
const RECONNECT_MS = 1_000

/** Throws `store_unreachable`, `store_in_use`, `store_newer`. */
export async function connectPostgres(
  { target, password = async () => null, only, answerMs = ANSWER_MS_MAX }: PostgresConnect,
  clock: Clock,
  tell?: TellProgress,
): Promise<Connections> {
  // A name of at most 63 bytes, and of this store alone.
  const applicationName = `skerry on ${hostname().slice(0, 26)}, process ${process.pid}, ${randomBytes(4).toString('hex')}`
  const options = { target, password, applicationName }
  const session = only && createServerSession({ applicationName, patienceMs: only.patienceMs, clock })
  const closing = new AbortController()
  let keeping = false
  const keep = async (): Promise<void> => {
    if (keeping || !only || closing.signal.aborted) return
    keeping = true
    while (!closing.signal.aborted && !(await isBack(writer, only.onTaken))) await clock.sleep(RECONNECT_MS, closing.signal)
    keeping = false
  }
  let migrated = false // which takes as long as it takes
  const writer = new Kysely<Tables>({
    dialect: writerDialect(options, {
      onConnect: session?.onConnect ?? (async () => {}),
      onLost: () => void keep(),
      answerMs: () => (migrated ? answerMs : null),
    }),
  })
  const reader = new Kysely<Tables>({ dialect: readerDialect(options) })
  const close = () => {
    closing.abort()
    return closeAll(writer, reader)
  }
  try {
    await refuseUnfit(writer)
    await bringForward(writer, 'postgres', tell)
    migrated = true
    if (session !== undefined) await mark(writer, applicationName, session)
    const listen = (onCommit: () => void, signal: AbortSignal) =>
      void listenForChanges(() => listenerClient(options), onCommit, clock, AbortSignal.any([signal, closing.signal]))
    return { engine: 'postgres', writer, reader, listen, close, ...(session === undefined ? {} : { committed: session.committed }) }
  } catch (error) {
    await close()
    throw error
  }
}

/** In another encoding there are characters that cannot be stored, and whatever an agent reports with such a one would
 *  fail again and again. A pooler that drops settings lends its connections to others in between: the lock of a
 *  session, and what is prepared on it, would be theirs, too. */
async function refuseUnfit(writer: Kysely<Tables>): Promise<void> {
  const { rows } = await sql<{ encoding: string; plans: string }>`
    select current_setting('server_encoding') as encoding, current_setting('plan_cache_mode') as plans`.execute(writer)
  const { encoding = 'unknown', plans } = rows[0] ?? {}
  if (encoding !== 'UTF8')
    throw new AppError('bad_options', {
      doing: 'use the fleet store',
      detail: `the database has encoding ${encoding}; expected UTF8`,
      remedy: "Create another database: create database NAME encoding 'UTF8' template template0.",
    })
  if (plans !== ASKED_PLANS)
    throw new AppError('bad_options', {
      doing: 'use the fleet store',
      detail: 'a connection pooler or proxy drops the settings of connections',
      remedy: 'Set --store to the address of the database itself: the server has few connections, and keeps a lock on one of them.',
    })
}

async function mark(writer: Kysely<Tables>, value: string, session: ServerSession): Promise<void> {
  await writer
    .insertInto('meta')
    .values({ key: SERVER_KEY, value })
    .onConflict((on) => on.column('key').doUpdateSet({ value }))
    .execute()
  session.marked()
  const row = await writer.selectFrom('counters').select('value').where('name', '=', 'change').executeTakeFirst()
  session.committed(row?.value ?? 0)
}

/** True: it is connected again, or never will be. */
async function isBack(writer: Kysely<Tables>, onTaken: (error: AppError) => void): Promise<boolean> {
  try {
    await sql`select 1`.execute(writer)
    return true
  } catch (error) {
    if (!(error instanceof AppError && (error.code === 'store_in_use' || error.code === 'restore_pending'))) return false
    onTaken(error)
    return true
  }
}

async function closeAll(writer: Kysely<Tables>, reader: Kysely<Tables>): Promise<void> {
  // The writer last: on SQLite a last connection that only reads leaves the log beside the file.
  if (reader !== writer) await reader.destroy()
  await writer.destroy()
}
