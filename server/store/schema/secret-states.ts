// The state of the external sources of each Config, and how often a webhook got another secret.
import { createTable, type Ddl } from './ddl.ts'

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
