// Kinds and namespaces that go away while objects of ours are in them.
import { afterEach, expect, test } from 'bun:test'
import type { K8sObject, ObjectRef } from '../../shared/kube/object.ts'
import { setup, stopAll } from '../support/reconcile-fixtures.ts'
import { configMap, configMapKey, configMaps, SHOP } from '../support/reconcile-kit.ts'

afterEach(stopAll)

const CRD: ObjectRef = { group: 'apiextensions.k8s.io', kind: 'CustomResourceDefinition', namespace: '', name: 'boats.sea.example' }
const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'boats.sea.example' },
  spec: {
    group: 'sea.example',
    scope: 'Namespaced',
    names: { plural: 'boats', singular: 'boat', kind: 'Boat', listKind: 'BoatList' },
    versions: [{ name: 'v1', served: true, storage: true }],
  },
} as unknown as K8sObject
const boat: K8sObject = { apiVersion: 'sea.example/v1', kind: 'Boat', metadata: { name: 'skiff', namespace: 'default' } }
const BOAT_KEY = 'sea.example/Boat/default/skiff'
const names = (state: ReturnType<typeof setup>['kit']['state']) => state.inventory(SHOP).map(({ ref }) => ref.name)

/** Of a CRD that somebody else made. */
async function withBoat() {
  const parts = setup()
  parts.cluster.applyAs('somebody', definition)
  await parts.clock.advance(1_000)
  parts.kit.desire([configMap('a'), boat])
  await parts.run()
  expect(parts.kit.object(BOAT_KEY)).toMatchObject({ sync: 'Synced' })
  return parts
}

test('RC16 somebody’s CRD is deleted: its kind is said to be unserved, nothing is forgotten, and the object is made again when it is back', async () => {
  const { cluster, kit, clock } = await withBoat()
  cluster.deleteAs('kubectl', CRD)
  await clock.advance(60_000)
  expect(kit.object(BOAT_KEY)).toMatchObject({ sync: 'OutOfSync', reason: 'UnknownKind' })
  expect(names(kit.state).sort()).toEqual(['a', 'skiff'])
  cluster.applyAs('somebody', definition)
  await clock.advance(300_000)
  expect(kit.object(BOAT_KEY)).toMatchObject({ sync: 'Synced' })
  expect(cluster.object({ group: 'sea.example', kind: 'Boat', namespace: 'default', name: 'skiff' })).not.toBeNull()
})

test('RC16 a service whose CRD is gone can be removed', async () => {
  const { cluster, kit, clock } = await withBoat()
  cluster.deleteAs('kubectl', CRD)
  await clock.advance(60_000)
  kit.remove('prune')
  await clock.advance(60_000)
  expect(names(kit.state)).toEqual([])
})

test('RC23 writes into a namespace that is being deleted say what holds it, and the namespace is read once a round', async () => {
  const { cluster, kit, run } = setup()
  const namespace: ObjectRef = { group: '', kind: 'Namespace', namespace: '', name: 'stuck' }
  cluster.applyAs('somebody', {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'stuck', finalizers: ['example.com/hold'] },
  })
  cluster.deleteAs('kubectl', namespace)
  kit.desire(configMaps(20, 'stuck'))
  await run()
  expect(kit.object(configMapKey('m0003', 'stuck'))).toMatchObject({
    reason: 'NamespaceTerminating',
    message:
      'configmaps "m0003" is forbidden: unable to create new content in namespace stuck because it is being terminated; of the namespace: it is being deleted; ' +
      'held by the finalizers example.com/hold; start the controller again that answers for it; if that is gone for good, take the finalizer out by hand (kubectl edit); ' +
      'it is tried again when the namespace is gone',
  })
  const reads = cluster.requests.filter(({ verb, ref }) => verb === 'get' && ref?.kind === 'Namespace' && ref.name === 'stuck')
  const refused = cluster.requests.filter(({ verb, ref }) => verb === 'apply' && ref?.namespace === 'stuck')
  expect(refused.length).toBeGreaterThanOrEqual(20)
  // Few of them are tried again within these moments, by chance.
  expect(reads.length).toBeLessThan(1 + refused.length - 20 + 1)
})
