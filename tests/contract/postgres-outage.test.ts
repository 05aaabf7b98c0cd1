// A database that goes down, comes back, belongs to somebody else or is full: a real PostgreSQL, stopped and started
// under a store and under a whole server.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { sql as raw } from 'kysely'
import { type LocalPostgres, startPostgres } from '../../scripts/local-cluster/postgres.ts'
import { startServer } from '../../server/server.ts'
import { connectPostgres, type PostgresConnect } from '../../server/store/engines/connections.ts'
import { parsePostgresUrl } from '../../server/store/engines/postgres-url.ts'
import { createStoreDb, type StoreDb } from '../../server/store/store-db.ts'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { type Clock, systemClock } from '../../shared/runtime/clock.ts'
import type { AppError } from '../../shared/runtime/error.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { seededRandom, systemRandom } from '../../shared/runtime/random.ts'
import { joinTestAgent, type TestServer } from '../support/agent-api-kit.ts'
import { eventually } from '../support/kube-cluster.ts'
import { askAt } from '../support/large-cluster.ts'
import { canMountSmallDisk, mountSmallDisk } from '../support/small-disk.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(60_000)
/** A second is fifty milliseconds. */
const hurried: Clock = { ...systemClock, sleep: (ms, signal) => systemClock.sleep(ms / 20, signal) }
let postgres: LocalPostgres
const undo: Array<() => unknown> = []
beforeAll(async () => {
  postgres = await startPostgres({ inMemory: true })
})
afterAll(async () => {
  for (const step of undo.reverse()) await step()
  await postgres.stop()
})

