// A process of its own for audit-killed.test.ts: writes resources, several at a time, until it is killed; each change
// commits with its entry of the audit log.

import { actAs } from '../../server/store/audit/caller.ts'
import { connectPostgres, connectSqlite } from '../../server/store/engines/connections.ts'
import { parsePostgresUrl } from '../../server/store/engines/postgres-url.ts'
import { createStoreDb } from '../../server/store/store-db.ts'
import { systemClock } from '../../shared/runtime/clock.ts'

const [at = '', name = ''] = process.argv.slice(2)
const connections = at.startsWith('postgres')
  ? await connectPostgres({ target: parsePostgresUrl(at) }, systemClock)
  : await connectSqlite(at)
const db = createStoreDb(connections, systemClock)
process.stdout.write('writing\n')
const actor = { kind: 'token', id: 't-1', name: 'writer', verified: true } as const
const writeOne = (key: string) =>
  actAs(actor, {}, () =>
    db.write(async ({ sql, audit }) => {
      audit.add({ verb: 'create', kind: 'Thing', name: key })
      await sql.insertInto('meta').values({ key, value: '' }).execute()
    }),
  )
for (let round = 0; ; round++) await Promise.all(Array.from({ length: 8 }, (_, index) => writeOne(`${name}-${round}-${index}`)))
