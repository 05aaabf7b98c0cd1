// The preparation of a store before use: its schema and its counts are migrated to this version, and after large
// changes a database collects statistics.
import { type Kysely, sql } from 'kysely'
import type { Clock } from '../../../shared/runtime/clock.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import { bringCounts } from '../counts/rollup-recount.ts'
import type { Engine } from '../engines/engine.ts'
import { type SqliteSpace, sqliteSpace } from '../engines/sqlite-space.ts'
import type { Tables } from '../tables.ts'
import type { MigrationProgress } from './ddl.ts'
import { MIGRATIONS, migrate } from './migrations.ts'

export type TellProgress = (progress: MigrationProgress) => void

export async function bringForward(db: Kysely<Tables>, engine: Engine, tell?: TellProgress): Promise<void> {
  const { from, to } = await migrate(db, engine, MIGRATIONS, tell)
  const migrated = from < to
  if (migrated) tell?.({ what: 'counts', done: 0, total: null })
  await bringCounts(db, engine)
  if (engine === 'sqlite') await giveBack(db, tell)
  else if (migrated) await sql`analyze`.execute(db) // until it looks by itself, it would plan for empty tables
  if (migrated && from > 0) tell?.({ what: 'schema', done: to, total: to })
}

/** Less free space than this is not worth the work. */
const FREE_BYTES_MIN = 64 * 1_048_576

/** A file is compacted when more than half of it is free; the copy and the log need space meanwhile. */
export const worthVacuum = ({ bytes, freeInside, freeOutside }: SqliteSpace): boolean =>
  freeInside >= FREE_BYTES_MIN && freeInside > bytes / 2 && freeOutside > 3 * (bytes - freeInside)

/** At a start only: it stops everybody. While a file is served, what is free in it is used again. */
async function giveBack(db: Kysely<Tables>, tell?: TellProgress): Promise<void> {
  const space = await sqliteSpace(db)
  if (space === null || !worthVacuum(space)) return
  tell?.({ what: 'giving back free space', done: 0, total: null })
  await db.connection().execute(async (own) => {
    await sql`pragma temp_store = file`.execute(own) // the copy may be larger than memory
    try {
      await sql`vacuum`.execute(own)
      await sql`pragma wal_checkpoint(truncate)`.execute(own)
    } catch {
      // The copy's place is wherever the system has temporary files: a small disk perhaps, or none on a read-only root.
      // The file is as it was, and serves as well.
    } finally {
      await sql`pragma temp_store = memory`.execute(own)
    }
  })
}

/** A longer migration reports progress. */
const SILENT_MS = 2_000
const TOLD_EACH_MS = 5_000

export function migrationLog(log: Logger, clock: Clock): TellProgress {
  const sinceMs = clock.nowMs()
  let toldMs = Number.NEGATIVE_INFINITY
  return ({ what, done, total }) => {
    const nowMs = clock.nowMs()
    if (what === 'schema') return log.info('fleet store migrated', { schema: done, ms: nowMs - sinceMs })
    if (nowMs - sinceMs < SILENT_MS || nowMs - toldMs < TOLD_EACH_MS) return
    toldMs = nowMs
    log.info('migrating the fleet store; the server starts after the migration', { what, done, ...(total === null ? {} : { total }) })
  }
}
