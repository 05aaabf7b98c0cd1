// Messages to sinks: the outbox, and how far the event stream is planned.
import { createTable, type Ddl } from './ddl.ts'

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
