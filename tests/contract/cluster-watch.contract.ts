// What a watch tells, and what discovery knows.
import { describe, expect, test } from 'bun:test'
import type { ApiResource } from '../../agent/cluster/cluster.ts'
import { SERVICE_LABEL } from '../../shared/kube/marks.ts'
import { refOf } from '../../shared/kube/object.ts'
import { type ContractKit, configMap, crd, LABELS } from '../support/contract-kit.ts'
import { until, WatchProbe } from '../support/watch-probe.ts'

export function watchCases(kit: ContractKit): void {
  const { harness, resource, applied, established, get, live, namespace, uidOf } = kit
  describe('watch', () => {
    test('KA21 reset, present and synced; then changed and removed', async () => {
      const space = await namespace()
      await applied(configMap(space, 'a', {}))
      await applied(configMap(space, 'b', {}))
      await applied({ ...configMap(space, 'unlabelled', {}), metadata: { name: 'unlabelled', namespace: space } })
      const watch = new WatchProbe(harness().cluster, resource('ConfigMap'), { namespace: space })
      await watch.seen('synced')
      const [first, ...rest] = watch.story().split(' ')
      expect([first, ...rest.slice(0, 2).sort(), rest[2]]).toEqual(['reset', 'present:a', 'present:b', 'synced'])
      const { object: c } = await applied(configMap(space, 'c', { k: '1' }))
      await watch.seen('changed:c')
      await harness().cluster.delete(resource('ConfigMap'), refOf(c), uidOf(c))
      await watch.seen('removed:c')
      expect(watch.story(4)).toBe('changed:c removed:c')
      const event = watch.events[4]
      expect(event).toMatchObject({ kind: 'changed', object: { apiVersion: 'v1', kind: 'ConfigMap', data: { k: '1' } } })
      await watch.stop()
    })

    test('KA23 an object that loses its label is removed, shown as it was before', async () => {
      const object = configMap(await namespace(), 'a', {})
      await applied(object)
      const watch = new WatchProbe(harness().cluster, resource('ConfigMap'), { namespace: object.metadata.namespace ?? '' })
      await watch.seen('synced')
      await harness().patchAs('other', refOf(object), { metadata: { labels: { [SERVICE_LABEL]: null } } })
      await watch.seen('removed:a')
      expect(watch.events.at(-1)).toMatchObject({ kind: 'removed', object: { metadata: { labels: LABELS } } })
      expect((await get(object)).kind).toBe('found')
      await applied(object)
      await watch.seen('changed:a')
      await watch.stop()
    })

    test('KA34 of objects of which only the metadata is asked for nothing else comes, and each has its own kind', async () => {
      const space = await namespace()
      const { object } = await applied(configMap(space, 'a', { k: '1' }))
      const { apiVersion, kind, metadata } = object
      const metadataOnly = true
      const found = await harness().cluster.get(resource('ConfigMap'), refOf(object), { metadataOnly })
      expect(found).toEqual({ kind: 'found', object: { apiVersion, kind, metadata } })
      const watch = new WatchProbe(harness().cluster, resource('ConfigMap'), { namespace: space, metadataOnly })
      await watch.seen('synced')
      await applied(configMap(space, 'b', { k: '1' }))
      await watch.seen('changed:b')
      const event = watch.events.at(-1)
      expect(watch.story()).toBe('reset present:a synced changed:b')
      expect(event !== undefined && 'object' in event && Object.keys(event.object).sort()).toEqual(['apiVersion', 'kind', 'metadata'])
      expect(event).toMatchObject({ object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'b', labels: LABELS } } })
      await watch.stop()
    })

    test('KA21 a field selector narrows it to one object', async () => {
      const space = await namespace()
      const watch = new WatchProbe(harness().cluster, resource('ConfigMap'), { namespace: space, fieldSelector: 'metadata.name=b' })
      await watch.seen('synced')
      await applied(configMap(space, 'a', {}))
      await applied(configMap(space, 'b', {}))
      await watch.seen('changed:b')
      expect(watch.story()).toBe('reset synced changed:b')
      await watch.stop()
    })

    test('KA17 a finalized object is changed first and removed at its end', async () => {
      const object = configMap(await namespace(), 'a', {}, { finalizers: ['example.com/hold'] })
      const watch = new WatchProbe(harness().cluster, resource('ConfigMap'), { namespace: object.metadata.namespace ?? '' })
      await watch.seen('synced')
      const { object: created } = await applied(object)
      await harness().cluster.delete(resource('ConfigMap'), refOf(object), uidOf(created))
      await until('deletion seen', () => watch.events.length >= 4)
      await harness().patchAs('other', refOf(object), { metadata: { finalizers: null } })
      await watch.seen('removed:a')
      expect(watch.story()).toBe('reset synced changed:a changed:a removed:a')
      await watch.stop()
    })

    test('KA25 a kind whose CRD is deleted: its objects are removed, it fails, and it goes on when the CRD is back', async () => {
      const space = await namespace()
      const definition = crd('leaving.example')
      await applied(definition)
      await established(definition)
      const kind: ApiResource = { group: 'leaving.example', version: 'v1', kind: 'Boat', plural: 'boats', namespaced: true, verbs: [] }
      const skiff = { apiVersion: 'leaving.example/v1', kind: 'Boat', metadata: { name: 'skiff', namespace: space, labels: LABELS } }
      await until('Boat applied', async () => (await harness().cluster.apply(kind, skiff, { force: true })).kind === 'applied')
      const watch = new WatchProbe(harness().cluster, kind)
      await watch.seen('present:skiff')
      await watch.seen('synced')
      await harness().cluster.delete(resource('CustomResourceDefinition'), refOf(definition), uidOf(await live(definition)))
      await watch.seen('removed:skiff')
      await watch.seen('failed:not_found')
      await until('the CRD is gone', async () => (await get(definition)).kind === 'absent')
      const from = watch.events.length
      await applied(definition)
      await watch.seen('synced', from)
      await until('Boat applied again', async () => (await harness().cluster.apply(kind, skiff, { force: true })).kind === 'applied')
      await until('the new one', () => /(changed|present):skiff/.test(watch.story(from)))
      await watch.stop()
    })

    test('KA25 a kind that is not served fails and goes on trying', async () => {
      const ghost: ApiResource = { group: 'late.example', version: 'v1', kind: 'Boat', plural: 'boats', namespaced: true, verbs: [] }
      const watch = new WatchProbe(harness().cluster, ghost)
      await watch.seen('failed:not_found')
      await applied(crd('late.example'))
      await watch.seen('synced')
      expect(watch.story()).toMatch(/^failed:not_found (failed:\w+ )*reset synced$/)
      await watch.stop()
    })
  })
}

