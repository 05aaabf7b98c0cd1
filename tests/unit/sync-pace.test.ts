import { describe, expect, test } from 'bun:test'
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { commonVersion } from '../../agent/link/protocol-choice.ts'
import { RETRY_AFTER_MS_MAX, retryAfterMsOf } from '../../agent/link/retry-after.ts'
import {
  afterClean,
  afterCut,
  afterSilence,
  beginWait,
  type PollWait,
  WAIT_SECONDS_LIMIT_METERED,
  WAIT_SECONDS_MIN,
} from '../../agent/sync/poll-wait.ts'
import {
  PUSH_DEBOUNCE_MS,
  PUSH_GATHER_MS,
  PUSH_INTERVAL_MS,
  PUSH_SPENT_MS,
  PUSH_URGENT_MS,
  PUSHES_AT_ONCE,
  paidUntilMs,
  pushAtMs,
} from '../../agent/sync/push-pace.ts'
import { anySlice, sliceAfterCut, sliceAfterPage, sliceAfterPiece } from '../../agent/sync/slice-choice.ts'
import { createTrafficDay, dayOf, readToday } from '../../agent/sync/traffic-day.ts'
import { SLICE_BYTES_MIN } from '../../shared/protocol/transfer.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { tempDir } from '../support/temp-dir.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const clean = (wait: PollWait, times: number, limit = WAIT_SECONDS_LIMIT_METERED): PollWait =>
  Array.from({ length: times }).reduce<PollWait>((held) => afterClean(held, true, limit), wait)

describe('PL10 the wait of a poll', () => {
  test('grows to its limit while polls come back clean, and stays there', () => {
    const seconds: number[] = []
    for (let wait = beginWait(55); seconds.length < 9; wait = afterClean(wait, true, 900)) seconds.push(wait.seconds)
    expect(seconds).toEqual([55, 83, 125, 188, 282, 423, 635, 900, 900])
  })
  test('news says nothing about how long silence is borne', () => expect(afterClean(beginWait(55), false, 900)).toEqual(beginWait(55)))
  test('a cut shortens it below what was cut, and what was learned holds for fifty polls', () => {
    const cut = afterCut(clean(beginWait(55), 3), 120_000)
    expect(cut.seconds).toBe(96)
    expect(clean(cut, 49).seconds).toBe(96)
    expect(clean(cut, 50).seconds).toBe(120)
  })
  test('never below its least', () => expect(afterCut(beginWait(55), 5_000).seconds).toBe(WAIT_SECONDS_MIN))
  test('silence at a wait that was good before says that the link is dead, at a longer one that the longer one is too long', () => {
    expect(afterSilence(beginWait(55))).toEqual(beginWait(55))
    const grown = clean(beginWait(55), 2)
    expect(grown.seconds).toBe(125)
    expect(afterSilence(grown).seconds).toBe(83)
    expect(clean(afterSilence(grown), 20).seconds).toBe(83)
  })
  test('a limit that was lowered by an option is kept to', () => expect(clean(beginWait(30), 9, 30).seconds).toBe(30))
})

describe('SY9 the size of parts', () => {
  const cut = (sizes: number[], from = anySlice) => sizes.reduce((held, size) => sliceAfterCut(held, size), from)
  test.each([
    ['one cut may be chance', [100_000], null],
    ['two in a row: what fits into the larger of both', [100_000, 35_000], 65_536],
    ['at least the least', [3_000, 2_000], SLICE_BYTES_MIN],
    ['two more: half of it at most', [100_000, 35_000, 200_000, 1], 32_768],
  ] as const)('%s', (_, sizes, expected) => expect(cut([...sizes]).bytes).toBe(expected))
  test('a piece that came through ends the row', () => {
    expect(cut([100_000], sliceAfterPiece(cut([100_000]))).bytes).toBeNull()
  })
  test('whole pages bring the size back', () => {
    const sizes: Array<number | null> = []
    for (let held = cut([0, 0]); sizes.length < 6; held = sliceAfterPage(held)) sizes.push(held.bytes)
    expect(sizes).toEqual([16_384, 32_768, 65_536, 131_072, null, null])
  })
})

describe('SY6 PU11 when status goes up', () => {
  const pace = { metered: false, spent: false, urgent: false, sinceMs: 1_000, lastMs: null }
  test.each([
    ['at once', {}, 1_000 + PUSH_DEBOUNCE_MS],
    ['metered: gathered', { metered: true }, 1_000 + PUSH_GATHER_MS],
    ['metered, a service changed its health', { metered: true, urgent: true }, 1_000 + PUSH_URGENT_MS],
    ['spent: an hour after the last', { metered: true, spent: true, urgent: true, lastMs: 900 }, 900 + PUSH_SPENT_MS],
    ['spent, and the last is long ago', { spent: true, lastMs: 1_000 - 2 * PUSH_SPENT_MS }, 1_000 + PUSH_URGENT_MS],
    ['spent, none before', { spent: true }, 1_000 + PUSH_URGENT_MS],
  ] as const)('%s', (_, change, expected) => expect(pushAtMs({ ...pace, ...change })).toBe(expected))

  /** When pushes go while there is always something to say. */
  const burst = (count: number, change: { full?: boolean } = {}): number[] => {
    const times: number[] = []
    for (let [nowMs, paidMs] = [1_000, 0]; times.length < count; ) {
      nowMs = Math.max(nowMs, pushAtMs({ ...pace, sinceMs: nowMs, paidMs, ...change }))
      times.push(nowMs)
      paidMs = paidUntilMs(paidMs, nowMs)
    }
    return times
  }
  test('a burst goes up in few pushes: after the first ones, one in each interval', () => {
    const times = burst(PUSHES_AT_ONCE + 10)
    expect((times[PUSHES_AT_ONCE - 1] ?? 0) - 1_000).toBe(PUSHES_AT_ONCE * PUSH_DEBOUNCE_MS)
    expect((times.at(-1) ?? 0) - (times.at(-9) ?? 0)).toBe(8 * PUSH_INTERVAL_MS)
  })
  test('what fills whole pushes waits for nothing', () => {
    expect(burst(40, { full: true }).at(-1)).toBe(1_000)
  })
  test('after a pause the first ones go at once again, and pushes that waited for nothing hold none for long', () => {
    const paidMs = burst(40).reduce((paid, atMs) => paidUntilMs(paid, atMs), 0)
    const later = paidMs + PUSH_INTERVAL_MS
    expect(pushAtMs({ ...pace, sinceMs: later, paidMs })).toBe(later + PUSH_DEBOUNCE_MS)
    const full = burst(40, { full: true }).reduce((paid, atMs) => paidUntilMs(paid, atMs), 0)
    expect(full).toBe(1_000 + PUSHES_AT_ONCE * PUSH_INTERVAL_MS)
  })
})

