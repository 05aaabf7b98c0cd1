// Removal orders and what Git cannot bring back, on the fake API server: data waits for a person, everything else goes.
import { afterEach, describe, expect, test } from 'bun:test'
import type { ApiFailure } from '../../agent/cluster/cluster.ts'
import { deletionText } from '../../agent/messages/deletion-messages.ts'
import { serviceText } from '../../agent/messages/service-messages.ts'
import type { K8sObject, ObjectRef } from '../../shared/kube/object.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { crd, namespace, namespaceRef, setup, stopAll, thing, writes } from '../support/reconcile-fixtures.ts'
import { configMap, configMapRef, createReconcileKit, type RowOptions, SHOP } from '../support/reconcile-kit.ts'
import { SOME, said } from '../support/said.ts'

afterEach(stopAll)

const MINUTE = 60_000
const OTHER: ServiceId = { project: 'web', service: 'other' }
const claim = (name: string, space = 'default'): K8sObject => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name, namespace: space },
  spec: { accessModes: ['ReadWriteOnce'] },
})
const claimRef = (name: string, space = 'default'): ObjectRef => ({ group: '', kind: 'PersistentVolumeClaim', namespace: space, name })
const CRD: ObjectRef = { group: 'apiextensions.k8s.io', kind: 'CustomResourceDefinition', namespace: '', name: 'things.example.com' }
const DENIED: ApiFailure = { kind: 'forbidden', status: 403, reason: 'Forbidden', message: 'secrets is forbidden' }

async function applied(objects: readonly K8sObject[], options: RowOptions = {}) {
  const parts = setup()
  parts.kit.desire(objects, options)
  await parts.run()
  writes(parts.cluster)
  return parts
}

const LEAVING = said(deletionText('leaving_inside', { services: 'service web/other' }))

describe('a removal order', () => {
  test('RM1 a claim waits for a person while everything else goes; the service names it, and what is lost', async () => {
    const { cluster, kit, clock } = await applied([configMap('a'), claim('data'), claim('more')])
    kit.remove('prune')
    await clock.advance(MINUTE)
    expect(writes(cluster)).toEqual(['delete ConfigMap a'])
    const names = ['PersistentVolumeClaim default/data', 'PersistentVolumeClaim default/more']
    expect(kit.service()).toMatchObject({
      sync: 'OutOfSync',
      reason: 'ConfirmationPending',
      refusal: { names, count: 2, only: true },
      message: serviceText('ConfirmationPending', {
        what: 'removal',
        why: names.map((name) => `${name} (its data will be lost)`).join(', '),
      }),
    })
    expect(kit.object('/PersistentVolumeClaim/default/data')).toMatchObject({ sync: 'OutOfSync', reason: 'ConfirmationPending' })
    expect(kit.events().filter(({ reason }) => reason === 'ConfirmationPending')).toHaveLength(1)
    expect(kit.confirm()).toMatchObject({ kind: 'done' })
    await clock.advance(MINUTE)
    expect(writes(cluster).sort()).toEqual(['delete PersistentVolumeClaim data', 'delete PersistentVolumeClaim more'])
    expect(kit.service()).toMatchObject({ removed: true })
  })

  test('RM1 a confirmation at the site outlives a restart, and is not for another order', async () => {
    const { cluster, kit, clock } = await applied([claim('data')])
    kit.remove('prune', SHOP, 1)
    await clock.advance(MINUTE)
    cluster.fail(({ verb }) => (verb === 'delete' ? DENIED : null))
    expect(kit.confirm()).toMatchObject({ kind: 'done' })
    await kit.stop()
    kit.remove('prune', SHOP, 2)
    cluster.fail(() => null)
    kit.start()
    await clock.advance(10 * MINUTE)
    expect(cluster.object(claimRef('data'))).not.toBeNull()
    expect(kit.confirm()).toMatchObject({ kind: 'done' })
    await kit.stop()
    kit.start()
    await clock.advance(MINUTE)
    expect(kit.service()).toMatchObject({ removed: true })
  })

  test('RM1 an order that names the claim needs no question, and what it does not name waits', async () => {
    const { cluster, kit, clock } = await applied([claim('data'), claim('later')])
    kit.remove('delete', SHOP, 1, { confirmed: ['PersistentVolumeClaim default/data'] })
    await clock.advance(MINUTE)
    expect(writes(cluster)).toEqual(['delete PersistentVolumeClaim data'])
    expect(kit.service()).toMatchObject({ refusal: { names: ['PersistentVolumeClaim default/later'] } })
    kit.remove('delete', SHOP, 1, { confirmed: ['PersistentVolumeClaim default/data', 'PersistentVolumeClaim default/later'] })
    await clock.advance(MINUTE)
    expect(kit.service()).toMatchObject({ removed: true })
  })

  test('RM1 a claim whose prune waits for a confirmation is not deleted with the service', async () => {
    const { cluster, kit, clock } = await applied([configMap('a'), claim('data')])
    kit.desire([configMap('a')])
    await clock.advance(MINUTE)
    expect(kit.service()).toMatchObject({ reason: 'PruneBlocked' })
    kit.remove('prune')
    await clock.advance(MINUTE)
    expect(cluster.object(claimRef('data'))).not.toBeNull()
    expect(kit.service()).toMatchObject({ reason: 'ConfirmationPending' })
  })

  test('RM1 IV4 an orphaning order asks nobody, and an allowed claim goes without a question', async () => {
    const first = await applied([claim('data')])
    first.kit.remove('orphan')
    await first.clock.advance(MINUTE)
    expect(first.kit.service()).toMatchObject({ removed: true })
    expect(first.cluster.object(claimRef('data'))).not.toBeNull()
    const allowed = { ...claim('data'), metadata: { ...claim('data').metadata, annotations: { 'skerry.dev/prune': 'allowed' } } }
    const second = await applied([allowed])
    second.kit.remove('prune')
    await second.clock.advance(MINUTE)
    expect(second.kit.service()).toMatchObject({ removed: true })
  })

  test('RM1 an order that is taken back leaves the claim as it is', async () => {
    const { cluster, kit, clock } = await applied([configMap('a'), claim('data')])
    const uid = cluster.object(claimRef('data'))?.metadata.uid
    kit.remove('prune')
    await clock.advance(MINUTE)
    kit.desire([configMap('a'), claim('data')])
    await clock.advance(MINUTE)
    expect(cluster.object(claimRef('data'))?.metadata.uid).toBe(uid as string)
    expect(kit.service()).toMatchObject({ sync: 'Synced', reason: expect.not.stringContaining('Pending') })
    expect(kit.service()?.refusal).toBeUndefined()
  })
})

