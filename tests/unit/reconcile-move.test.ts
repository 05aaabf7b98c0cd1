// Objects that go from one service to another, in every order in which the two can learn of it: they are never deleted
// on the way, and never lost.
import { afterEach, describe, expect, test } from 'bun:test'
import { REQUESTS_MAX } from '../../agent/reconcile/requests/request-scheduler.ts'
import { type K8sObject, type ObjectRef, refOf } from '../../shared/kube/object.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { crd, namespace, namespaceRef, setup, stopAll, thing, writes } from '../support/reconcile-fixtures.ts'
import { configMap, configMapKey, configMapRef, type RowOptions } from '../support/reconcile-kit.ts'

afterEach(stopAll)

const service = (name: string): ServiceId => ({ project: 'web', service: name })
const [A, Z] = [service('a'), service('z')]
const moved = configMap('moved')
const crdRef: ObjectRef = refOf(crd)

/** The deletes of this object take that long. */
function slowDelete({ cluster, clock }: Pick<ReturnType<typeof setup>, 'cluster' | 'clock'>, name: string, ms: number): void {
  const original = cluster.delete.bind(cluster)
  cluster.delete = async (resource, ref, uid) => {
    if (ref.name === name) await clock.sleep(ms)
    return original(resource, ref, uid)
  }
}

