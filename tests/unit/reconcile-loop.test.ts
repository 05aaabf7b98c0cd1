// What the loop applies, and when it may, on the fake API server.
import { afterEach, describe, expect, test } from 'bun:test'
import { objectText } from '../../agent/messages/object-messages.ts'
import { refusedOrder } from '../../agent/messages/site-messages.ts'
import { CLAIM_NAME, CLAIM_NAMESPACE } from '../../agent/reconcile/claim/claim.ts'
import { ANSWER_WITHIN_MS } from '../../agent/reconcile/claim/claim-keeper.ts'
import { SERVICE_LABEL, TRACKING_ANNOTATION } from '../../shared/kube/marks.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { crd, denied, isClaim, namespace, namespaceRef, requests, setup, stopAll, thing, writes } from '../support/reconcile-fixtures.ts'
import { CLUSTER_ID, configMap, configMapKey, configMapRef, configMaps } from '../support/reconcile-kit.ts'

afterEach(stopAll)

describe('applying', () => {
  test('RC7 a set arrives, becomes healthy, and a second pass of the same costs no request', async () => {
    const { cluster, kit, run, settle, clock } = setup()
    kit.desire(configMaps(30))
    await run()
    expect(writes(cluster)).toHaveLength(30)
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy', objectCount: 30, healthyCount: 30 })
    expect(kit.service()?.healthy?.digest).toBe(kit.service()?.received?.digest as string)
    requests(cluster)
    const depth = kit.state.outboxDepth()
    kit.desire(configMaps(30))
    await settle()
    await clock.advance(3_600_000)
    expect(requests(cluster)).toEqual([])
    expect(kit.state.outboxDepth()).toBe(depth)
  })

  test('RC7 a revision that changes one object of many is one write and no read', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire(configMaps(50))
    await run()
    requests(cluster)
    const [first, ...others] = configMaps(50)
    kit.desire([configMap('m0000', { n: 'new' }), ...others])
    expect(first).toBeDefined()
    await settle()
    expect(requests(cluster)).toEqual(['apply ConfigMap m0000'])
  })

  test('RC2 what is sent carries the marks', async () => {
    const { cluster, kit, run } = setup()
    kit.desire([configMap('a')])
    await run()
    const { metadata } = cluster.object(configMapRef('a')) as K8sObject
    expect(metadata.labels?.[SERVICE_LABEL]).toBe('web.shop')
    expect(metadata.annotations?.[TRACKING_ANNOTATION]).toBe(`${CLUSTER_ID}/web/shop:/ConfigMap/default/a`)
  })

  test('OR1, RC11 a namespace, a CRD, its kind and what goes into the namespace, in one set', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([thing('t'), configMap('a', {}, 'shop'), crd, namespace('shop')])
    await run()
    await clock.advance(10_000)
    const order = writes(cluster)
    expect(order.slice(0, 2)).toEqual(['apply Namespace shop', 'apply CustomResourceDefinition things.example.com'])
    expect(order.sort()).toEqual([
      'apply ConfigMap a',
      'apply CustomResourceDefinition things.example.com',
      'apply Namespace shop',
      'apply Thing t',
    ])
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy', healthyCount: 4 })
  })

  test('RC4 a cluster-scoped kind loses its namespace; an object without one goes to the namespace of the service', async () => {
    const { cluster, kit, run } = setup()
    const role = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'r', namespace: 'shop' },
      rules: [],
    } as unknown as K8sObject
    kit.desire([role, configMap('a', {}, ''), { ...configMap('b'), metadata: { name: 'b' } } as K8sObject], { namespace: 'shop' })
    await run()
    expect(cluster.object({ group: 'rbac.authorization.k8s.io', kind: 'ClusterRole', namespace: '', name: 'r' })).not.toBeNull()
    expect(cluster.object(configMapRef('b', 'shop'))).not.toBeNull()
  })

  test('RC16 a kind that nobody serves is said, the rest goes on, and it arrives when its CRD does', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([thing('t'), configMap('a')])
    await run()
    expect(writes(cluster)).toEqual(['apply ConfigMap a'])
    expect(kit.object('example.com/Thing//t')).toMatchObject({ sync: 'OutOfSync', health: 'Missing', reason: 'UnknownKind' })
    expect(kit.service()).toMatchObject({ sync: 'OutOfSync', reason: 'UnknownKind' })
    cluster.applyAs('kubectl', crd)
    await clock.advance(300_000)
    expect(writes(cluster)).toEqual(['apply Thing t'])
    expect(kit.service()).toMatchObject({ sync: 'Synced' })
  })

  test('RC8 one failing object stops no other, is retried with a growing wait, and says why', async () => {
    const { cluster, kit, run, clock } = setup()
    cluster.fail(({ verb, ref }) => (verb === 'apply' && ref?.name === 'm0001' ? denied : null))
    kit.desire(configMaps(3))
    await run()
    expect(kit.object(configMapKey('m0001'))).toMatchObject({
      sync: 'OutOfSync',
      reason: 'Forbidden',
      message: objectText('Forbidden', { failure: 'quota' }),
    })
    expect(kit.object(configMapKey('m0002'))).toMatchObject({ sync: 'Synced' })
    writes(cluster)
    await clock.advance(600_000)
    const attempts = writes(cluster).length
    expect(attempts).toBeGreaterThan(4)
    expect(attempts).toBeLessThan(20)
    expect(kit.events().filter(({ reason }) => reason === 'Failed')).toHaveLength(1)
    cluster.fail(() => null)
    await clock.advance(300_000)
    expect(kit.service()).toMatchObject({ sync: 'Synced' })
  })

  test('RC8 a terminal refusal waits for another document, and the applied one stays in force', async () => {
    const { cluster, kit, run, settle, clock } = setup()
    kit.desire([configMap('a', { v: '1' })])
    await run()
    cluster.fail(({ verb }) => (verb === 'apply' ? { kind: 'invalid', status: 422, reason: 'Invalid', message: 'no' } : null))
    kit.desire([configMap('a', { v: '2' })])
    await settle()
    writes(cluster)
    await clock.advance(3_600_000)
    expect(writes(cluster)).toEqual([])
    cluster.fail(() => null)
    cluster.editAs('kubectl-edit', configMapRef('a'), (object) => Object.assign(object, { data: { v: 'edited' } }))
    await settle()
    expect(cluster.object(configMapRef('a'))?.['data']).toEqual({ v: '1' })
    expect(kit.object(configMapKey('a'))).toMatchObject({ reason: 'Invalid', sync: 'OutOfSync' })
    kit.desire([configMap('a', { v: '3' })])
    await settle()
    expect(kit.object(configMapKey('a'))).toMatchObject({ sync: 'Synced' })
  })

  test('RC11 the namespace of a service is made if it is missing, left alone if it is there, and never pruned', async () => {
    const { cluster, kit, run, settle } = setup()
    cluster.applyAs('kubectl', namespace('old'))
    const id = { project: 'web', service: 'other' }
    kit.desire([configMap('a', {}, 'new')], { namespace: 'new' })
    kit.desire([configMap('a', {}, 'old')], { namespace: 'old' }, id)
    await run()
    expect(writes(cluster).sort()).toEqual(['apply ConfigMap a', 'apply ConfigMap a', 'apply Namespace new'])
    expect([kit.service()?.sync, kit.service(id)?.sync]).toEqual(['Synced', 'Synced'])
    expect(kit.service()?.objectCount).toBe(1)
    kit.remove('prune')
    kit.remove('prune', id)
    await settle()
    expect(kit.service()).toMatchObject({ removed: true })
    expect(cluster.object(namespaceRef('new'))).not.toBeNull()
    expect(cluster.object(configMapRef('a', 'new'))).toBeNull()
  })

  test('RC3 an object of another tool is not adopted, unless the service takes over', async () => {
    const { cluster, kit, run, settle } = setup()
    cluster.applyAs('argocd', {
      ...configMap('a', { a: 'theirs' }),
      metadata: { name: 'a', namespace: 'default', annotations: { 'argocd.argoproj.io/tracking-id': 'app:x' } },
    } as K8sObject)
    kit.desire([configMap('a'), configMap('b')])
    await run()
    expect(writes(cluster)).toEqual(['apply ConfigMap b'])
    expect(kit.object(configMapKey('a'))).toMatchObject({
      reason: 'OwnedByOther',
      message: expect.stringContaining('Argo CD (argocd.argoproj.io/tracking-id: app:x)'),
    })
    kit.desire([configMap('a'), configMap('b')], { sync: { takeover: true } })
    await settle()
    expect(cluster.object(configMapRef('a'))?.['data']).toEqual({ a: '1' })
  })

  test('RC3 of two services that want one object the first keeps it; when it lets go, it moves and is not deleted', async () => {
    const { cluster, kit, run, settle } = setup()
    const other = { project: 'web', service: 'other' }
    kit.desire([configMap('a', { from: 'shop' }), configMap('b')])
    await run()
    kit.desire([configMap('a', { from: 'other' })], {}, other)
    await settle()
    expect(kit.object(configMapKey('a'), other)).toMatchObject({ reason: 'OwnedByOther', message: expect.stringContaining('web/shop') })
    const uid = cluster.object(configMapRef('a'))?.metadata.uid
    kit.desire([configMap('b')])
    await settle()
    expect(cluster.object(configMapRef('a'))).toMatchObject({
      data: { from: 'other' },
      metadata: { uid, labels: { [SERVICE_LABEL]: 'web.other' } },
    })
    expect([kit.service()?.sync, kit.service(other)?.sync]).toEqual(['Synced', 'Synced'])
  })
})

