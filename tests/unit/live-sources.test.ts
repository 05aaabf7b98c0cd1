// Objects that the labelled watches do not show, because their label was removed or they are gone, and nobody puts that
// right: what happens to them is noticed all the same.
import { afterEach, describe, expect, test } from 'bun:test'
import { readGapMs } from '../../agent/reconcile/snapshot/watch/follow-ups.ts'
import { SERVICE_LABEL } from '../../shared/kube/marks.ts'
import { type ObjectRef, refKey } from '../../shared/kube/object.ts'
import type { FakeCluster } from '../support/fake-cluster.ts'
import { denied, setup, stopAll, writes } from '../support/reconcile-fixtures.ts'
import { configMap, configMapKey, configMapRef, type ReconcileKit } from '../support/reconcile-kit.ts'

afterEach(stopAll)

const removeLabel = (cluster: FakeCluster, ref: ObjectRef) =>
  cluster.editAs('kubectl-label', ref, ({ metadata }) => Reflect.deleteProperty(metadata.labels ?? {}, SERVICE_LABEL))
/** How many objects have which source. */
function sourcesOf(kit: ReconcileKit): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { source } of kit.reconciler.sources()) counts[source] = (counts[source] ?? 0) + 1
  return counts
}
const REF = configMapRef('a')
const KEY = configMapKey('a')

async function withoutLabel(drift: 'correct' | 'report' | 'pause') {
  const site = setup()
  site.kit.desire([configMap('a'), configMap('b')], { sync: { drift } })
  await site.run()
  removeLabel(site.cluster, REF)
  return site
}

