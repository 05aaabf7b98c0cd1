// One real PostgreSQL for a test file, started when its first database is asked for, gone after the file.
import { afterAll } from 'bun:test'
import { type DatabaseOptions, type LocalPostgres, startPostgres } from '../../scripts/local-cluster/postgres.ts'

let started: Promise<LocalPostgres> | undefined
afterAll(async () => {
  const postgres = await started?.catch(() => undefined)
  started = undefined
  await postgres?.stop()
})

export function testPostgres(): Promise<LocalPostgres> {
  started ??= startPostgres()
  return started
}

/** The URL of a fresh database. */
export const testDatabase = async (options?: DatabaseOptions): Promise<string> => (await testPostgres()).createDatabase(options)