describe('PL10 Retry-After', () => {
  const now = Date.parse('2026-11-21T12:00:00Z')
  test.each([
    [undefined, null, undefined],
    [undefined, '3', 3_000],
    [undefined, ' 3 ', 3_000],
    [undefined, '0', 0],
    [undefined, '99999999', RETRY_AFTER_MS_MAX],
    [undefined, '-1', undefined],
    [undefined, '1.5', undefined],
    [undefined, 'soon', undefined],
    [undefined, 'Sat, 21 Nov 2026 12:00:30 GMT', 30_000],
    [undefined, 'Saturday, 21-Nov-26 12:00:30 GMT', 30_000],
    [undefined, 'Sat, 21 Nov 2026 11:00:00 GMT', 0],
    [undefined, 'Sat, 21 Nov 2099 11:00:00 GMT', RETRY_AFTER_MS_MAX],
    [undefined, 'Sat, 99 Nov 2026', undefined],
    [7_000, '3', 7_000],
    [1e12, null, RETRY_AFTER_MS_MAX],
  ] as const)('%p and %p → %p', (bodyMs, header, expected) => expect(retryAfterMsOf(bodyMs, header, now)).toBe(expected))
})

describe('PL11 the version that both speak', () => {
  const refused = (extra: Record<string, unknown>) => new AppError('protocol_unsupported', { extra })
  test.each([
    ['an older server', { min: 1, max: 2 }, 2],
    ['a newer server that still speaks ours', { min: 3, max: 9 }, 3],
    ['a server below', { min: 1, max: 1 }, null],
    ['a server above', { min: 4, max: 9 }, null],
    ['named beside other things', { server: { min: 1, max: 2 }, agent: { min: 3, max: 3 } }, 2],
    ['no range', {}, null],
    ['nonsense', { min: 'x', max: -1 }, null],
  ] as const)('%s', (_, extra, expected) => expect(commonVersion(refused(extra), { min: 2, max: 3 })).toBe(expected))
  test('other errors choose nothing', () =>
    expect(commonVersion(new AppError('revoked', { extra: { min: 1, max: 3 } }), { min: 1, max: 3 })).toBeNull())
})

describe('SY6 the budget of a day', () => {
  test('is used up at its last byte, survives a restart but for 4 kB, and begins anew at midnight UTC', async () => {
    const clock = createVirtualClock(Date.parse('2026-11-21T22:00:00Z'))
    const path = join(tempDir(), 'traffic.json')
    const day = createTrafficDay({ path, budgetBytes: 10_000, clock })
    day.add(5_000)
    day.add(4_095)
    expect(createTrafficDay({ path, budgetBytes: 10_000, clock }).today()).toEqual({ day: '2026-11-21', bytes: 5_000 })
    day.add(904)
    expect(day.exceeded()).toBe(false)
    day.add(1)
    expect(day.exceeded()).toBe(true)
    day.flush()
    const again = createTrafficDay({ path, budgetBytes: 10_000, clock })
    expect([again.today().bytes, again.exceeded()]).toEqual([10_000, true])
    await clock.advance(2 * 3_600_000)
    expect([again.today(), again.exceeded()]).toEqual([{ day: dayOf(clock.nowMs()), bytes: 0 }, false])
  })
  test('a day of much traffic is written after a part of it, not for each request', () => {
    const clock = createVirtualClock(Date.parse('2026-11-21T22:00:00Z'))
    const path = join(tempDir(), 'traffic.json')
    const day = createTrafficDay({ path, budgetBytes: 0, clock })
    const written = () => createTrafficDay({ path, budgetBytes: 0, clock }).today().bytes
    day.add(100_000_000)
    day.add(300_000)
    expect(written()).toBe(100_000_000)
    day.add(100_000)
    expect(written()).toBe(100_400_000)
  })
  test('is written in place: a rename would wait for the disk for each few kilobytes of a log', () => {
    const clock = createVirtualClock()
    const path = join(tempDir(), 'traffic.json')
    const day = createTrafficDay({ path, budgetBytes: 0, clock })
    day.add(1e9)
    const { ino } = statSync(path)
    clock.jump(24 * 3_600_000)
    day.add(5_000)
    expect([readToday(path, clock.nowMs()), statSync(path).ino]).toEqual([5_000, ino])
  })
  test('a budget of 0 is none, and a broken file is a day that begins', () => {
    const path = join(tempDir(), 'traffic.json')
    writeFileSync(path, '{"day":1')
    const day = createTrafficDay({ path, budgetBytes: 0, clock: createVirtualClock() })
    day.add(1e9)
    expect([day.exceeded(), day.today().bytes]).toEqual([false, 1e9])
  })
})
