// The schema of the fleet store, forward only: each migration is one transaction that also writes its number. A
// released migration never changes again; the next one corrects its errors. The schema builder keeps the statements the
// same on SQLite and PostgreSQL.
import { type Kysely, sql, type Transaction } from 'kysely'
import { AppError } from '../../../shared/runtime/error.ts'
import type { Engine } from '../engines/engine.ts'
import type { Tables } from '../tables.ts'
import { addNumbers, addTexts, createTable, type Ddl, textType } from './ddl.ts'
import {
  createAuditLog,
  createCommits,
  createJoinUses,
  createKeptRequests,
  createNotifications,
  createSecretStates,
  createSessions,
  createWatermarks,
} from './later-tables.ts'
import { migrateTo3 } from './migration-3.ts'
import { migrateTo4, migrateTo5, migrateTo6, migrateTo7, migrateTo8 } from './migrations-4-to-8.ts'

export interface Migration {
  version: number
  up(ddl: Ddl): Promise<void>
}

async function createResources(ddl: Ddl): Promise<void> {
  await createTable(
    ddl,
    'counters',
    ['name'],
    [
      ['name', 'text'],
      ['value', 'bigint'],
    ],
  ).execute()
  await createTable(
    ddl,
    'resources',
    ['kind', 'project', 'name'],
    [
      ['kind', 'text'],
      ['project', 'text'],
      ['name', 'text'],
      ['uid', 'text'],
      ['generation', 'bigint'],
      ['version', 'bigint'],
      ['labels', 'text'],
      ['spec', 'text'],
      ['created_ms', 'bigint'],
      ['updated_ms', 'bigint'],
      ['deleting_ms', 'bigint', 'null'],
    ],
  ).execute()
  await createTable(
    ddl,
    'repository_states',
    ['project', 'name'],
    [
      ['project', 'text'],
      ['name', 'text'],
      ['commit_id', 'text', 'null'],
      ['fetched_ms', 'bigint', 'null'],
      ['error', 'text', 'null'],
    ],
  ).execute()
  await createTable(
    ddl,
    'render_states',
    ['project', 'service'],
    [
      ['project', 'text'],
      ['service', 'text'],
      ['commit_id', 'text', 'null'],
      ['generation', 'bigint'],
      ['digest', 'text', 'null'],
      ['object_count', 'bigint'],
      ['rendered_ms', 'bigint', 'null'],
      ['error', 'text', 'null'],
    ],
  ).execute()
}

async function createClusters(ddl: Ddl): Promise<void> {
  await createTable(
    ddl,
    'clusters',
    ['cluster_id'],
    [
      ['cluster_id', 'text'],
      ['name', 'text'],
      ['cluster_uid', 'text'],
      ['epoch', 'bigint'],
      ['ordinal', 'bigint'],
      ['status_rev', 'bigint'],
      ['status_floor', 'bigint'],
      ['event_rev', 'bigint'],
      ['joined_ms', 'bigint'],
      ['last_seen_ms', 'bigint', 'null'],
    ],
  )
    .addUniqueConstraint('clusters_name', ['name'])
    .execute()
  await createTable(
    ddl,
    'agents',
    ['agent_id'],
    [
      ['agent_id', 'text'],
      ['cluster_id', 'text'],
      ['public_key', 'text'],
      ['recipient', 'text'],
      ['join_token_hash', 'text'],
      ['incarnation', 'bigint'],
      ['joined_ms', 'bigint'],
    ],
  )
    .addUniqueConstraint('agents_cluster', ['cluster_id'])
    .addUniqueConstraint('agents_key', ['public_key'])
    .execute()
  await createTable(
    ddl,
    'join_tokens',
    ['id'],
    [
      ['id', 'text'],
      ['token_hash', 'text'],
      ['uses_left', 'bigint'],
      ['uses', 'bigint'],
      ['labels', 'text'],
      ['created_ms', 'bigint'],
      ['expires_ms', 'bigint'],
      ['created_by', 'text'],
    ],
  )
    .addUniqueConstraint('join_tokens_hash', ['token_hash'])
    .execute()
  await createTable(
    ddl,
    'api_tokens',
    ['id'],
    [
      ['id', 'text'],
      ['token_hash', 'text'],
      ['name', 'text'],
      ['created_ms', 'bigint'],
    ],
  )
    .addUniqueConstraint('api_tokens_hash', ['token_hash'])
    .execute()
}

