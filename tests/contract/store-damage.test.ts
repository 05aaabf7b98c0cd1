// A fleet store that lost something is refused with the next step, and left as it is: nothing else has what it held.
import { beforeEach, expect, test } from 'bun:test'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Kysely, sql } from 'kysely'
import { startServer } from '../../server/server.ts'
import { connectSqlite } from '../../server/store/engines/connections.ts'
import { sqliteDialect } from '../../server/store/engines/sqlite-dialect.ts'
import { createStoreFile } from '../../server/store/engines/store-guard.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { tempDir } from '../support/temp-dir.ts'

const PAGE = 4_096
const FRAME = PAGE + 24
let dir = ''
let path = ''
beforeEach(() => {
  dir = tempDir()
  path = join(dir, 'fleet.sqlite')
})

const notes = async (): Promise<string[]> => {
  const { reader, close } = await connectSqlite(path)
  const rows = await reader.selectFrom('meta').select('key').where('key', 'like', 'note-%').orderBy('key').execute()
  await close()
  return rows.map(({ key }) => key)
}

/** With so many commits, all of which are in the log. */
async function leaveWithLog(commits: number): Promise<void> {
  const live = join(dir, 'live.sqlite')
  const { writer, close } = await connectSqlite(live)
  for (let n = 0; n < commits; n++)
    await writer
      .insertInto('meta')
      .values({ key: `note-${n}`, value: 'x' })
      .execute()
  cpSync(live, path)
  cpSync(`${live}-wal`, `${path}-wal`)
  await close()
}

const refusal = async (opening: Promise<unknown>): Promise<AppError> => {
  const error = await opening.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof AppError)) throw new Error(`it was not refused: ${error}`)
  return error
}

const whole = async () => {
  await (await connectSqlite(path)).close()
  return readFileSync(path)
}

test.each<[string, (bytes: Buffer) => Buffer]>([
  ['a page of zeros', (bytes) => bytes.fill(0, 8 * PAGE, 9 * PAGE)],
  ['half of its pages', (bytes) => bytes.subarray(0, bytes.length / 2 - ((bytes.length / 2) % PAGE))],
  [
    'two pages in each other’s place',
    (bytes) => {
      const first = Buffer.from(bytes.subarray(2 * PAGE, 3 * PAGE))
      bytes.copyWithin(2 * PAGE, 20 * PAGE, 21 * PAGE)
      first.copy(bytes, 20 * PAGE)
      return bytes
    },
  ],
  ['bytes of another kind', () => Buffer.from('no database at all, and longer than the head of one is'.repeat(4))],
])('ST22 a store with %s is refused at every start, and not changed', async (_, damage) => {
  const damaged = damage(await whole())
  writeFileSync(path, damaged)
  for (let start = 0; start < 2; start++) expect((await refusal(connectSqlite(path))).code).toBe('store_damaged')
  expect(readFileSync(path).equals(damaged)).toBe(true)
})

test('ST22 a store with an index that lacks a row, as after a lost write, is refused', async () => {
  await whole()
  const change = (statement: string): Buffer => {
    const db = openSqlite(path)
    db.run(statement)
    db.run('PRAGMA wal_checkpoint(TRUNCATE)')
    db.close()
    return readFileSync(path)
  }
  change('CREATE TABLE held (a TEXT)')
  const before = change('CREATE INDEX held_a ON held (a)')
  const after = change("INSERT INTO held VALUES ('1')")
  const db = openSqlite(path, { readonly: true })
  const { rootpage = 0 } = db.query<{ rootpage: number }, []>("SELECT rootpage FROM sqlite_master WHERE name = 'held_a'").get() ?? {}
  db.close()
  before.copy(after, (rootpage - 1) * PAGE, (rootpage - 1) * PAGE, rootpage * PAGE)
  writeFileSync(path, after)
  expect((await refusal(connectSqlite(path))).code).toBe('store_damaged')
})