describe('the claim', () => {
  const claimRef = configMapRef(CLAIM_NAME, CLAIM_NAMESPACE)
  test('CM1 enforcement begins with the claim held, and its namespace is made', async () => {
    const { cluster, kit, run } = setup()
    kit.desire([configMap('a')])
    await run()
    const applied = cluster.requests.filter(({ verb }) => verb === 'apply').map(({ ref }) => ref?.name)
    expect(applied.indexOf(CLAIM_NAME)).toBeLessThan(applied.indexOf('a'))
    expect(cluster.object(claimRef)?.['data']).toMatchObject({ agent: 'a-1', incarnation: '1' })
    expect(kit.claims.at(-1)).toEqual({ kind: 'held' })
  })

  test('CM2 a higher incarnation takes over at once; the other writes nothing more', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire([configMap('a')])
    await run()
    cluster.editAs('skerry', claimRef, (object) => Object.assign(object, { data: { agent: 'a-2', incarnation: '2' } }))
    await settle()
    writes(cluster)
    expect(kit.claims.at(-1)).toMatchObject({ kind: 'superseded', by: { agent: 'a-2', incarnation: 2, instance: '' } })
    cluster.deleteAs('kubectl', configMapRef('a'))
    kit.desire([configMap('a'), configMap('b')])
    await settle()
    expect(writes(cluster)).toEqual([])
  })

  /** The first agent holds the claim, then cannot write the one that somebody deleted. */
  async function unwritable() {
    const parts = setup()
    const { cluster, kit, run, settle } = parts
    kit.desire([configMap('a', { by: '1' })])
    await run()
    cluster.fail((request) => (request.verb === 'apply' && isClaim(request) ? denied : null))
    cluster.deleteAs('somebody', claimRef)
    await settle()
    expect(kit.claims.at(-1)).toMatchObject({ kind: 'asking' })
    return parts
  }
  const newer = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: CLAIM_NAME, namespace: CLAIM_NAMESPACE } } as K8sObject

  test('CM2 a newer claim that comes while the own one cannot be written is obeyed at once and not written over', async () => {
    const { cluster, kit, clock, settle } = await unwritable()
    cluster.applyAs('skerry', { ...newer, data: { agent: 'a-2', incarnation: '2' } } as K8sObject)
    await settle()
    expect(kit.claims.at(-1)).toMatchObject({ kind: 'superseded', by: { agent: 'a-2', incarnation: 2, instance: '' } })
    cluster.fail(() => null)
    writes(cluster)
    kit.desire([configMap('a', { by: 'superseded' })])
    await clock.advance(ANSWER_WITHIN_MS)
    expect(writes(cluster)).toEqual([])
    expect(cluster.object(claimRef)?.['data']).toMatchObject({ agent: 'a-2', incarnation: '2' })
  })

  test('CM2 a newer claim of which no event came is seen before the next attempt to write', async () => {
    const { cluster, kit, clock } = await unwritable()
    cluster.fail(({ verb, kind }) => (verb === 'watch' && kind === 'ConfigMap' ? denied : null))
    cluster.cutWatches()
    cluster.applyAs('skerry', { ...newer, data: { agent: 'a-2', incarnation: '2' } } as K8sObject)
    await clock.advance(120_000)
    expect(cluster.object(claimRef)?.['data']).toMatchObject({ agent: 'a-2', incarnation: '2' })
    expect(kit.claims.at(-1)).toMatchObject({ kind: 'superseded', by: { agent: 'a-2', incarnation: 2, instance: '' } })
  })

  test('CM4 a claim that somebody deleted is written when that works again, and enforcement went on', async () => {
    const { cluster, kit, clock } = await unwritable()
    writes(cluster)
    kit.desire([configMap('a', { by: '2' })])
    await clock.advance(60_000)
    expect(writes(cluster)).toEqual(['apply ConfigMap a'])
    cluster.fail(() => null)
    await clock.advance(120_000)
    expect(cluster.object(claimRef)?.['data']).toMatchObject({ agent: 'a-1', incarnation: '1' })
    expect(kit.claims.at(-1)).toEqual({ kind: 'held' })
  })

  test('CM3 the claim met at the start is taken also when only a later attempt can write', async () => {
    const { cluster, kit, run, clock } = setup()
    cluster.applyAs('skerry', namespace(CLAIM_NAMESPACE))
    cluster.applyAs('skerry', { ...newer, data: { agent: 'a-1', incarnation: '1', instance: 'of an earlier start' } } as K8sObject)
    cluster.fail((request) => (request.verb === 'apply' && isClaim(request) ? denied : null))
    await run()
    cluster.fail(() => null)
    await clock.advance(120_000)
    expect(cluster.object(claimRef)?.['data']).toMatchObject({ agent: 'a-1', incarnation: '1' })
    expect(kit.claims.at(-1)).toEqual({ kind: 'held' })
  })

  test('CM4 while the claim cannot be written nothing is enforced', async () => {
    const { cluster, kit, run, clock } = setup()
    cluster.fail((request) => (request.verb === 'apply' && isClaim(request) ? denied : null))
    kit.desire([configMap('a')])
    await run()
    expect(writes(cluster)).toEqual([])
    expect(kit.claims.at(-1)).toMatchObject({ kind: 'asking' })
    cluster.fail(() => null)
    await clock.advance(60_000)
    expect(writes(cluster)).toEqual(['apply ConfigMap a'])
  })
})

