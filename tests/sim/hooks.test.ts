// Random lives of a service with waves and hooks (hooks-life.ts).
import { expect, test } from 'bun:test'
import { failureText } from '../support/trace.ts'
import { hooksLife } from './hooks-life.ts'

const SEEDS = Array.from({ length: Number(process.env['SIM_SEEDS'] ?? 60) }, (_, i) => i + Number(process.env['SIM_FIRST'] ?? 1))

test('HK2, OR3, OR4 random lives with hooks and waves: one object for each run, waves in order, and a whole end', async () => {
  const failed: string[] = []
  let runs = 0
  for (const seed of SEEDS) {
    const result = await hooksLife(seed)
    runs += result.runs
    if (result.problems.length > 0) failed.push(failureText(seed, result.problems, result.trace))
  }
  expect(failed.join('\n')).toBe('')
  expect(runs).toBeGreaterThan(SEEDS.length * 3)
}, 240_000)
