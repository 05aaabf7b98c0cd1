// The audit log: entries in the order of commits, and the newest of them.
import { sql } from 'kysely'
import { AUDIT_GENESIS } from '../../../shared/model/audit.ts'
import { createTable, type Ddl } from './ddl.ts'

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
