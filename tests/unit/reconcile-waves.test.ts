// Waves on the fake API server: who waits for whom, what is said meanwhile, and the way back.
import { afterEach, expect, test } from 'bun:test'
import { orderText } from '../../agent/messages/service-messages.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { annotated, deployment, hook, job, ready, WAVE, waved } from '../support/hook-fixtures.ts'
import { crd, setup, stopAll, thing, writes } from '../support/reconcile-fixtures.ts'
import { configMap, configMapKey, configMapRef } from '../support/reconcile-kit.ts'
import { SOME, said } from '../support/said.ts'

afterEach(stopAll)

test('OR3, OR4 a wave waits for the health of the one before, and says for whom', async () => {
  const { cluster, kit, run, settle } = setup()
  kit.desire([waved(configMap('last'), 2), waved(deployment('db'), -1), deployment('web'), configMap('other')])
  await run()
  expect(writes(cluster)).toEqual(['apply Deployment db'])
  expect(kit.object(configMapKey('last'))).toMatchObject({ sync: 'OutOfSync', reason: 'WaitingForWave' })
  const waits = said(orderText('not_healthy', { what: orderText('wave', { wave: -1, object: 'Deployment default/db' }), since: SOME }))
  expect(kit.object(configMapKey('last'))?.message).toMatch(waits)
  expect(kit.service()).toMatchObject({ sync: 'OutOfSync', health: 'Missing', reason: 'WaitingForWave' })
  expect(kit.service()?.message).toMatch(waits)
  expect(kit.service()?.applied).toBeUndefined()
  ready(cluster, 'db')
  await settle()
  expect(writes(cluster)).toEqual(['apply ConfigMap other', 'apply Deployment web'])
  ready(cluster, 'web')
  await settle()
  expect(writes(cluster)).toEqual(['apply ConfigMap last'])
  expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy', healthyCount: 4, objectCount: 4 })
})

test('OR4 waitForHealth: false lets the next wave begin when one is applied', async () => {
  const { cluster, kit, run } = setup()
  kit.desire([waved(configMap('last'), 2), deployment('web')], { sync: { waitForHealth: false } })
  await run()
  expect(writes(cluster)).toEqual(['apply Deployment web', 'apply ConfigMap last'])
  expect(kit.service()?.applied).toBeDefined()
  expect(kit.service()?.healthy).toBeUndefined()
})

test('OR3 without annotations nobody waits for health', async () => {
  const { cluster, kit, run } = setup()
  kit.desire([deployment('web'), configMap('a'), job('x', {})])
  await run()
  expect(writes(cluster)).toHaveLength(3)
})

test('OR4 a Degraded wave stops the later ones, past the deadline as well, and a fix goes on', async () => {
  const { cluster, kit, run, settle, clock } = setup()
  kit.desire([waved(configMap('last'), 1), deployment('web')], { sync: { healthDeadline: '2m' } })
  await run()
  writes(cluster)
  await clock.advance(121_000)
  expect(kit.service()).toMatchObject({ health: 'Degraded', reason: 'WaitingForWave' })
  expect(kit.object(configMapKey('last'))?.message).toMatch(
    said(orderText('degraded', { what: `${SOME}Deployment default/web`, since: SOME, why: SOME })),
  )
  expect(writes(cluster)).toEqual([])
  kit.desire([waved(configMap('last'), 1), deployment('web', 'a:2')], { sync: { healthDeadline: '2m' } })
  await settle()
  expect(writes(cluster)).toEqual(['apply Deployment web'])
  ready(cluster, 'web')
  await settle()
  expect(writes(cluster)).toEqual(['apply ConfigMap last'])
})

test('OR4 what is refused for good stops the later waves and is named', async () => {
  const { cluster, kit, run, clock } = setup()
  cluster.fail(({ verb, ref }) =>
    verb === 'apply' && ref?.name === 'bad' ? { kind: 'invalid', status: 422, reason: 'Invalid', message: 'no such field' } : null,
  )
  kit.desire([configMap('bad'), waved(configMap('last'), 1)])
  await run()
  await clock.advance(60_000)
  expect(cluster.object(configMapRef('last'))).toBeNull()
  expect(kit.object(configMapKey('last'))?.message).toMatch(
    said(orderText('refused', { what: `${SOME}ConfigMap default/bad`, since: SOME, why: SOME })),
  )
  expect(kit.object(configMapKey('bad'))).toMatchObject({ reason: 'Invalid' })
})

