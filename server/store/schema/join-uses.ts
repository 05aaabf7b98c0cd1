// Which keys joined with which token, and names of data that were confirmed and are in no order yet.
import { sql } from 'kysely'
import { createTable, type Ddl } from './ddl.ts'

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
