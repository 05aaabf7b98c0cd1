// A process of its own for store-migration.test.ts: opens the store given and dies in the midst of its migration, when
// half of the rows are moved.
import { connectPostgres, connectSqlite } from '../../server/store/engines/connections.ts'
import { parsePostgresUrl } from '../../server/store/engines/postgres-url.ts'
import { systemClock } from '../../shared/runtime/clock.ts'

const [at = '', what = ''] = process.argv.slice(2)
const tell = (progress: { what: string; done: number }) => {
  if (progress.what === what && progress.done > 0) process.kill(process.pid, 'SIGKILL')
}
if (at.startsWith('postgres:')) await connectPostgres({ target: parsePostgresUrl(at) }, systemClock, tell)
else await connectSqlite(at, tell)
