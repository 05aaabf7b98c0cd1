// What waits for the store, and when who is sent away shall come back.
import { expect, test } from 'bun:test'
import { BACKLOG_AGE_MAX_MS, BACKLOG_ROWS_MAX, Backlog } from '../../server/store/status/backlog.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

function start() {
  const clock = createVirtualClock()
  return { clock, backlog: new Backlog(clock, seededRandom(3)) }
}

test('PU9 there is room up to the greatest number of rows that wait, and again when enough of them are done', () => {
  const { backlog } = start()
  const leave = backlog.enter(BACKLOG_ROWS_MAX - 1)
  expect(backlog.retryAfterMs()).toBeNull()
  const leaveLast = backlog.enter(1)
  expect(backlog.retryAfterMs()).not.toBeNull()
  leaveLast()
  expect(backlog.retryAfterMs()).toBeNull()
  leave()
  leave() // counts once
  backlog.enter(BACKLOG_ROWS_MAX - 1)
  expect(backlog.retryAfterMs()).toBeNull()
})

test('PU9 nobody comes in behind who waits for two seconds', () => {
  const { clock, backlog } = start()
  const leave = backlog.enter(1)
  clock.jump(BACKLOG_AGE_MAX_MS - 1)
  backlog.enter(1)
  expect(backlog.retryAfterMs()).toBeNull()
  clock.jump(1)
  expect(backlog.retryAfterMs()).not.toBeNull()
  leave() // who came later waits for less
  expect(backlog.retryAfterMs()).toBeNull()
})

test('PU9 a clock that is set back sends nobody away', () => {
  const { clock, backlog } = start()
  backlog.enter(1)
  clock.jump(-86_400_000)
  expect(backlog.retryAfterMs()).toBeNull()
})

test('PU9 who is sent away comes back at another time than the others, later the more there are, within a minute', () => {
  const { clock, backlog } = start()
  const leave = [1, 2, 3].map(() => backlog.enter(BACKLOG_ROWS_MAX / 2))
  clock.jump(30)
  leave[0]?.() // 30 ms each, as far as one knows
  const told = Array.from({ length: 1_000 }, () => backlog.retryAfterMs() ?? 0)
  expect(Math.min(...told)).toBeGreaterThanOrEqual(1_000)
  expect(Math.max(...told)).toBeLessThanOrEqual(60_000)
  expect(new Set(told).size).toBeGreaterThan(800)
  const mean = (some: readonly number[]) => some.reduce((sum, ms) => sum + ms, 0) / some.length
  expect(mean(told.slice(0, 100))).toBeLessThan(mean(told.slice(400, 500)))
  expect(mean(told.slice(400, 500))).toBeLessThan(mean(told.slice(900)))
})

test('PU9 of a store that does nothing at all one stays away for as long as it did nothing, half a minute at least in the end', () => {
  const { clock, backlog } = start()
  backlog.enter(1)
  clock.jump(10_000)
  expect(backlog.retryAfterMs()).toBeGreaterThanOrEqual(10_000)
  clock.jump(600_000)
  const told = Array.from({ length: 500 }, () => backlog.retryAfterMs() ?? 0)
  expect([Math.min(...told) >= 30_000, Math.max(...told) <= 60_000]).toEqual([true, true])
})

test('PU9 who comes back when it was told to has its turn; who comes before it, again and again, has none', () => {
  const { clock, backlog } = start()
  const leave = backlog.enter(BACKLOG_ROWS_MAX, 'full')
  const [patient, pushy] = [backlog.retryAfterMs('patient') ?? 0, backlog.retryAfterMs('pushy') ?? 0]
  expect(Math.min(patient, pushy)).toBeGreaterThanOrEqual(1_000)
  leave()
  expect(backlog.retryAfterMs('new')).toBeNull()
  expect(backlog.retryAfterMs('pushy')).toBe(pushy) // there is room, but it is for others
  backlog.enter(BACKLOG_ROWS_MAX, 'new')
  clock.jump(patient + 300_000) // as late as an agent may be that was sent away often
  expect(backlog.retryAfterMs('patient')).toBeNull()
  backlog.enter(20, 'patient')
  expect(backlog.retryAfterMs('patient')).toBeGreaterThanOrEqual(1_000) // one turn
  backlog.enter(BACKLOG_ROWS_MAX, 'another')
  clock.jump(60_000)
  expect(backlog.retryAfterMs('pushy')).toBeGreaterThanOrEqual(1_000) // there is no end to turns, but to rows
})

test('PU9 with those who never wait, and push all they can, the others still have their turns', () => {
  const { clock, backlog } = start()
  const queue: Array<{ rows: number; leave: () => void }> = []
  const enter = (rows: number, who: string) => queue.push({ rows, leave: backlog.enter(rows, who) })
  const pushy = Array.from({ length: 25 }, (_, n) => `pushy-${n}`)
  const dueMs = new Map(Array.from({ length: 200 }, (_, n) => [`patient-${n}`, 10_000 + n * 50]))
  for (let ms = 0; ms < 150_000; ms += 25) {
    for (let left = 500; left > 0 && queue[0] !== undefined; ) {
      const taken = Math.min(left, queue[0].rows)
      left -= taken
      queue[0].rows -= taken
      if (queue[0].rows === 0) queue.shift()?.leave()
    }
    for (const who of pushy) if (backlog.retryAfterMs(who) === null) enter(5_000, who)
    for (const [who, atMs] of dueMs) {
      if (ms < atMs) continue
      const retryMs = backlog.retryAfterMs(who)
      if (retryMs !== null) dueMs.set(who, ms + retryMs)
      else {
        enter(20, who)
        dueMs.delete(who)
      }
    }
    clock.jump(25)
  }
  expect(dueMs.size).toBe(0)
})
