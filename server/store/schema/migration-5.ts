// Schema 5: the removed clusters, so that their agents can be informed and a cluster that joins again finds its former
// registrations.
import { createTable, type Ddl } from './ddl.ts'

export async function migrateTo5(ddl: Ddl): Promise<void> {
  await createTable(
    ddl,
    'removed_clusters',
    ['agent_id'],
    [
      ['agent_id', 'text'],
      ['cluster_id', 'text'],
      ['cluster_uid', 'text'],
      ['name', 'text'],
      ['no', 'bigint'],
    ],
  ).execute()
  await ddl.trx.schema.createIndex('removed_clusters_by_uid').on('removed_clusters').columns(['cluster_uid', 'no']).execute()
}
