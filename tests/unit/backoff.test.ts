import { expect, test } from 'bun:test'
import { backoffMs } from '../../shared/runtime/backoff.ts'
import { seededRandom } from '../../shared/runtime/random.ts'

const limits = { baseMs: 1_000, capMs: 300_000 }

test.each([
  ['first try: at most the base', 0, 0.999, undefined, 999],
  ['doubles', 3, 0.5, undefined, 4_000],
  ['is capped', 20, 1, undefined, 300_000],
  ['an absurd attempt does not overflow', 1e9, 1, undefined, 300_000],
  ['PL10 Retry-After is a floor that the jitter comes on top of, over as long again', 0, 0.5, 7_000, 10_500],
  ['PL10 but no longer than its cap', 0, 1, 3_600_000, 3_900_000],
  ['PL10 a short Retry-After shortens no jitter', 3, 0.5, 1, 4_001],
] as const)('%s', (_, attempt, random, retryAfterMs, expected) => {
  expect(backoffMs(attempt, limits, () => random, retryAfterMs)).toBe(expected)
})

test('full jitter spreads over the whole range', () => {
  const random = seededRandom(1)
  const waits = Array.from({ length: 1_000 }, () => backoffMs(4, limits, random))
  expect(Math.min(...waits)).toBeLessThan(500)
  expect(Math.max(...waits)).toBeGreaterThan(15_500)
})