test('RC14 a newer revision pre-empts the older one at the next object', async () => {
  const { cluster, kit, settle } = setup()
  kit.desire(configMaps(300).map((object) => ({ ...object, data: { v: 'old' } }) as K8sObject))
  let applied = 0
  cluster.fail(({ verb, ref }) => {
    if (verb === 'apply' && ref?.name.startsWith('m') && ++applied === 40) kit.desire(configMaps(300))
    return null
  })
  kit.start()
  await settle()
  // At most what was on its way when the newer one came was sent twice.
  expect(writes(cluster).length).toBeLessThanOrEqual(300 + 60)
  expect(cluster.object(configMapRef('m0000'))?.['data']).toEqual({ n: '0' })
  expect(kit.service()).toMatchObject({ sync: 'Synced', healthyCount: 300 })
})

test('IV1 the inventory holds an object before the first request about it', async () => {
  const { cluster, kit, run } = setup()
  const seen: boolean[] = []
  cluster.fail(({ verb, ref }) => {
    if (ref?.name === 'a' && verb !== 'watch') seen.push(kit.state.ownerOf(configMapKey('a')) !== null)
    return null
  })
  kit.desire([configMap('a')])
  await run()
  expect(seen.length).toBeGreaterThan(0)
  expect(seen).not.toContain(false)
})

