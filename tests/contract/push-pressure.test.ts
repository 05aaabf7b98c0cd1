// Pushes when the store is slow, when there are very many at once, and when a cluster says more than there is room for.
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { StatusWrite } from '../../server/fleet/records.ts'
import { BACKLOG_AGE_MAX_MS, BACKLOG_ROWS_MAX } from '../../server/store/status/backlog.ts'
import { EVENTS_BURST } from '../../server/store/status/event-bounds.ts'
import { STATUS_ROWS_PER_CLUSTER_MAX } from '../../server/store/status/status-rows.ts'
import { createStatusStore } from '../../server/store/status/store-status.ts'
import type { Store } from '../../server/store/store.ts'
import type { StoreDb } from '../../server/store/store-db.ts'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { REV_INCARNATION } from '../../shared/protocol/status.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { joinTestAgent, startTestServer } from '../support/agent-api-kit.ts'
import { inLong } from '../support/extent.ts'
import { joined, killAgents, report } from '../support/link-site.ts'
import { clusterId, joinCluster } from '../support/store-fixtures.ts'
import { openDb, openIn, STORES, type StoreKind } from '../support/stores.ts'
import { createVirtualClock, turnOfTheLoop } from '../support/virtual-clock.ts'

/** Two cores, and a database of its own for each test. */
setDefaultTimeout(60_000)

const doc = { sync: 'Synced', health: 'Healthy', reason: 'Applied', message: '', sinceMs: 1 }
const object = (name: string, rev: number): StatusWrite => ({ kind: 'object', key: `p/s//Pod/n/${name}`, rev, doc })
const delta = { complete: false, nowMs: 1 }

/** Statuses over a database whose writes wait for `go`, when told to. */
async function slowStore(kind: StoreKind) {
  const db = await openDb(kind)
  const clock = createVirtualClock()
  let go = Promise.withResolvers<void>()
  go.resolve()
  /** `fails`: after everything was written, before the commit. */
  const state = { fails: false }
  const cut: StoreDb['write'] = (work) =>
    db.write(async (tx) => {
      const result = await work(tx)
      if (state.fails) throw new Error('cut')
      return result
    })
  const slow: StoreDb = { ...db, read: db.read, write: (work) => go.promise.then(() => cut(work)) }
  const store = createStatusStore(slow, { clock, random: seededRandom(1) })
  const a = clusterId('a')
  await insertCluster(db, a)
  const stall = () => {
    go = Promise.withResolvers()
    return () => go.resolve()
  }
  return { db, clock, store, a, state, stall }
}

async function insertCluster(db: StoreDb, id: ClusterId): Promise<void> {
  const zeros = { epoch: 1, ordinal: 0, status_rev: 0, status_floor: 0, sweep_floor: 0, event_rev: 0, adopted_ordinal: 0, settled_epoch: 0 }
  const cluster = {
    cluster_id: id,
    no: 1,
    row_count: 0,
    name: 'a',
    cluster_uid: '',
    sweep_from: null,
    joined_ms: 0,
    last_seen_ms: null,
    wait_s: 0,
  }
  await db.write(({ sql }) =>
    sql
      .insertInto('clusters')
      .values({ ...cluster, ...zeros })
      .execute(),
  )
}

const retryOf = async (push: Promise<unknown>): Promise<number | null> => {
  const error = await push.then(
    () => null,
    (failed: unknown) => failed,
  )
  if (error === null) return null
  if (!(error instanceof AppError) || error.code !== 'too_many_requests') throw error
  return error.retryAfterMs ?? 0
}

