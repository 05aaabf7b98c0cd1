// Loops of the server that fail: what is started again, when, and what is said of it.
import { expect, test } from 'bun:test'
import { type ServerLoop, STEADY_MS, supervise } from '../../server/supervise.ts'
import { type Logger, silentLogger } from '../../shared/runtime/logger.ts'
import { createVirtualClock, type VirtualClock } from '../support/virtual-clock.ts'

function harness(clock: VirtualClock, loops: Record<string, ServerLoop>) {
  const stopping = new AbortController()
  const logged: unknown[] = []
  const log: Logger = { ...silentLogger, error: (_, fields) => void logged.push(fields) }
  const supervisor = supervise(loops, { clock, random: () => 1, log }, stopping.signal)
  return { stopping, logged, supervisor }
}

test('LP1 a loop that fails, or ends by itself, is started again after 1, 2, 4 s; the others run on', async () => {
  const clock = createVirtualClock()
  const starts: Record<string, number[]> = { throws: [], ends: [], steady: [] }
  const note = (name: string) => starts[name]?.push(clock.monotonicMs())
  const { stopping, logged, supervisor } = harness(clock, {
    throws: async (signal) => {
      note('throws')
      if ((starts['throws']?.length ?? 0) < 3) throw new Error('disk I/O error')
      await clock.sleep(1e9, signal)
    },
    ends: async () => {
      note('ends')
    },
    steady: async (signal) => {
      note('steady')
      await clock.sleep(1e9, signal)
    },
  })
  await clock.advance(7_500)
  expect(starts).toEqual({ throws: [0, 1_000, 3_000], ends: [0, 1_000, 3_000, 7_000], steady: [0] })
  expect(supervisor.failing()).toEqual(['ends', 'throws'])
  expect(logged[0]).toMatchObject({ loop: 'throws', failures: 1, retryInMs: 1_000, error: 'disk I/O error' })
  await clock.advance(STEADY_MS)
  expect(supervisor.failing()).toEqual(['ends'])
  stopping.abort()
  await supervisor.ended
})

test('LP1 the wait grows to 60 s, and begins at 1 s again after the loop ran for two minutes', async () => {
  const clock = createVirtualClock()
  let starts = 0
  const { stopping, logged, supervisor } = harness(clock, {
    flaky: async (signal) => {
      starts += 1
      if (starts === 9) await clock.sleep(STEADY_MS, signal)
      throw new Error('broken')
    },
  })
  await clock.advance(400_000)
  const waits = logged.map((fields) => (fields as { retryInMs: number }).retryInMs)
  expect(waits.slice(0, 10)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 1_000, 2_000])
  stopping.abort()
  await supervisor.ended
})
