// Tables that versions after 8 added, one function for each. `migrations.ts` says in which version.

import { sql } from 'kysely'
import { AUDIT_GENESIS } from '../../../shared/model/audit.ts'
import { createTable, type Ddl } from './ddl.ts'

/** The audit log: entries in the order of commits, and the newest of them. */
export async function createAuditLog(ddl: Ddl): Promise<void> {
  const { trx } = ddl
  await createTable(
    ddl,
    'audit',
    [],
    [
      ['seq', 'id'],
      ['at_ms', 'bigint'],
      ['actor', 'text'],
      ['verb', 'text'],
      ['kind', 'text'],
      ['project', 'text', 'null'],
      ['name', 'text', 'null'],
      ['cluster', 'text', 'null'],
      ['result', 'text'],
      ['hash', 'text'],
      ['doc', 'text'],
    ],
  ).execute()
  await trx.schema.createIndex('audit_by_time').on('audit').column('at_ms').execute()
  await trx.schema.createIndex('audit_by_actor').on('audit').columns(['actor', 'seq']).execute()
  await trx.schema.createIndex('audit_by_name').on('audit').columns(['name', 'seq']).execute()
  await createTable(
    ddl,
    'audit_head',
    [],
    [
      ['seq', 'bigint'],
      ['hash', 'text'],
      ['anchor', 'text', 'null'],
    ],
  ).execute()
  await sql`insert into audit_head (seq, hash, anchor) values (0, ${AUDIT_GENESIS}, null)`.execute(trx)
}

/** Writes with an Idempotency-Key, and JWTs that were exchanged: what must not happen twice, also after a restart. */
export async function createKeptRequests(ddl: Ddl): Promise<void> {
  await createTable(
    ddl,
    'kept_requests',
    ['id'],
    [
      ['id', 'text'],
      ['digest', 'text'],
      ['until_ms', 'bigint'],
      ['answer', 'text', 'null'],
      ['bytes', 'bigint'],
    ],
  ).execute()
  await createTable(
    ddl,
    'used_once',
    ['id'],
    [
      ['id', 'text'],
      ['until_ms', 'bigint'],
    ],
  ).execute()
  const { schema } = ddl.trx
  await schema.createIndex('kept_requests_by_end').on('kept_requests').column('until_ms').execute()
  await schema.createIndex('used_once_by_end').on('used_once').column('until_ms').execute()
}

/** Sessions of people and pipelines that signed in through an identity provider. */
export async function createSessions(ddl: Ddl): Promise<void> {
  await createTable(
    ddl,
    'sessions',
    ['id'],
    [
      ['id', 'text'],
      ['kind', 'text'],
      ['provider', 'text'],
      ['subject', 'text'],
      ['name', 'text'],
      ['email', 'text', 'null'],
      ['group_names', 'text'],
      ['access_hash', 'text'],
      ['access_expires_ms', 'bigint'],
      ['refresh_hash', 'text', 'null'],
      ['earlier_refresh_hash', 'text', 'null'],
      ['rotated_ms', 'bigint'],
      ['created_ms', 'bigint'],
      ['expires_ms', 'bigint'],
      ['checked_ms', 'bigint'],
      ['last_used_ms', 'bigint'],
      ['last_used_from', 'text', 'null'],
      ['sealed', 'text', 'null'],
    ],
  )
    .addUniqueConstraint('sessions_access', ['access_hash'])
    .execute()
  const { schema } = ddl.trx
  await schema.createIndex('sessions_by_refresh').on('sessions').column('refresh_hash').execute()
  await schema.createIndex('sessions_by_earlier_refresh').on('sessions').column('earlier_refresh_hash').execute()
}

/** Messages to sinks: the outbox, and how far the event stream is planned. */
export async function createNotifications(ddl: Ddl): Promise<void> {
  await createTable(
    ddl,
    'notifications',
    ['id'],
    [
      ['id', 'bigint'],
      ['project', 'text'],
      ['route', 'text'],
      ['sink', 'text'],
      ['group_key', 'text'],
      ['state', 'text'],
      ['version', 'bigint'],
      ['sent_version', 'bigint'],
      ['attempts', 'bigint'],
      ['next_ms', 'bigint', 'null'],
      ['created_ms', 'bigint'],
      ['updated_ms', 'bigint'],
      ['sent_ms', 'bigint', 'null'],
      ['error', 'text', 'null'],
      ['ref', 'text', 'null'],
      ['doc', 'text'],
    ],
  ).execute()
  await ddl.trx.schema.createIndex('notifications_by_sink').on('notifications').columns(['project', 'sink', 'state']).execute()
  await ddl.trx.schema.createIndex('notifications_by_state').on('notifications').columns(['state', 'id']).execute()
  await ddl.trx.insertInto('counters').values({ name: 'notification', value: 0 }).execute()
}

/** Authors of the commits of repositories, saved queries, and the newest verified commit of each ref. */
export async function createCommits(ddl: Ddl): Promise<void> {
  await createTable(
    ddl,
    'commits',
    ['project', 'repository', 'commit_id'],
    [
      ['project', 'text'],
      ['repository', 'text'],
      ['commit_id', 'text'],
      ['author', 'text', 'null'],
      ['subject', 'text', 'null'],
      ['authored_ms', 'bigint', 'null'],
      ['seen_ms', 'bigint'],
    ],
  ).execute()
  await ddl.trx.schema.createIndex('commits_by_time').on('commits').columns(['project', 'repository', 'seen_ms']).execute()
  await createTable(
    ddl,
    'saved_queries',
    ['name'],
    [
      ['name', 'text'],
      ['query', 'text'],
      ['about', 'text'],
      ['saved_by', 'text'],
      ['updated_ms', 'bigint'],
    ],
  ).execute()
}

export async function createWatermarks(ddl: Ddl): Promise<void> {
  await createTable(
    ddl,
    'watermarks',
    ['uid', 'ref'],
    [
      ['uid', 'text'],
      ['ref', 'text'],
      ['commit_id', 'text'],
      ['signed_ms', 'bigint'],
    ],
  ).execute()
}

/** The state of the external sources of each Config, and how often a webhook got another secret. */
export async function createSecretStates(ddl: Ddl): Promise<void> {
  await createTable(
    ddl,
    'config_states',
    ['project', 'name'],
    [
      ['project', 'text'],
      ['name', 'text'],
      ['doc', 'text'],
    ],
  ).execute()
  await createTable(
    ddl,
    'webhook_secrets',
    ['uid'],
    [
      ['uid', 'text'],
      ['number', 'bigint'],
    ],
  ).execute()
}

/** Which keys joined with which token, and names of data that were confirmed and are in no order yet. */
export async function createJoinUses(ddl: Ddl): Promise<void> {
  await createTable(
    ddl,
    'join_uses',
    ['token_hash', 'public_key'],
    [
      ['token_hash', 'text'],
      ['public_key', 'text'],
    ],
  ).execute()
  // Earlier versions stored only the last token of a key.
  await sql`insert into join_uses (token_hash, public_key) select join_token_hash, public_key from agents
    where join_token_hash in (select token_hash from join_tokens)`.execute(ddl.trx)
  await createTable(
    ddl,
    'confirmed_data',
    ['project', 'service', 'cluster_id'],
    [
      ['project', 'text'],
      ['service', 'text'],
      ['cluster_id', 'text'],
      ['names', 'text'],
    ],
  ).execute()
}