export function discoveryCases(kit: ContractKit, version: string): void {
  const { harness, resources, resource, applied, live, namespace, established, uidOf } = kit
  describe('discovery', () => {
    test('KA10 a CRD becomes Established, its kind is served and its objects can be applied', async () => {
      const space = await namespace()
      const definition = crd('contract.example')
      await applied(definition)
      await established(definition)
      const served = await until('Boat in discovery', async () =>
        (await harness().cluster.discover()).resources.find(({ group }) => group === 'contract.example'),
      )
      expect(served).toMatchObject({ version: 'v1', kind: 'Boat', plural: 'boats', namespaced: true, hasStatus: false })
      const boat = {
        apiVersion: 'contract.example/v1',
        kind: 'Boat',
        metadata: { name: 'skiff', namespace: space },
        spec: { oars: [2, 1] },
      }
      const result = await until('Boat applied', async () => {
        const answer = await harness().cluster.apply(served, boat, { force: true })
        return answer.kind === 'applied' && answer
      })
      expect(result).toMatchObject({ created: true, object: { spec: { oars: [2, 1] } } })
    })

    test('HE17 discovery tells which kinds have a status subresource', async () => {
      expect(['Deployment', 'Ingress', 'Namespace'].map((kind) => resource(kind).hasStatus)).toEqual([true, true, true])
      expect(['ConfigMap', 'Secret', 'NetworkPolicy'].map((kind) => resource(kind).hasStatus)).toEqual([false, false, false])
      const definition = crd('reporting.example', { subresources: { status: {} } })
      await applied(definition)
      await established(definition)
      const served = await until('Boat in discovery', async () =>
        (await harness().cluster.discover()).resources.find(({ group }) => group === 'reporting.example'),
      )
      expect(served.hasStatus).toBe(true)
    })

    test('KA11 a group whose backend does not answer is stale, not gone', async () => {
      await applied({
        apiVersion: 'apiregistration.k8s.io/v1',
        kind: 'APIService',
        metadata: { name: 'v1beta1.dead.example' },
        spec: {
          group: 'dead.example',
          version: 'v1beta1',
          groupPriorityMinimum: 100,
          versionPriority: 100,
          insecureSkipTLSVerify: true,
          service: { name: 'nobody', namespace: 'default' },
        },
      })
      const { staleGroups } = await until('stale group', async () => {
        const discovery = await harness().cluster.discover()
        return discovery.staleGroups.length > 0 && discovery
      })
      expect(staleGroups).toEqual(['dead.example'])
      const dead = resource('APIService')
      const ref = { group: 'apiregistration.k8s.io', kind: 'APIService', namespace: '', name: 'v1beta1.dead.example' }
      const found = await harness().cluster.get(dead, ref)
      if (found.kind === 'found') await harness().cluster.delete(dead, ref, uidOf(found.object))
    })

    test('KA10 core kinds have the empty group, and names are the server’s', () => {
      expect(resource('Namespace')).toMatchObject({ group: '', version: 'v1', plural: 'namespaces', namespaced: false })
      expect(resource('Ingress')).toMatchObject({ group: 'networking.k8s.io', plural: 'ingresses', namespaced: true })
      expect(
        resources()
          .filter(({ kind }) => kind === 'HorizontalPodAutoscaler')
          .map(({ version }) => version),
      ).toEqual(['v2', 'v1'])
    })

    test('KA10 the cluster is known by the uid of kube-system', async () => {
      const { uid, version: said } = await harness().cluster.info()
      expect(uid).toMatch(/^[0-9a-f-]{36}$/)
      expect(said).toBe(version)
      const system = await live({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system' } })
      expect(uidOf(system)).toBe(uid)
    })
  })
}
