// The corpus of broken deployments: the true cause comes first, always in the same words.
import { expect, test } from 'bun:test'
import { explain, type WhyFacts } from '../../server/fleet/why/explain.ts'
import { readSign } from '../../server/fleet/why/signs.ts'
import { LAST_LOG_LINES } from '../../shared/model/why.ts'
import { WHY_CASES } from '../support/why-corpus.ts'
import { causesOf, factsOf } from '../support/why-runner.ts'

test.each(WHY_CASES.map((one) => [one.name, one] as const))('WY1 %s', (_, one) => {
  const [first] = causesOf(one)
  expect(first?.cause ?? 'none').toBe(one.cause)
  expect(first?.evidence.length).toBeGreaterThan(0)
  expect(first?.next).not.toBe('')
  expect(`${first?.summary} ${first?.next}`).not.toMatch(/\$\d|undefined/)
})

test('WY1 the corpus has at least 40 broken deployments', () => {
  expect(WHY_CASES.filter(({ service, placement }) => service === undefined && placement === undefined).length).toBeGreaterThanOrEqual(40)
})

const CASE = WHY_CASES.find(({ cause }) => cause === 'OutOfMemory') as (typeof WHY_CASES)[0]
const inClusters = (names: readonly string[], clusterCount: number): WhyFacts => {
  const { service, placements, objects } = factsOf(CASE)
  return {
    ...{ service, dependencies: [], clusterCount },
    placements: names.flatMap((cluster) => placements.map((one) => ({ ...one, cluster }))),
    objects: names.flatMap((cluster) => objects.map((one) => ({ ...one, cluster }))),
  }
}

test('WY2 the same cause in several clusters is one, and says whether it is everywhere', () => {
  const [all] = explain(inClusters(['a', 'b', 'c'], 3))
  expect(all).toMatchObject({ cause: 'OutOfMemory', clusters: { count: 3, first: ['a', 'b', 'c'] } })
  expect(all?.evidence.at(-1)?.text).toContain('in all 3 clusters')
  const [some] = explain(inClusters(['a', 'b'], 9))
  expect(some?.evidence.at(-1)?.text).toBe('in 2 of 9 clusters (a, b)')
})

test('WY3 equal facts give equal answers, in whatever order they come', () => {
  const facts = inClusters(['a', 'b', 'c'], 3)
  const turned = { ...facts, placements: [...facts.placements].reverse(), objects: [...facts.objects].reverse() }
  const shape = (one: WhyFacts) => explain(one).map(({ cause, object, clusters }) => [cause, object, clusters.count])
  expect(shape(turned)).toEqual(shape(facts))
})

test('WY4 a service that waits for another has the cause of that one', () => {
  const [cause = null] = causesOf(CASE)
  const placement = {
    cluster: 'c1',
    liveness: 'Online',
    sync: 'OutOfSync',
    health: 'Missing',
    reason: 'BlockedBy',
    message: 'waiting for default/db',
    next: '',
    sinceMs: 1,
  }
  const facts = {
    service: placement,
    placements: [placement],
    objects: [],
    clusterCount: 1,
    dependencies: [{ key: 'default/db', state: '', cause }],
  }
  const [first] = explain(facts)
  expect(first).toMatchObject({ cause: 'DependencyNotHealthy', next: cause?.next })
  expect(first?.summary).toBe('the service waits for default/db: a container exceeds its memory limit and is killed')
})

test('WY5 nothing is wrong with a service that is Synced and Healthy', () => {
  const well = { sync: 'Synced', health: 'Healthy', reason: 'Synced', message: '', next: '', sinceMs: null }
  expect(explain({ service: well, placements: [], objects: [], clusterCount: 1, dependencies: [] })).toEqual([])
})

test('WY1 the words of a program in its log are no sign of a cause in the cluster', () => {
  const said = 'Pod shop/web-1: container app CrashLoopBackOff: exited with code 1'
  for (const line of [
    'User "system:serviceaccount:shop:app" cannot list resource "pods"',
    'Insufficient funds',
    'namespaces "x" not found',
  ]) {
    const read = readSign({ reason: 'ProgressDeadlineExceeded', message: `too late; ${said}${LAST_LOG_LINES}${line}` })
    expect(read?.sign.cause).toBe('CrashLoop')
  }
})
