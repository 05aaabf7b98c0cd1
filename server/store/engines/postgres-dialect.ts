// Kysely's own PostgresDialect over two pools of `pg`: one connection that writes, some that only read. The one
// importer of `pg`. The writer is one connection because write transactions come one after the other anyway: waiting
// ones would only hold connections, and reads would wait for those.
import { readFileSync } from 'node:fs'
import { PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely'
import pg from 'pg'
import { AppError } from '../../../shared/runtime/error.ts'
import { namedConnectError, namedPostgresError } from './postgres-errors.ts'
import { type PostgresTarget, shownTarget } from './postgres-url.ts'

/** Reads at the same time; more wait. */
const READERS_MAX = 8
/** A longer read is cancelled: it is the fault of its caller. */
const READ_TIMEOUT_MS = 30_000
const CONNECT_TIMEOUT_MS = 10_000
/** After that the connection counts as dead, even if it still appears open; longer work asks for more. */
export const ANSWER_MS_MAX = 60_000
/** After which a connection of a peer that is gone is noticed, on both sides: 30 s + 3 × 10 s. */
const KEEPALIVE_MS = 30_000
export const ASKED_PLANS = 'force_custom_plan'
const SERVER_SETTINGS = `-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3 -c jit=off -c plan_cache_mode=${ASKED_PLANS}`
/**
 * Limits that an operator set for all users of the database do not apply to a connection that waits for a lock, or
 * migrates a schema.
 */
const WRITER_SETTINGS = `${SERVER_SETTINGS} -c statement_timeout=0 -c lock_timeout=0 -c idle_in_transaction_session_timeout=0`

export interface PostgresOptions {
  target: PostgresTarget
  /** Asked for at each new connection if the URL has none, so that a changed one is used. */
  password(): Promise<string | null>
  /** Shown in pg_stat_activity. */
  applicationName: string
}

/** Prepares a raw connection of the writer before its use. */
export type OnConnect = (query: (sql: string, parameters?: unknown[]) => Promise<Array<Record<string, unknown>>>) => Promise<void>

/** Any number that is ours alone among the advisory locks of a PostgreSQL database. */
const WRITE_LOCK = 7_205_759_403
/**
 * The equivalent of SQLite's `begin immediate`: the transaction has the store to itself, and sees all earlier commits.
 * In one message, because all writers wait for each round trip. With its isolation level: another default would read a
 * snapshot from before the lock.
 */
const BEGIN_WRITING = `begin isolation level read committed; select pg_advisory_xact_lock(${WRITE_LOCK})`

/** `answerMs` null: as long as it takes. */
export function readerDialect(options: PostgresOptions, answerMs: number | null = ANSWER_MS_MAX): PostgresDialect {
  const settings = `${SERVER_SETTINGS} -c default_transaction_read_only=on`
  const pool = new pg.Pool({
    ...clientOptions(options, settings),
    statement_timeout: READ_TIMEOUT_MS,
    max: READERS_MAX,
    idleTimeoutMillis: 60_000,
  })
  return dialect(pool, options, { slots: READERS_MAX, begin: 'begin', answerMs: () => answerMs })
}

export interface WriterOptions {
  onConnect: OnConnect
  /** The connection went, however it went. */
  onLost(): void
  /** How long an answer may take. Null means as long as it takes, because the schema is being changed. */
  answerMs(): number | null
}

export function writerDialect(options: PostgresOptions, { onConnect, onLost, answerMs }: WriterOptions): PostgresDialect {
  const settings = clientOptions(options, WRITER_SETTINGS)
  const pool = new pg.Pool({
    ...settings,
    max: 1,
    idleTimeoutMillis: 0, // it holds what makes this server the only one
    onConnect: (client: pg.ClientBase) =>
      onConnect(async (text, values = []) => {
        const asked = { text, values, query_timeout: answerMs() ?? ANSWER_MS_MAX }
        return (await client.query(asked)).rows
      }) as unknown as undefined,
  })
  pool.on('remove', onLost)
  return dialect(pool, options, { slots: 1, begin: BEGIN_WRITING, answerMs })
}

/** Not connected yet, and in no pool. */
export const listenerClient = (options: PostgresOptions): pg.Client => new pg.Client(clientOptions(options, SERVER_SETTINGS))

function clientOptions({ target, password, applicationName }: PostgresOptions, options: string): pg.PoolConfig {
  return {
    host: target.host,
    port: target.port,
    user: target.user,
    database: target.database,
    password: async () => {
      const known = target.password ?? (await password())
      if (known !== null) return known
      const remedy = 'Set it in SKERRY_STORE, --store-file, PGPASSWORD or the file of PGPASSFILE.'
      throw new AppError('store_unreachable', {
        doing: 'use the fleet store',
        detail: 'the database requires a password',
        remedy,
      })
    },
    ssl: tlsOptions(target),
    application_name: applicationName,
    options,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEPALIVE_MS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    types: { getTypeParser },
  }
}

function tlsOptions({ tls, host, rootCert, cert, key }: PostgresTarget): pg.PoolConfig['ssl'] {
  if (tls === 'disable') return false
  return {
    host,
    rejectUnauthorized: true,
    ...(tls === 'verify-ca' ? { checkServerIdentity: () => undefined } : {}),
    ...(rootCert === null ? {} : { ca: readPem(rootCert, 'sslrootcert') }),
    ...(cert === null ? {} : { cert: readPem(cert, 'sslcert') }),
    ...(key === null ? {} : { key: readPem(key, 'sslkey') }),
  }
}

function readPem(path: string, option: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new AppError(
      'bad_options',
      { doing: 'read the URL of the fleet store', detail: `${option}=${path} cannot be read` },
      { cause: error },
    )
  }
}

