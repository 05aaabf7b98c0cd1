// Random lives with everything that holds work back (gates-life.ts).
import { expect, test } from 'bun:test'
import { failureText } from '../support/trace.ts'
import { gatesLife } from './gates-life.ts'

const SEEDS = Array.from({ length: Number(process.env['SIM_SEEDS'] ?? 60) }, (_, i) => i + Number(process.env['SIM_FIRST'] ?? 1))

test('DR6, SM1, HO2, WI2, DE3, RC15 random lives end with everything done that was held back', async () => {
  const failed: string[] = []
  const sums = new Map<string, number>()
  for (const seed of SEEDS) {
    const { problems, trace, done } = await gatesLife(seed)
    for (const [reason, count] of done) sums.set(reason, (sums.get(reason) ?? 0) + count)
    if (problems.length > 0) failed.push(failureText(seed, problems, trace))
  }
  expect(failed.join('\n')).toBe('')
  for (const reason of ['DriftHealed', 'Pruned', 'Recreated', 'FieldsTaken', 'Held', 'Released', 'Drifted'])
    expect([reason, (sums.get(reason) ?? 0) > 0]).toEqual([reason, true])
}, 240_000)
