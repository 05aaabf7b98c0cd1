// The feed of changes on both databases: what is read from it, who is woken, what became of those who were away for too
// long.
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { ResourceKey, StatusWrite } from '../../server/fleet/records.ts'
import { CHANGES_KEPT_MS, type Change, type FeedChanges, type FeedGone, type FeedIdle } from '../../server/store/feed/change-feed.ts'
import type { Store } from '../../server/store/store.ts'
import { createStoreDb } from '../../server/store/store-db.ts'
import { keepBounds, RETENTION } from '../../server/store/upkeep/upkeep.ts'
import type { ChangeTopic } from '../../shared/model/change.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { testPostgres } from '../support/postgres.ts'
import { API_TOKEN, joinCluster } from '../support/store-fixtures.ts'
import { POSTGRES, STORES, type StorePlace } from '../support/stores.ts'

setDefaultTimeout(20_000) // PostgreSQL on a busy machine

const service = (name: string): ResourceKey => ({ kind: 'Service', project: 'default', name })
const write = (store: Store, name: string, spec = '{}') => store.applyResource(service(name), { labels: {}, spec, nowMs: 1 })
const names = (items: readonly Change[]) => items.map(({ name }) => name)
const numbers = (items: readonly Change[]) => items.map(({ id }) => id)

/** By another process, as it were. */
async function writeMany(place: StorePlace, count: number): Promise<void> {
  const db = createStoreDb(await place.connect(), systemClock)
  await db.write(async ({ changes }) => {
    for (let i = 0; i < count; i++) changes.add({ topic: 'render', name: `s${i}` })
  })
  await db.destroy()
}

/** One slice; `nowMs`: of the clock by which changes are old. */
async function prune(store: Store, changesKept: number, nowMs = 0): Promise<number> {
  const bounds = keepBounds({ ...RETENTION, changesKept }, nowMs)
  return (await store.upkeep.slice('changes', bounds, null)).removed
}

type Step = FeedChanges | FeedIdle | FeedGone
/** Follows until it has so many steps. */
async function take(steps: AsyncIterable<Step>, count: number): Promise<Step[]> {
  const taken: Step[] = []
  for await (const step of steps) {
    taken.push(step)
    if (taken.length === count) break
  }
  return taken
}

/** Follows until it has so many changes, which may come together. */
async function takeItems(steps: AsyncIterable<Step>, count: number): Promise<Change[]> {
  const items: Change[] = []
  for await (const step of steps) {
    if (step.kind === 'changes') items.push(...step.items)
    if (items.length >= count) break
  }
  return items
}