async function createFleetState(ddl: Ddl): Promise<void> {
  await createTable(
    ddl,
    'desired',
    ['cluster_id', 'project', 'service'],
    [
      ['cluster_id', 'text'],
      ['project', 'text'],
      ['service', 'text'],
      ['ordinal', 'bigint'],
      ['doc', 'text', 'null'],
      ['set_sha', 'text', 'null'],
      ['placed_by', 'text'],
    ],
  ).execute()
  await createTable(
    ddl,
    'statuses',
    ['cluster_id', 'kind', 'key'],
    [
      ['cluster_id', 'text'],
      ['kind', 'text'],
      ['key', 'text'],
      ['rev', 'bigint'],
      ['doc', 'text', 'null'],
      ['received_ms', 'bigint'],
    ],
  ).execute()
  await createTable(
    ddl,
    'events',
    ['id'],
    [
      ['id', 'bigint'],
      ['at_ms', 'bigint'],
      ['type', 'text'],
      ['reason', 'text'],
      ['message', 'text'],
      ['cluster', 'text', 'null'],
      ['project', 'text', 'null'],
      ['service', 'text', 'null'],
      ['object', 'text', 'null'],
    ],
  ).execute()
  await createTable(
    ddl,
    'confirmations',
    ['id'],
    [
      ['id', 'text'],
      ['kind', 'text'],
      ['subject', 'text'],
      ['project', 'text'],
      ['service', 'text'],
      ['cluster', 'text', 'null'],
      ['token', 'text'],
      ['names', 'text'],
      ['why', 'text'],
      ['created_ms', 'bigint'],
      ['confirmed_ms', 'bigint', 'null'],
      ['confirmed_by', 'text', 'null'],
    ],
  )
    .addUniqueConstraint('confirmations_subject', ['subject'])
    .execute()
}