describe.each(STORES)('on $name', (kind) => {
  test('PU9 while the store stalls newcomers are sent away with a time to come back at, and who waited is answered when it goes on', async () => {
    const { db, clock, store, a, stall } = await slowStore(kind)
    const release = stall()
    const first = store.upsertStatus(a, [object('x', 1)], delta)
    await turnOfTheLoop()
    clock.jump(BACKLOG_AGE_MAX_MS - 1)
    const second = store.upsertStatus(a, [object('y', 2)], delta)
    clock.jump(1)
    const retryAfterMs = (await retryOf(store.upsertStatus(a, [object('z', 3)], delta))) ?? 0
    expect([retryAfterMs >= 1_000, retryAfterMs <= 60_000, store.statusBacklog.retryAfterMs() === null]).toEqual([true, true, false])
    release()
    expect((await first).ack).toBe(1)
    expect((await second).ack).toBe(2)
    expect(store.statusBacklog.retryAfterMs()).toBeNull()
    expect(await retryOf(store.upsertStatus(a, [object('z', 3)], delta))).toBe(retryAfterMs)
    clock.jump(retryAfterMs)
    expect((await store.upsertStatus(a, [object('z', 3)], delta)).changed).toHaveLength(1)
    await db.destroy()
  })

  test('PU9 rows that wait are bounded in number', async () => {
    const { db, store, a, stall } = await slowStore(kind)
    const release = stall()
    const rows = Array.from({ length: 5_000 }, (_, n) => object(`o${n}`, n + 1))
    const pushes = Array.from({ length: BACKLOG_ROWS_MAX / rows.length }, () => store.upsertStatus(a, rows, delta))
    expect(await retryOf(store.upsertStatus(a, [object('x', 9_000)], delta))).not.toBeNull()
    release()
    const answers = await Promise.all(pushes)
    expect(answers.map(({ changed }) => changed.length).sort((one, other) => other - one)).toEqual([5_000, ...pushes.slice(1).map(() => 0)])
    await db.destroy()
  })

  test('PU9 thousands of pushes at once are all acknowledged in the end, with no error but being sent away', async () => {
    const store = await openIn(kind)
    const clusters = await Promise.all([...'0123456789'].map((digit) => joinCluster(store, digit)))
    const rowsEach = 12
    const count = inLong(10_000, 3_000)
    let sentAway = 0
    const push = async (n: number): Promise<void> => {
      const cluster = clusters[n % clusters.length] ?? clusterId('0')
      const rows = Array.from({ length: rowsEach }, (_, i) => object(`o${(n * 7 + i) % 400}`, n * rowsEach + i + 1))
      for (;;) {
        const retryAfterMs = await retryOf(store.upsertStatus(cluster, rows, delta))
        if (retryAfterMs === null) return
        sentAway += 1
        await systemClock.sleep(retryAfterMs / 20)
      }
    }
    await Promise.all(Array.from({ length: count }, (_, n) => push(n)))
    expect(sentAway).toBeGreaterThanOrEqual(count - Math.ceil(BACKLOG_ROWS_MAX / rowsEach))
    const held = await store.listStatus({ kind: 'object' })
    const newest = new Map<string, number>()
    for (let n = 0; n < count; n++)
      for (let i = 0; i < rowsEach; i++)
        newest.set(`${clusters[n % clusters.length]} ${object(`o${(n * 7 + i) % 400}`, 1).key}`, n * rowsEach + i + 1)
    expect(new Map(held.map((row) => [`${row.clusterId} ${row.key}`, row.rev]))).toEqual(newest)
    await store.close()
  })

  test('PU8 a cluster has so many rows and not one more; rows that it has go on, and a removed one makes room', async () => {
    const { db, store, a } = await slowStore(kind)
    await store.upsertStatus(a, [object('x', 1), object('y', 2)], delta)
    // As if there were all the others.
    const others = STATUS_ROWS_PER_CLUSTER_MAX - 3
    await db.write(({ sql }) =>
      sql
        .updateTable('clusters')
        .set((eb) => ({ row_count: eb('row_count', '+', others) }))
        .execute(),
    )
    const { changed, tooMany } = await store.upsertStatus(a, [object('last', 3), object('more', 4), object('x', 5)], delta)
    expect([changed.map(({ key }) => key), tooMany]).toEqual([['p/s//Pod/n/last', 'p/s//Pod/n/x'], ['p/s//Pod/n/more']])
    expect((await store.upsertStatus(a, [object('more', 6)], delta)).tooMany).toHaveLength(1)
    const told = await db.read.selectFrom('events').select(['reason', 'message']).execute()
    expect(told.map(({ reason }) => reason)).toEqual(['StatusRowsRefused', 'StatusRowsRefused'])
    await store.upsertStatus(a, [{ ...object('y', 7), doc: null }], delta)
    expect((await store.upsertStatus(a, [object('more', 8)], delta)).tooMany).toBeUndefined()
    expect((await store.listStatus({ clusterId: a, kind: 'object' })).map(({ key }) => key.at(-1))).toEqual(['t', 'e', 'x'])
    await db.destroy()
  })

  test('PU8 what a complete inventory does not name makes room for what it names', async () => {
    const { db, store, a } = await slowStore(kind)
    await store.upsertStatus(a, [object('x', 1), object('y', 2)], delta)
    await db.write(({ sql }) => sql.updateTable('clusters').set({ row_count: STATUS_ROWS_PER_CLUSTER_MAX }).execute())
    expect((await store.upsertStatus(a, [object('v', 5), object('w', 6)], { ...delta, complete: true })).tooMany).toBeUndefined()
    expect((await store.listStatus({ clusterId: a, kind: 'object' })).map(({ key }) => key.at(-1))).toEqual(['v', 'w'])
    await db.destroy()
  })

  test('ST18 a cluster that tells more events than it may loses the older ones of its own, and says so once an hour', async () => {
    const { db, store, a } = await slowStore(kind)
    const event = (rev: number): StatusWrite => ({
      kind: 'event',
      key: `${rev}`,
      rev,
      doc: { atMs: rev, type: 'Normal', reason: 'R', message: `m${rev}` },
    })
    const many = Array.from({ length: EVENTS_BURST + 5 }, (_, n) => event(n + 1))
    await store.upsertStatus(a, many, delta)
    await store.upsertStatus(a, [event(9_001), event(9_002)], delta)
    const rows = await db.read.selectFrom('events').select(['reason', 'message']).orderBy('id').execute()
    expect([rows.length, rows[0]?.message, rows.at(-2)?.message, rows.at(-1)?.reason]).toEqual([
      EVENTS_BURST + 1,
      'm6',
      `m${EVENTS_BURST + 5}`,
      'EventsDropped',
    ])
    const hourLater = { ...delta, nowMs: 3_600_001 }
    await store.upsertStatus(a, [event(9_003)], hourLater)
    expect(await db.read.selectFrom('events').select('message').orderBy('id', 'desc').limit(1).execute()).toEqual([{ message: 'm9003' }])
    await db.destroy()
  })

  test('ST18 events of pushes that the store undid count for nothing: all are taken when it works again', async () => {
    const { db, store, a, state } = await slowStore(kind)
    const many = Array.from({ length: 1_000 }, (_, n): StatusWrite => {
      return { kind: 'event', key: `${n}`, rev: n + 1, doc: { atMs: n, type: 'Normal', reason: 'R', message: `m${n}` } }
    })
    state.fails = true
    for (let n = 0; n < 4; n++) expect(await store.upsertStatus(a, many, delta).catch(() => 'undone')).toBe('undone')
    state.fails = false
    await store.upsertStatus(a, many, delta)
    expect(await db.read.selectFrom('events').select('reason').distinct().execute()).toEqual([{ reason: 'R' }])
    const { count } = await db.read
      .selectFrom('events')
      .select((eb) => eb.fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow()
    expect(Number(count)).toBe(1_000)
    await db.destroy()
  })

  test('PU3 what the database cannot hold comes back without it', async () => {
    const store = await openIn(kind)
    const a = await joinCluster(store, 'a')
    await store.appendEvents([
      { atMs: 1, type: 'Normal', reason: 'R', message: 'a\0b \ud83d', cluster: null, project: null, service: null, object: null },
    ])
    expect((await store.listEvents({ limit: 1 })).map(({ message }) => message)).toEqual(['a\ufffdb \ufffd'])
    expect((await store.upsertStatus(a, [object('x', 1)], delta)).ack).toBe(1)
    await store.close()
  })
})

test('PU9 a push is sent away before anything is made of its body', async () => {
  const setting = await startTestServer()
  const { session } = await joinTestAgent(setting)
  const { store } = setting.server
  Object.assign(store, { statusBacklog: { retryAfterMs: () => 4_200 } } satisfies Partial<Store>)
  const answer = await setting.ask('POST', ROUTES.status, { token: session.token, body: Buffer.from('no JSON at all') })
  expect([answer.status, answer.body['code'], answer.headers.get('retry-after')]).toEqual([429, 'too_many_requests', '5'])
  expect((await setting.ask('POST', ROUTES.status, { body: Buffer.from('x') })).status).toBe(401)
})

test.each([
  ['NUL', 'p/s//Pod/n/\0', 'bad_document'],
  ['a line feed', 'p/s//Pod/n/a\nb', 'bad_document'],
  ['an escape', 'p/s//Pod/n/\u009b', 'bad_document'],
  ['half a pair', 'p/s//Pod/n/\ud83d', 'bad_document'],
  ['a whole pair', 'p/s//Pod/n/\u{1f600}', null],
])('PU3 a key with %s', async (_, key, code) => {
  const setting = await startTestServer()
  const { session } = await joinTestAgent(setting)
  const rev = session.incarnation * REV_INCARNATION + 1
  const json = { incarnation: session.incarnation, rows: [{ kind: 'object', key, rev, doc: { ...doc, message: 'a\0b \udfff' } }] }
  const answer = await setting.ask('POST', ROUTES.status, { token: session.token, json })
  expect(answer.body['reject']).toEqual(code === null ? [] : [{ key, code }])
  const held = await setting.server.store.listStatus({ kind: 'object' })
  expect(held.map((row) => (row.doc as { message: string }).message)).toEqual(code === null ? ['a\ufffdb \ufffd'] : [])
})

test('PU9 an agent that is sent away keeps what it has to say, asks seldom, and says it when it may', async () => {
  const { clock, server, agent, asked } = await joined()
  const { statusBacklog } = server.store
  Object.assign(server.store, { statusBacklog: { retryAfterMs: () => 10_000 } } satisfies Partial<Store>)
  const before = asked.length
  for (let n = 0; n < 30; n++) {
    report(agent, 'held', `shop/s${n}`)
    await clock.advance(2_000)
  }
  const pushes = asked.slice(before).filter((path) => path === ROUTES.status).length
  expect([pushes >= 2, pushes <= 8]).toEqual([true, true])
  Object.assign(server.store, { statusBacklog })
  await clock.advance(30_000)
  expect((await server.store.listStatus({ kind: 'service' })).map(({ key }) => key)).toHaveLength(30)
  await killAgents()
})
