// The two databases that a fleet store can be in: what is said of a store is shown on both.
import { join } from 'node:path'
import type { DatabaseOrder } from '../../scripts/local-cluster/postgres.ts'
import { connectPostgres, connectSqlite } from '../../server/store/engines/connections.ts'
import { parsePostgresUrl } from '../../server/store/engines/postgres-url.ts'
import { openPostgresStore, openSqliteStore } from '../../server/store/kysely-store.ts'
import type { Store } from '../../server/store/store.ts'
import { type Connections, createStoreDb, type StoreDb } from '../../server/store/store-db.ts'
import { type Clock, systemClock } from '../../shared/runtime/clock.ts'
import { type Random, seededRandom } from '../../shared/runtime/random.ts'
import { migratedDatabase, testDatabase } from './postgres.ts'
import { tempDir } from './temp-dir.ts'

/** A file or a database without rows; it can be opened again, and by several at once. */
export interface StorePlace {
  /** File name or URL. */
  at: string
  open(options?: { random?: Random; clock?: Clock; recount?: boolean }): Promise<Store>
  connect(): Promise<Connections>
}

export interface StoreKind {
  name: string
  /** `bare`: without tables, for an older schema or another program's. A file never has tables before it is opened. */
  place(options?: { bare?: boolean }): Promise<StorePlace>
}

export const SQLITE: StoreKind = {
  name: 'SQLite',
  place: async () => {
    const at = join(tempDir(), 'fleet.sqlite')
    return {
      at,
      open: ({ random = seededRandom(1), clock = systemClock, recount = false } = {}) => openSqliteStore(at, { random, clock, recount }),
      connect: () => connectSqlite(at),
    }
  },
}

const postgres = (name: StoreKind['name'], order: DatabaseOrder): StoreKind => ({
  name,
  place: async ({ bare = false } = {}) => {
    const url = await (bare ? testDatabase({ order }) : migratedDatabase(order))
    return {
      at: url,
      open: ({ random = seededRandom(1), clock = systemClock, recount = false } = {}) =>
        openPostgresStore({ target: parsePostgresUrl(url) }, { random, clock, recount }),
      connect: () => connectPostgres({ target: parsePostgresUrl(url) }, systemClock),
    }
  },
})
export const POSTGRES = postgres('PostgreSQL', 'C')
/** A database whose own order of text is that of a language. */
export const POSTGRES_EN_US = postgres('PostgreSQL in en-US', 'en-US')

/** For `describe.each(STORES)('$name', …)`. */
export const STORES: readonly StoreKind[] = [SQLITE, POSTGRES]

/** A store in a place of its own. */
export const openIn = async (kind: StoreKind, options?: Parameters<StorePlace['open']>[0]): Promise<Store> =>
  (await kind.place()).open(options)

/** The handle that a store's methods get, in a place of its own. */
export async function openDb(kind: StoreKind, clock: Clock = systemClock): Promise<StoreDb & { connections: Connections }> {
  const connections = await (await kind.place()).connect()
  return Object.assign(createStoreDb(connections, clock), { connections })
}
