// Work that is still to be done is not forgotten, whatever comes in which order: answers after their events, gates that
// open, revisions that come and go, a claim that comes back.
import { afterEach, describe, expect, test } from 'bun:test'
import { objectText } from '../../agent/messages/object-messages.ts'
import { CLAIM_NAME, CLAIM_NAMESPACE, claimObject } from '../../agent/reconcile/claim/claim.ts'
import { SERVICE_LABEL } from '../../shared/kube/marks.ts'
import { type K8sObject, refKey, refOf } from '../../shared/kube/object.ts'
import { annotated, deployment, deploymentRef, fail, hook, jobRef, succeed } from '../support/hook-fixtures.ts'
import { crd, denied, namespace, namespaceRef, requests, setup, stopAll, thing, writes } from '../support/reconcile-fixtures.ts'
import { configMap, configMapKey, configMapRef, SHOP } from '../support/reconcile-kit.ts'

afterEach(stopAll)

const MANUAL = { sync: { mode: 'manual' } } as const
const dataOf = (object: K8sObject | null) => object?.['data'] ?? null
const edit = (object: K8sObject) => void Object.assign(object, { data: { a: 'x' } })
const LONG_MS = 3_600_000

describe('while a revision waits', () => {
  test('DE3 DR6 all that it drops is put back, also objects of different stages in one turn', async () => {
    const { cluster, kit, run, settle } = setup()
    const first = kit.desire([configMap('a'), deployment('web')])
    await run()
    kit.desire([configMap('b')], { ...MANUAL, synced: first })
    kit.reconciler.order({ kind: 'hold', service: null, by: 'ann', why: 'test' })
    await settle()
    writes(cluster)
    cluster.editAs('kubectl', configMapRef('a'), edit)
    cluster.patchAs('kubectl', deploymentRef('web'), { spec: { replicas: 3 } })
    await settle()
    cluster.lagWatches(() => 5)
    kit.reconciler.order({ kind: 'unhold', service: null, by: 'ann' })
    await settle()
    expect(writes(cluster)).toEqual(['apply ConfigMap a', 'apply Deployment web'])
  })

  test('DR4 DR6 a fight about what is in force is taken up again when its time has come', async () => {
    const { clock, cluster, kit, run, settle } = setup()
    const first = kit.desire([configMap('a')])
    await run()
    const next = kit.desire([configMap('a', { a: '2' })], { ...MANUAL, synced: first })
    await settle()
    for (let round = 0; round < 6; round += 1) {
      cluster.editAs('operator', configMapRef('a'), edit)
      await settle()
    }
    expect(dataOf(cluster.object(configMapRef('a')))).toEqual({ a: 'x' })
    await clock.advance(60_000)
    expect(dataOf(cluster.object(configMapRef('a')))).toEqual({ a: '1' })
    for (let round = 0; round < 6; round += 1) {
      cluster.editAs('operator', configMapRef('a'), edit)
      await settle()
    }
    kit.desire([configMap('a', { a: '2' })], { ...MANUAL, synced: next })
    await settle()
    expect(dataOf(cluster.object(configMapRef('a')))).toEqual({ a: '2' })
  })

  test('RC3 HO2 what somebody made while a hold lasted is looked at before it is applied over', async () => {
    const { cluster, kit, run, settle } = setup()
    cluster.lagAnswers(({ verb, ref }) => (verb === 'get' && ref?.name === 'a' ? 100 : 0))
    kit.desire([configMap('a')])
    await run()
    kit.reconciler.order({ kind: 'hold', service: null, by: 'ann', why: 'test' })
    await settle()
    await settle()
    cluster.applyAs('helm', annotated(configMap('a', { theirs: '1' }), { 'meta.helm.sh/release-name': 'theirs' }))
    cluster.lagAnswers(() => 0)
    kit.reconciler.order({ kind: 'unhold', service: null, by: 'ann' })
    await settle()
    expect(dataOf(cluster.object(configMapRef('a')))).toEqual({ theirs: '1' })
  })
})

