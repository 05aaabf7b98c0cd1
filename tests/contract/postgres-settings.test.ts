// What an operator set for the database, or for a role, does not change what the store relies on: a real PostgreSQL.
import { expect, setDefaultTimeout, test } from 'bun:test'
import { connect, createServer } from 'node:net'
import { Kysely, sql as raw } from 'kysely'
import { connectPostgres } from '../../server/store/engines/connections.ts'
import { readerDialect, writerDialect } from '../../server/store/engines/postgres-dialect.ts'
import { parsePostgresUrl } from '../../server/store/engines/postgres-url.ts'
import { createStoreDb, type StoreDb } from '../../server/store/store-db.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { testPostgres } from '../support/postgres.ts'

setDefaultTimeout(60_000)

async function open(url: string): Promise<StoreDb> {
  return createStoreDb(await connectPostgres({ target: parsePostgresUrl(url) }, systemClock), systemClock)
}

async function databaseWith(setting: string): Promise<string> {
  const postgres = await testPostgres()
  const url = await postgres.createDatabase()
  await postgres.query(url, `alter database "${new URL(url).pathname.slice(1)}" set ${setting}`)
  return url
}

test.each(['repeatable read', 'serializable'])(
  'ST16 who waited for the lock sees what was committed meanwhile, also where the default is %s',
  async (level) => {
    const url = await databaseWith(`default_transaction_isolation = '${level}'`)
    const [first, second] = [await open(url), await open(url)]
    const count = (db: StoreDb) =>
      db.write(async ({ sql }) => {
        const row = await sql.selectFrom('meta').select('value').where('key', '=', 'n').executeTakeFirst()
        const value = String(Number(row?.value ?? 0) + 1)
        await sql
          .insertInto('meta')
          .values({ key: 'n', value })
          .onConflict((on) => on.column('key').doUpdateSet({ value }))
          .execute()
      })
    await Promise.all(Array.from({ length: 20 }, (_, index) => count(index % 2 === 0 ? first : second)))
    expect(await first.read.selectFrom('meta').select('value').where('key', '=', 'n').execute()).toEqual([{ value: '20' }])
    await Promise.all([first.destroy(), second.destroy()])
  },
)

test.each(['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout'])(
  'ST2 ST16 a write takes as long as it takes, whatever %s is by default',
  async (name) => {
    const url = await databaseWith(`${name} = '40ms'`)
    const [first, second] = [await open(url), await open(url)]
    const slow = first.write(async ({ sql }) => {
      await raw`select pg_sleep(0.15)`.execute(sql)
      await Bun.sleep(150)
      await sql.insertInto('meta').values({ key: 'slow', value: '' }).execute()
    })
    await Bun.sleep(20)
    const waiting = second.write(({ sql }) => sql.insertInto('meta').values({ key: 'waited', value: '' }).execute())
    await Promise.all([slow, waiting])
    await Promise.all([first.destroy(), second.destroy()])
  },
)

test('ST15 a database that cannot hold every text is refused before anything is made in it', async () => {
  const postgres = await testPostgres()
  const url = new URL(await postgres.createDatabase())
  const name = url.pathname.slice(1)
  await postgres.query(
    url.href,
    `create database ${name}_latin encoding 'LATIN1' template template0 lc_collate 'C' lc_ctype 'C' owner ${name}`,
  )
  url.pathname = `/${name}_latin`
  await expect(open(url.href)).rejects.toMatchObject({ code: 'bad_options', remedy: expect.stringContaining('template0') })
  expect(await postgres.query(url.href, "select count(*) from pg_tables where schemaname = 'public'")).toEqual(['0'])
})

test('ST14 a connection that falls silent while it is made ready is given up like any other', async () => {
  const target = parsePostgresUrl(await (await testPostgres()).createDatabase())
  const silent = new Kysely({
    dialect: writerDialect(
      { target, password: async () => null, applicationName: 'silent' },
      { onConnect: async (query) => void (await query('select pg_sleep(5)')), onLost: () => {}, answerMs: () => 200 },
    ),
  })
  await expect(raw`select 1`.execute(silent)).rejects.toMatchObject({ code: 'store_unreachable' })
  await silent.destroy()
})

test('ST14 after an answer that never came no other is waited for on that connection', async () => {
  const target = parsePostgresUrl(await (await testPostgres()).createDatabase())
  const db = createStoreDb(await connectPostgres({ target, answerMs: 1_500 }, systemClock), systemClock)
  const startedMs = performance.now()
  await expect(db.write(({ sql }) => raw`select pg_sleep(10)`.execute(sql))).rejects.toMatchObject({ code: 'store_unreachable' })
  expect(performance.now() - startedMs).toBeLessThan(2_700)
  await db.destroy()
})

/** What some poolers do that lend connections for a transaction each: what a connection asks for at its start is
 *  dropped. */
async function droppingOptions(port: number): Promise<{ port: number; stop(): void }> {
  const proxy = createServer((client) => {
    const database = connect(port, '127.0.0.1')
    client.once('data', (first: Buffer) => {
      const asked = first.toString('latin1', 8).split('\0')
      const kept: string[] = []
      for (let at = 0; at + 1 < asked.length; at += 2) {
        const [name, value] = [asked[at], asked[at + 1]]
        if (name && name !== 'options') kept.push(name, value ?? '')
      }
      const body = Buffer.from(`${kept.join('\0')}\0\0`, 'latin1')
      const head = Buffer.alloc(8)
      head.writeInt32BE(body.length + 8, 0)
      first.copy(head, 4, 4, 8)
      database.write(Buffer.concat([head, body]))
      client.pipe(database).pipe(client)
    })
    for (const [one, other] of [
      [client, database],
      [database, client],
    ] as const)
      one.on('error', () => {}).on('close', () => other.destroy())
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const address = proxy.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return { port: address.port, stop: () => void proxy.close() }
}

test('ST15 a pooler that drops what a connection asks for is refused: a lock of a session would not be ours alone', async () => {
  const postgres = await testPostgres()
  const url = await postgres.createDatabase()
  const pooler = await droppingOptions(postgres.port)
  await expect(open(url.replace(`:${postgres.port}/`, `:${pooler.port}/`))).rejects.toMatchObject({
    code: 'bad_options',
    remedy: expect.stringContaining('the database itself'),
  })
  await (await open(url)).destroy()
  pooler.stop()
})

test('DO2 ST14 how long an answer may take is for whoever asks to say', async () => {
  const target = parsePostgresUrl(await (await testPostgres()).createDatabase())
  const ask = async (answerMs: number | null) => {
    const db = new Kysely({ dialect: readerDialect({ target, password: async () => null, applicationName: 'slow' }, answerMs) })
    const answer = await raw`select pg_sleep(0.5)`.execute(db).then(
      () => 'answered',
      ({ code }) => code,
    )
    await db.destroy()
    return answer
  }
  expect(await Promise.all([ask(100), ask(null)])).toEqual(['store_unreachable', 'answered'])
})
