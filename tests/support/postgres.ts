// One real PostgreSQL for a test file, started when its first database is asked for, gone after the file.
import { afterAll } from 'bun:test'
import { type DatabaseOptions, type DatabaseOrder, type LocalPostgres, startPostgres } from '../../scripts/local-cluster/postgres.ts'
import { connectPostgres } from '../../server/store/engines/connections.ts'
import { parsePostgresUrl } from '../../server/store/engines/postgres-url.ts'
import { systemClock } from '../../shared/runtime/clock.ts'

let started: Promise<LocalPostgres> | undefined
/** Its files are many: removing them takes its time on a busy machine. */
const STOP_MS_MAX = 30_000
afterAll(async () => {
  const postgres = await started?.catch(() => undefined)
  started = undefined
  await postgres?.stop()
}, STOP_MS_MAX)

export function testPostgres(): Promise<LocalPostgres> {
  started ??= startPostgres({ inMemory: true })
  return started
}

/** By PostgreSQL and order of text: a database with the newest schema, from which others are copied. */
const templates = new WeakMap<LocalPostgres, Map<DatabaseOrder, Promise<string>>>()

async function makeTemplate(postgres: LocalPostgres, order: DatabaseOrder): Promise<string> {
  const url = await postgres.createDatabase({ order })
  const { close } = await connectPostgres({ target: parsePostgresUrl(url) }, systemClock)
  await close()
  return url
}

/** The URL of a fresh database with the newest schema. All migrations take longer than most of the tests that need it,
 *  so they run once for each PostgreSQL. */
export async function migratedDatabase(order: DatabaseOrder): Promise<string> {
  const postgres = await testPostgres()
  const known = templates.get(postgres) ?? new Map<DatabaseOrder, Promise<string>>()
  templates.set(postgres, known)
  const template = known.get(order) ?? makeTemplate(postgres, order)
  known.set(order, template)
  return postgres.createDatabase({ copyOf: await template })
}

/** The URL of a fresh database. */
export const testDatabase = async (options?: DatabaseOptions): Promise<string> => (await testPostgres()).createDatabase(options)
