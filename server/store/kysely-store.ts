// The fleet store over Kysely: the port's methods from one file for each area, each method one transaction or one read.
import type { LogFile } from '../../shared/adapters/log-sync.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Random } from '../../shared/runtime/random.ts'
import { createAuditStore } from './audit/store-audit.ts'
import { createConfirmedDataStore } from './confirmed-data.ts'
import { createReferenceStore } from './content/content-references.ts'
import { rebuildAll } from './counts/rollup-recount.ts'
import { createRollups } from './counts/rollups.ts'
import { connectPostgres, connectSqlite, type PostgresConnect } from './engines/connections.ts'
import { keepWalShort } from './engines/wal-keeper.ts'
import { createChangeStore } from './feed/store-changes.ts'
import { createNotificationStore } from './notify/store-notifications.ts'
import type { FleetQueries } from './queries/fleet-queries.ts'
import { FleetQueryEngine } from './queries/fleet-query-engine.ts'
import { LocalQueries } from './queries/local-queries.ts'
import { WorkerQueries } from './queries/worker-queries.ts'
import type { TellProgress } from './schema/bring-forward.ts'
import { createConnectionRunner } from './sql/connection-runner.ts'
import { createFleetSql, type SqlRunner } from './sql/fleet-sql.ts'
import { createSavedQueries } from './sql/saved-queries.ts'
import { createSqliteRunner } from './sql/sqlite-runner.ts'
import { createHistoryStore } from './status/status-history.ts'
import { createEventStore } from './status/store-events.ts'
import { createStatusStore } from './status/store-status.ts'
import type { Store } from './store.ts'
import { createAgentStore } from './store-agents.ts'
import { createCommitStore } from './store-commits.ts'
import { createConfirmationStore } from './store-confirmations.ts'
import { type Connections, createStoreDb, type StoreDb } from './store-db.ts'
import { createDesiredStore } from './store-desired.ts'
import { createPeopleStore } from './store-people.ts'
import { createRecipientStore } from './store-recipients.ts'
import { createRequestStore } from './store-requests.ts'
import { createResourceStore } from './store-resources.ts'
import { createRestoreStore } from './store-restore.ts'
import { createSecretStore } from './store-secrets.ts'
import { createSessionStore } from './store-sessions.ts'
import { createRevisionStore } from './upkeep/revision-log.ts'
import { createUpkeepStore } from './upkeep/store-upkeep.ts'
import type { StoreUpkeep } from './upkeep/upkeep.ts'

export interface StoreOptions {
  /** For uids and the short ids that people type; nothing secret comes from it. */
  random: Random
  /** When a change was committed. */
  clock: Clock
  /** How far a migration is, which may take minutes. */
  tell?: TellProgress
  /** Where it waits for the disk; default the log of its file. */
  logFile?: LogFile
  /** RU3: all counts are computed again first. */
  recount?: boolean
}

/** On a file. */
export async function openSqliteStore(path: string, options: StoreOptions): Promise<Store> {
  const connections = await recounted(await connectSqlite(path, options.tell, options.logFile), options)
  const queries = path === ':memory:' ? localQueries(connections, options) : new WorkerQueries({ path, ...options })
  const { writer } = connections
  const attend: Attend =
    path === ':memory:' ? needsNothing : (log, signal) => keepWalShort({ path, writer, clock: options.clock, log }, signal)
  const runner =
    path === ':memory:' ? createConnectionRunner(connections, options.clock) : createSqliteRunner({ path, clock: options.clock })
  return createStore(createStoreDb(connections, options.clock), { queries, attend, runner }, options)
}

async function recounted(connections: Connections, { recount = false }: StoreOptions): Promise<Connections> {
  if (recount) await connections.writer.transaction().execute((trx) => rebuildAll(trx, connections.engine))
  return connections
}

type Attend = StoreUpkeep['attend']
const needsNothing: Attend = (_, signal) =>
  new Promise((resolve) => (signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve(), { once: true })))

/** On a database. */
export async function openPostgresStore(connect: PostgresConnect, options: StoreOptions): Promise<Store> {
  const connections = await recounted(await connectPostgres(connect, options.clock, options.tell), options)
  return createStore(
    createStoreDb(connections, options.clock),
    { queries: localQueries(connections, options), attend: needsNothing, runner: createConnectionRunner(connections, options.clock) },
    options,
  )
}

const localQueries = ({ reader, engine }: Connections, { clock, random }: StoreOptions): FleetQueries =>
  new LocalQueries(new FleetQueryEngine(reader, engine, clock), { clock, random })

interface StoreParts {
  queries: FleetQueries
  attend: Attend
  runner: SqlRunner
}

function createStore(db: StoreDb, { queries, attend, runner }: StoreParts, { random, clock }: StoreOptions): Store {
  const fleetSql = createFleetSql({ db: () => db.read, engine: db.engine, runner, clock })
  const { endFollowing, ...changeStore } = createChangeStore(db, clock)
  return {
    ...changeStore,
    ...createResourceStore(db, () => pick(random, '0123456789abcdef', 32)),
    ...createDesiredStore(db),
    ...createAgentStore(db),
    ...createStatusStore(db, { clock, random }),
    ...createEventStore(db),
    ...createRestoreStore(db),
    ...createReferenceStore(db),
    ...createRevisionStore(db),
    ...createHistoryStore(db),
    ...createCommitStore(db),
    ...createUpkeepStore(db, attend),
    rollups: createRollups(db),
    notifications: createNotificationStore(db),
    ...createConfirmedDataStore(db),
    ...createConfirmationStore(db, () => pick(random, CONFIRMATION_ALPHABET, 6)),
    ...createPeopleStore(db),
    ...createRecipientStore(db),
    ...createSecretStore(db),
    ...createAuditStore(db),
    ...createSessionStore(db),
    ...createRequestStore(db),
    queries,
    fleetSql,
    savedQueries: createSavedQueries(db),
    writeVersion: db.writeVersion,
    close: async () => {
      endFollowing()
      await queries.close()
      await fleetSql.close()
      await db.destroy()
    },
  }
}

/** Without what is easily misread: 0 o 1 i l. */
const CONFIRMATION_ALPHABET = '23456789abcdefghjkmnpqrstuvwxyz'

const pick = (random: Random, alphabet: string, length: number): string =>
  Array.from({ length }, () => alphabet[Math.floor(random() * alphabet.length)]).join('')
