// A migration that was released cannot change by accident: stores that had it would never get what is new in it.
import { expect, setDefaultTimeout, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { MIGRATIONS, migrate } from '../../server/store/schema/migrations.ts'
import { openTables } from '../support/old-store.ts'
import { STORES, type StoreKind } from '../support/stores.ts'

setDefaultTimeout(60_000) // PostgreSQL is started in one of them

/** One line a number, never changed once a version with it was released. */
const HASHES: Record<StoreKind['name'], Record<number, string>> = {
  SQLite: {
    1: '22060553877822d3',
    2: 'b0f8a7388262c002',
    3: 'a764f539a2c9c084',
    4: 'e62de461a654feaf',
    5: '17a421ba1df01032',
    6: '2a65ff8bfc6462a2',
    7: 'e835e5c46890b219',
    8: '89d0b3dfc21abb40',
    9: '98a510408863869c',
    10: '82d73678f0bc9675',
    11: 'f1d1119c310d7596',
    12: '7b2d58828cdda937',
    13: '2c9b0de95fc893c6',
    14: 'c46e428deccb6f86',
    15: 'ab637148517e95f3',
    16: '72f2dce723f92374',
    17: 'a36f1e01f3931035',
    18: '55b85af08ca30096',
    19: 'efd9ccea40736f0e',
    20: '970240498f773cd7',
    21: '570de9997fb96742',
    22: 'bfc8109a2fd50df2',
    23: 'f6933b1060afba79',
  },
  PostgreSQL: {
    1: 'b031b6640bfd07f7',
    2: 'a7fb656956ab82bb',
    3: '0c23259c36fa9fab',
    4: '959b7eeb40bab872',
    5: '785c72f6a3c878cd',
    6: 'bce910729f3f1343',
    7: '82ec18a228a2ad71',
    8: '89490553affb0aef',
    9: '65b62ab8e51e76cc',
    10: 'bf5a5e824b135dcf',
    11: '396fd0a12fd51fcc',
    12: 'fb6134aae01aa897',
    13: '024e9a7de30717d1',
    14: 'e6869db27cf41a64',
    15: '10bf2c1a3e122c01',
    16: 'f4b1efdce0f95ad3',
    17: 'c6dd4463665dd364',
    18: '55b85af08ca30096',
    19: 'e031c06b5366ffa1',
    20: '555cdaaa4db88a18',
    21: '95abb252a54cb685',
    22: '31190ed123c36579',
    23: '62659974ae446466',
  },
}

const WHAT_TO_DO = `What a migration of the fleet store makes is another than it was.
  Was a version with that number released? Then take the change back, and add a migration with the next number: stores in the field have run the old one, and run no number twice.
  Add rows of the schema before yours to tests/fixtures/store too, read by the code of that schema, and its number to store-migration.test.ts.
  Was it not? Then put the new hash in place of the old.`

test.each(STORES)('ST3 the tables that each migration makes on $name are those that were released', async (kind) => {
  const place = await kind.place({ bare: true })
  const made: Record<number, string[]> = {}
  let current: string[] = []
  const db = openTables(kind, place, (statement) => {
    if (/^(create|alter|drop) /i.test(statement)) current.push(statement)
  })
  const watched = MIGRATIONS.map(({ version, up }) => ({
    version,
    up: (ddl: Parameters<typeof up>[0]) => {
      current = []
      made[version] = current
      return up(ddl)
    },
  }))
  await migrate(db, kind.name === 'SQLite' ? 'sqlite' : 'postgres', watched)
  await db.destroy()
  const hashes = Object.fromEntries(
    Object.entries(made).map(([version, statements]) => [
      version,
      createHash('sha256').update(statements.join('\n')).digest('hex').slice(0, 16),
    ]),
  )
  const changed = Object.entries(hashes).filter(([version, hash]) => HASHES[kind.name]?.[Number(version)] !== hash)
  const told = changed.map(([version, hash]) => `  ${kind.name}, ${version}: '${hash}'`)
  expect(told.length === 0 ? '' : `${WHAT_TO_DO}\n${told.join('\n')}\n`).toBe('')
})
