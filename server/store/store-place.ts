// Where the fleet store is, from what an operator said: a file in the data folder, or a PostgreSQL database whose
// password is never on a command line, where `ps` would show it to everybody.
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { AppError } from '../../shared/runtime/error.ts'
import { type PostgresTarget, parsePostgresUrl, passwordOf } from './engines/postgres-url.ts'

export interface StoreInput {
  /** `--store` or its environment name. */
  url: string | undefined
  /** It was given as a flag. */
  asFlag: boolean
  /** `--store-file`. */
  file: string | undefined
  env: Record<string, string | undefined>
}

export interface PostgresPlace {
  target: PostgresTarget
  /** For a URL without one: read each time, so that a rotated one is used. */
  password(): Promise<string | null>
}

/**
 * Null for SQLite in the data folder. Throws `bad_options`. Relative file names start at the folder in which the server
 * was started.
 */
export function readStorePlace({ url, asFlag, file, env }: StoreInput): PostgresPlace | null {
  if (url !== undefined && file !== undefined) throw refused('--store and --store-file exclude each other')
  const text = file === undefined ? url : readText(file).trim()
  if (text === undefined || text === '') return null
  const target = parsePostgresUrl(text)
  if (asFlag && target.password !== null) {
    throw refused('--store has a password, and other users of this machine can read it', 'Put the URL into SKERRY_STORE or --store-file.')
  }
  const named = env['PGPASSFILE'] && resolve(env['PGPASSFILE']) // the data folder becomes the working directory
  return { target, password: async () => env['PGPASSWORD'] ?? passwordFromFile(target, named, env) }
}

function passwordFromFile(target: PostgresTarget, named: string | undefined, env: StoreInput['env']): string | null {
  if (named) return passwordOf(readText(named), target)
  try {
    return passwordOf(readFileSync(join(env['HOME'] ?? '/', '.pgpass'), 'utf8'), target)
  } catch {
    return null // nobody said that it is there
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw refused(`${path} cannot be read: ${error instanceof Error && 'code' in error ? String(error.code) : 'no reason known'}`)
  }
}

const refused = (detail: string, remedy?: string): AppError =>
  new AppError('bad_options', { doing: 'find the fleet store', detail, ...(remedy === undefined ? {} : { remedy }) })