test('RC38, OR4 what its CRD does not accept yet is tried again, and is refused for good no sooner than that shows', async () => {
  const { cluster, kit, run, clock } = setup()
  cluster.applyAs('somebody', crd)
  await clock.advance(1_000)
  const refusals: number[] = []
  let isOld = true
  cluster.fail(({ verb, ref }) => {
    if (verb !== 'apply' || ref?.kind !== 'Thing' || !isOld) return null
    refusals.push(clock.nowMs())
    return { kind: 'invalid', status: 422, reason: 'Invalid', message: 'no such field' }
  })
  kit.desire([thing('a'), hook('rescue', 'sync-fail')])
  await run()
  expect(kit.object('example.com/Thing//a')).toMatchObject({ sync: 'OutOfSync', reason: 'Invalid' })
  for (let calls = 0; refusals.length < 5; calls += 1) {
    expect(calls).toBeLessThan(100)
    expect(writes(cluster)).not.toContain('apply Job rescue')
    await clock.advance(500)
  }
  await clock.advance(3_600_000)
  expect(refusals.length).toBeLessThan(30)
  expect(writes(cluster).filter((write) => write === 'apply Job rescue')).toHaveLength(1)
  isOld = false
  await clock.advance(1_800_000)
  expect(kit.object('example.com/Thing//a')).toMatchObject({ sync: 'Synced' })
})

test('OR4, HE3 a refused object of the only wave speaks for its service, though hooks come after it', async () => {
  const { cluster, kit, run } = setup()
  cluster.fail(({ verb, ref }) =>
    verb === 'apply' && ref?.name === 'bad' ? { kind: 'invalid', status: 422, reason: 'Invalid', message: 'no such field' } : null,
  )
  kit.desire([configMap('bad'), configMap('good'), hook('after', 'post-sync')])
  await run()
  expect(kit.service()).toMatchObject({ sync: 'OutOfSync', health: 'Missing', reason: 'Invalid' })
  expect(kit.service()?.message).toStartWith('ConfigMap default/bad: no such field')
  expect(writes(cluster)).not.toContain('apply Job after')
})

test('DR6, OR4 what waits for its wave is healed to what is applied', async () => {
  const { cluster, kit, run, settle } = setup()
  kit.desire([deployment('web'), waved(configMap('last', { v: '1' }), 1)])
  await run()
  ready(cluster, 'web')
  await settle()
  kit.desire([deployment('web', 'a:2'), waved(configMap('last', { v: '2' }), 1)])
  await settle()
  cluster.editAs('kubectl-edit', configMapRef('last'), (object) => Object.assign(object, { data: { v: 'edited' } }))
  await settle()
  expect(cluster.object(configMapRef('last'))?.['data']).toEqual({ v: '1' })
  ready(cluster, 'web')
  await settle()
  expect(cluster.object(configMapRef('last'))?.['data']).toEqual({ v: '2' })
})

test('OR3 a wave that is no number is an error of its object', async () => {
  const { cluster, kit, run } = setup()
  kit.desire([annotated(configMap('bad'), { [WAVE]: 'one' }), configMap('good')])
  await run()
  expect(kit.object(configMapKey('bad'))).toMatchObject({
    sync: 'OutOfSync',
    reason: 'Unreadable',
    message: 'its annotation skerry.dev/wave is "one"; expected a whole number such as "-1" or "10"',
  })
  expect(cluster.object(configMapRef('good'))).not.toBeNull()
})

test('OR5 a prune goes through the waves backwards, each when the one after it is gone', async () => {
  const { cluster, kit, run, settle } = setup()
  const held = { ...configMap('late'), metadata: { ...configMap('late').metadata, finalizers: ['example.com/f'] } } as K8sObject
  kit.desire([configMap('stays'), configMap('early'), waved(configMap('middle'), 1), waved(held, 3)])
  await run()
  writes(cluster)
  kit.desire([configMap('stays')], { sync: { maxPrunePercent: 100 } })
  await settle()
  expect(writes(cluster)).toEqual(['delete ConfigMap late'])
  cluster.editAs('operator', configMapRef('late'), (object) => Object.assign(object.metadata, { finalizers: [] }))
  await settle()
  expect(writes(cluster)).toEqual(['delete ConfigMap middle', 'delete ConfigMap early'])
})

test('RC14, OR4 a newer revision pre-empts between waves', async () => {
  const { cluster, kit, run, settle } = setup()
  kit.desire([deployment('web'), waved(configMap('last', { v: '1' }), 1)])
  await run()
  writes(cluster)
  kit.desire([configMap('instead'), waved(configMap('last', { v: '2' }), 1)])
  await settle()
  expect(writes(cluster)).toEqual(['apply ConfigMap instead', 'apply ConfigMap last', 'delete Deployment web'])
})

test('AO6, OR4 no wave and no hook waits for the health of what is IfNotPresent, only for the attempt to make it', async () => {
  const { cluster, kit, run } = setup()
  const kept = annotated(deployment('kept'), { 'skerry.dev/sync-options': 'IfNotPresent' })
  kit.desire([kept, waved(configMap('later'), 1), hook('after', 'post-sync')])
  await run()
  expect(writes(cluster)).toEqual(['apply Deployment kept', 'apply ConfigMap later', 'apply Job after'])
})