describe.each(STORES)('$name', (kind) => {
  let place: StorePlace
  let store: Store
  const stop = new AbortController()
  const options = (topics?: ChangeTopic[]) => ({
    signal: stop.signal,
    idleMs: 60_000,
    ...(topics === undefined ? {} : { topics: new Set(topics) }),
  })
  beforeEach(async () => {
    place = await kind.place()
    store = await place.open()
  })
  afterEach(() => store.close())

  test('CF1 changes are numbered without a gap; reading goes on strictly after a number, in pages', async () => {
    expect(await store.changes.position()).toBe(0)
    for (const name of ['a', 'b', 'c']) await write(store, name)
    expect(await store.changes.position()).toBe(3)
    const first = await store.changes.read(0, { limit: 2 })
    expect(first).toMatchObject({
      kind: 'changes',
      next: 2,
      items: [{ id: 1, topic: 'resource', project: 'default', name: 'Service/a' }, { id: 2 }],
    })
    expect(await store.changes.read(2, { limit: 2 })).toMatchObject({ kind: 'changes', next: 3, items: [{ id: 3, name: 'Service/c' }] })
    expect(await store.changes.read(3, { limit: 2 })).toEqual({ kind: 'changes', items: [], next: 3 })
  })

  test('CF1 what changes nothing, and what is undone, takes no number', async () => {
    await write(store, 'a')
    await write(store, 'a')
    expect(await store.changes.position()).toBe(1)
    await store.createApiToken({ ...API_TOKEN, id: 't', tokenHash: 'h' })
    await expect(store.createApiToken({ ...API_TOKEN, id: 't', tokenHash: 'h' })).rejects.toThrow()
    await write(store, 'b')
    const read = await store.changes.read(0, { limit: 10 })
    expect(read.kind === 'changes' && names(read.items)).toEqual(['Service/a', 'ApiToken/t', 'Service/b'])
  })

  test('CF2 other topics are passed over, and the number to go on with is beyond them', async () => {
    await write(store, 'a')
    await store.createApiToken({ ...API_TOKEN, id: 't', tokenHash: 'h' })
    await write(store, 'b')
    const topics = new Set<ChangeTopic>(['token'])
    expect(await store.changes.read(0, { topics, limit: 10 })).toMatchObject({ next: 3, items: [{ id: 2 }] })
    expect(await store.changes.read(2, { topics, limit: 10 })).toEqual({ kind: 'changes', items: [], next: 3 })
    await writeMany(place, 600)
    await store.createApiToken({ ...API_TOKEN, id: 'u', tokenHash: 'i' })
    expect(await store.changes.read(3, { topics, limit: 10 })).toMatchObject({ next: 604, items: [{ id: 604 }] })
  })

  test('CF2 a change names no keys where they are long: a hundred thousand changes are kept', async () => {
    const id = await joinCluster(store, 'a')
    const push = (chars: number, rev: number) => {
      const rows = Array.from({ length: 64 }, (_, n): StatusWrite => {
        const doc = { sync: 'Synced', health: 'Healthy', reason: '', message: '', sinceMs: rev }
        return { kind: 'object', key: `p/s//Pod/n/${n}`.padEnd(chars, 'x'), rev: rev + n, doc }
      })
      return store.upsertStatus(id, rows, { complete: false, nowMs: 1 })
    }
    const from = await store.changes.position()
    await push(200, 1)
    await push(1_000, 100)
    const read = await store.changes.read(from, { limit: 10 })
    expect(read.kind === 'changes' && read.items.map(({ keys }) => keys?.length ?? null)).toEqual([64, null])
  })

  test('CF3 what was pruned is gone for whoever needs it, and not for whoever has seen it', async () => {
    for (const name of ['a', 'b', 'c', 'd']) await write(store, name)
    expect(await prune(store, 2)).toBe(2)
    expect(await prune(store, 2)).toBe(0)
    expect(await store.changes.read(1, { limit: 10 })).toEqual({ kind: 'gone', oldest: 3, newest: 4 })
    expect(await store.changes.read(2, { limit: 10 })).toMatchObject({ kind: 'changes', next: 4 })
    expect(await prune(store, 2, Date.now() + CHANGES_KEPT_MS + 60_000)).toBe(2)
    expect(await store.changes.read(3, { limit: 10 })).toEqual({ kind: 'gone', oldest: null, newest: 4 })
    expect(await store.changes.read(4, { limit: 10 })).toEqual({ kind: 'changes', items: [], next: 4 })
    await write(store, 'e')
    expect(await store.changes.read(4, { limit: 10 })).toMatchObject({ kind: 'changes', next: 5 })
  })

  test('CF3 a number that this store never gave out is gone: it was set back', async () => {
    await write(store, 'a')
    expect(await store.changes.read(2, { limit: 10 })).toEqual({ kind: 'gone', oldest: 1, newest: 1 })
    const [step] = await take(store.changes.follow(7, options()), 1)
    expect(step).toEqual({ kind: 'gone', oldest: 1, newest: 1 })
  })

  test('CF3 after a restore was settled every earlier number is gone, also the newest, and numbers go on beyond the clock', async () => {
    await write(store, 'a')
    await store.settleRestore(5_000_000)
    const position = await store.changes.position()
    expect(position).toBeGreaterThan(5_000_000)
    expect(await store.changes.read(1, { limit: 10 })).toMatchObject({ kind: 'gone', newest: position })
    expect(await store.changes.read(0, { limit: 10 })).toMatchObject({ kind: 'changes', next: 1 })
    expect(await store.changes.read(position, { limit: 10 })).toMatchObject({ kind: 'changes', items: [] })
    await store.settleRestore(4_000_000)
    expect(await store.changes.position()).toBeGreaterThan(position + 100_000)
  })

  test('CF3 the first proof that the store was set back makes every earlier number gone, further ones none', async () => {
    await write(store, 'a')
    const id = await joinCluster(store, 'a')
    const before = await store.changes.position()
    await store.recordRestoreProofs([{ clusterId: id, epoch: 2, ordinal: 3, atMs: 5_000_000 }])
    const position = await store.changes.position()
    expect(await store.changes.read(before, { limit: 10 })).toMatchObject({ kind: 'gone', newest: position })
    await store.recordRestoreProofs([{ clusterId: id, epoch: 3, ordinal: 3, atMs: 6_000_000 }])
    expect(await store.changes.position()).toBe(position + 1)
  })

  test('CF4 whoever follows gets what was there and what comes, in order, filtered by topic', async () => {
    await write(store, 'a')
    const following = takeItems(store.changes.follow(0, options()), 3)
    const tokens = take(store.changes.follow(0, options(['token'])), 1)
    await Bun.sleep(20)
    await write(store, 'b')
    await Bun.sleep(20)
    await store.createApiToken({ ...API_TOKEN, id: 't', tokenHash: 'h' })
    expect(numbers(await following)).toEqual([1, 2, 3])
    expect(await tokens).toMatchObject([{ kind: 'changes', next: 3, items: [{ id: 3 }] }])
  })

  test('CF4 a follower that was pruned past while it was slow is told, and goes on from the newest', async () => {
    const steps = store.changes.follow(0, options())[Symbol.asyncIterator]()
    await write(store, 'a')
    expect((await steps.next()).value).toMatchObject({ kind: 'changes', next: 1 })
    await writeMany(place, 5_000)
    while ((await prune(store, 10)) > 0);
    await write(store, 'b')
    // The tail may have read some of them before they were pruned.
    const early: Change[] = []
    let step = (await steps.next()).value
    for (; step?.kind === 'changes'; step = (await steps.next()).value) early.push(...step.items)
    expect(numbers(early)).toEqual(early.map((_, index) => index + 2))
    expect(step).toMatchObject({ kind: 'gone', newest: 5_002 })
    await write(store, 'c')
    expect((await steps.next()).value).toMatchObject({ kind: 'changes', next: 5_003, items: [{ name: 'Service/c' }] })
    await steps.return?.()
  })

  test('CF4 closing the store and aborting end who follows', async () => {
    const one = take(store.changes.follow(0, options()), 1)
    const mine = new AbortController()
    const two = take(store.changes.follow(0, { signal: mine.signal, idleMs: 60_000 }), 1)
    await Bun.sleep(20)
    mine.abort()
    expect(await two).toEqual([])
    const other = await place.open()
    const three = take(other.changes.follow(0, options()), 1)
    await Bun.sleep(20)
    await other.close()
    expect(await three).toEqual([])
    await write(store, 'a')
    expect(await one).toHaveLength(1)
  })

  test('CF4 after a while without changes there is word of it, and with changes of other topics only, too', async () => {
    const quiet = take(store.changes.follow(0, { signal: stop.signal, idleMs: 1_000, topics: new Set(['token'] as const) }), 2)
    await write(store, 'a')
    expect(await quiet).toEqual([
      { kind: 'idle', next: 1 },
      { kind: 'idle', next: 1 },
    ])
  })
})

test('CF4 PostgreSQL: a commit of another process is heard at once, also after the connection that listens was lost', async () => {
  const place = await POSTGRES.place()
  const [mine, other] = [await place.open(), await place.open()]
  const steps = mine.changes.follow(0, { signal: new AbortController().signal, idleMs: 60_000 })[Symbol.asyncIterator]()
  const heard = async (name: string) => {
    const startedMs = performance.now()
    const next = steps.next()
    await Bun.sleep(10)
    await write(other, name)
    expect((await next).value).toMatchObject({ kind: 'changes', items: [{ name: `Service/${name}` }] })
    return performance.now() - startedMs
  }
  await heard('a') // it listens from now on, or a moment later
  const listening = "from pg_stat_activity where datname = current_database() and query ilike 'listen %'"
  const postgres = await testPostgres()
  while ((await postgres.query(place.at, `select pid ${listening}`)).length === 0) await Bun.sleep(20)
  expect(await heard('b')).toBeLessThan(5_000)
  expect(await postgres.query(place.at, `select pg_terminate_backend(pid) ${listening}`)).toEqual(['t'])
  expect(await heard('c')).toBeLessThan(15_000) // half a minute without it
  await steps.return?.()
  await mine.close()
  await other.close()
}, 40_000)
