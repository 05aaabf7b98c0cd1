// cr-sqlite takes for granted that its tables are there: on a file that a power loss left half made it ended the
// process, at every start. In a process of its own.
import { beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { trialInChild, tryCrdtFiles } from '../../shared/adapters/crdt-trial.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { DAMAGES } from '../support/open-damaged.ts'
import { tempDir } from '../support/temp-dir.ts'

interface Answer {
  name: string
  replica: string
  shard: string[]
}
let answers: Answer[] = []
let ended: unknown[] = []
const folder = tempDir()

beforeAll(async () => {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, '../support/open-damaged.ts'), folder], {
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  ended = [await child.exited, child.signalCode, err]
  answers = out
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Answer)
}, 30_000)

test('CU10 a child process tries files as the programs do, leaves no trace in them, and goes on after a damaged one', () => {
  const [whole, halfMade] = [join(folder, '0.db.replica'), join(folder, '2.db.replica')]
  const refused = tryCrdtFiles([halfMade, whole], trialInChild(folder))
  expect([...refused.keys()]).toEqual([])
  const wholeDb = openSqlite(whole, { readonly: true })
  expect(wholeDb.query('SELECT count(*) AS n FROM desired').get()).toEqual({ n: 0 })
  wholeDb.close()
})

const answerOf = (name: string) => answers.find((answer) => answer.name === name)

test('CU9 no damaged file of cr-sqlite ends the process that opens it', () => {
  expect(ended).toEqual([0, null, ''])
})

test.each(Object.keys(DAMAGES))('CU9 with %s a replica is refused before native code sees it, and a shard file is rebuilt once', (name) => {
  expect(answerOf(name)).toEqual({ name, replica: 'refused', shard: ['rebuilt', 'kept'] })
})

test('CU9 a file whose first transactions were cut off, at any of them, is refused as a replica and rebuilt as a shard file', () => {
  const cuts = answers.filter(({ name }) => name.startsWith('a log cut'))
  // The first is what power losses left in the field: SQLite finds nothing wrong, and cr-sqlite ended the process.
  expect(cuts.map(({ name }) => name)).toContain('a log cut when it had crsql_master, crsql_tracked_peers')
  expect(cuts.length).toBeGreaterThan(2)
  expect(cuts.filter(({ replica, shard }) => replica !== 'refused' || shard.join() !== 'rebuilt,kept')).toEqual([])
})

test('CU9 a whole file is kept, and an empty shard file is rebuilt', () => {
  expect(answerOf('nothing')).toEqual({ name: 'nothing', replica: 'opened', shard: ['kept', 'kept'] })
  expect(answerOf('an empty file')).toMatchObject({ shard: ['rebuilt', 'kept'] })
})
