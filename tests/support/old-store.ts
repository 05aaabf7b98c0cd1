// Fleet stores of earlier schemas, with rows of every table that those had: tests/fixtures/store.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Kysely, type LogEvent } from 'kysely'
import { writerDialect } from '../../server/store/engines/postgres-dialect.ts'
import { parsePostgresUrl } from '../../server/store/engines/postgres-url.ts'
import { sqliteDialect } from '../../server/store/engines/sqlite-dialect.ts'
import { MIGRATIONS, migrate } from '../../server/store/schema/migrations.ts'
import type { Tables } from '../../server/store/tables.ts'
import type { StoreKind, StorePlace } from './stores.ts'

export const FIXTURES = join(import.meta.dir, '../fixtures/store')

type Row = Record<string, string | number | null>
/** A table of whatever schema. */
type AnyDb = Kysely<Record<string, Record<string, unknown>>>

/** One pair a line: a table and a row of it, or a name and what was read of it. */
const readPairs = <T>(name: string): Array<[string, T]> =>
  readFileSync(join(FIXTURES, `${name}.jsonl`), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))

/** What `readPort` answered when the fixture was made. */
export const readAnswers = (name: string): Record<string, unknown> => Object.fromEntries(readPairs<unknown>(name))

/** Without bringing its schema forward. `onStatement` is told of each. */
export function openTables(kind: StoreKind, place: StorePlace, onStatement?: (sql: string) => void): Kysely<Tables> {
  const log = ({ query }: LogEvent) => onStatement?.(query.sql)
  if (kind.name === 'SQLite') return new Kysely<Tables>({ dialect: sqliteDialect(place.at), log })
  const options = { target: parsePostgresUrl(place.at), password: async () => null, applicationName: 'test' }
  const own = { onConnect: async () => {}, onLost: () => {}, answerMs: () => null }
  return new Kysely<Tables>({ dialect: writerDialect(options, own), log })
}

/** A store of that schema; `rows` false: as it is when it was just made. */
export async function makeOldStore(kind: StoreKind, version: number, { rows = true } = {}): Promise<StorePlace> {
  const place = await kind.place({ bare: true })
  const db = openTables(kind, place)
  await migrate(
    db,
    kind.name === 'SQLite' ? 'sqlite' : 'postgres',
    MIGRATIONS.filter((migration) => migration.version <= version),
  )
  if (rows) await fill(db as unknown as AnyDb, readPairs<Row>(`rows-${version}`))
  await db.destroy()
  return place
}

async function fill(db: AnyDb, rows: ReadonlyArray<[table: string, row: Row]>): Promise<void> {
  await db.deleteFrom('counters').execute()
  for (const [table, row] of rows) await db.insertInto(table).values(row).execute()
}