describe('a refused document', () => {
  test.each([
    ['it names its namespace', configMap('a')],
    ['it names none', { ...configMap('a'), metadata: { name: 'a' } }],
  ])('DR6 what is applied stays in force while the newer row cannot be read, %s', async (_, object) => {
    const { cluster, kit, run, settle, clock } = setup()
    const options = { namespace: 'default' }
    const ref = configMapRef('a')
    kit.desire([object, configMap('b')], options)
    await run()
    const wrong = annotated(object as K8sObject, { 'skerry.dev/sync-options': 'Typo' })
    kit.desire([wrong, configMap('b')], options)
    await settle()
    const rowKey = refKey(refOf(object as K8sObject))
    const unread = { sync: 'OutOfSync', health: 'Healthy', reason: 'Unreadable' } as const
    cluster.editAs('kubectl', ref, edit)
    await settle()
    expect(dataOf(cluster.object(ref))).toEqual({ a: '1' })
    expect(kit.object(rowKey)).toMatchObject(unread)
    cluster.fail(({ verb, ref: at }) => (verb === 'apply' && at?.name === 'a' ? denied : null))
    cluster.deleteAs('kubectl', ref)
    await settle()
    expect(cluster.object(ref)).toBeNull()
    cluster.fail(() => null)
    await clock.advance(LONG_MS)
    expect(dataOf(cluster.object(ref))).toEqual({ a: '1' })
    expect(kit.object(rowKey)).toMatchObject(unread)
    writes(cluster)
    kit.desire([{ ...object, data: { a: '2' } } as K8sObject, configMap('b')], options)
    await settle()
    expect(dataOf(cluster.object(ref))).toEqual({ a: '2' })
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy' })
  })

  test.each([
    ['for good', { kind: 'invalid', status: 422, reason: 'Invalid', message: 'no' } as const],
    ['until it is tried again', denied],
  ])('DR6 what had drifted when the new one was refused %s is put back', async (_, failure) => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([configMap('a')])
    await run()
    await kit.stop()
    cluster.editAs('kubectl', configMapRef('a'), edit)
    let refused = 0
    cluster.fail(({ verb, ref }) => {
      if (verb !== 'apply' || ref?.name !== 'a') return null
      refused += 1
      return refused === 1 ? failure : null
    })
    kit.desire([configMap('a', { a: '2' })])
    kit.start()
    await clock.advance(10)
    expect(dataOf(cluster.object(configMapRef('a')))).toEqual({ a: '1' })
  })

  test('DR6 RC8 a healing that failed once is tried again, and waits longer each time', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([configMap('a')])
    await run()
    let open = false
    let tried = 0
    cluster.admit((object) =>
      object.metadata.name === 'a' && object['data'] && JSON.stringify(object['data']) === '{"a":"2"}' ? 'no' : null,
    )
    cluster.fail(({ verb, ref }) => {
      if (verb !== 'apply' || ref?.name !== 'a') return null
      tried += 1
      return open ? null : denied
    })
    kit.desire([configMap('a', { a: '2' })])
    await clock.advance(10)
    cluster.editAs('kubectl', configMapRef('a'), edit)
    await clock.advance(LONG_MS)
    expect(tried).toBeLessThan(80)
    open = true
    await clock.advance(600_000)
    expect(dataOf(cluster.object(configMapRef('a')))).toEqual({ a: '1' })
  })

  test('RC8 an object that cannot be changed is made anew when it was deleted', async () => {
    const { cluster, kit, run, settle } = setup()
    const frozen = (v: string) => ({ ...configMap('a', { v }), immutable: true }) as K8sObject
    kit.desire([frozen('1')])
    await run()
    kit.desire([frozen('2')])
    await settle()
    expect(kit.object(configMapKey('a'))?.reason).toBe('Immutable')
    cluster.deleteAs('kubectl', configMapRef('a'))
    await settle()
    expect(dataOf(cluster.object(configMapRef('a')))).toEqual({ v: '2' })
  })

  test('AO5 it is made again when the service is protected no more', async () => {
    const { cluster, kit, run, settle } = setup()
    const frozen = (v: string) =>
      ({ ...annotated(configMap('a', { v }), { 'skerry.dev/sync-options': 'Force' }), immutable: true }) as K8sObject
    kit.desire([frozen('1')], { protect: true })
    await run()
    kit.desire([frozen('2')], { protect: true })
    await settle()
    expect(kit.object(configMapKey('a'))?.message).toContain('protected')
    kit.desire([frozen('2')])
    await settle()
    expect(dataOf(cluster.object(configMapRef('a')))).toEqual({ v: '2' })
  })
})

