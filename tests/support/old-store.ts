// Fleet stores of earlier schemas, with rows of every table that those had: tests/fixtures/store.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Kysely } from 'kysely'
import { MIGRATIONS, migrate } from '../../server/store/migrations.ts'
import { writerDialect } from '../../server/store/postgres-dialect.ts'
import { parsePostgresUrl } from '../../server/store/postgres-url.ts'
import { sqliteDialect } from '../../server/store/sqlite-dialect.ts'
import type { Tables } from '../../server/store/tables.ts'
import type { StoreKind, StorePlace } from './stores.ts'

export const FIXTURES = join(import.meta.dir, '../fixtures/store')

type Rows = Record<string, Array<Record<string, string | number | null>>>
/** A table of whatever schema. */
export type AnyDb = Kysely<Record<string, Record<string, unknown>>>

export const readFixture = <T = unknown>(name: string): T => JSON.parse(readFileSync(join(FIXTURES, `${name}.json`), 'utf8'))

/** Without bringing its schema forward. */
export function openTables(kind: StoreKind, place: StorePlace): Kysely<Tables> {
  if (kind.name === 'SQLite') return new Kysely<Tables>({ dialect: sqliteDialect(place.at) })
  const options = { target: parsePostgresUrl(place.at), password: async () => null, applicationName: 'test' }
  const own = { onConnect: async () => {}, onLost: () => {}, answerMs: () => null }
  return new Kysely<Tables>({ dialect: writerDialect(options, own) })
}

/** A store of that schema; `rows` false: as it is when it was just made. */
export async function makeOldStore(kind: StoreKind, version: number, { rows = true } = {}): Promise<StorePlace> {
  const place = await kind.place()
  const db = openTables(kind, place)
  await migrate(
    db,
    kind.name === 'SQLite' ? 'sqlite' : 'postgres',
    MIGRATIONS.filter((migration) => migration.version <= version),
  )
  if (rows) await fill(db as unknown as AnyDb, readFixture<Rows>(`rows-${version}`))
  await db.destroy()
  return place
}

async function fill(db: AnyDb, rows: Rows): Promise<void> {
  await db.deleteFrom('counters').execute()
  for (const [table, items] of Object.entries(rows)) for (const item of items) await db.insertInto(table).values(item).execute()
}
