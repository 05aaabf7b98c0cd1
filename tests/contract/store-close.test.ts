// What a store that was closed leaves on the disk.
import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { openSqliteStore } from '../../server/store/kysely-store.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { systemRandom } from '../../shared/runtime/random.ts'
import { tempDir } from '../support/temp-dir.ts'

test('ST9 a file that was closed holds everything without its log, also when fleet queries were asked', async () => {
  const path = join(tempDir(), 'fleet.sqlite')
  const store = await openSqliteStore(path, { clock: systemClock, random: systemRandom })
  await store.applyResource({ kind: 'Service', project: 'default', name: 'web' }, { labels: {}, spec: '{}', nowMs: 1 })
  await store.queries.answer({ kind: 'warm' })
  await store.close()
  copyFileSync(path, `${path}.copy`)
  const copy = new Database(`${path}.copy`)
  expect(copy.query("select name from resources where kind = 'Service'").all()).toEqual([{ name: 'web' }])
  copy.close()
})