export const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    async up(ddl) {
      const { trx } = ddl
      await createResources(ddl)
      await createClusters(ddl)
      await createFleetState(ddl)
      await trx.schema.createIndex('desired_by_service').on('desired').columns(['project', 'service', 'cluster_id']).execute()
      await trx.schema.createIndex('statuses_by_key').on('statuses').columns(['kind', 'key', 'cluster_id']).execute()
      await trx.schema.createIndex('events_by_cluster').on('events').columns(['cluster', 'id']).execute()
      await trx.schema.createIndex('events_by_service').on('events').columns(['project', 'service', 'id']).execute()
      const counters = ['resource_version', 'event_id'] as const
      await trx
        .insertInto('counters')
        .values(counters.map((name) => ({ name, value: 0 })))
        .execute()
    },
  },
  {
    version: 2,
    async up(ddl) {
      await addTexts(ddl, 'clusters', ['sweep_from'])
      await addNumbers(ddl, 'clusters', ['sweep_floor', 'adopted_ordinal', 'settled_epoch', 'wait_s'])
      // Pages that were sent before prove nothing.
      await ddl.trx
        .updateTable('clusters')
        .set((eb) => ({ adopted_ordinal: eb.ref('ordinal') }))
        .execute()
      await createTable(
        ddl,
        'restore_proofs',
        ['cluster_id'],
        [
          ['cluster_id', 'text'],
          ['epoch', 'bigint'],
          ['ordinal', 'bigint'],
          ['at_ms', 'bigint'],
        ],
      ).execute()
    },
  },
  { version: 3, up: migrateTo3 },
  { version: 4, up: migrateTo4 },
  { version: 5, up: migrateTo5 },
  { version: 6, up: migrateTo6 },
  { version: 7, up: migrateTo7 },
  { version: 8, up: migrateTo8 },
  {
    // API tokens have a role (null means admin, as before), their creator, and the time and address of their last use.
    version: 9,
    async up(ddl) {
      await addTexts(ddl, 'api_tokens', ['role', 'created_by', 'last_used_from'])
      await addNumbers(ddl, 'api_tokens', ['last_used_ms'])
    },
  },
  { version: 10, up: createAuditLog },
  { version: 11, up: createSessions },
  { version: 12, up: createJoinUses },
  // API tokens may be limited to projects. Null means no limit.
  { version: 13, up: (ddl) => addTexts(ddl, 'api_tokens', ['projects']) },
  // CO1. Null means that the event tells of no change, or an earlier version wrote it.
  {
    version: 14,
    async up(ddl) {
      await addTexts(ddl, 'events', ['trace'])
      await ddl.trx.schema.createIndex('events_by_trace').on('events').columns(['trace', 'id']).execute()
    },
  },
  { version: 15, up: createCommits },
  { version: 16, up: createNotifications },
  { version: 17, up: createKeptRequests },
  { version: 18, up: (ddl) => addNumbers(ddl, 'agents', ['rotate_ms']) },
  // Also keeps earlier versions out: they cannot open secrets that are sealed under data keys.
  { version: 19, up: createSecretStates },
  { version: 20, up: createWatermarks },
  // NO4: 0: no attempt failed since the last delivery, or a server of before noted no time. HI9: null means that the
  // events tell.
  {
    version: 21,
    async up(ddl) {
      await addNumbers(ddl, 'notifications', ['tried_ms'])
      await addTexts(ddl, 'status_history', ['cause'])
      await sql`create index history_uncaused on status_history (at_ms) where cause is null`.execute(ddl.trx)
    },
  },
  // A confirmation may be refused; revisions count the clusters that were given them.
  {
    version: 22,
    async up(ddl) {
      await addNumbers(ddl, 'confirmations', ['refused_ms'])
      await addTexts(ddl, 'confirmations', ['refused_by', 'refused_why'])
      await addNumbers(ddl, 'revisions', ['given'])
    },
  },
  // SL16. Null means that an earlier version wrote the row, or a server that does not seal.
  { version: 23, up: (ddl) => addTexts(ddl, 'desired', ['proof']) },
]

/** ST2, ST3: brings the schema forward, one transaction for each step; refuses one that it does not know. A transaction
 *  has the store to itself, so two processes that do this at the same time do each step once. Answers from which number
 *  to which; 0: it was empty. */
export async function migrate(
  db: Kysely<Tables>,
  engine: Engine,
  migrations: readonly Migration[] = MIGRATIONS,
  progress?: Ddl['progress'],
): Promise<{ from: number; to: number }> {
  const newest = migrations.at(-1)?.version ?? 0
  await db.transaction().execute(async (trx) => {
    await createMeta(trx, engine)
    const held = await heldVersion(trx)
    if (held > newest) {
      throw new AppError('store_newer', {
        doing: 'open the fleet store',
        detail: `it has schema ${held}, but this version supports up to ${newest}; use a newer version. Nothing was changed`,
      })
    }
  })
  let from = newest
  for (const migration of migrations) {
    await db.transaction().execute(async (trx) => {
      const held = await heldVersion(trx)
      if (held >= migration.version) return
      from = Math.min(from, held)
      await migration.up({ engine, trx, progress })
      const value = String(migration.version)
      await trx
        .insertInto('meta')
        .values({ key: 'schema', value })
        .onConflict((on) => on.column('key').doUpdateSet({ value }))
        .execute()
    })
  }
  return { from, to: newest }
}

async function createMeta(trx: Transaction<Tables>, engine: Engine): Promise<void> {
  const text = textType(engine)
  await trx.schema
    .createTable('meta')
    .ifNotExists()
    .addColumn('key', text, (column) => column.primaryKey())
    .addColumn('value', text, (column) => column.notNull())
    .execute()
}

async function heldVersion(trx: Transaction<Tables>): Promise<number> {
  const row = await trx.selectFrom('meta').select('value').where('key', '=', 'schema').executeTakeFirst()
  return Number(row?.value ?? 0)
}
