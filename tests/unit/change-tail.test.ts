// What many who follow share: how often the store is read for them, when it is read without a wake-up, and how much is
// kept.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { Change, FeedChanges, FeedGone } from '../../server/store/feed/change-feed.ts'
import { ChangeTail, LOOK_MS, READ_MAX, TAIL_CHANGES_MAX } from '../../server/store/feed/change-tail.ts'
import { createVirtualClock, type SharedClock } from '../support/virtual-clock.ts'

let clock: SharedClock
let closing: AbortController
let tail: ChangeTail
/** Of the feed. */
let newest: number
let oldest: number
let reads: number
let broken: boolean
let keys: string[] | null
const never = new AbortController().signal

beforeEach(() => {
  ;[newest, oldest, reads, broken, keys] = [0, 1, 0, false, null]
  clock = createVirtualClock()
  closing = new AbortController()
  tail = new ChangeTail({ read, position: async () => newest, clock }, closing)
})
afterEach(() => closing.abort())

async function read(after: number, limit: number): Promise<FeedChanges | FeedGone> {
  reads += 1
  if (broken) throw new Error('the store is away')
  if (after > newest || after < oldest - 1) return { kind: 'gone', oldest, newest }
  const items = Array.from({ length: Math.min(limit, newest - after) }, (_, i) => change(after + 1 + i))
  return { kind: 'changes', items, next: items.at(-1)?.id ?? after }
}
const change = (id: number): Change => ({ id, atMs: 0, topic: 'status', cluster: null, project: null, name: null, keys })
const idsAfter = (position: number) => tail.after(position)?.map(({ id }) => id) ?? null
const later = () => clock.nowMs() + 3_600_000

test('CF10 a commit costs one read, for a thousand who follow as for one; without anybody it costs none', async () => {
  newest = 5
  tail.wake()
  await clock.settle()
  expect(reads).toBe(0)
  const leave = Array.from({ length: 1_000 }, () => tail.enter())
  await clock.settle()
  let woken = 0
  for (let commit = 0; commit < 3; commit++) {
    for (let i = 0; i < 1_000; i++) void tail.wait(newest, later(), never).then(() => woken++)
    await clock.settle()
    const before = reads
    newest += 1
    tail.wake()
    await clock.advance(100)
    expect({ reads: reads - before, woken }).toEqual({ reads: 1, woken: 1_000 * (commit + 1) })
  }
  expect(idsAfter(5)).toEqual([6, 7, 8])
  expect(idsAfter(7)).toEqual([8])
  expect(idsAfter(8)).toEqual([])
  for (const one of leave) one()
  newest += 1
  tail.wake()
  await clock.settle()
  expect(tail.followers).toBe(0)
  expect(idsAfter(5)).toBeNull()
})

test('CF10 commits that come while it reads are read together', async () => {
  tail.enter()
  await clock.settle()
  const before = reads
  for (let commit = 0; commit < 50; commit++) {
    newest += 1
    tail.wake()
  }
  await clock.settle()
  expect(reads - before).toBeLessThanOrEqual(2)
  expect(idsAfter(0)).toHaveLength(50)
})

test('CF10 the first commit after a calm reaches a thousand who follow at once; of a flood they hear twenty times a second', async () => {
  for (let i = 0; i < 1_000; i++) tail.enter()
  await clock.advance(1_000)
  let woken = 0
  void tail.wait(0, later(), never).then(() => woken++)
  newest = 1
  tail.wake()
  await clock.settle()
  expect(woken).toBe(1)
  const before = reads
  for (let ms = 0; ms < 1_000; ms++) {
    newest += 1
    tail.wake()
    await clock.advance(1)
  }
  await clock.advance(50)
  expect(reads - before).toBeWithin(15, 25)
  expect(idsAfter(newest - 1)).toEqual([newest])
})