describe('an object that lost its label', () => {
  test.each(['report', 'pause'] as const)('LS1 with drift %s its deletion is noticed', async (drift) => {
    const { cluster, clock, kit } = await withoutLabel(drift)
    await clock.advance(60_000)
    cluster.deleteAs('kubectl', REF)
    await clock.advance(1_000)
    expect(kit.object(KEY)).toMatchObject({ health: 'Missing' })
    expect(kit.service()).toMatchObject({ health: 'Missing' })
  })

  test('LS1 its name may have what a selector has a meaning for', async () => {
    const { cluster, clock, kit, run } = setup()
    const rbac = { group: 'rbac.authorization.k8s.io', kind: 'ClusterRole' }
    const ref = { ...rbac, namespace: '', name: 'a,b=c' }
    kit.desire([{ apiVersion: `${rbac.group}/v1`, kind: rbac.kind, metadata: { name: ref.name }, rules: [] }], {
      sync: { drift: 'report' },
    })
    await run()
    removeLabel(cluster, ref)
    await clock.advance(60_000)
    expect(kit.object(refKey(ref))).toMatchObject({ reason: 'Drifted', health: 'Healthy' })
    cluster.deleteAs('kubectl', ref)
    await clock.advance(1_000)
    expect(kit.object(refKey(ref))).toMatchObject({ health: 'Missing' })
  })

  test('LS1 it is noticed if it is deleted before anybody could follow it', async () => {
    const { cluster, clock, kit } = await withoutLabel('report')
    await clock.advance(1_000)
    cluster.deleteAs('kubectl', REF)
    await clock.advance(60_000)
    expect(kit.object(KEY)).toMatchObject({ health: 'Missing' })
  })

  test('LS1 under a hold it is put back when it is deleted', async () => {
    const site = setup()
    const { cluster, clock, kit } = site
    kit.desire([configMap('a')])
    await site.run()
    kit.reconciler.order({ kind: 'hold', service: null, by: 'ann', why: 'test' })
    removeLabel(cluster, REF)
    await clock.advance(60_000)
    writes(cluster)
    cluster.deleteAs('kubectl', REF)
    await clock.advance(1_000)
    expect(writes(cluster)).toEqual(['apply ConfigMap a'])
    expect(cluster.object(REF)?.metadata.labels?.[SERVICE_LABEL]).toBe('web.shop')
  })

  test('LS1 where the correction fails its health is followed', async () => {
    const site = setup()
    const { cluster, clock, kit } = site
    const ref = { group: 'apps', kind: 'Deployment', namespace: 'default', name: 'web' }
    const template = { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'web', image: 'web:1' }] } }
    const spec = { replicas: 1, selector: { matchLabels: { app: 'web' } }, template }
    kit.desire([{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', namespace: 'default' }, spec }])
    await site.run()
    cluster.fail(({ verb }) => (verb === 'apply' ? denied : null))
    removeLabel(cluster, ref)
    await clock.advance(20_000)
    const condition = { type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded', message: 'too slow' }
    cluster.setStatus(ref, { observedGeneration: 1, conditions: [condition] })
    await clock.advance(1_000)
    expect(kit.object('apps/Deployment/default/web')).toMatchObject({ health: 'Degraded' })
  })

  test('LS1 nothing is asked for an object whose label is put back at once', async () => {
    const { cluster, clock } = await withoutLabel('correct')
    await clock.advance(1_000)
    cluster.requests.splice(0)
    await clock.advance(3_600_000)
    expect(cluster.requests).toEqual([])
  })

  test('LS1 it is no longer followed when somebody puts the label back', async () => {
    const { cluster, clock, kit } = await withoutLabel('report')
    await clock.advance(60_000)
    expect(sourcesOf(kit)).toMatchObject({ name: 1 })
    cluster.editAs('kubectl-label', REF, ({ metadata }) => Object.assign(metadata, { labels: { [SERVICE_LABEL]: 'web.shop' } }))
    await clock.advance(1_000)
    expect(sourcesOf(kit)).not.toHaveProperty('name')
  })

  test('LS1 it is no longer followed when its service gives it up', async () => {
    const { clock, kit } = await withoutLabel('report')
    await clock.advance(60_000)
    kit.remove('orphan')
    await clock.advance(60_000)
    expect(kit.service()?.removed).toBe(true)
    expect(sourcesOf(kit)).not.toHaveProperty('name')
  })

  test('LS1 while its watch fails, nothing is said of it but that it is unknown', async () => {
    const { cluster, clock, kit } = await withoutLabel('report')
    await clock.advance(60_000)
    cluster.fail(({ verb, fieldSelector }) => (verb === 'watch' && fieldSelector === 'metadata.name=a' ? denied : null))
    cluster.cutWatches()
    await clock.advance(1_000)
    expect(kit.object(KEY)).toMatchObject({ health: 'Unknown' })
    expect(kit.object(configMapKey('b'))).toMatchObject({ health: 'Healthy' })
    cluster.fail(() => null)
    await clock.advance(60_000)
    expect(kit.object(KEY)).toMatchObject({ health: 'Healthy' })
  })
})

test('LS1 an object that was deleted and is not corrected is noticed when somebody makes it without the label', async () => {
  const site = setup()
  const { cluster, clock, kit } = site
  kit.desire([configMap('a')], { sync: { drift: 'report' } })
  await site.run()
  cluster.deleteAs('kubectl', REF)
  await clock.advance(60_000)
  expect(kit.object(KEY)).toMatchObject({ health: 'Missing' })
  cluster.applyAs('kubectl', configMap('a', { a: 'theirs' }))
  await clock.advance(600_000)
  expect(kit.object(KEY)).toMatchObject({ health: 'Healthy', sync: 'OutOfSync' })
})

test('LS2 of many objects fifty are watched by name, and the others are read in turn', async () => {
  const site = setup()
  const { cluster, clock, kit } = site
  const names = Array.from({ length: 60 }, (_, n) => `m${n}`)
  kit.desire(
    names.map((name) => configMap(name)),
    { sync: { drift: 'report' } },
  )
  await site.run()
  for (const name of names) removeLabel(cluster, configMapRef(name))
  await clock.advance(10_000)
  expect(sourcesOf(kit)).toEqual({ name: 50, turn: 10 })
  cluster.requests.splice(0)
  await clock.advance(300_000)
  const read = cluster.requests.splice(0).flatMap(({ verb, ref }) => (verb === 'get' ? [ref?.name] : []))
  expect(read.length).toBeGreaterThanOrEqual(8)
  expect(read.length).toBeLessThanOrEqual(13)
  expect(new Set(read).size).toBe(Math.min(10, read.length))
  for (const name of names) cluster.deleteAs('kubectl', configMapRef(name))
  await clock.advance(400_000)
  expect(names.filter((name) => kit.object(configMapKey(name))?.health !== 'Missing')).toEqual([])
})

test.each([
  [1, 225_000, 375_000],
  [100, 2_250, 3_750],
  [400, 1_000, 1_000],
  [4_000, 1_000, 1_000],
])('LS2 %i objects that are read in turn: between %i and %i ms from one read to the next', (count, least, most) => {
  expect([readGapMs(count, 0), readGapMs(count, 1)]).toEqual([least, most])
})

test('LS1 a list that lacks an unlabelled object does not accept it for deleted, whatever version it was applied in', async () => {
  const site = setup()
  const { cluster, clock, kit } = site
  kit.desire([configMap('a')], { sync: { drift: 'report' } })
  await site.run()
  await kit.stop()
  removeLabel(cluster, REF)
  kit.start()
  await clock.advance(60_000)
  expect(kit.object(KEY)).toMatchObject({ health: 'Healthy', sync: 'OutOfSync' })
  expect(sourcesOf(kit)).toMatchObject({ name: 1 })
})
