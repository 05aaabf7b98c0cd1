// Kinds and namespaces that go away while objects of ours are in them.
import { afterEach, describe, expect, test } from 'bun:test'
import type { ApiFailure } from '../../agent/cluster/cluster.ts'
import { objectPart, objectText } from '../../agent/messages/object-messages.ts'
import { deletingText, stuckAdvice } from '../../shared/kube/deletion.ts'
import { type K8sObject, type ObjectRef, refKey } from '../../shared/kube/object.ts'
import { setup, stopAll } from '../support/reconcile-fixtures.ts'
import { configMap, configMapKey, configMaps, SHOP } from '../support/reconcile-kit.ts'

afterEach(stopAll)

const OTHER = { project: 'web', service: 'other' }

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
const BOATS = { group: 'sea.example', version: 'v1', kind: 'Boat', plural: 'boats', namespaced: true }
const DOWN: ApiFailure = { kind: 'server_error', status: 503, reason: 'ServiceUnavailable', message: 'etcd has no leader' }
type Kit = ReturnType<typeof setup>['kit']
const names = (state: ReturnType<typeof setup>['kit']['state']) => state.inventory(SHOP).map(({ ref }) => ref.name)

/** Of a CRD that somebody else made. */
async function withBoat({ aggregated = false } = {}) {
  const parts = setup()
  if (aggregated) parts.cluster.serveAggregated({ ...BOATS, verbs: ['list', 'watch', 'get', 'patch', 'delete'] })
  else parts.cluster.applyAs('somebody', definition)
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

test('RC16 a kind of which another service learns first that nobody serves it is said to be unserved', async () => {
  const { cluster, kit, clock } = await withBoat()
  const discover = cluster.discover.bind(cluster)
  cluster.discover = async () => {
    const found = await discover()
    return { ...found, resources: found.resources.filter(({ group }) => group !== BOATS.group) }
  }
  // It names a kind that is not served, so discovery is asked; the watch of the boats has not ended yet.
  const unknown: K8sObject = { apiVersion: 'sea.example/v1', kind: 'Buoy', metadata: { name: 'red', namespace: 'default' } }
  kit.desire([unknown], {}, OTHER)
  await clock.advance(60_000)
  expect(kit.object(BOAT_KEY)).toMatchObject({ sync: 'OutOfSync', reason: 'UnknownKind' })
})

test('RC16 a service whose CRD is gone can be removed', async () => {
  const { cluster, kit, clock } = await withBoat()
  cluster.deleteAs('kubectl', CRD)
  await clock.advance(60_000)
  kit.remove('prune')
  await clock.advance(60_000)
  expect(names(kit.state)).toEqual([])
})

test.each([
  ['Cluster', 'Namespaced'],
  ['Namespaced', 'Cluster'],
])('RC4 a CRD that comes back with another scope takes the objects of all services along: %s to %s', async (from, to) => {
  const { cluster, kit, run, clock } = setup()
  const scoped = (scope: string) => ({ ...definition, spec: { ...(definition['spec'] as object), scope } }) as K8sObject
  const keyIn = (scope: string, name: string) => `sea.example/Boat/${scope === 'Cluster' ? '' : 'default'}/${name}`
  const boatOf = (name: string): K8sObject => ({ apiVersion: 'sea.example/v1', kind: 'Boat', metadata: { name } })
  cluster.applyAs('somebody', scoped(from))
  await clock.advance(1_000)
  kit.desire([configMap('a'), boatOf('skiff')], { namespace: 'default' })
  kit.desire([configMap('b'), boatOf('raft')], { namespace: 'default' }, OTHER)
  await run()
  expect(kit.object(keyIn(from, 'skiff'))).toMatchObject({ sync: 'Synced' })
  cluster.deleteAs('kubectl', CRD)
  await clock.advance(60_000)
  cluster.applyAs('somebody', scoped(to))
  await clock.advance(600_000)
  for (const [id, name] of [
    [SHOP, 'skiff'],
    [OTHER, 'raft'],
  ] as const) {
    expect(kit.object(keyIn(to, name), id)).toMatchObject({ sync: 'Synced', health: 'Healthy' })
    expect(kit.object(keyIn(from, name), id)).toBeNull()
    expect(kit.state.inventory(id).some(({ ref }) => refKey(ref) === keyIn(from, name))).toBe(false)
    expect(kit.service(id)).toMatchObject({ sync: 'Synced' })
  }
})

describe('a kind that no API serves', () => {
  const leave = (kit: Kit, how: 'prune' | 'removal') => (how === 'prune' ? void kit.desire([configMap('a')]) : kit.remove('prune'))
  const BOAT: ObjectRef = { group: 'sea.example', kind: 'Boat', namespace: 'default', name: 'skiff' }

  test.each(['prune', 'removal'] as const)(
    'IV9 a gap in discovery drops no entry, and the object goes when the gap ends: %s',
    async (how) => {
      const { cluster, kit, clock } = await withBoat()
      await kit.stop()
      cluster.serveAllBut(['sea.example'])
      kit.start()
      leave(kit, how)
      await clock.advance(600_000)
      expect(names(kit.state)).toContain('skiff')
      // IV6: a removal does not even begin.
      expect(kit.object(BOAT_KEY)?.reason).toBe(how === 'prune' ? 'UnknownKind' : 'Removing')
      const told = how === 'prune' ? kit.object(BOAT_KEY) : kit.service()
      expect(told?.message).toContain('CustomResourceDefinition boats.sea.example')
      expect(kit.service()?.removed).toBeUndefined()
      cluster.serveAllBut([])
      await clock.advance(600_000)
      expect(names(kit.state)).not.toContain('skiff')
      expect(cluster.object(BOAT)).toBeNull()
    },
  )

  test('IV9 a deletion that was confirmed by name waits for a gap in discovery to end, and drops no entry', async () => {
    const { cluster, kit, clock } = await withBoat()
    await kit.stop()
    cluster.serveAllBut(['sea.example'])
    kit.start()
    kit.remove('prune', SHOP, 1, { confirmed: ['Boat.sea.example default/skiff'] })
    await clock.advance(600_000)
    expect(names(kit.state)).toContain('skiff')
    cluster.serveAllBut([])
    await clock.advance(600_000)
    expect([names(kit.state), cluster.object(BOAT)]).toEqual([[], null])
  })

  test.each(['prune', 'removal'] as const)('IV9 the CRD was deleted while the agent was away: the entry leaves: %s', async (how) => {
    const { cluster, kit, clock } = await withBoat()
    await kit.stop()
    cluster.deleteAs('kubectl', CRD)
    kit.start()
    leave(kit, how)
    await clock.advance(60_000)
    expect(names(kit.state)).not.toContain('skiff')
  })

  test('IV9 while the CRD cannot be read its absence is not concluded', async () => {
    const { cluster, kit, clock } = await withBoat()
    cluster.deleteAs('kubectl', CRD)
    await clock.advance(60_000)
    cluster.fail(({ verb, ref }) => (verb === 'get' && ref?.kind === 'CustomResourceDefinition' ? DOWN : null))
    leave(kit, 'removal')
    await clock.advance(600_000)
    expect(names(kit.state)).toContain('skiff')
    cluster.fail(() => null)
    await clock.advance(600_000)
    expect(names(kit.state)).toEqual([])
  })

  test('IV9 an aggregated API whose APIService is deleted keeps its entries until a person gives them up, because nobody can see its objects', async () => {
    const { cluster, kit, clock } = await withBoat({ aggregated: true })
    cluster.serveAllBut(['sea.example'])
    leave(kit, 'removal')
    await clock.advance(600_000)
    expect(names(kit.state)).toContain('skiff')
    expect(kit.service()).toMatchObject({
      sync: 'OutOfSync',
      reason: 'ConfirmationPending',
      refusal: { names: ['Boat.sea.example default/skiff'] },
    })
    expect(kit.confirm()).toMatchObject({ kind: 'done' })
    await clock.advance(60_000)
    expect(names(kit.state)).toEqual([])
    expect(kit.service()).toMatchObject({ removed: true })
  })
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
  expect(kit.object(configMapKey('m0000', 'stuck'))).toMatchObject({
    reason: 'NamespaceTerminating',
    message: objectText('NamespaceTerminating', {
      failure: objectPart('namespace_held', {
        failure: 'configmaps "m0000" is forbidden: unable to create new content in namespace stuck because it is being terminated',
        deleting: `${deletingText(['example.com/hold'])}; ${stuckAdvice('Namespace', deletingText(['example.com/hold']))}`,
      }),
    }),
  })
  const reads = cluster.requests.filter(({ verb, ref }) => verb === 'get' && ref?.kind === 'Namespace' && ref.name === 'stuck')
  const refused = cluster.requests.filter(({ verb, ref }) => verb === 'apply' && ref?.namespace === 'stuck')
  expect(refused.length).toBeLessThan(20)
  expect(reads.length).toBeLessThanOrEqual(refused.length)
})

test('RC36 of 500 objects of a namespace that is being deleted one is tried again for all, and all are made when it takes them', async () => {
  const { cluster, kit, clock, run } = setup()
  const namespace: ObjectRef = { group: '', kind: 'Namespace', namespace: '', name: 'stuck' }
  cluster.applyAs('somebody', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'stuck', finalizers: ['example.com/hold'] } })
  cluster.deleteAs('kubectl', namespace)
  kit.desire(configMaps(500, 'stuck'))
  await run()
  const refused = () => cluster.requests.filter(({ verb, ref }) => verb === 'apply' && ref?.namespace === 'stuck').length
  const first = refused()
  expect(first).toBeLessThan(60)
  expect(kit.object(configMapKey('m0499', 'stuck'))).toMatchObject({ reason: 'NamespaceTerminating' })
  await clock.advance(600_000)
  expect(refused() - first).toBeLessThan(60)
  cluster.editAs('somebody', namespace, (object) => Object.assign(object.metadata, { finalizers: [] }))
  cluster.applyAs('somebody', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'stuck' } })
  await clock.advance(600_000)
  expect(kit.service()).toMatchObject({ sync: 'Synced' })
})

test('KA60 many services with kinds that are not served ask seldom what is', async () => {
  const { kit, cluster, clock, run } = setup()
  await run()
  const monitor = (name: string) => ({ apiVersion: 'monitoring.example.com/v1', kind: 'Monitor', metadata: { name, namespace: 'default' } })
  for (let n = 0; n < 100; n++) kit.desire([monitor(`m-${n}`)], {}, { project: 'web', service: `s${n}` })
  await clock.advance(1_800_000)
  const asked = () => cluster.requests.filter(({ verb }) => verb === 'discover').length
  const before = asked()
  await clock.advance(600_000)
  expect(asked() - before).toBeLessThanOrEqual(60)
})