describe('gates and options that change', () => {
  const byHelm = (name: string) => configMap(name, { a: '1', theirs: 'x' })

  test('TK1 HO2 what another tool wrote during a hold is taken over after it', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire([configMap('a')])
    await run()
    kit.reconciler.order({ kind: 'hold', service: null, by: 'ann', why: 'test' })
    await settle()
    cluster.editAs('helm', configMapRef('a'), (object) => void Object.assign(object, { data: { a: '1', theirs: 'x' } }))
    await settle()
    expect(dataOf(cluster.object(configMapRef('a')))).toEqual({ a: '1', theirs: 'x' })
    kit.reconciler.order({ kind: 'unhold', service: null, by: 'ann' })
    await settle()
    expect(dataOf(cluster.object(configMapRef('a')))).toEqual({ a: '1' })
  })

  test.each([
    ['drift', { drift: 'report' }, {}],
    ['force', { force: false }, { force: true }],
  ] as const)('TK1 what another tool wrote is taken over when sync.%s says so', async (_, before, after) => {
    const { cluster, kit, run, settle } = setup()
    kit.desire([configMap('a')], { sync: before })
    await run()
    cluster.editAs('helm', configMapRef('a'), (object) => void Object.assign(object, byHelm('a')))
    await settle()
    kit.desire([configMap('a')], { sync: after })
    await settle()
    expect(dataOf(cluster.object(configMapRef('a')))).toEqual({ a: '1' })
  })

  test('DR11 additions are named as soon as sync.driftAdditions asks for them', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire([configMap('a')])
    await run()
    cluster.editAs('kubectl-edit', configMapRef('a'), (object) => void Object.assign(object, { data: { a: '1', more: 'x' } }))
    await settle()
    kit.desire([configMap('a')], { sync: { driftAdditions: 'report' } })
    await settle()
    expect(kit.object(configMapKey('a'))?.message).toContain('.data.more')
  })

  test('HE2 a shorter deadline counts at once', async () => {
    const { clock, kit, run, settle } = setup()
    kit.desire([deployment('web')], { sync: { healthDeadline: '2h' } })
    await run()
    await clock.advance(LONG_MS)
    expect(kit.service()?.health).toBe('Progressing')
    kit.desire([deployment('web')], { sync: { healthDeadline: '10m' } })
    await settle()
    expect(kit.service()?.health).toBe('Degraded')
    kit.desire([deployment('web')], { sync: { healthDeadline: '2h' } })
    await settle()
    expect(kit.service()?.health).toBe('Progressing')
  })
})

describe('namespaces', () => {
  test('RC11 what waits for a namespace goes on when the revision names that one no more', async () => {
    const { cluster, kit, run, settle } = setup()
    cluster.fail(({ verb, ref }) => (verb === 'apply' && ref?.name === 'team' ? denied : null))
    kit.desire([namespace('team'), configMap('a', {}, 'team')])
    await run()
    expect(kit.object(configMapKey('a', 'team'))?.reason).toBe('Waiting')
    cluster.applyAs('kubectl', namespace('team'))
    kit.desire([configMap('a', {}, 'team')])
    await settle()
    expect(kit.service()).toMatchObject({ sync: 'Synced', reason: 'Synced' })
  })

  test('RC11 a namespace that another service had and dropped is made again for who has createNamespace', async () => {
    const { clock, cluster, kit, run } = setup()
    const OTHER = { project: 'web', service: 'other' }
    const marked = annotated(namespace('team'), { 'skerry.dev/prune': 'allowed' })
    kit.desire([marked], {}, OTHER)
    await run()
    kit.desire([configMap('a', {}, 'team')], { namespace: 'team', sync: { createNamespace: true } }, SHOP)
    await clock.advance(50)
    expect(kit.service()).toMatchObject({ sync: 'Synced' })
    kit.desire([configMap('x')], {}, OTHER)
    await clock.advance(1_000_000)
    expect(cluster.object(namespaceRef('team'))).not.toBeNull()
    expect(cluster.object(configMapRef('a', 'team'))).not.toBeNull()
    expect(kit.service()).toMatchObject({ sync: 'Synced', reason: 'Synced' })
  })
})

