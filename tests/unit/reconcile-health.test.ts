import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { explanation } from '../../agent/messages/explanation-messages.ts'
import { loadCel } from '../../shared/adapters/cel.ts'
import { STATUS_GRACE_MS } from '../../shared/kube/health-object.ts'
import { type K8sObject, refKey } from '../../shared/kube/object.ts'
import type { ServiceHealth } from '../../shared/model/health-rules.ts'
import { createFakeCluster, type FakeCluster } from '../support/fake-cluster.ts'
import { crd, thing } from '../support/reconcile-fixtures.ts'
import { configMap, configMapKey, configMapRef, createReconcileKit, type ReconcileKit } from '../support/reconcile-kit.ts'
import { SOME, said } from '../support/said.ts'
import { tempDir } from '../support/temp-dir.ts'
import { createVirtualClock, type VirtualClock } from '../support/virtual-clock.ts'

beforeAll(async () => void (await loadCel()))
let clock: VirtualClock
let cluster: FakeCluster
let kit: ReconcileKit
let dir: string
const begin = () => createReconcileKit({ cluster, clock, statePath: join(dir, 'agent.sqlite') })
beforeEach(() => {
  dir = tempDir()
  clock = createVirtualClock()
  cluster = createFakeCluster({ clock })
  kit = begin()
})
afterEach(async () => {
  await kit.stop()
  kit.state.close()
})

const READY: ServiceHealth = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  current: "data.state == 'ready'",
  failed: "data.state == 'broken'",
}
const health = (name = 'a') => kit.object(configMapKey(name))?.health
const gets = () => cluster.requests.filter(({ verb }) => verb === 'get').length

test('HE6 a service’s rule tells the health of its objects, at each of their changes', async () => {
  kit.start()
  kit.desire([configMap('a', { state: 'new' })], { health: [READY] })
  await clock.settle()
  expect(kit.object(configMapKey('a'))).toMatchObject({ health: 'Progressing', reason: 'HealthRuleNotMet' })
  kit.desire([configMap('a', { state: 'ready' })], { health: [READY] })
  await clock.settle()
  expect(health()).toBe('Healthy')
  kit.desire([configMap('a', { state: 'broken' })], { health: [READY] })
  await clock.settle()
  expect(kit.object(configMapKey('a'))).toMatchObject({ health: 'Degraded', reason: 'HealthRuleFailed' })
})

test('HE6 a rule is for the objects of its own service', async () => {
  const other = { project: 'web', service: 'other' }
  kit.start()
  kit.desire([configMap('a', { state: 'new' })], { health: [READY] })
  kit.desire([configMap('b', { state: 'new' })], {}, other)
  await clock.settle()
  expect([health(), kit.object(configMapKey('b'), other)?.health]).toEqual(['Progressing', 'Healthy'])
})

test('HE9 another choice looks at each object that it concerns once, and at no other', async () => {
  kit.start()
  const objects = [configMap('a', { state: 'new' }), configMap('b', { state: 'ready' })]
  kit.desire(objects)
  await clock.settle()
  expect([health('a'), health('b')]).toEqual(['Healthy', 'Healthy'])
  const before = gets()
  kit.desire(objects, { health: [READY], commit: 'second' })
  await clock.settle()
  expect([health('a'), health('b')]).toEqual(['Progressing', 'Healthy'])
  expect(gets() - before).toBe(2)
  kit.desire(objects, { health: [{ ...READY, apiVersion: 'apps/v1', kind: 'Deployment' }], commit: 'third' })
  await clock.settle()
  expect([health('a'), health('b')]).toEqual(['Healthy', 'Healthy'])
  expect(gets() - before).toBe(4)
  kit.desire(objects, { health: [{ ...READY, apiVersion: 'apps/v1', kind: 'Deployment', current: 'true' }], commit: 'fourth' })
  await clock.settle()
  expect(gets() - before).toBe(4)
})

test('HE9 a revision is not healthy by the old choice', async () => {
  kit.start()
  kit.desire([configMap('a', { state: 'new' })])
  await clock.settle()
  cluster.fail(({ verb }) => (verb === 'get' ? { kind: 'server_error', status: 500, reason: '', message: 'no' } : null))
  kit.desire([configMap('a', { state: 'new' })], { health: [READY], commit: 'second' })
  await clock.settle()
  expect(kit.object(configMapKey('a'))).toMatchObject({ health: 'Progressing', reason: 'JudgedAnew' })
  cluster.fail(() => null)
  await clock.advance(60_000)
  expect(kit.object(configMapKey('a'))).toMatchObject({ reason: 'HealthRuleNotMet' })
})

