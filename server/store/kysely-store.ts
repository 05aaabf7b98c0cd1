// The fleet store over Kysely: the port's methods from one file for each area, each method one transaction or one read.
import { Kysely } from 'kysely'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Random } from '../../shared/runtime/random.ts'
import { migrate } from './migrations.ts'
import { sqliteDialect } from './sqlite-dialect.ts'
import type { Store } from './store.ts'
import { createAgentStore } from './store-agents.ts'
import { createStoreDb, type StoreDb } from './store-db.ts'
import { createDesiredStore } from './store-desired.ts'
import { createPeopleStore } from './store-people.ts'
import { createResourceStore } from './store-resources.ts'
import { createRestoreStore } from './store-restore.ts'
import { createStatusStore } from './store-status.ts'
import type { Tables } from './tables.ts'

export interface StoreOptions {
  /** For uids and the short ids that people type; nothing secret comes from it. */
  random: Random
  /** When a change was committed. */
  clock: Clock
}

/** Opens or creates the file and brings its schema forward. Throws `store_newer` for a file of a newer version. */
export async function openSqliteStore(path: string, { random, clock }: StoreOptions): Promise<Store> {
  const writer = new Kysely<Tables>({ dialect: sqliteDialect(path) })
  try {
    await migrate(writer, 'sqlite')
  } catch (error) {
    await writer.destroy()
    throw error
  }
  const reader = path === ':memory:' ? writer : new Kysely<Tables>({ dialect: sqliteDialect(path, { readonly: true }) })
  return createStore(createStoreDb({ engine: 'sqlite', writer, reader }, clock), random)
}

function createStore(db: StoreDb, random: Random): Store {
  return {
    ...createResourceStore(db, () => pick(random, '0123456789abcdef', 32)),
    ...createDesiredStore(db),
    ...createAgentStore(db),
    ...createStatusStore(db),
    ...createRestoreStore(db),
    ...createPeopleStore(db, () => pick(random, CONFIRMATION_ALPHABET, 6)),
    close: () => db.destroy(),
  }
}

/** Without what is easily misread: 0 o 1 i l. */
const CONFIRMATION_ALPHABET = '23456789abcdefghjkmnpqrstuvwxyz'

const pick = (random: Random, alphabet: string, length: number): string =>
  Array.from({ length }, () => alphabet[Math.floor(random() * alphabet.length)]).join('')