test('CF10 a wake-up that is lost costs half a minute', async () => {
  tail.enter()
  await clock.settle()
  let woken = false
  void tail.wait(0, later(), never).then(() => {
    woken = true
  })
  newest = 1
  await clock.advance(LOOK_MS - 1_000)
  expect(woken).toBe(false)
  await clock.advance(2_000)
  expect(woken).toBe(true)
  expect(idsAfter(0)).toEqual([1])
})

test('CF10 what is older than the tail is not in it, and what it keeps is bounded in number and in bytes', async () => {
  tail.enter()
  await clock.settle()
  newest = TAIL_CHANGES_MAX * 3
  tail.wake()
  await clock.settle()
  expect(idsAfter(0)).toBeNull()
  expect(idsAfter(newest - 10)).toHaveLength(10)
  expect(idsAfter(newest - 2_000)).toHaveLength(READ_MAX)
  expect(idsAfter(newest - TAIL_CHANGES_MAX - 1)).toBeNull()
  expect(idsAfter(newest + 1)).toBeNull()
  keys = Array.from({ length: 64 }, () => 'k'.repeat(1_000))
  newest += 200
  tail.wake()
  await clock.settle()
  expect(idsAfter(newest - 10)).toHaveLength(10)
  expect(idsAfter(newest - 100)).toBeNull()
})

test('CF10 a gap empties it: who follows asks the store, which says that something is gone', async () => {
  tail.enter()
  newest = 3
  await clock.settle()
  tail.wake()
  await clock.settle()
  newest = 100
  oldest = 90
  const waiting = tail.wait(3, later(), never)
  tail.wake()
  await waiting
  expect(idsAfter(3)).toBeNull()
  expect(idsAfter(100)).toEqual([])
})

test('CF10 while the store cannot be read it tries again, and misses nothing', async () => {
  tail.enter()
  await clock.settle()
  broken = true
  newest = 2
  tail.wake()
  await clock.advance(5_000)
  expect(idsAfter(0)).toEqual([])
  broken = false
  await clock.advance(2_000)
  expect(idsAfter(0)).toEqual([1, 2])
})

test('CF10 whoever waits for what is there already does not wait', async () => {
  tail.enter()
  newest = 3
  await clock.settle()
  tail.wake()
  await clock.settle()
  await tail.wait(1, later(), never)
  expect(idsAfter(3)).toEqual([])
})

test('CF10 whoever was faster than the tail’s first look is woken by it', async () => {
  newest = 3
  tail.enter()
  const waiting = tail.wait(1, later(), never) // the store said 1 a moment ago
  await waiting
  expect(idsAfter(1)).toBeNull() // older than what is in memory: the store has it
})

test('CF10 a wait ends at its time, with its signal, and with the tail', async () => {
  tail.enter()
  await clock.settle()
  const ended: string[] = []
  const mine = new AbortController()
  void tail.wait(0, clock.nowMs() + 3_000, never).then(() => ended.push('time'))
  void tail.wait(0, later(), mine.signal).then(() => ended.push('signal'))
  void tail.wait(0, later(), never).then(() => ended.push('tail'))
  await clock.advance(2_500)
  expect(ended).toEqual([])
  await clock.advance(1_000)
  mine.abort()
  await clock.settle()
  closing.abort()
  await clock.settle()
  expect(ended).toEqual(['time', 'signal', 'tail'])
})

test('CF10 everybody leaves and somebody comes while it reads: what is kept fits its numbers', async () => {
  const leave = tail.enter()
  await clock.settle()
  newest = 5
  tail.wake()
  await clock.settle()
  newest = 10
  tail.wake()
  leave()
  tail.enter()
  newest = 12
  await clock.settle()
  newest = 13
  tail.wake()
  await clock.settle()
  for (let position = 0; position <= 13; position++) {
    const ids = idsAfter(position)
    if (ids !== null) expect(ids).toEqual(Array.from({ length: 13 - position }, (_, i) => position + 1 + i))
  }
  expect(idsAfter(12)).toEqual([13])
})
