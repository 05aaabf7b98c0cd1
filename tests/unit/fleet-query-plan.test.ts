// From which side a question is answered, as a table of counts.
import { expect, test } from 'bun:test'
import { type PlanInput, planObjects, SQLITE_COSTS } from '../../server/store/queries/fleet-query-plan.ts'

const TOTAL = 2_000_000
const nothing: PlanInput = {
  ...{ sort: 'cluster', limit: 100, total: TOTAL, clusters: null, names: null, states: null, drifts: null, words: [], split: null },
  needsState: false,
  costs: SQLITE_COSTS,
}
const counts = (clusters: number, names: number, states: number) => ({ clusters, names, states })

test.each<[what: string, input: Partial<PlanInput>, plan: string]>([
  ['nothing is asked', {}, 'walk by clusters'],
  ['nothing is asked, by name', { sort: 'name' }, 'walk by names'],
  ['nothing is asked, by time', { sort: 'newest' }, 'walk by since'],
  ['nothing is asked, by health', { sort: 'health' }, 'walk by health'],
  ['one cluster', { clusters: 200 }, 'collect clusters'],
  ['half of the clusters', { clusters: 1_000_000 }, 'walk by clusters'],
  ['a rare state', { states: 10_000, needsState: true }, 'collect states'],
  ['a common state', { states: 75_000, needsState: true }, 'walk by clusters'],
  ['what most rows say', { states: 1_900_000, needsState: true, sort: 'oldest' }, 'walk by since'],
  ['a name that all clusters have', { names: 10_000 }, 'collect names'],
  ['the same in a state of most: its rows are looked up', { names: 20_000, states: 1_900_000, needsState: true }, 'walk by clusters'],
  ['a cluster and a common name', { clusters: 200, names: 100_000 }, 'collect clusters'],
  ['a rare state and half of the clusters', { clusters: 1_000_000, states: 9_000, needsState: true }, 'collect states'],
  ['a state just as many as are collected', { states: 31_250, needsState: true }, 'collect states'],
  ['one row more', { states: 31_251, needsState: true }, 'walk by clusters'],
  ['by name, where a walk looks up each state: twice as many', { states: 62_500, needsState: true, sort: 'name' }, 'collect states'],
  ['and one more', { states: 62_501, needsState: true, sort: 'name' }, 'walk by names'],
  ['open drifts', { drifts: 6_000 }, 'collect drifts'],
  ['no rows at all are few', { states: 0, needsState: true }, 'collect states'],
  ['a rare word', { words: [counts(0, 12, 300)], needsState: true }, 'collect word 0'],
  ['the rarer of two words', { words: [counts(1_200_000, 0, 0), counts(0, 0, 500)], needsState: true }, 'collect word 1'],
  [
    'two words, each common, that hardly come together',
    { words: [counts(0, 120_000, 3_000), counts(0, 240_000, 0)], split: counts(0, 10_000, 3_000) },
    'collect split',
  ],
  ['two common words', { words: [counts(1_200_000, 0, 0), counts(0, 120_000, 0)], split: counts(1_200_000, 0, 0) }, 'walk by clusters'],
])('QY3 %s', (_, input, expected) => {
  const plan = planObjects({ ...nothing, ...input })
  const told =
    plan.kind === 'walk' ? `walk by ${plan.by}` : plan.kind === 'collect' ? `collect ${Object.values(plan.driver).join(' ')}` : plan.kind
  expect(told).toBe(expected)
})

test('QY5 a walk that looks rows up looks at fewer', () => {
  const rowsMax = (input: Partial<PlanInput>) => {
    const plan = planObjects({ ...nothing, ...input })
    return plan.kind === 'walk' ? plan.rowsMax : null
  }
  expect(rowsMax({})).toBe(62_500)
  expect(rowsMax({ sort: 'name' })).toBe(83_333)
  expect(rowsMax({ sort: 'name', needsState: true })).toBe(25_000)
})

test('QY3 a walk expects as many rows of the answer as all sides leave together, but for what its order leaves out by itself', () => {
  const density = (input: Partial<PlanInput>) => {
    const plan = planObjects({ ...nothing, costs: { ...SQLITE_COSTS, collectMax: -1 }, ...input })
    return plan.kind === 'walk' ? plan.density : null
  }
  expect(density({ clusters: 1_000_000 })).toBe(1)
  expect(density({ clusters: 1_000_000, sort: 'name' })).toBe(0.5)
  expect(density({ names: 200_000, states: 1_000_000 })).toBe(0.05)
  expect(density({ names: 200_000, states: 1_000_000, sort: 'newest' })).toBe(0.1)
  expect(density({ names: 0 })).toBe(1 / TOTAL)
})