test('HE9 a restart knows the choice before its watches begin: nothing is fetched and nothing is reported', async () => {
  kit.start()
  kit.desire([configMap('a', { state: 'new' })], { health: [READY] })
  await clock.settle()
  await kit.stop()
  const since = kit.object(configMapKey('a'))?.sinceMs
  kit.state.close()
  const row = [...kit.replica.reads]
  kit = begin()
  for (const [key, read] of row) kit.replica.reads.set(key, read)
  const before = gets()
  await clock.advance(5_000)
  kit.start()
  await clock.settle()
  expect(gets()).toBe(before)
  expect(kit.object(configMapKey('a'))).toMatchObject({ health: 'Progressing', sinceMs: since ?? -1 })
})

test('HE9 the choice of a service that went and came again is kept anew', async () => {
  kit.start()
  const desire = () => kit.desire([configMap('a', { state: 'new' })], { health: [READY] })
  desire()
  await clock.settle()
  kit.remove('prune')
  await clock.settle()
  kit.dropRow()
  await clock.settle()
  desire()
  await clock.settle()
  await kit.stop()
  cluster.requests.splice(0)
  kit.start()
  await clock.settle()
  expect(cluster.requests.filter(({ verb, ref }) => verb === 'get' && ref?.name === 'a')).toEqual([])
  expect(kit.object(configMapKey('a'))).toMatchObject({ health: 'Progressing', reason: 'HealthRuleNotMet' })
})

test('HE6 a rule that this agent cannot read never makes anything healthy, and says so', async () => {
  kit.start()
  kit.desire([configMap('a')], { health: [{ ...READY, current: 'fromTheFuture(data)' }] })
  await clock.settle()
  expect(kit.object(configMapKey('a'))).toMatchObject({ health: 'Progressing', reason: 'HealthRuleError' })
  expect(kit.object(configMapKey('a'))?.message).toMatch(said(explanation('rule_too_new', { why: SOME })))
})

test('HE5 sync.waitForAddress of a service makes its load balancers wait, also those that are there already', async () => {
  const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'lb', namespace: 'default' }, spec: { type: 'LoadBalancer' } }
  const ref = { ...configMapRef('lb'), kind: 'Service' }
  const key = '/Service/default/lb'
  kit.start()
  kit.desire([service])
  await clock.settle()
  expect(kit.object(key)?.health).toBe('Healthy')
  kit.desire([service], { sync: { waitForAddress: true }, commit: 'second' })
  await clock.settle()
  expect(kit.object(key)).toMatchObject({ health: 'Progressing', reason: 'NoAddress' })
  cluster.setStatus(ref, { loadBalancer: { ingress: [{ ip: '10.0.0.1' }] } })
  await clock.settle()
  expect(kit.object(key)?.health).toBe('Healthy')
})