test('ST22 a log that is damaged before commits is refused; what is told to do gives up these commits and no others', async () => {
  await leaveWithLog(6)
  const log = readFileSync(`${path}-wal`)
  const at = 32 + 2 * FRAME + 200
  log[at] = (log[at] ?? 0) ^ 4
  writeFileSync(`${path}-wal`, log)
  const { code, remedy, data } = await refusal(connectSqlite(path))
  const lost = Number(/the (\d+) commits/.exec(String(data['detail']))?.[1])
  expect([code, readFileSync(`${path}-wal`).equals(log)]).toEqual(['store_damaged', true])
  const size = Number(/truncate --size=(\d+) /.exec(remedy)?.[1])
  expect(size).toBe(32 + 2 * FRAME)
  truncateSync(`${path}-wal`, size)
  expect(await notes()).toEqual(['note-0', 'note-1', 'note-2'].slice(0, 6 - lost))
})

test('ST22 a log whose head is damaged is refused', async () => {
  await leaveWithLog(3)
  const log = readFileSync(`${path}-wal`)
  log[18] = (log[18] ?? 0) ^ 1 // a salt
  writeFileSync(`${path}-wal`, log)
  expect((await refusal(connectSqlite(path))).code).toBe('store_damaged')
})

test('ST22 ST9 a last commit that a power loss cut off is no damage, nor is a log that was used before', async () => {
  await leaveWithLog(4)
  const log = readFileSync(`${path}-wal`)
  log[log.length - 9] = (log[log.length - 9] ?? 0) ^ 1
  writeFileSync(`${path}-wal`, log)
  expect(await notes()).toEqual(['note-0', 'note-1', 'note-2'])

  const db = openSqlite(path)
  db.run('PRAGMA wal_autocheckpoint=0')
  for (let n = 0; n < 5; n++) db.run('INSERT INTO meta VALUES (?, ?)', [`note-a${n}`, 'x'])
  db.run('PRAGMA wal_checkpoint(RESTART)')
  db.run("INSERT INTO meta VALUES ('note-b', 'x')")
  const used = join(tempDir(), 'fleet.sqlite')
  for (const suffix of ['', '-wal']) cpSync(path + suffix, used + suffix)
  db.close()
  path = used
  expect(await notes()).toHaveLength(9)
})

test('ST22 a store that is cut off while it is created never has its name', async () => {
  const cutOff = (staged: string) => {
    writeFileSync(staged, 'half')
    throw new Error('killed')
  }
  expect(() => createStoreFile(path, cutOff)).toThrow('killed')
  expect(existsSync(path)).toBe(false)
  expect(await notes()).toEqual([])
  expect(readdirSync(dir).filter((name) => name.includes('.new'))).toEqual([])
})

test.each([
  ['is missing', () => rmSync(path)],
  ['is empty', () => writeFileSync(path, '')],
  ['has no tables', () => openSqlite(rewritten()).close()],
])('ST22 a server whose keys are there and whose store %s does not begin anew', async (_, lose) => {
  await whole()
  const start = () => startServer({ dataDir: dir, hostname: '127.0.0.1', port: 0 }, DEPS)
  mkdirSync(join(dir, 'keys'))
  const server = await start()
  await server.stop()
  lose()
  const had = existsSync(path)
  for (let time = 0; time < 2; time++) expect((await refusal(start())).code).toBe('store_damaged')
  expect(existsSync(path)).toBe(had)
})
const DEPS = { clock: systemClock, random: seededRandom(3), log: silentLogger }
const rewritten = () => {
  rmSync(path)
  return path
}

test('ST22 damage that only a query meets is told as damage', async () => {
  const bytes = await whole()
  const root = openSqlite(path, { readonly: true })
  const page = root.query<{ rootpage: number }, []>("SELECT rootpage FROM sqlite_master WHERE name = 'meta'").get()?.rootpage ?? 0
  root.close()
  writeFileSync(path, bytes.fill(0xff, (page - 1) * PAGE, page * PAGE))
  const damaged = new Kysely<never>({ dialect: sqliteDialect(path) })
  expect((await refusal(sql`select * from meta`.execute(damaged))).code).toBe('store_damaged')
  await damaged.destroy()
})