test('HO1 a hold that comes while objects are deleted stops the deletes that have not begun', async () => {
  const { cluster, kit, clock } = await applied(Array.from({ length: 60 }, (_, n) => configMap(`a${n}`)))
  let deletes = 0
  cluster.fail(({ verb }) => {
    if (verb === 'delete') deletes += 1
    if (verb === 'delete' && deletes === 1) kit.reconciler.order({ kind: 'hold', service: null, by: 'ann', why: 'test' })
    return null
  })
  kit.remove('prune')
  await clock.advance(MINUTE)
  expect(deletes).toBeLessThan(60)
  expect(kit.service()?.removed).toBeUndefined()
})

describe('a Namespace that would go with a service', () => {
  test('RM3 with objects of others it waits and names them; when they are gone it goes by itself', async () => {
    const { cluster, kit, clock } = await applied([namespace('shop'), configMap('a', {}, 'shop')])
    cluster.applyAs('kubectl', configMap('theirs', {}, 'shop'))
    cluster.applyAs('kube-controller-manager', configMap('kube-root-ca.crt', {}, 'shop'))
    kit.remove('prune')
    await clock.advance(MINUTE)
    expect(cluster.object(namespaceRef('shop'))).not.toBeNull()
    expect(kit.service()).toMatchObject({ reason: 'ConfirmationPending', refusal: { names: ['Namespace shop'] } })
    expect(kit.service()?.message).toContain('1 object not of this service is deleted with it: ConfigMap shop/theirs')
    cluster.deleteAs('kubectl', configMapRef('theirs', 'shop'))
    await clock.advance(15 * MINUTE)
    expect(cluster.object(namespaceRef('shop'))).toBeNull()
    expect(kit.service()).toMatchObject({ removed: true })
  })

  test('PR3, RM3 a Tenant of Capsule, which owns Namespaces of any name, is asked about in a prune and in a removal', async () => {
    const { cluster, kit, clock } = setup()
    const [group, version, kind] = ['capsule.clastix.io', 'v1beta2', 'Tenant']
    const verbs = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch']
    cluster.serveAggregated({ group, version, kind, plural: 'tenants', namespaced: false, verbs })
    kit.desire([{ apiVersion: `${group}/${version}`, kind, metadata: { name: 'oil' } }, configMap('a')])
    kit.start()
    await clock.advance(MINUTE)
    kit.desire([configMap('a')])
    await clock.advance(MINUTE)
    expect(kit.service()?.refusal?.names).toEqual(['Tenant.capsule.clastix.io oil'])
    kit.remove('prune')
    await clock.advance(MINUTE)
    expect(cluster.object({ group, kind, namespace: '', name: 'oil' })).not.toBeNull()
    expect(kit.service()).toMatchObject({ reason: 'ConfirmationPending', refusal: { names: ['Tenant.capsule.clastix.io oil'] } })
  })

  test.each([
    ['project.openshift.io/v1', 'Project', 'projects', ''],
    ['hnc.x-k8s.io/v1alpha2', 'SubnamespaceAnchor', 'subnamespaceanchors', 'parent'],
  ])('PR3, RM3, OR2 so does what stands for a Namespace: %s %s', async (apiVersion, kind, plural, parent) => {
    const { cluster, kit, clock } = setup()
    const [group = '', version = ''] = apiVersion.split('/')
    const verbs = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch']
    cluster.serveAggregated({ group, version, kind, plural, namespaced: parent !== '', verbs })
    for (const name of ['shop', 'parent']) cluster.applyAs('kubectl', namespace(name))
    cluster.applyAs('kubectl', configMap('theirs', {}, 'shop'))
    const object = { apiVersion, kind, metadata: { name: 'shop', ...(parent === '' ? {} : { namespace: parent }) } }
    kit.desire([object, configMap('a', {}, 'shop')])
    kit.start()
    await clock.advance(MINUTE)
    expect(kit.service()?.sync).toBe('Synced')
    const name = `${kind}.${group} ${parent === '' ? '' : 'parent/'}shop`
    kit.desire([configMap('a', {}, 'shop')])
    await clock.advance(MINUTE)
    expect(kit.service()?.refusal?.names).toEqual([name])
    kit.remove('prune')
    await clock.advance(MINUTE)
    const ref = { group, kind, namespace: parent, name: 'shop' }
    expect(cluster.object(ref)).not.toBeNull()
    expect(kit.service()).toMatchObject({ reason: 'ConfirmationPending', refusal: { names: [name] } })
    expect(kit.service()?.message).toContain('ConfigMap shop/theirs')
    cluster.deleteAs('kubectl', configMapRef('theirs', 'shop'))
    await clock.advance(15 * MINUTE)
    expect(cluster.object(ref)).toBeNull()
  })

  test('RM3 objects of a kind that was installed after the agent had asked what is served count', async () => {
    const { cluster, kit, clock } = await applied([namespace('shop'), configMap('a', {}, 'shop')])
    const spec = { ...(crd as unknown as { spec: object }).spec, scope: 'Namespaced' }
    cluster.applyAs('somebody', { ...crd, spec } as unknown as K8sObject)
    await clock.advance(1)
    cluster.applyAs('somebody', { ...thing('theirs'), metadata: { name: 'theirs', namespace: 'shop' } })
    kit.remove('prune')
    await clock.advance(MINUTE)
    expect(cluster.object(namespaceRef('shop'))).not.toBeNull()
    expect(kit.service()?.refusal?.names).toEqual(['Namespace shop'])
  })

  test('RM3, IV10 a Namespace is kept while discovery leaves out a custom kind that may have objects in it', async () => {
    const { cluster, kit, clock } = await applied([namespace('shop'), configMap('a', {}, 'shop')])
    const spec = { ...(crd as unknown as { spec: object }).spec, scope: 'Namespaced' }
    cluster.applyAs('somebody', { ...crd, spec } as unknown as K8sObject)
    await clock.advance(1)
    cluster.applyAs('somebody', { ...thing('theirs'), metadata: { name: 'theirs', namespace: 'shop' } })
    // The API server restarts in the middle of the removal.
    cluster.fail(({ verb, ref }) => {
      if (verb === 'delete' && ref?.kind === 'ConfigMap') cluster.serveAllBut(['example.com'])
      return null
    })
    kit.remove('prune')
    await clock.advance(MINUTE)
    expect(writes(cluster)).toEqual(['delete ConfigMap a'])
    expect(kit.service()?.message).toContain('CustomResourceDefinition things.example.com')
    cluster.serveAllBut([])
    await clock.advance(15 * MINUTE)
    expect(cluster.object(namespaceRef('shop'))?.metadata.deletionTimestamp).toBeUndefined()
    expect(kit.service()?.message).toContain('Thing.example.com shop/theirs')
  })

  test('RM3 confirmed by name it goes with everything in it', async () => {
    const { cluster, kit, clock } = await applied([namespace('shop')])
    cluster.applyAs('kubectl', configMap('theirs', {}, 'shop'))
    kit.remove('prune')
    await clock.advance(MINUTE)
    expect(kit.confirm()).toMatchObject({ kind: 'done' })
    await clock.advance(MINUTE)
    expect(cluster.object(namespaceRef('shop'))).toBeNull()
  })

  test('RM3 NS2 the namespace that was made for the service waits for objects of others like any other', async () => {
    const options = { namespace: 'mine', sync: { deleteNamespace: true } }
    const { cluster, kit, clock } = await applied([configMap('a', {}, 'mine')], options)
    cluster.applyAs('kubectl', claim('theirs', 'mine'))
    kit.remove('prune', SHOP, 1, options)
    await clock.advance(MINUTE)
    expect(cluster.object(claimRef('theirs', 'mine'))?.metadata.deletionTimestamp).toBeUndefined()
    expect(kit.service()).toMatchObject({ refusal: { names: ['Namespace mine'] } })
  })

  test('RM2 a claim that waits keeps its namespace', async () => {
    const { cluster, kit, clock } = await applied([
      namespace('shop'),
      namespace('empty'),
      claim('data', 'shop'),
      configMap('a', {}, 'shop'),
    ])
    kit.remove('delete', SHOP, 1, { confirmed: ['Namespace shop'] })
    await clock.advance(MINUTE)
    expect(writes(cluster)).toEqual(['delete ConfigMap a', 'delete Namespace empty'])
    expect(kit.confirm()).toMatchObject({ kind: 'done' })
    await clock.advance(MINUTE)
    expect(writes(cluster)).toEqual(['delete PersistentVolumeClaim data', 'delete Namespace shop'])
  })

  test('RM3 what cannot be read counts as somebody’s', async () => {
    const { cluster, kit, clock } = await applied([namespace('shop')])
    cluster.fail(({ verb, kind }) => (verb === 'watch' && kind === 'Secret' ? DENIED : null))
    kit.remove('prune')
    await clock.advance(MINUTE)
    expect(cluster.object(namespaceRef('shop'))).not.toBeNull()
    expect(kit.service()?.message).toMatch(
      said(
        deletionText('contents_unread', {
          why: deletionText('list_failed', { plural: 'secrets', failure: `secrets is forbidden${SOME}` }),
        }),
      ),
    )
  })

  test('RM3 objects of a service that is removed, too, are waited for, and nobody is asked', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([namespace('shop')])
    kit.desire([configMap('b', {}, 'shop')], {}, OTHER)
    await run()
    cluster.editAs('controller', configMapRef('b', 'shop'), ({ metadata }) => Object.assign(metadata, { finalizers: ['example.com/hold'] }))
    kit.remove('prune')
    await clock.advance(MINUTE)
    expect(kit.service()).toMatchObject({ refusal: { names: ['Namespace shop'] } })
    kit.desire([namespace('shop')])
    await clock.advance(MINUTE)
    cluster.fail(({ verb, ref }) => (verb === 'delete' && ref?.name === 'b' ? DENIED : null))
    kit.remove('prune', OTHER)
    kit.remove('prune', SHOP, 2)
    await clock.advance(MINUTE)
    expect(kit.service()?.refusal).toBeUndefined()
    expect(kit.service()).toMatchObject({ reason: 'Removing', message: expect.stringMatching(LEAVING) })
    cluster.fail(() => null)
    cluster.editAs('controller', configMapRef('b', 'shop'), ({ metadata }) => Object.assign(metadata, { finalizers: [] }))
    await clock.advance(15 * MINUTE)
    expect(kit.service()).toMatchObject({ removed: true })
  })
})