describe('HE17 a custom object whose controller has told nothing', () => {
  const reporting = { ...crd, spec: { ...(crd['spec'] as object), versions: versions({ status: {} }) } } as K8sObject
  function versions(subresources: object) {
    return [{ name: 'v1', served: true, storage: true, subresources, schema: { openAPIV3Schema: { type: 'object' } } }]
  }
  const thingRef = { group: 'example.com', kind: 'Thing', namespace: '', name: 't' }
  const told = () => kit.object(refKey(thingRef))
  const report = (word: string) =>
    cluster.editAs(
      'controller',
      thingRef,
      (object) => {
        object['status'] = { conditions: [{ type: 'Ready', status: 'False', reason: word, message: 'm' }] }
      },
      { subresource: 'status' },
    )

  test('HE17 settles without an event or a request at the end of its grace time, and holds its wave until then', async () => {
    cluster.applyAs('kubectl', reporting)
    kit.start()
    const late = { ...configMap('late'), metadata: { ...configMap('late').metadata, annotations: { 'skerry.dev/wave': '1' } } }
    kit.desire([thing('t'), late])
    await clock.settle()
    expect(told()).toMatchObject({ health: 'Progressing', reason: 'NotReported' })
    expect(cluster.object(configMapRef('late'))).toBeNull()
    await clock.advance(STATUS_GRACE_MS - 1_000)
    expect(told()?.health).toBe('Progressing')
    const before = cluster.requests.length
    await clock.advance(1_000)
    await clock.settle()
    expect(told()).toMatchObject({ health: 'Healthy', reason: 'NotReported' })
    expect(told()?.message).toContain('has not reported a status; counts as healthy after 120 s')
    expect(cluster.requests.slice(before).filter(({ ref }) => ref?.name === 't')).toEqual([])
    expect(cluster.object(configMapRef('late'))).not.toBeNull()
  })

  test('HE17 a report that comes in time counts, and nothing settles later', async () => {
    cluster.applyAs('kubectl', reporting)
    kit.start()
    kit.desire([thing('t')])
    await clock.settle()
    report('Creating')
    await clock.settle()
    expect(told()).toMatchObject({ health: 'Progressing', reason: 'Creating' })
    await clock.advance(2 * STATUS_GRACE_MS)
    expect(told()).toMatchObject({ health: 'Progressing', reason: 'Creating' })
  })

  test('HE17 the first status of another object makes its silence a fact, without a request', async () => {
    cluster.applyAs('kubectl', reporting)
    kit.start()
    kit.desire([thing('t'), thing('other')])
    await clock.settle()
    await clock.advance(STATUS_GRACE_MS)
    expect(told()?.health).toBe('Healthy')
    const before = cluster.requests.length
    const status = { conditions: [{ type: 'Ready', status: 'True' }] }
    cluster.editAs('controller', { ...thingRef, name: 'other' }, (object) => Object.assign(object, { status }), { subresource: 'status' })
    await clock.settle()
    expect(told()).toMatchObject({ health: 'Progressing', reason: 'NotReported' })
    expect(kit.object(refKey({ ...thingRef, name: 'other' }))?.health).toBe('Healthy')
    expect(cluster.requests.slice(before).filter(({ verb }) => verb === 'get')).toEqual([])
    report('Creating')
    await clock.settle()
    expect(told()?.reason).toBe('Creating')
  })

  test('HE17 after a restart the age of the object counts', async () => {
    cluster.applyAs('kubectl', reporting)
    kit.start()
    kit.desire([thing('t')])
    await clock.settle()
    await kit.stop()
    kit.state.close()
    await clock.advance(STATUS_GRACE_MS)
    kit = begin()
    kit.start()
    kit.desire([thing('t')])
    await clock.settle()
    expect(told()?.health).toBe('Healthy')
  })

  test('HE17 a kind without a status subresource is healthy at once', async () => {
    cluster.applyAs('kubectl', crd)
    kit.start()
    kit.desire([thing('t')])
    await clock.settle()
    expect(told()).toMatchObject({ health: 'Healthy', message: '' })
  })
})

describe('HE31 an object whose row cannot be read is as well as it is', () => {
  test.each([
    ['in the namespace that its row names', configMap('a')],
    ['in the namespace of its service', { ...configMap('a'), metadata: { name: 'a' } }],
  ])('%s', async (_, object) => {
    const options = { namespace: 'default', sync: { drift: 'report' as const } }
    kit.start()
    kit.desire([object, configMap('b')], options)
    await clock.advance(1_000)
    const { metadata } = object
    kit.desire([{ ...object, metadata: { ...metadata, annotations: { 'skerry.dev/sync-options': 'Typo' } } }, configMap('b')], options)
    await clock.advance(1_000)
    const key = refKey({ ...configMapRef('a'), namespace: metadata.namespace ?? '' })
    expect(kit.object(key)).toMatchObject({ sync: 'OutOfSync', health: 'Healthy', reason: 'Unreadable' })
    expect(kit.service()).toMatchObject({ sync: 'OutOfSync', health: 'Healthy' })
    cluster.deleteAs('kubectl', configMapRef('a'))
    await clock.advance(1_000)
    expect(kit.object(key)).toMatchObject({ health: 'Missing', reason: 'Unreadable' })
  })

  test('in a version that is not served', async () => {
    cluster.applyAs('somebody', crd)
    kit.start()
    kit.desire([thing('a')])
    await clock.advance(200_000)
    expect(kit.object('example.com/Thing//a')).toMatchObject({ sync: 'Synced', health: 'Healthy' })
    kit.desire([{ ...thing('a'), apiVersion: 'example.com/v9' }])
    await clock.advance(1_000)
    expect(kit.object('example.com/Thing//a')).toMatchObject({ sync: 'OutOfSync', health: 'Healthy', reason: 'UnknownKind' })
  })
})
