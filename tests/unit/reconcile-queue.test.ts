import { describe, expect, test } from 'bun:test'
import { CALM, type Load, PAUSE_MAX_MS, RequestGate } from '../../agent/reconcile/apply/request-gate.ts'
import { WorkQueue } from '../../agent/reconcile/work-queue.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

function queue(concurrency = 2) {
  const clock = createVirtualClock()
  const log: string[] = []
  const stop = new AbortController()
  const work = new WorkQueue({
    clock,
    concurrency,
    signal: stop.signal,
    turn: async (key) => {
      log.push(`+${key}`)
      await clock.sleep(10)
      log.push(`-${key}`)
    },
  })
  return { clock, log, work, stop }
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

test('RC9 never more than its limit at once; halved by an overload, and grown again by good answers', async () => {
  const gate = new RequestGate({ clock: createVirtualClock(), signal: new AbortController().signal, max: 8 })
  let running = 0
  let most = 0
  const request = (overload: boolean) =>
    gate.run(
      async () => {
        running += 1
        most = Math.max(most, running)
        await Promise.resolve()
        running -= 1
        return overload
      },
      (overload) => ({ overload }),
    )
  await Promise.all(Array.from({ length: 100 }, () => request(false)))
  expect(most).toBe(8)
  await request(true)
  expect(gate.limit()).toBe(4)
  await request(true)
  await request(true)
  await request(true)
  expect(gate.limit()).toBe(1)
  most = 0
  await Promise.all(Array.from({ length: 4 }, () => request(false)))
  expect(most).toBeLessThanOrEqual(2)
  await Promise.all(Array.from({ length: 200 }, () => request(false)))
  expect(gate.limit()).toBe(8)
})

describe('RC9 a server that throttles', () => {
  const setup = (max = 8) => {
    const clock = createVirtualClock()
    const stop = new AbortController()
    const gate = new RequestGate({ clock, signal: stop.signal, max })
    const sentAtMs: number[] = []
    const startMs = clock.nowMs()
    const send = (answer: Load = CALM, open = Promise.resolve()) =>
      gate.run(
        async () => {
          sentAtMs.push(clock.nowMs() - startMs)
          await open
          return answer
        },
        (load) => load,
      )
    return { clock, stop, gate, sentAtMs, send }
  }

  test('twenty refusals of one burst halve the limit once', async () => {
    const { gate, send } = setup()
    await Promise.all(Array.from({ length: 8 }, () => send({ overload: true })))
    expect(gate.limit()).toBe(4)
    await send({ overload: true })
    expect(gate.limit()).toBe(2)
  })

  test('nobody asks before the time of a Retry-After, and then no more than the halved limit at once', async () => {
    const { clock, gate, sentAtMs, send } = setup()
    await send({ overload: true, pauseMs: 5_000 })
    const later = Promise.all(Array.from({ length: 20 }, () => send()))
    await clock.advance(4_999)
    expect(sentAtMs).toEqual([0])
    await clock.advance(1)
    await later
    expect(sentAtMs.slice(1)).toEqual(Array.from({ length: 20 }, () => 5_000))
    expect(gate.limit()).toBeGreaterThan(4)
  })

  test('a longer time replaces a shorter one, and no time is longer than a minute', async () => {
    const { clock, sentAtMs, send } = setup()
    await Promise.all([
      send({ overload: true, pauseMs: 1_000 }),
      send({ overload: true, pauseMs: 86_400_000 }),
      send({ overload: true, pauseMs: 2_000 }),
    ])
    const later = send()
    await clock.advance(PAUSE_MAX_MS - 1)
    expect(sentAtMs).toHaveLength(3)
    await clock.advance(1)
    await later
    expect(sentAtMs.at(-1)).toBe(PAUSE_MAX_MS)
  })

  test('a stop ends the wait', async () => {
    const { stop, sentAtMs, send } = setup()
    await send({ overload: true, pauseMs: 5_000 })
    const later = send()
    stop.abort()
    await later
    expect(sentAtMs).toHaveLength(2)
  })

  test('a request that hangs keeps its own place only', async () => {
    const { sentAtMs, send } = setup(2)
    const hanging = Promise.withResolvers<void>()
    const first = send(CALM, hanging.promise)
    for (let count = 0; count < 5; count += 1) await send()
    expect(sentAtMs).toHaveLength(6)
    hanging.resolve()
    await first
  })
})
