// A process that is killed in the middle of writes leaves each change with its entry of the audit log, or neither, and
// a whole chain that the next one goes on with.
import { expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { createAuditStore } from '../../server/store/audit/store-audit.ts'
import { createStoreDb } from '../../server/store/store-db.ts'
import { AuditChain } from '../../shared/model/audit.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { STORES } from '../support/stores.ts'

setDefaultTimeout(60_000)
const SCRIPT = join(import.meta.dir, '../support/audit-until-killed.ts')

test.each(STORES)('AU1 AU4 kill -9 in the middle of writes leaves entry and change or neither: $name', async (kind) => {
  const place = await kind.place()
  await (await place.connect()).close() // its schema
  for (let life = 0; life < 4; life++) {
    const child = Bun.spawn([process.execPath, SCRIPT, place.at, `life${life}`], { stdout: 'pipe', stderr: 'inherit' })
    await child.stdout.getReader().read()
    await Bun.sleep(40 + life * 60)
    child.kill('SIGKILL')
    await child.exited
  }
  const db = createStoreDb(await place.connect(), systemClock)
  const { audit } = createAuditStore(db)
  const entries: string[] = []
  const { head, chain } = { head: await audit.head(), chain: new AuditChain(null) }
  for (let after = 0; ; ) {
    const rows = await audit.read({ after, limit: 500 })
    for (const { seq, hash, doc } of rows) {
      const { prev, name } = JSON.parse(doc)
      expect(chain.take({ seq, prev, hash, doc })).toBeNull()
      entries.push(name)
    }
    if (rows.length === 0) break
    after = rows.at(-1)?.seq ?? after
  }
  expect(chain.end(head)).toBeNull()
  const changes = await db.read.selectFrom('meta').select('key').where('key', 'like', 'life%').execute()
  expect(entries.length).toBeGreaterThan(20)
  expect(entries.sort()).toEqual(changes.map(({ key }) => key).sort())
  await db.destroy()
})