describe('answers that come late', () => {
  test('RC6 DR7 what was deleted before the answer to its apply came is made again', async () => {
    const { clock, cluster, kit, run } = setup()
    kit.desire([configMap('a')])
    await run()
    let lagMs = 100
    cluster.lagAnswers(({ verb }) => (verb === 'apply' ? lagMs : 0))
    kit.desire([configMap('a', { a: '2' })])
    await clock.advance(10)
    lagMs = 0
    cluster.deleteAs('kubectl', configMapRef('a'))
    await clock.advance(1_000)
    expect(dataOf(cluster.object(configMapRef('a')))).toEqual({ a: '2' })
  })

  test('HK3 a hook that ended and went before the answer came has ended well', async () => {
    const { clock, cluster, kit, run } = setup()
    kit.desire([configMap('x')])
    await run()
    let lagMs = 100
    cluster.lagAnswers(({ verb }) => (verb === 'apply' ? lagMs : 0))
    kit.desire([hook('h', 'pre-sync'), configMap('a')])
    await clock.advance(10)
    lagMs = 0
    succeed(cluster, 'h')
    await clock.advance(10)
    cluster.deleteAs('ttl', jobRef('h'))
    await clock.advance(1_000)
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy' })
    expect(cluster.object(configMapRef('a'))).not.toBeNull()
  })

  test('RC5 an object that went while its delete was answered is not waited for', async () => {
    const { clock, cluster, kit, run } = setup()
    kit.desire([configMap('a'), configMap('b')])
    await run()
    cluster.editAs('somebody', configMapRef('a'), (object) => Object.assign(object.metadata, { finalizers: ['example.com/hold'] }))
    await clock.advance(10)
    cluster.lagAnswers(({ verb, ref }) => {
      if (verb !== 'delete' || ref?.name !== 'a') return verb === 'get' ? 200 : 0
      // Before any event of the deletion was read.
      cluster.editAs('somebody', configMapRef('a'), (object) => Object.assign(object.metadata, { finalizers: [] }))
      cluster.cutWatches({ forget: true })
      return 100
    })
    kit.desire([configMap('b')])
    await clock.advance(5_000)
    expect(cluster.object(configMapRef('a'))).toBeNull()
    expect(kit.service()).toMatchObject({ sync: 'Synced', reason: 'Synced' })
  })

  test('RC5 a kind whose watch failed while an object was looked for stays unknown', async () => {
    const { clock, cluster, kit, run } = setup()
    kit.desire([deployment('web')])
    await run()
    await kit.stop()
    cluster.editAs('kubectl', deploymentRef('web'), ({ metadata }) => void Reflect.deleteProperty(metadata.labels ?? {}, SERVICE_LABEL))
    cluster.lagAnswers(({ verb, ref }) => (verb === 'get' && ref?.name === 'web' ? 100 : 0))
    writes(cluster)
    kit.start()
    await clock.advance(10)
    cluster.fail(({ verb, kind }) => (verb === 'watch' && kind === 'Deployment' ? denied : null))
    cluster.cutWatches()
    await clock.advance(5_000)
    expect(kit.object(refKey(deploymentRef('web')))?.reason).toBe('NotWatched')
    expect(writes(cluster)).toEqual([])
  })
})

describe('revisions that come back', () => {
  const failing = (cluster: ReturnType<typeof setup>['cluster']) => {
    cluster.fail(({ verb, ref }) => (verb === 'apply' && ref?.namespace === 'default' ? denied : null))
  }

  test('RC15 one that comes back after another had begun, and a third had not, has to get there again', async () => {
    const { cluster, kit, run, clock } = setup()
    const a = kit.desire([configMap('a')])
    await run()
    cluster.fail(({ verb, ref }) => (verb === 'apply' && ref?.name === 'b' ? denied : null))
    const second = kit.desire([configMap('a', { a: '2' }), configMap('b')])
    await clock.settle()
    kit.desire([configMap('a', { a: '3' })], { sync: { mode: 'manual' }, synced: second })
    await clock.settle()
    failing(cluster)
    kit.desire([configMap('a')], { synced: second })
    await clock.settle()
    expect(dataOf(cluster.object(configMapRef('a')))).toEqual({ a: '2' })
    expect(kit.service()?.applied?.digest).not.toBe(a)
  })

  test('RC15 nor does a restart', async () => {
    const { cluster, kit, run, clock } = setup()
    const a = kit.desire([configMap('a')])
    await run()
    cluster.fail(({ verb, ref }) => (verb === 'apply' && ref?.name === 'b' ? denied : null))
    kit.desire([configMap('a', { a: '2' }), configMap('b')])
    await clock.settle()
    await kit.stop()
    failing(cluster)
    kit.desire([configMap('a')])
    kit.start()
    await clock.advance(50)
    expect(dataOf(cluster.object(configMapRef('a')))).toEqual({ a: '2' })
    expect(kit.service()?.applied?.digest).not.toBe(a)
    cluster.fail(() => null)
    await clock.advance(LONG_MS)
    expect(kit.service()).toMatchObject({ sync: 'Synced', applied: { digest: a }, healthy: { digest: a } })
  })
})