test('RC15 applied and healthy name the revision that got there, and keep their time', async () => {
  const { cluster, kit, run, settle, clock } = setup()
  cluster.fail(({ verb, ref }) => (verb === 'apply' && ref?.name === 'b' ? denied : null))
  const digest = kit.desire([configMap('a'), configMap('b')])
  await run()
  expect(kit.service()?.received?.digest).toBe(digest)
  expect(kit.service()?.applied).toBeUndefined()
  cluster.fail(() => null)
  await clock.advance(10_000)
  const { applied, healthy } = kit.service() ?? {}
  expect([applied?.digest, healthy?.digest]).toEqual([digest, digest])
  await kit.stop()
  await clock.advance(60_000)
  kit.start()
  await settle()
  expect(kit.service()).toMatchObject({ applied, healthy })
})

test('IV5 nothing of a service that went stays in the agent: nobody can hold it, and it may come again', async () => {
  const { cluster, kit, run, settle } = setup()
  const hold = { kind: 'hold', service: 'web/shop', by: 'ola', why: 'a repair' } as const
  kit.desire([configMap('a')])
  await run()
  kit.remove('prune')
  await settle()
  kit.dropRow()
  await settle()
  expect(kit.reconciler.order(hold)).toEqual(refusedOrder('service_not_here', { service: 'web/shop' }))
  expect(kit.state.services()).toEqual([])
  writes(cluster)
  kit.desire([configMap('a')])
  await settle()
  expect(writes(cluster)).toEqual(['apply ConfigMap a'])
  expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy' })
  expect(kit.reconciler.order(hold)).toMatchObject({ kind: 'done' })
})