describe('an object that moves between services', () => {
  test.each([
    ['with the agent running', false],
    ['while the agent was down', true],
  ])('RC3 in one commit of more services than have their turns at once, %s, it is not deleted', async (_, restart) => {
    const { cluster, kit, run, clock } = setup()
    const names = ['a', ...Array.from({ length: REQUESTS_MAX }, (_, n) => `m${n}`), 'z']
    for (const name of names) kit.desire([configMap(`own-${name}`), ...(name === 'a' ? [moved] : [])], {}, service(name))
    await run()
    const uid = cluster.object(configMapRef('moved'))?.metadata.uid
    if (restart) await kit.stop()
    writes(cluster)
    for (const name of names) kit.desire([configMap(`own-${name}`, { v: '2' }), ...(name === 'z' ? [moved] : [])], {}, service(name))
    if (restart) kit.start()
    await clock.advance(60_000)
    expect(writes(cluster).filter((line) => line.endsWith(' moved'))).toEqual(['apply ConfigMap moved'])
    expect(cluster.object(configMapRef('moved'))?.metadata.uid).toBe(uid as string)
    expect(names.map((name) => kit.service(service(name))?.reason)).toEqual(names.map(() => 'Synced'))
  })

  test.each([
    ['in the namespace of its service', { namespace: 'default' }],
    ['in no namespace at all', {}],
  ])('RC3 to a service that names it wrongly %s, it is not deleted', async (_, options) => {
    const { cluster, kit, run, clock } = setup()
    const { namespace: _namespace, ...metadata } = moved.metadata
    const bare: K8sObject = { ...moved, metadata }
    const wrong: K8sObject = { ...bare, metadata: { ...metadata, annotations: { 'skerry.dev/sync-options': 'Typo' } } }
    kit.desire([configMap('own-a'), bare], { namespace: 'default' }, A)
    kit.desire([configMap('own-z')], options, Z)
    await run()
    const uid = cluster.object(configMapRef('moved'))?.metadata.uid
    kit.desire([configMap('own-a', { v: '2' })], { namespace: 'default' }, A)
    kit.desire([configMap('own-z', { v: '2' }), wrong], options, Z)
    await clock.advance(60_000)
    expect(cluster.object(configMapRef('moved'))?.metadata.uid).toBe(uid as string)
    kit.desire([configMap('own-z', { v: '3' }), bare], { namespace: 'default' }, Z)
    await clock.advance(60_000)
    expect(cluster.object(configMapRef('moved'))?.metadata.uid).toBe(uid as string)
    expect(kit.object(configMapKey('moved'), Z)).toMatchObject({ sync: 'Synced' })
  })

  test('RC3 to a service that names another one of its name wrongly, it is pruned', async () => {
    const { cluster, kit, run, clock } = setup()
    const { namespace: _namespace, ...metadata } = moved.metadata
    const wrong: K8sObject = { ...moved, metadata: { ...metadata, annotations: { 'skerry.dev/sync-options': 'Typo' } } }
    kit.desire([configMap('own-a'), moved], {}, A)
    kit.desire([configMap('own-z')], {}, Z)
    await run()
    kit.desire([configMap('own-a', { v: '2' })], {}, A)
    kit.desire([configMap('own-z', { v: '2' }), wrong], { namespace: 'kube-system' }, Z)
    await clock.advance(60_000)
    expect(cluster.object(configMapRef('moved'))).toBeNull()
  })

  test('RC3 from a service that is removed in the same commit, it is not deleted', async () => {
    const { cluster, kit, run, clock } = setup()
    const names = ['b', 'c', 'd', 'e', 'z']
    kit.desire([configMap('own'), moved], {}, A)
    for (const name of names) kit.desire([configMap(`own-${name}`)], {}, service(name))
    await run()
    writes(cluster)
    kit.remove('prune', A)
    for (const name of names) kit.desire([configMap(`own-${name}`, { v: '2' }), ...(name === 'z' ? [moved] : [])], {}, service(name))
    await clock.advance(60_000)
    expect(writes(cluster).filter((line) => line.startsWith('delete'))).toEqual(['delete ConfigMap own'])
    expect(kit.service(A)).toMatchObject({ removed: true })
    expect(kit.object(configMapKey('moved'), Z)).toMatchObject({ sync: 'Synced', health: 'Healthy' })
  })

  test('RC3 what another service has in force is wanted by it, also while its newer revision cannot be read', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([configMap('own-a'), moved], {}, A)
    kit.desire([configMap('own-z'), moved], {}, Z)
    await run()
    kit.replica.reads.set('web/z', { kind: 'incomplete', why: '1 of 2 objects' })
    kit.reconciler.revisionsChanged([Z])
    await clock.advance(1_000)
    writes(cluster)
    kit.desire([configMap('own-a')], {}, A)
    await clock.advance(60_000)
    expect(writes(cluster)).toEqual(['apply ConfigMap moved'])
    expect(kit.object(configMapKey('moved'), Z)).toMatchObject({ sync: 'Synced', health: 'Healthy' })
  })

  test('RC3 a prune that is under way stops at what another service has come to want', async () => {
    const parts = setup()
    const { cluster, kit, run, clock } = parts
    // Requests that can be in flight together are fewer.
    const many = Array.from({ length: 60 }, (_, i) => configMap(`moved-${String(i).padStart(2, '0')}`))
    kit.desire([...many, ...Array.from({ length: 100 }, (_, i) => configMap(`own-${i}`))], {}, A)
    kit.desire([configMap('own-z')], {}, Z)
    await run()
    await clock.advance(5_000)
    for (const { metadata } of many.slice(0, 30)) slowDelete(parts, metadata.name ?? '', 200)
    writes(cluster)
    kit.desire(
      Array.from({ length: 100 }, (_, i) => configMap(`own-${i}`)),
      {},
      A,
    )
    await clock.advance(100)
    kit.desire([configMap('own-z'), ...many], {}, Z)
    await clock.advance(60_000)
    const deletes = writes(cluster).filter((line) => line.startsWith('delete'))
    expect(deletes.length).toBeGreaterThan(0)
    expect(deletes.length).toBeLessThanOrEqual(20)
    expect(kit.service(Z)).toMatchObject({ sync: 'Synced', health: 'Healthy' })
  })

  test('IV2 one that was deleted before the other service asked for it is made again by that service', async () => {
    const parts = setup()
    const { cluster, kit, run, clock } = parts
    kit.desire([configMap('own-a'), moved, configMap('slow')], {}, A)
    kit.desire([configMap('own-z')], {}, Z)
    await run()
    slowDelete(parts, 'slow', 200)
    kit.desire([configMap('own-a')], {}, A)
    await clock.advance(100)
    expect(cluster.object(configMapRef('moved'))).toBeNull()
    kit.desire([configMap('own-z'), moved], {}, Z)
    await clock.advance(60_000)
    expect(cluster.object(configMapRef('moved'))).not.toBeNull()
    expect(kit.object(configMapKey('moved'), Z)).toMatchObject({ sync: 'Synced', health: 'Healthy' })
    expect([kit.service(A)?.reason, kit.service(Z)?.reason]).toEqual(['Synced', 'Synced'])
  })

  test('IV3 an object that was let go for another service is not taken back while that one is still busy', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([configMap('own-a'), moved], {}, A)
    kit.desire([configMap('own-z')], {}, Z)
    await run()
    const { apply } = cluster
    cluster.apply = async (resource, object, options) => {
      if (object.metadata.name === 'own-z') await clock.sleep(5_000)
      return apply(resource, object, options)
    }
    kit.desire([configMap('own-z', { v: '2' }), moved], {}, Z)
    kit.desire([configMap('own-a')], {}, A)
    await clock.advance(1_000)
    expect(kit.state.ownerOf(configMapKey('moved'))).toEqual(Z)
    // A turn of the giver before the first turn of the taker.
    cluster.editAs('kubectl-edit', configMapRef('moved'), (object) => Object.assign(object, { data: { a: 'theirs' } }))
    await clock.advance(60_000)
    expect(kit.state.ownerOf(configMapKey('moved'))).toEqual(Z)
    expect(cluster.object(configMapRef('moved'))).not.toBeNull()
    expect([kit.service(A)?.reason, kit.service(Z)?.reason]).toEqual(['Synced', 'Synced'])
  })
})