test('RC16 PR6 what is to go of an API that did not answer at the start goes when that is known again', async () => {
  const { clock, cluster, kit, run } = setup()
  cluster.applyAs('kubectl', crd)
  await clock.advance(10)
  kit.desire([thing('t'), configMap('a')])
  await run()
  await kit.stop()
  const api = { group: 'apiregistration.k8s.io', kind: 'APIService', namespace: '', name: 'v1.example.com' }
  const spec = { group: 'example.com', version: 'v1', service: { name: 'x', namespace: 'default' } }
  cluster.editAs('kubectl', api, (object) => Object.assign(object, { spec }))
  cluster.deleteAs('kubectl', refOf(crd))
  await clock.advance(10)
  kit.desire([configMap('a')])
  await run()
  expect(kit.object(refKey(refOf(thing('t'))))).toMatchObject({
    reason: 'UnknownKind',
    message: objectText('UnknownKind.keptSilent', { apiVersion: 'example.com/v1' }),
  })
  cluster.deleteAs('kubectl', api)
  requests(cluster)
  await clock.advance(LONG_MS)
  expect(kit.service()).toMatchObject({ sync: 'Synced', reason: 'Synced' })
  expect(requests(cluster).length).toBeLessThan(20)
})

test('CM2 what was begun is gone on with when the claim comes back', async () => {
  const { clock, cluster, kit, run } = setup()
  kit.desire([configMap('a')])
  await run()
  const ours = cluster.object({ group: '', kind: 'ConfigMap', namespace: CLAIM_NAMESPACE, name: CLAIM_NAME })
  // No event of what is applied is any news.
  cluster.lagAnswers(({ verb }) => (verb === 'apply' ? 20 : 0))
  cluster.lagWatches(() => 25)
  kit.desire(Array.from({ length: 60 }, (_, i) => configMap(`m${i}`)))
  cluster.editAs('other', { group: '', kind: 'ConfigMap', namespace: CLAIM_NAMESPACE, name: CLAIM_NAME }, (object) =>
    Object.assign(object, { data: (claimObject({ agent: 'other', incarnation: 9, instance: 'x' }) as K8sObject)['data'] }),
  )
  await clock.advance(5_000)
  expect(cluster.object(configMapRef('m59'))).toBeNull()
  cluster.editAs('backup', { group: '', kind: 'ConfigMap', namespace: CLAIM_NAMESPACE, name: CLAIM_NAME }, (object) =>
    Object.assign(object, { data: ours?.['data'] }),
  )
  await clock.advance(5_000)
  expect(cluster.object(configMapRef('m59'))).not.toBeNull()
})

test('HK5 a run of an older revision that is gone is not missed', async () => {
  const { cluster, kit, run, settle } = setup()
  kit.desire([hook('p', 'pre-sync'), hook('f', 'sync-fail'), configMap('a')])
  await run()
  fail(cluster, 'p')
  await settle()
  expect(cluster.object(jobRef('f'))).not.toBeNull()
  kit.desire([hook('p', 'pre-sync', { fixed: 'yes' }), hook('f', 'sync-fail'), configMap('a')])
  await settle()
  succeed(cluster, 'p')
  await settle()
  cluster.deleteAs('kubectl', jobRef('f'))
  await settle()
  expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy', reason: 'Synced' })
  expect(kit.object(refKey(jobRef('f')))).toBeNull()
})

test('HK6 RC8 a former run that cannot be deleted is tried again with growing waits', async () => {
  const { clock, cluster, kit, run } = setup()
  const generated = () => {
    const { name: _, ...metadata } = hook('h', 'pre-sync').metadata
    return { ...hook('h', 'pre-sync'), metadata: { ...metadata, generateName: 'h-' } } as unknown as K8sObject
  }
  kit.desire([generated(), configMap('a')])
  await run()
  for (const object of cluster.objects()) if (object.kind === 'Job') succeed(cluster, object.metadata.name ?? '')
  await clock.advance(50)
  requests(cluster)
  let tried = 0
  cluster.fail(({ verb }) => {
    if (verb !== 'delete') return null
    tried += 1
    return tried > 200 ? null : denied
  })
  kit.desire([generated(), configMap('a', { a: '2' })])
  await clock.advance(60_000)
  expect(tried).toBeGreaterThan(1)
  expect(tried).toBeLessThan(20)
})
