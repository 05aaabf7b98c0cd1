import { describe, expect, test } from 'bun:test'
import { TURN_BUDGET_MS, WorkQueue } from '../../agent/reconcile/work-queue.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

/** `long-…` has turns of a minute, which do not end when they yield, as if a request hung. */
function queue(concurrency = 2, reserved = 1) {
  const clock = createVirtualClock()
  const own = clock.process(0)
  const log: string[] = []
  const stop = new AbortController()
  const work = new WorkQueue({
    clock: own,
    concurrency,
    reserved,
    signal: stop.signal,
    turn: async (key) => {
      log.push(`+${key}`)
      await clock.sleep(key.startsWith('long') ? 60_000 : 10)
      log.push(`-${key}`)
    },
    mustYield: (key) => void log.push(`yield ${key}`),
  })
  return { clock, setBy: own.setBy, log, work, stop }
}

test('RC10 wakes before it is opened are kept, and many wakes are one turn', async () => {
  const { clock, log, work } = queue()
  for (let i = 0; i < 5; i += 1) work.wake('a')
  await clock.advance(100)
  expect(log).toEqual([])
  work.setOpen(true)
  await clock.advance(100)
  expect(log).toEqual(['+a', '-a'])
})

test('RC10 a wake during its turn gives a service exactly one more, never two at once', async () => {
  const { clock, log, work } = queue()
  work.setOpen(true)
  work.wake('a')
  await clock.advance(5)
  work.wake('a')
  work.wake('a')
  await clock.advance(100)
  expect(log).toEqual(['+a', '-a', '+a', '-a'])
})

test('RC10 different services run beside each other, up to the bound', async () => {
  const { clock, log, work } = queue(2)
  work.setOpen(true)
  for (const key of ['a', 'b', 'c']) work.wake(key)
  await clock.advance(5)
  expect(log).toEqual(['+a', '+b'])
  await clock.advance(100)
  expect(log.filter((line) => line.startsWith('-'))).toHaveLength(3)
})

test('RC10 the earliest deadline counts, once', async () => {
  const { clock, log, work } = queue()
  work.setOpen(true)
  const startMs = clock.nowMs()
  work.wakeAt('a', startMs + 5_000)
  work.wakeAt('a', startMs + 1_000)
  work.wakeAt('a', startMs + 9_000)
  await clock.advance(1_500)
  expect(log).toEqual(['+a', '-a'])
  await clock.advance(60_000)
  expect(log).toHaveLength(2)
})

test.each([-3, 3])('RC17 a deadline of before the clock was set by %d years delays no later one', async (years) => {
  const { clock, setBy, log, work } = queue()
  work.setOpen(true)
  work.wakeAt('a', clock.nowMs() + 36_000_000)
  setBy(years * 365 * 86_400_000)
  work.wakeAt('a', clock.nowMs() + years * 365 * 86_400_000 + 1_000)
  await clock.advance(1_500)
  expect(log).toEqual(['+a', '-a'])
})

describe('RC30 turns that last', () => {
  const busy = async (reserved: number) => {
    const site = queue(2, reserved)
    site.work.setOpen(true)
    for (const key of ['long-a', 'long-b']) site.work.wake(key)
    await site.clock.advance(1)
    return site
  }

  test('keep their places while nobody waits', async () => {
    const { clock, log } = await busy(0)
    await clock.advance(59_000)
    expect(log).toEqual(['+long-a', '+long-b'])
  })

  test('the longest gives up its place when another service has waited for the end of its budget', async () => {
    const { clock, log, work } = await busy(0)
    work.wake('c')
    await clock.advance(TURN_BUDGET_MS.other - 2)
    expect(log).toEqual(['+long-a', '+long-b'])
    await clock.advance(5)
    expect(log).toEqual(['+long-a', '+long-b', 'yield long-a', '+c'])
    expect([work.mustYield('long-a'), work.mustYield('long-b')]).toEqual([true, false])
  })

  test('a service that heals has a place of its own at once, and one beyond it after a shorter time', async () => {
    const { clock, log, work } = await busy(1)
    work.wake('long-h', 'heal')
    await clock.advance(1)
    expect(log.at(-1)).toBe('+long-h')
    work.wake('i', 'heal')
    await clock.advance(TURN_BUDGET_MS.heal + 20)
    expect(log.slice(3)).toEqual(['yield long-a', '+i', '-i'])
  })

  test('a turn gives way to what its own service has to heal, and the service has its next turn when it ends', async () => {
    const { clock, log, work } = await busy(0)
    work.wake('long-b', 'heal')
    await clock.advance(TURN_BUDGET_MS.other)
    expect(log.slice(2)).toEqual(['yield long-b'])
    await clock.advance(60_000)
    expect(log.filter((line) => line === '+long-b')).toHaveLength(2)
  })

  test('a turn that heals and gave up its place is followed by one that heals, whatever woke it', async () => {
    const { clock, log, work } = queue(1, 1)
    work.setOpen(true)
    for (const key of ['long-h', 'long-i', 'j']) work.wake(key, 'heal')
    await clock.advance(1_000)
    expect(log).toEqual(['+long-h', '+long-i', 'yield long-h', '+j', '-j'])
    work.wake('long-h')
    work.wake('long-b')
    await clock.advance(59_001)
    // `long-b` has the only place that is not for healing.
    expect(log.slice(5)).toEqual(['+long-b', '-long-h', 'yield long-i', '+long-h', '-long-i'])
  })

  test('RC17 a clock that is set back makes no turn last longer', async () => {
    const { clock, setBy, log, work } = await busy(0)
    const lastedMs = work.lastedMs('long-a')
    setBy(-3_600_000)
    expect([lastedMs, work.lastedMs('long-a')]).toEqual([expect.any(Number), lastedMs])
    work.wake('c')
    await clock.advance(TURN_BUDGET_MS.other + 5)
    expect(log.slice(2)).toEqual(['yield long-a', '+c'])
  })

  test('its own events do not end a turn', async () => {
    const { clock, log, work } = await busy(0)
    work.wake('long-b')
    await clock.advance(30_000)
    expect(log).toEqual(['+long-a', '+long-b'])
  })

  test('services that heal one after another do not stop all others', async () => {
    const { clock, log, work } = queue(1, 1)
    work.setOpen(true)
    for (const key of ['long-h', 'long-i', 'long-j']) work.wake(key, 'heal')
    work.wake('a')
    await clock.advance(100)
    expect(log).toContain('-a')
  })
})
