// Sessions of people and pipelines that signed in through an identity provider.
import { createTable, type Ddl } from './ddl.ts'

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
