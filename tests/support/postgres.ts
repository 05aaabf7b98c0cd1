// One real PostgreSQL for a test file, started when its first database is asked for, gone after the file.
import { afterAll } from 'bun:test'
import { type DatabaseOptions, type LocalPostgres, startPostgres } from '../../scripts/local-cluster/postgres.ts'

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

/** The URL of a fresh database. */
export const testDatabase = async (options?: DatabaseOptions): Promise<string> => (await testPostgres()).createDatabase(options)