async function open(url: string, only?: PostgresConnect['only']): Promise<StoreDb> {
  const connect = { target: parsePostgresUrl(url), ...(only === undefined ? {} : { only }) }
  const db = createStoreDb(await connectPostgres(connect, hurried), hurried)
  undo.push(() => db.destroy().catch(() => {}))
  return db
}
const alone = (onTaken: (error: AppError) => void = () => {}): NonNullable<PostgresConnect['only']> => ({ patienceMs: 1_000, onTaken })
const note = (db: StoreDb, key: string) => db.write(({ sql }) => sql.insertInto('meta').values({ key, value: '' }).execute())
const has = async (db: StoreDb, key: string) => (await db.read.selectFrom('meta').selectAll().where('key', '=', key).execute()).length === 1
const endAll = (url: string, whose = '') =>
  postgres.query(
    url,
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() ${whose}`,
  )

test('ST14 a connection that dies in a transaction is told to whoever wrote, leaves nothing behind, and the next one writes', async () => {
  const url = await postgres.createDatabase()
  const db = await open(url, alone())
  const cut = db.write(async ({ sql }) => {
    await sql.insertInto('meta').values({ key: 'lost', value: '' }).execute()
    await endAll(url)
    await sql.insertInto('meta').values({ key: 'lost too', value: '' }).execute()
  })
  await expect(cut).rejects.toMatchObject({ code: 'store_unreachable', retryAfterMs: expect.any(Number) })
  await note(db, 'next')
  expect([await has(db, 'lost'), await has(db, 'next')]).toEqual([false, true])
  // Idle ones: whoever comes next may be told once, and nothing breaks.
  await endAll(url)
  await Bun.sleep(50)
  await note(db, 'after idle')
  expect(await has(db, 'after idle')).toBe(true)
})

test('ST14 a database that is down is told as that, and is used again when it is back', async () => {
  const url = await postgres.createDatabase()
  const db = await open(url, alone())
  await postgres.crash()
  await expect(note(db, 'down')).rejects.toMatchObject({ code: 'store_unreachable' })
  await expect(has(db, 'down')).rejects.toMatchObject({ code: 'store_unreachable', retryAfterMs: expect.any(Number) })
  await expect(connectPostgres({ target: parsePostgresUrl(url) }, hurried)).rejects.toMatchObject({ code: 'store_unreachable' })
  await postgres.restart()
  await note(db, 'up')
  expect([await has(db, 'down'), await has(db, 'up')]).toEqual([false, true])
})

test('ST13 a second server is refused with the name of the first, and served once that has ended, however it ended', async () => {
  const url = await postgres.createDatabase()
  const first = await open(url, alone())
  const refusal = await open(url, alone()).catch((error: unknown) => error)
  expect(refusal).toMatchObject({
    code: 'store_in_use',
    message: expect.stringContaining(`skerry on ${hostname().slice(0, 26)}, process ${process.pid}`),
  })
  await note(first, 'still mine')
  const waiting = open(url, alone())
  await first.destroy()
  const second = await waiting
  expect(await has(second, 'still mine')).toBe(true)
  await second.destroy()

  const script = `
    import { connectPostgres } from ${JSON.stringify(`${import.meta.dir}/../../server/store/engines/connections.ts`)}
    import { parsePostgresUrl } from ${JSON.stringify(`${import.meta.dir}/../../server/store/engines/postgres-url.ts`)}
    import { systemClock } from ${JSON.stringify(`${import.meta.dir}/../../shared/runtime/clock.ts`)}
    await connectPostgres({ target: parsePostgresUrl(process.env.URL), only: { patienceMs: 0, onTaken() {} } }, systemClock)
    process.stdout.write('has it')
    setInterval(() => {}, 1000)`
  const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe', stderr: 'inherit', env: { ...process.env, URL: url } })
  const { value } = await child.stdout.getReader().read()
  expect(new TextDecoder().decode(value)).toBe('has it')
  await expect(open(url, alone())).rejects.toMatchObject({ code: 'store_in_use', message: expect.stringContaining(`process ${child.pid}`) })
  child.kill('SIGKILL')
  await child.exited
  const third = await open(url, alone())
  await third.destroy()
})

/** Who holds the lock of a server. */
const holders = (url: string) =>
  postgres.query(
    url,
    `select pid from pg_locks where locktype = 'advisory' and granted and database = (select oid from pg_database where datname = current_database())`,
  )

test('ST13 a server that lost its connection takes the database again by itself', async () => {
  const url = await postgres.createDatabase()
  const db = await open(url, alone())
  await endAll(url)
  await eventually('it is held again', async () => (await holders(url)).length === 1)
  await expect(open(url, { patienceMs: 0, onTaken() {} })).rejects.toMatchObject({ code: 'store_in_use' })
  await note(db, 'goes on')
})

test('ST13 ST14 a connection that died without a word is given up, and its lock taken back from the database, which did not notice either', async () => {
  const url = await postgres.createDatabase()
  const proxy = startTcpProxy(postgres.port)
  undo.push(() => proxy.stop())
  const target = parsePostgresUrl(url.replace(`:${postgres.port}/`, `:${proxy.port}/`))
  const db = createStoreDb(await connectPostgres({ target, only: alone(), answerMs: 300 }, hurried), hurried)
  undo.push(() => db.destroy().catch(() => {}))
  await note(db, 'before')
  const [before] = await holders(url)
  proxy.setRules({ swallow: ['up', 'down'] })
  proxy.setRulesFor((n) => (n === 0 ? { swallow: ['up', 'down'] } : {}))
  await expect(note(db, 'into the void')).rejects.toMatchObject({ code: 'store_unreachable' })
  await eventually('it writes again', async () => {
    await note(db, 'after')
    return true
  })
  const [after] = await holders(url)
  expect([after === undefined, after === before, await has(db, 'into the void'), await has(db, 'after')]).toEqual([
    false,
    false,
    false,
    true,
  ])
})

test('ST14 many that write or read at the same time wait for each other, as long as it takes', async () => {
  const db = await open(await postgres.createDatabase(), alone())
  const slow = Array.from({ length: 30 }, (_, n) =>
    db.write(async ({ sql }) => {
      await raw`select pg_sleep(0.02)`.execute(sql)
      await sql
        .insertInto('meta')
        .values({ key: `slow ${n}`, value: '' })
        .execute()
    }),
  )
  const reads = Array.from({ length: 100 }, () => db.read.selectFrom('meta').selectAll().execute())
  await Promise.all([...slow, ...reads])
  expect(await has(db, 'slow 29')).toBe(true)
})

test('ST13 a server whose database another one had meanwhile writes nothing any more, and is told', async () => {
  const url = await postgres.createDatabase()
  const taken = Promise.withResolvers<AppError>()
  const db = await open(url, alone(taken.resolve))
  await note(db, 'before')
  // Somebody who was faster while it was cut off.
  await postgres.query(url, `update meta set value = 'skerry on elsewhere, process 7' where key = 'server'`)
  await endAll(url)
  expect(await taken.promise).toMatchObject({ code: 'store_in_use', message: expect.stringContaining('elsewhere') })
  await expect(note(db, 'after')).rejects.toMatchObject({ code: 'store_in_use' })
  expect(await has(db, 'after')).toBe(false)
})

test('ST13 a server whose database comes back without what it committed writes nothing any more, and is told', async () => {
  const url = await postgres.createDatabase()
  const taken = Promise.withResolvers<AppError>()
  const db = await open(url, alone(taken.resolve))
  const change = (name: string) => db.write(async ({ changes }) => changes.add({ topic: 'resource', project: 'default', name }))
  for (const name of ['Service/a', 'Service/b']) await change(name)
  await endAll(url)
  await eventually('it goes on, for all is there', async () => {
    await change('Service/c')
    return true
  })
  // A standby took over that lacked the last commit.
  await postgres.query(url, `delete from changes where id = 3; update counters set value = 2 where name = 'change'`)
  await endAll(url)
  expect(await taken.promise).toMatchObject({ code: 'restore_pending', message: expect.stringContaining('change 2, not 3') })
  await expect(change('Service/d')).rejects.toMatchObject({ code: 'restore_pending' })
  expect(await db.read.selectFrom('changes').select('id').where('id', '>', 2).execute()).toEqual([])
})

test('ST2 two processes that bring the schema forward at the same time do it once', async () => {
  const url = await postgres.createDatabase()
  const opened = await Promise.all([open(url), open(url), open(url)])
  for (const db of opened) expect(await db.read.selectFrom('counters').selectAll().where('name', '=', 'event_id').execute()).toHaveLength(1)
})

test.skipIf(!canMountSmallDisk)(
  'ST11 a full disk of the database is told as that, loses nothing, and is forgotten once there is space',
  async () => {
    const own = await startPostgres({ inMemory: true }) // one that is full cannot start again
    undo.push(() => own.stop())
    const disk = mountSmallDisk(48)
    undo.push(() => disk.remove())
    Bun.spawnSync(['chmod', '711', disk.path])
    const dir = `${disk.path}/tables`
    Bun.spawnSync(['mkdir', dir])
    const url = await own.createDatabase({ dir })
    const db = await open(url)
    await note(db, 'before')
    expect(await has(db, 'before')).toBe(true)
    disk.fill()
    const fill = async () => {
      for (let n = 0; n < 100; n++)
        await db.write(({ sql }) =>
          sql
            .insertInto('meta')
            .values({ key: `ballast ${n}`, value: randomBytes(100_000).toString('base64') })
            .execute(),
        )
    }
    await expect(fill()).rejects.toMatchObject({ code: 'disk_full', remedy: expect.stringContaining('Free some space') })
    expect(await has(db, 'before')).toBe(true)
    disk.free()
    await note(db, 'after')
    expect(await has(db, 'after')).toBe(true)
    await db.destroy()
  },
)

test('ST14 ST17 a server lives through a restart of its database, answers 503 with Retry-After meanwhile, and never says the password', async () => {
  const url = await postgres.createDatabase()
  const password = new URL(url).password
  const logged: string[] = []
  const keep = (message: string, fields?: Record<string, unknown>) => void logged.push(`${message} ${JSON.stringify(fields ?? {})}`)
  const log: Logger = { debug: keep, info: keep, warn: keep, error: keep, with: () => log }
  const options = { dataDir: tempDir(), hostname: '127.0.0.1', port: 0 }
  const store = { target: parsePostgresUrl(url), password: async () => null }
  const server = await startServer({ ...options, store }, { clock: systemClock, random: seededRandom(3), log })
  const bodies: string[] = []
  const ask = async (method: string, path: string, body?: unknown) => {
    const headers = { authorization: `Bearer ${server.firstAdminToken}`, 'content-type': 'application/json' }
    const response = await fetch(server.url + path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
    const text = await response.text()
    bodies.push(text)
    return { status: response.status, retryAfter: Number(response.headers.get('retry-after')), body: text === '' ? null : JSON.parse(text) }
  }
  const down = { status: 503, body: { code: 'store_unreachable', remedy: expect.stringContaining('PostgreSQL') } }
  try {
    expect((await ask('POST', '/api/v1/join-tokens', { uses: 1 })).status).toBe(201)
    const raw = askAt(() => server.url)
    const join = await raw('POST', '/api/v1/join-tokens', { token: server.firstAdminToken ?? '', json: { uses: 1 } })
    const agent = await joinTestAgent({ server: { joinToken: String(join.body['token']) }, ask: raw } as unknown as TestServer)
    const row = { kind: 'service', key: 'p/s', rev: 1, doc: null }
    const push = () => raw('POST', ROUTES.status, { token: agent.session.token, json: { incarnation: 1, rows: [row] } })
    await postgres.crash()
    const read = await ask('GET', '/api/v1/clusters')
    expect(read).toMatchObject(down)
    expect(read.retryAfter).toBeGreaterThan(0)
    expect(await ask('POST', '/api/v1/join-tokens', { uses: 1 })).toMatchObject(down)
    const pushed = await push()
    const told = [pushed.status, pushed.body['code'], pushed.headers.get('retry-after')]
    expect([...told, pushed.status === 503 ? null : logged]).toEqual([503, 'store_unreachable', '2', null])
    await Bun.sleep(1_500)
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
    await postgres.restart()
    await eventually('it is back', async () => {
      const sentMs = performance.now()
      const { status, body } = await ask('GET', '/api/v1/clusters')
      if (status !== 200) throw new Error(`${status} after ${Math.round(performance.now() - sentMs)} ms: ${JSON.stringify(body)}`)
      return true
    })
    expect((await ask('POST', '/api/v1/join-tokens', { uses: 1 })).status).toBe(201)
    expect((await push()).status).toBe(200)
    const second = startServer({ ...options, dataDir: tempDir(), store }, { clock: hurried, random: systemRandom, log })
    await expect(second).rejects.toMatchObject({ code: 'store_in_use' })
    await postgres.query(url, `update meta set value = 'skerry on elsewhere' where key = 'server'`)
    await endAll(url)
    expect(await server.failed).toMatchObject({ code: 'store_in_use' })
  } finally {
    await server.stop()
  }
  expect([...logged, ...bodies].filter((line) => line.includes(password))).toEqual([])
  expect(bodies.filter((body) => body.includes('postgres://') || body.includes(String(postgres.port)))).toEqual([])
  expect(logged.filter((line) => line.includes(`postgres://fleet_`)).length).toBeGreaterThan(0)
})
