// The round of upkeep: what is asked of the store, in which order, and when it ends.
import { describe, expect, test } from 'bun:test'
import { keepBounds, keepUp, type StoreUpkeep, UPKEEP_TASKS, upkeepRound } from '../../server/store/upkeep/upkeep.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'

const DAY_MS = 86_400_000
const retention = { eventsKept: 10, eventsDays: 2, historyDays: 3, revisionsKept: 4, changesKept: 5 }
const none = { eventsKept: 0, eventsDays: 0, historyDays: 0, revisionsKept: 0, changesKept: 0 }

describe('UK1 what an operator wants, as bounds', () => {
  test('UK1 counts and days', () => {
    expect(keepBounds(retention, 10 * DAY_MS)).toEqual({
      nowMs: 10 * DAY_MS,
      eventsMax: 10,
      eventsSinceMs: 8 * DAY_MS,
      historySinceMs: 7 * DAY_MS,
      revisionsMax: 4,
      changesMax: 5,
    })
  })
  test('UK1 nought is no bound', () => {
    const unbounded = { eventsMax: Number.POSITIVE_INFINITY, revisionsMax: Number.POSITIVE_INFINITY, changesMax: Number.POSITIVE_INFINITY }
    expect(keepBounds(none, 10 * DAY_MS)).toEqual({ nowMs: 10 * DAY_MS, eventsSinceMs: 0, historySinceMs: 0, ...unbounded })
  })
})

function harness(answers: Record<string, { removed: number; next: string | null }>) {
  const asked: string[] = []
  const slept: number[] = []
  let nowMs = 0
  const clock: Clock = {
    ...({} as Clock),
    nowMs: () => nowMs,
    sleep: async (ms) => {
      slept.push(ms)
      nowMs += ms
    },
  }
  const upkeep: StoreUpkeep = {
    attend: async () => {},
    slice: async (task, _, from) => {
      const key = from === null ? task : `${task} ${from}`
      asked.push(key)
      if (key === 'tokens' && answers['broken'] !== undefined) throw new Error('broken')
      return answers[key] ?? { removed: 0, next: null }
    },
  }
  return { asked, slept, deps: { upkeep, retention, clock, random: () => 0.5, log: silentLogger } }
}

test('UK2 a round goes through every task, slice by slice, with a pause after those that removed something', async () => {
  const { asked, slept, deps } = harness({
    events: { removed: 500, next: '500' },
    'events 500': { removed: 3, next: null },
    history: { removed: 0, next: '5' },
  })
  expect(await upkeepRound(deps, new AbortController().signal)).toEqual({ events: 503 })
  expect(asked).toEqual(['events', 'events 500', 'history', 'history 5', ...UPKEEP_TASKS.slice(2)])
  expect(slept).toEqual([20, 20, 0, 0, 0, 0, 0, 0, 0, 0])
})

test('UK3 after what everybody remembers was collected there is none of that for a minute', async () => {
  const { asked, slept, deps } = harness({
    names: { removed: 5_000, next: '9' },
    'names 9': { removed: 1, next: null },
    states: { removed: 1, next: null },
    counts: { removed: 1, next: null },
  })
  expect(await upkeepRound(deps, new AbortController().signal)).toEqual({ names: 5_001, states: 1, counts: 1 })
  expect(asked.slice(5)).toEqual(['names', 'names 9', 'states', 'counts'])
  expect(slept).toEqual([0, 0, 0, 0, 0, 60_000, 60_000, 60_000, 20])
})

test('UK2 rounds are an hour apart, and one that fails is not the last', async () => {
  const { asked, slept, deps } = harness({ broken: { removed: 0, next: null } })
  const stop = new AbortController()
  const sleep = deps.clock.sleep
  deps.clock.sleep = async (ms, signal) => {
    await sleep(ms, signal)
    if (slept.filter((some) => some > 1_000).length === 3) stop.abort()
  }
  await keepUp(deps, stop.signal)
  expect(slept.filter((ms) => ms > 1_000)).toEqual([90_000, 3_600_000, 3_600_000])
  expect(asked.filter((task) => task === 'events')).toHaveLength(2)
})