describe('a CRD that would go with a service', () => {
  test('RM3 custom resources of others keep it, and its own do not', async () => {
    const { cluster, kit, clock } = await applied([crd, thing('ours')])
    cluster.applyAs('kubectl', thing('theirs'))
    kit.remove('prune')
    await clock.advance(MINUTE)
    expect(writes(cluster)).toEqual(['delete Thing ours'])
    expect(kit.service()).toMatchObject({ refusal: { names: ['CustomResourceDefinition things.example.com'] } })
    expect(kit.service()?.message).toContain('Thing.example.com theirs')
    expect(kit.confirm()).toMatchObject({ kind: 'done' })
    await clock.advance(MINUTE)
    expect(cluster.object(CRD)).toBeNull()
    expect(kit.service()).toMatchObject({ removed: true })
  })

  test('RM3 without custom resources it goes, after one look beside the search of the order (IV6)', async () => {
    const { cluster, kit, clock } = await applied([crd, thing('ours')])
    cluster.requests.splice(0)
    kit.remove('prune')
    await clock.advance(MINUTE)
    expect(kit.service()).toMatchObject({ removed: true })
    const looks = cluster.requests.filter(({ verb, kind }) => verb === 'watch' && kind === 'Thing')
    expect(looks.length).toBeLessThanOrEqual(2)
  })
})

test('RV5 RM1 an agent that starts on a state from before this rule asks all the same', async () => {
  const { cluster, kit, clock } = await applied([claim('data')])
  await kit.stop()
  const later = createReconcileKit({ cluster, clock, incarnation: 2 })
  later.remove('prune')
  later.start()
  await clock.advance(MINUTE)
  expect(cluster.object(claimRef('data'))).not.toBeNull()
  expect(later.service()).toMatchObject({ reason: 'ConfirmationPending' })
  await later.stop()
})
