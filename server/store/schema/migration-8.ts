// Schema 8: who deleted a service, and tombstones of services whose status rows are still to be removed.
import { sql } from 'kysely'
import { addNumbers, addTexts, type Ddl } from './ddl.ts'

export async function migrateTo8(ddl: Ddl): Promise<void> {
  await addTexts(ddl, 'resources', ['deleting_by'])
  await addNumbers(ddl, 'desired', ['cleanup'])
  // A server that was killed after it wrote a tombstone may have left status rows behind.
  await sql`update desired set cleanup = 1 where doc is null and set_sha is null`.execute(ddl.trx)
  await sql`create index desired_removed on desired (cluster_id, project, service) where doc is null and set_sha is null`.execute(ddl.trx)
}
