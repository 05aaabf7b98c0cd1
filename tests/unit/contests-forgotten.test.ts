import { expect, test } from 'bun:test'
import { CALM_MS, type Contest, noteContests } from '../../agent/reconcile/snapshot/fields/contest.ts'

const corrected = (atMs: number, untilMs = 0): Contest => ({ correctedMs: [atMs], rounds: 0, untilMs })

test('DR4 a fight that is over is forgotten, one that waits or was just corrected is not', () => {
  const all = new Map<string, Contest>()
  noteContests(all, new Map([['old', corrected(0)]]), 0)
  noteContests(all, new Map([['waits', corrected(1, 3 * CALM_MS)]]), 1)
  noteContests(all, new Map(), CALM_MS - 1)
  expect([...all.keys()]).toEqual(['old', 'waits'])
  noteContests(all, new Map([['new', corrected(CALM_MS)]]), CALM_MS)
  expect([...all.keys()]).toEqual(['waits', 'new'])
  noteContests(all, new Map([['waits', corrected(4 * CALM_MS)]]), 4 * CALM_MS)
  expect([...all.keys()]).toEqual(['waits'])
})
