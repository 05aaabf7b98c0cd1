// A fleet store's SQLite file as a whole: copied while a server writes to it, and looked into without changing it. For
// backups; a server uses kysely-store.ts.
import { closeSync, openSync, readSync } from 'node:fs'
import { type Database, isDamage, isDiskFull, openSqlite } from '../../../shared/adapters/sqlite.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { describeError } from '../../../shared/runtime/loop.ts'
import { CHANGE_LEAP } from '../feed/change-log.ts'
import { MIGRATIONS } from '../schema/migrations.ts'

export const SCHEMA_NEWEST = MIGRATIONS.at(-1)?.version ?? 0

/** One consistent state, also while it is written to; the copy has no log beside it. Not synced. */
export function copyStoreFile(from: string, to: string): void {
  const db = openSqlite(from, { readonly: true })
  try {
    db.query('VACUUM INTO ?').run(to)
  } catch (error) {
    throw isDiskFull(error) ? new AppError('disk_full', { doing: 'copy the fleet store' }, { cause: error }) : error
  } finally {
    db.close()
  }
}

/** CF3: for a copy that replaces the store. Watchers of that one must not mix its numbers with this one's. */
export function leapChangesOfFile(path: string, nowMs: number): void {
  const db = openSqlite(path, { journal: 'DELETE' })
  try {
    // A file from before schema 3 has no such counter: it has no watchers.
    db.query("UPDATE counters SET value = max(value + ?, ?) WHERE name = 'change'").run(CHANGE_LEAP, nowMs)
  } catch (error) {
    throw isDiskFull(error) ? new AppError('disk_full', { doing: 'write the fleet store' }, { cause: error }) : error
  } finally {
    db.close()
  }
}

export interface ContentReference {
  sha256: string
  /** `project/service`, one of them. */
  of: string
  /** By what a cluster shall have; else by a revision of the past only. */
  desired: boolean
}

export interface StoreFile {
  schema: number
  counts(): Record<string, number>
  /** Each name once. */
  references(): ContentReference[]
  /** Specs of Configs, as they are stored. */
  configs(): string[]
  close(): void
}

/** The tables whose rows are counted, by the word that people know. */
const COUNTED: Record<string, string> = {
  clusters: 'SELECT count(*) AS n FROM clusters',
  repositories: "SELECT count(*) AS n FROM resources WHERE kind = 'Repository'",
  services: "SELECT count(*) AS n FROM resources WHERE kind = 'Service'",
  desired: 'SELECT count(*) AS n FROM desired',
  events: 'SELECT count(*) AS n FROM events',
}

/** `whole`: every page is read. Throws `backup_unusable` for what is no fleet store, a damaged or a newer one. */
export function openStoreFile(path: string, { whole }: { whole: boolean }): StoreFile {
  const refuse = (detail: string, cause?: unknown) => new AppError('backup_unusable', { doing: 'open its fleet store', detail }, { cause })
  if (!isQuiet(path)) throw refuse('it is not a cleanly closed SQLite file')
  let db: Database | undefined
  try {
    db = openSqlite(path, { readonly: true })
    const found = db
    const rows = <T>(sql: string): T[] => found.query<T, []>(sql).all()
    const strange = rows<{ name: string }>("SELECT name FROM sqlite_master WHERE type NOT IN ('table', 'index')")
    if (strange.length > 0) throw refuse(`it holds ${strange.map(({ name }) => name).join(', ')}, which no version made`)
    if (whole) {
      const [check] = rows<{ integrity_check: string }>('PRAGMA integrity_check(1)')
      if (check?.integrity_check !== 'ok') throw refuse(`integrity_check: ${check?.integrity_check ?? 'no answer'}`)
    }
    const schema = Number(rows<{ value: string }>("SELECT value FROM meta WHERE key = 'schema'")[0]?.value ?? 0)
    if (schema > SCHEMA_NEWEST) throw refuse(`it has schema ${schema}; this version supports up to ${SCHEMA_NEWEST}`)
    if (schema === 0) throw refuse('it has no schema')
    return {
      schema,
      counts: () => Object.fromEntries(Object.entries(COUNTED).map(([word, sql]) => [word, rows<{ n: number }>(sql)[0]?.n ?? 0])),
      references: () => readReferences(rows, schema),
      configs: () => rows<{ spec: string }>("SELECT spec FROM resources WHERE kind = 'Config'").map(({ spec }) => spec),
      close: () => found.close(),
    }
  } catch (error) {
    db?.close()
    throw isDamage(error) ? refuse(describeError(error), error) : error
  }
}

function readReferences(rows: <T>(sql: string) => T[], schema: number): ContentReference[] {
  const named = (table: string) =>
    rows<{ sha: string; of: string }>(
      `SELECT set_sha AS sha, min(project || '/' || service) AS of FROM ${table} WHERE set_sha IS NOT NULL GROUP BY set_sha`,
    )
  const found = new Map<string, ContentReference>()
  for (const { sha, of } of named('desired')) found.set(sha, { sha256: sha, of, desired: true })
  const past = [...(schema >= 3 ? named('revisions') : []), ...(schema >= 4 ? named('revision_variants') : [])]
  for (const { sha, of } of past) if (!found.has(sha)) found.set(sha, { sha256: sha, of, desired: false })
  return [...found.values()]
}

/** Not in WAL mode: opening such a file, even for reading, would make others beside it. */
function isQuiet(path: string): boolean {
  const head = Buffer.alloc(20)
  const fd = openSync(path, 'r')
  try {
    if (readSync(fd, head) < head.length) return false
  } finally {
    closeSync(fd)
  }
  return head.toString('latin1', 0, 15) === 'SQLite format 3' && head[18] === 1 && head[19] === 1
}