describe('an object whose service goes with what it is in', () => {
  test.each(['auto', 'manual'] as const)('NS2 a service that has another name now keeps its namespace, sync %s', async (mode) => {
    const { cluster, kit, run, clock } = setup()
    const options: RowOptions = { namespace: 'shop', sync: { deleteNamespace: true, createNamespace: true } }
    const objects = [configMap('a', {}, 'shop'), configMap('b', {}, 'shop')]
    kit.desire(objects, options, A)
    await run()
    const uids = () =>
      [configMapRef('a', 'shop'), configMapRef('b', 'shop'), namespaceRef('shop')].map((ref) => cluster.object(ref)?.metadata.uid)
    const before = uids()
    expect(before).not.toContain(undefined)
    kit.remove('delete', A, 1, options)
    kit.desire(objects, { ...options, sync: { ...options.sync, mode } }, Z)
    await clock.advance(10_000)
    expect(uids()).toEqual(before)
    expect(kit.service(A)).toMatchObject({ removed: true })
    expect(kit.events().map(({ reason }) => reason)).not.toContain('ConfirmationPending')
  })

  const boat = { ...thing('moved') }
  const inShop = (name: string) => configMap(name, {}, 'shop')
  const shop = { namespace: 'shop', sync: { deleteNamespace: true, createNamespace: true } }
  test.each<[string, K8sObject[], K8sObject, RowOptions, ObjectRef]>([
    ['the namespace of the service', [inShop('own')], inShop('moved'), shop, namespaceRef('shop')],
    ['a Namespace of its manifests', [namespace('shop'), inShop('own')], inShop('moved'), {}, namespaceRef('shop')],
    ['a CRD of its manifests', [crd, configMap('own')], boat, {}, crdRef],
  ])('RM3, NS2 while its next service has not begun, %s is not deleted', async (_, own, object, options, holder) => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([...own, object], options, A)
    await run()
    await clock.advance(60_000)
    const uid = cluster.object(refOf(object))?.metadata.uid
    expect(uid).toBeDefined()
    kit.desire([object], { sync: { mode: 'manual' } }, Z)
    kit.remove('delete', A, 1, options)
    await clock.advance(120_000)
    expect(cluster.object(refOf(object))?.metadata).toMatchObject({ uid })
    expect(cluster.object(refOf(object))?.metadata.deletionTimestamp).toBeUndefined()
    expect(cluster.object(holder)?.metadata.deletionTimestamp).toBeUndefined()
  })
})
