// How large a SQLite file is, how much of it is free inside, and how much the disk has left: before something large is
// done to it.
import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Kysely, sql } from 'kysely'
import type { Tables } from '../tables.ts'

export interface SqliteSpace {
  path: string
  bytes: number
  /** The number of free pages. */
  freeInside: number
  /** On its disk. */
  freeOutside: number
}

/** Null if it is in memory. */
export async function sqliteSpace(db: Kysely<Tables>): Promise<SqliteSpace | null> {
  const { rows } = await sql<{ file: string; size: number; pages: number; free: number }>`select
    (select file from pragma_database_list where name = 'main') as file,
    (select page_size from pragma_page_size) as size,
    (select page_count from pragma_page_count) as pages,
    (select freelist_count from pragma_freelist_count) as free`.execute(db)
  const [row] = rows
  if (row === undefined || row.file === '') return null
  const { bavail, bsize } = statfsSync(dirname(row.file))
  return { path: row.file, bytes: row.pages * row.size, freeInside: row.free * row.size, freeOutside: bavail * bsize }
}

export const mebibytes = (bytes: number): string => `${Math.ceil(bytes / 1_048_576)} MiB`