const INT8 = 20
const NUMERIC = 1700 // what sums of bigints are
/** Ours are below 2^53 everywhere, and what is not must not lose digits in silence. */
function getTypeParser(oid: number, format?: 'text' | 'binary') {
  if (oid === INT8 || oid === NUMERIC) return toNumber
  return pg.types.getTypeParser(oid, format as 'text')
}

function toNumber(text: string): number {
  const value = Number(text)
  if (Number.isSafeInteger(value) || text.includes('.')) return value
  throw new Error(`a number of the fleet store is beyond 2^53: ${text}`)
}

interface Use {
  /**
   * Connections at the same time. Callers wait here: the pool would take a long queue for a database that cannot be
   * reached.
   */
  slots: number
  begin: string
  answerMs(): number | null
}

function dialect(pool: pg.Pool, { target }: PostgresOptions, { slots, begin, answerMs }: Use): PostgresDialect {
  const at = shownTarget(target)
  pool.on('error', () => {}) // of an idle connection: the pool drops it, and the next one who asks hears of it
  pool.on('connect', (client) => void client.on('error', () => {})) // of one in use: its query fails
  const queue = createSlots(slots)
  const wrapped = new WeakMap<pg.PoolClient, PostgresPoolClient>()
  const wrap = (client: pg.PoolClient): PostgresPoolClient => {
    const names = createNames()
    let isSpoilt = false // by a transaction that is begun by half, or an answer that never came: the next one would meet it
    const ask = async (text: string, values: readonly unknown[]): Promise<unknown> => {
      const limit = answerMs()
      const name = limit === null || values.length === 0 ? undefined : names.of(text)
      try {
        return await client.query({
          text,
          values: [...values],
          ...(limit === null ? {} : { query_timeout: limit }),
          ...(name === undefined ? {} : { name }),
        })
      } catch (error) {
        const named = namedPostgresError(error, at)
        isSpoilt ||= named instanceof AppError && named.code === 'store_unreachable'
        throw named
      }
    }
    const send = async (text: string, values: readonly unknown[]): Promise<unknown> => {
      // It ends with its connection: a caller that waited in vain once would wait as long again.
      if (text === 'rollback' && isSpoilt) return { command: 'ROLLBACK', rowCount: 0, rows: [] }
      if (text !== 'begin') return ask(text, values)
      isSpoilt = true
      await ask(begin, [])
      isSpoilt = false
      return { command: 'BEGIN', rowCount: 0, rows: [] }
    }
    const release = (destroy?: boolean) => {
      client.release(destroy === true || isSpoilt)
      queue.free()
    }
    return { query: send as PostgresPoolClient['query'], release }
  }
  const connect = async (): Promise<PostgresPoolClient> => {
    await queue.take()
    try {
      const client = await pool.connect()
      const known = wrapped.get(client) ?? wrap(client)
      wrapped.set(client, known)
      return known
    } catch (error) {
      queue.free()
      throw namedConnectError(error, at)
    }
  }
  return new PostgresDialect({ pool: { options: {}, connect, end: () => pool.end() } satisfies PostgresPool })
}

/**
 * The longest statement that is prepared: the database parses a short, frequent statement once for each connection,
 * which saves half of the cost of a small query. It is planned each time.
 */
const NAMED_LENGTH_MAX = 1_000
const NAMES_MAX = 200

function createNames(): { of(text: string): string | undefined } {
  const names = new Map<string, string>()
  return {
    of: (text) => {
      const known = names.get(text)
      if (known !== undefined || text.length > NAMED_LENGTH_MAX || names.size >= NAMES_MAX) return known
      const name = `s${names.size}`
      names.set(text, name)
      return name
    },
  }
}

/** First come, first served. */
function createSlots(count: number): { take(): Promise<void>; free(): void } {
  let left = count
  const waiting: Array<() => void> = []
  return {
    take: async () => {
      if (left > 0) left -= 1
      else await new Promise<void>((resolve) => waiting.push(resolve))
    },
    free: () => {
      const next = waiting.shift()
      if (next === undefined) left += 1
      else next()
    },
  }
}
