// Writes with an Idempotency-Key, and JWTs that were exchanged: what must not happen twice, also after a restart.
import { createTable, type Ddl } from './ddl.ts'

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
