// One suite for every Cluster: the fake is honest only as long as it passes what a real API server passes.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { ApiResource, Cluster } from '../../agent/cluster/cluster.ts'
import { SERVICE_LABEL } from '../../shared/kube/marks.ts'
import { type K8sObject, type ObjectRef, refOf } from '../../shared/kube/object.ts'
import { until, WatchProbe } from '../support/watch-probe.ts'

export interface ClusterHarness {
  cluster: Cluster
  /** A merge patch by somebody else. */
  patchAs(manager: string, ref: ObjectRef, body: Record<string, unknown>): Promise<void>
  /** A server-side apply by somebody else. */
  applyAs(manager: string, object: K8sObject): Promise<void>
  stop(): Promise<void>
}

const LABELS = { [SERVICE_LABEL]: 'demo.app' }
export const configMap = (
  namespace: string,
  name: string,
  data: Record<string, string>,
  metadata: Record<string, unknown> = {},
): K8sObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace, labels: LABELS, ...metadata },
  data,
})

/** The same ConfigMap with other data and no labels, as another manager would apply it. */
const bare = ({ metadata: { name, namespace } }: K8sObject, data: Record<string, string>): K8sObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { ...(name === undefined ? {} : { name }), ...(namespace === undefined ? {} : { namespace }) },
  data,
})

const deployment = (namespace: string, name: string, container: Record<string, unknown> = {}): K8sObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name, namespace, labels: LABELS },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'c', image: 'app:1', ...container }] } },
  },
})

const crd = (group: string): K8sObject => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `boats.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { plural: 'boats', singular: 'boat', kind: 'Boat', listKind: 'BoatList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } } },
        },
      },
    ],
  },
})

let namespaces = 0

/** Each case has a namespace of its own, so that one server serves all. */
export function clusterContract(name: string, start: () => Promise<ClusterHarness>, startTimeoutMs: number): void {
  describe(`Cluster contract: ${name}`, () => {
    let harness: ClusterHarness
    let resources: readonly ApiResource[] = []
    beforeAll(async () => {
      harness = await start()
      resources = (await harness.cluster.discover()).resources
    }, startTimeoutMs)
    afterAll(() => harness.stop(), startTimeoutMs)

    const resource = (kind: string): ApiResource => {
      const found = resources.find((candidate) => candidate.kind === kind)
      if (found === undefined) throw new Error(`${kind} is not served`)
      return found
    }
    const apply = (object: K8sObject, options: { force?: boolean; dryRun?: boolean } = {}) =>
      harness.cluster.apply(resource(object.kind), object, { force: true, ...options })
    const applied = async (object: K8sObject): Promise<{ object: K8sObject; created: boolean }> => {
      const result = await apply(object)
      if (result.kind === 'failed') throw new Error(`apply failed: ${JSON.stringify(result.failure)}`)
      return result
    }
    const failureOf = async (object: K8sObject, options: { force?: boolean } = {}) => {
      const result = await apply(object, options)
      if (result.kind !== 'failed') throw new Error(`apply did not fail: ${JSON.stringify(result.object)}`)
      return result.failure
    }
    const get = (object: K8sObject) => harness.cluster.get(resource(object.kind), refOf(object))
    const live = async (object: K8sObject): Promise<K8sObject> => {
      const result = await get(object)
      if (result.kind !== 'found') throw new Error(`not found: ${JSON.stringify(result)}`)
      return result.object
    }
    const namespace = async (metadata: Record<string, unknown> = {}): Promise<string> => {
      namespaces += 1
      const namespaceName = `case-${namespaces}`
      await applied({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespaceName, ...metadata } })
      return namespaceName
    }
    const uidOf = (object: K8sObject): string => object.metadata.uid ?? ''
    const ourFields = (object: K8sObject): string =>
      JSON.stringify(
        object.metadata.managedFields?.find(({ manager, operation }) => manager === 'skerry' && operation === 'Apply')?.fieldsV1 ?? {},
      )

    describe('apply', () => {
      test('KA13 the first apply creates, the same again changes nothing, another one changes', async () => {
        const object = configMap(await namespace(), 'a', { k: '1' })
        const first = await applied(object)
        const again = await applied(object)
        const changed = await applied({ ...object, data: { k: '2' } })
        expect([first.created, again.created, changed.created]).toEqual([true, false, false])
        expect(again.object.metadata.resourceVersion).toBe(first.object.metadata.resourceVersion ?? '')
        expect(changed.object.metadata.resourceVersion).not.toBe(again.object.metadata.resourceVersion ?? '')
        expect(uidOf(changed.object)).toBe(uidOf(first.object))
        expect((await live(object))['data']).toEqual({ k: '2' })
      })

      test('KA13 a field that is no longer applied goes, one that somebody else added stays', async () => {
        const object = configMap(await namespace(), 'a', { ours: '1', dropped: '1' })
        await applied(object)
        await harness.patchAs('other', refOf(object), { data: { theirs: '1' } })
        await applied({ ...object, data: { ours: '1' } })
        expect((await live(object))['data']).toEqual({ ours: '1', theirs: '1' })
      })

      test('KA13 generation counts changes of spec only', async () => {
        const object = deployment(await namespace(), 'd')
        const first = await applied(object)
        const labelled = await applied({ ...object, metadata: { ...object.metadata, labels: { ...LABELS, more: 'x' } } })
        const changed = await applied(deployment(object.metadata.namespace ?? '', 'd', { image: 'app:2' }))
        expect([first, labelled, changed].map(({ object: { metadata } }) => metadata.generation)).toEqual([1, 1, 2])
      })

      test('KA13 a dry run answers as if, and stores nothing', async () => {
        const object = configMap(await namespace(), 'a', { k: '1' })
        const result = await apply(object, { dryRun: true })
        expect(result.kind).toBe('applied')
        expect((await get(object)).kind).toBe('absent')
      })

      test('KA14 without force a conflict changes nothing and names the other manager; with force we win', async () => {
        const object = configMap(await namespace(), 'a', { k: '1' })
        await harness.applyAs('other', bare(object, { k: 'theirs' }))
        const failure = await failureOf(object, { force: false })
        const message = 'Apply failed with 1 conflict: conflict with "other": .data.k'
        expect(failure).toMatchObject({ kind: 'conflict', status: 409, message })
        expect((await live(object))['data']).toEqual({ k: 'theirs' })
        await applied(object)
        expect((await live(object))['data']).toEqual({ k: '1' })
      })

      test('KA14 several conflicts, with appliers and editors', async () => {
        const object = configMap(await namespace(), 'a', { k: '1', l: '1', m: '1' })
        await harness.applyAs('other', bare(object, { k: 'theirs', l: 'theirs' }))
        await harness.patchAs('kubectl-edit', refOf(object), { data: { m: 'edited' } })
        const { message } = await failureOf(object, { force: false })
        expect(message).toBe(
          'Apply failed with 3 conflicts: conflicts with "kubectl-edit" using v1:\n- .data.m\nconflicts with "other":\n- .data.k\n- .data.l',
        )
      })

      test('KA15 what another manager changes or removes leaves our entry; what it adds does not touch it', async () => {
        const object = configMap(await namespace(), 'a', { changed: '1', removed: '1', kept: '1' })
        const before = ourFields((await applied(object)).object)
        await harness.patchAs('kubectl-edit', refOf(object), { data: { added: '2' } })
        expect(ourFields(await live(object))).toBe(before)
        await harness.patchAs('kubectl-edit', refOf(object), { data: { changed: '2', removed: null } })
        const after = await live(object)
        expect(JSON.parse(ourFields(after))['f:data']).toEqual({ 'f:kept': {} })
        const theirs = after.metadata.managedFields?.find(({ manager }) => manager === 'kubectl-edit')
        expect(theirs).toMatchObject({ operation: 'Update', fieldsV1: { 'f:data': { 'f:added': {}, 'f:changed': {} } } })
        const healed = await applied(object)
        expect(healed.object['data']).toEqual({ changed: '1', removed: '1', kept: '1', added: '2' })
        expect(ourFields(healed.object)).toBe(before)
      })

      test('KA15 one item of a list that merges by key', async () => {
        const object = deployment(await namespace(), 'd')
        await applied(object)
        await harness.patchAs('kubectl-set', refOf(object), {
          spec: { template: { spec: { containers: [{ name: 'c', image: 'app:evil' }] } } },
        })
        const fields = JSON.parse(ourFields(await live(object)))
        const item = fields['f:spec']['f:template']['f:spec']['f:containers']['k:{"name":"c"}']
        expect(item).toEqual({ '.': {}, 'f:name': {} })
      })
    })

    describe('refusals', () => {
      test('KA3 a missing namespace', async () => {
        const failure = await failureOf(configMap('nowhere', 'a', {}))
        expect(failure).toMatchObject({ kind: 'namespace_missing', status: 404, message: 'namespaces "nowhere" not found' })
      })

      test('KA2 a namespace that is being deleted', async () => {
        const held = await namespace({ finalizers: ['example.com/hold'] })
        const object: K8sObject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: held } }
        const result = await harness.cluster.delete(resource('Namespace'), refOf(object), uidOf(await live(object)))
        expect(result).toEqual({ kind: 'deleting', finalizers: ['example.com/hold', 'kubernetes'] })
        expect(await failureOf(configMap(held, 'a', {}))).toMatchObject({ kind: 'namespace_terminating', status: 403 })
        await harness.patchAs('other', refOf(object), { metadata: { finalizers: null } })
      })

      test('KA1 an object that the server can never read is invalid although the code is 500', async () => {
        const space = await namespace()
        const twice = [
          { name: 'A', value: '1' },
          { name: 'A', value: '2' },
        ]
        const failure = await failureOf(deployment(space, 'd', { env: twice }))
        expect(failure).toMatchObject({ kind: 'invalid', status: 500 })
        expect(failure.message).toContain('.spec.template.spec.containers[name="c"].env: duplicate entries for key [name="A"]')
        const wrongType = { ...configMap(space, 'a', {}), data: { k: 1 } }
        expect(await failureOf(wrongType)).toMatchObject({ kind: 'invalid', status: 500 })
        expect(await failureOf({ ...configMap(space, 'a', {}), unknown: 1 })).toMatchObject({ kind: 'invalid', status: 500 })
      })

      test('KA5 invalid and immutable', async () => {
        const space = await namespace()
        const invalid = await failureOf(configMap(space, 'a', { 'bad key!': 'x' }))
        expect(invalid).toMatchObject({ kind: 'invalid', status: 422, reason: 'Invalid' })
        expect(invalid.message).toContain('data[bad key!]')
        await applied(deployment(space, 'd'))
        const moved = deployment(space, 'd')
        Object.assign(moved['spec'] as object, {
          selector: { matchLabels: { app: 'x' } },
          template: { metadata: { labels: { app: 'x' } }, spec: { containers: [{ name: 'c', image: 'app:1' }] } },
        })
        expect(await failureOf(moved)).toMatchObject({ kind: 'immutable', status: 422 })
        const binding = (role: string): K8sObject => ({
          apiVersion: 'rbac.authorization.k8s.io/v1',
          kind: 'RoleBinding',
          metadata: { name: 'b', namespace: space },
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: role },
        })
        await applied(binding('x'))
        expect(await failureOf(binding('y'))).toMatchObject({ kind: 'immutable', status: 422 })
      })

      test('KA5 a uid in the manifest is invalid, not immutable: recreating would not help', async () => {
        const space = await namespace()
        await applied(configMap(space, 'a', {}))
        expect(await failureOf(configMap(space, 'a', {}, { uid: 'other' }))).toMatchObject({ kind: 'invalid', status: 422 })
        expect(await failureOf(configMap(space, 'a', {}, { resourceVersion: '1' }))).toMatchObject({ kind: 'conflict' })
        const managed = configMap(space, 'a', {}, { managedFields: [{ manager: 'x', operation: 'Apply', apiVersion: 'v1' }] })
        expect(await failureOf(managed)).toMatchObject({ kind: 'invalid', status: 400 })
      })

      test('KA7 a kind that is not served is a failure, never an absent object', async () => {
        const space = await namespace()
        const unserved: ApiResource[] = [
          { group: 'nobody.example', version: 'v1', kind: 'Ghost', plural: 'ghosts', namespaced: true, verbs: [] },
          { group: 'apps', version: 'v1', kind: 'Ghost', plural: 'ghosts', namespaced: true, verbs: [] },
        ]
        for (const ghost of unserved) {
          const ref = { group: ghost.group, kind: ghost.kind, namespace: space, name: 'a' }
          const object = { apiVersion: `${ghost.group}/v1`, kind: 'Ghost', metadata: { name: 'a', namespace: space } }
          expect(await harness.cluster.get(ghost, ref)).toMatchObject({ kind: 'failed', failure: { kind: 'not_found' } })
          expect(await harness.cluster.delete(ghost, ref, 'x')).toMatchObject({ kind: 'failed', failure: { kind: 'not_found' } })
          expect(await harness.cluster.apply(ghost, object, { force: true })).toMatchObject({
            kind: 'failed',
            failure: { kind: 'not_found' },
          })
        }
      })

      test('KA7 an object that is not there is absent, also in a namespace that is not there', async () => {
        expect((await get(configMap(await namespace(), 'a', {}))).kind).toBe('absent')
        expect((await get(configMap('nowhere', 'a', {}))).kind).toBe('absent')
      })
    })

    describe('delete and patch', () => {
      test('KA16 only the uid that is meant', async () => {
        const object = configMap(await namespace(), 'a', {})
        const uid = uidOf((await applied(object)).object)
        const remove = (which: string) => harness.cluster.delete(resource('ConfigMap'), refOf(object), which)
        expect(await remove('00000000-0000-0000-0000-000000000000')).toEqual({ kind: 'replaced' })
        expect((await get(object)).kind).toBe('found')
        expect(await remove(uid)).toEqual({ kind: 'gone' })
        expect((await get(object)).kind).toBe('absent')
        expect(await remove(uid)).toEqual({ kind: 'gone' })
        expect(uidOf((await applied(object)).object)).not.toBe(uid)
      })

      test('KA17 finalizers hold it; an apply meanwhile succeeds and revives nothing', async () => {
        const object = configMap(await namespace(), 'a', { k: '1' }, { finalizers: ['example.com/hold'] })
        const first = (await applied(object)).object
        const result = await harness.cluster.delete(resource('ConfigMap'), refOf(object), uidOf(first))
        expect(result).toEqual({ kind: 'deleting', finalizers: ['example.com/hold'] })
        const meanwhile = await applied({ ...object, data: { k: '2' } })
        expect(meanwhile.object.metadata.deletionTimestamp).toBeString()
        expect([meanwhile.created, uidOf(meanwhile.object)]).toEqual([false, uidOf(first)])
        await harness.patchAs('other', refOf(object), { metadata: { finalizers: null } })
        expect((await get(object)).kind).toBe('absent')
      })

      test('KA18 a merge patch with an old resourceVersion is a conflict', async () => {
        const object = configMap(await namespace(), 'a', { k: '1' })
        const { metadata } = (await applied(object)).object
        const patch = (resourceVersion: string | undefined) =>
          harness.cluster.mergePatch(resource('ConfigMap'), refOf(object), { metadata: { resourceVersion, annotations: { mark: 'x' } } })
        await harness.patchAs('other', refOf(object), { data: { more: '1' } })
        expect(await patch(metadata.resourceVersion)).toMatchObject({ kind: 'failed', failure: { kind: 'conflict' } })
        const patched = await patch((await live(object)).metadata.resourceVersion)
        expect(patched).toMatchObject({ kind: 'applied', created: false, object: { metadata: { annotations: { mark: 'x' } } } })
        expect(await harness.cluster.mergePatch(resource('ConfigMap'), { ...refOf(object), name: 'none' }, {})).toMatchObject({
          kind: 'failed',
          failure: { kind: 'not_found' },
        })
      })

      test('KA18 managedFields can be rewritten: another manager’s fields become ours and then go', async () => {
        const object = configMap(await namespace(), 'a', { ours: '1' })
        await harness.applyAs('helm', bare(object, { theirs: '1' }))
        await applied(object)
        const { metadata } = await live(object)
        const ours = metadata.managedFields?.find(({ manager }) => manager === 'skerry')
        const merged = { ...ours, fieldsV1: { ...ours?.fieldsV1, 'f:data': { 'f:ours': {}, 'f:theirs': {} } } }
        const body = { metadata: { resourceVersion: metadata.resourceVersion, managedFields: [merged] } }
        expect((await harness.cluster.mergePatch(resource('ConfigMap'), refOf(object), body)).kind).toBe('applied')
        await applied(object)
        expect((await live(object))['data']).toEqual({ ours: '1' })
      })
    })

    describe('watch', () => {
      test('KA21 reset, present and synced; then changed and removed', async () => {
        const space = await namespace()
        await applied(configMap(space, 'a', {}))
        await applied(configMap(space, 'b', {}))
        await applied({ ...configMap(space, 'unlabelled', {}), metadata: { name: 'unlabelled', namespace: space } })
        const watch = new WatchProbe(harness.cluster, resource('ConfigMap'), { namespace: space })
        await watch.seen('synced')
        const [first, ...rest] = watch.story().split(' ')
        expect([first, ...rest.slice(0, 2).sort(), rest[2]]).toEqual(['reset', 'present:a', 'present:b', 'synced'])
        const { object: c } = await applied(configMap(space, 'c', { k: '1' }))
        await watch.seen('changed:c')
        await harness.cluster.delete(resource('ConfigMap'), refOf(c), uidOf(c))
        await watch.seen('removed:c')
        expect(watch.story(4)).toBe('changed:c removed:c')
        const event = watch.events[4]
        expect(event).toMatchObject({ kind: 'changed', object: { apiVersion: 'v1', kind: 'ConfigMap', data: { k: '1' } } })
        await watch.stop()
      })

      test('KA23 an object that loses its label is removed, shown as it was before', async () => {
        const object = configMap(await namespace(), 'a', {})
        await applied(object)
        const watch = new WatchProbe(harness.cluster, resource('ConfigMap'), { namespace: object.metadata.namespace ?? '' })
        await watch.seen('synced')
        await harness.patchAs('other', refOf(object), { metadata: { labels: { [SERVICE_LABEL]: null } } })
        await watch.seen('removed:a')
        expect(watch.events.at(-1)).toMatchObject({ kind: 'removed', object: { metadata: { labels: LABELS } } })
        expect((await get(object)).kind).toBe('found')
        await applied(object)
        await watch.seen('changed:a')
        await watch.stop()
      })

      test('KA21 a field selector narrows it to one object', async () => {
        const space = await namespace()
        const watch = new WatchProbe(harness.cluster, resource('ConfigMap'), { namespace: space, fieldSelector: 'metadata.name=b' })
        await watch.seen('synced')
        await applied(configMap(space, 'a', {}))
        await applied(configMap(space, 'b', {}))
        await watch.seen('changed:b')
        expect(watch.story()).toBe('reset synced changed:b')
        await watch.stop()
      })

      test('KA17 a finalized object is changed first and removed at its end', async () => {
        const object = configMap(await namespace(), 'a', {}, { finalizers: ['example.com/hold'] })
        const watch = new WatchProbe(harness.cluster, resource('ConfigMap'), { namespace: object.metadata.namespace ?? '' })
        await watch.seen('synced')
        const { object: created } = await applied(object)
        await harness.cluster.delete(resource('ConfigMap'), refOf(object), uidOf(created))
        await until('deletion seen', () => watch.events.length >= 4)
        await harness.patchAs('other', refOf(object), { metadata: { finalizers: null } })
        await watch.seen('removed:a')
        expect(watch.story()).toBe('reset synced changed:a changed:a removed:a')
        await watch.stop()
      })

      test('KA25 a kind that is not served fails and goes on trying', async () => {
        const ghost: ApiResource = { group: 'late.example', version: 'v1', kind: 'Boat', plural: 'boats', namespaced: true, verbs: [] }
        const watch = new WatchProbe(harness.cluster, ghost)
        await watch.seen('failed:not_found')
        await applied(crd('late.example'))
        await watch.seen('synced')
        expect(watch.story()).toMatch(/^failed:not_found (failed:\w+ )*reset synced$/)
        await watch.stop()
      })
    })

    describe('discovery', () => {
      test('KA10 a CRD becomes Established, its kind is served and its objects can be applied', async () => {
        const space = await namespace()
        const definition = crd('contract.example')
        await applied(definition)
        await until('Established', async () => {
          const { status } = (await live(definition)) as { status?: { conditions?: Array<{ type: string; status: string }> } }
          return status?.conditions?.some(({ type, status: value }) => type === 'Established' && value === 'True')
        })
        const served = await until('Boat in discovery', async () =>
          (await harness.cluster.discover()).resources.find(({ group }) => group === 'contract.example'),
        )
        expect(served).toMatchObject({ version: 'v1', kind: 'Boat', plural: 'boats', namespaced: true })
        const boat = {
          apiVersion: 'contract.example/v1',
          kind: 'Boat',
          metadata: { name: 'skiff', namespace: space },
          spec: { oars: [2, 1] },
        }
        const result = await until('Boat applied', async () => {
          const answer = await harness.cluster.apply(served, boat, { force: true })
          return answer.kind === 'applied' && answer
        })
        expect(result).toMatchObject({ created: true, object: { spec: { oars: [2, 1] } } })
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
          const discovery = await harness.cluster.discover()
          return discovery.staleGroups.length > 0 && discovery
        })
        expect(staleGroups).toEqual(['dead.example'])
        const dead = resource('APIService')
        const ref = { group: 'apiregistration.k8s.io', kind: 'APIService', namespace: '', name: 'v1beta1.dead.example' }
        const found = await harness.cluster.get(dead, ref)
        if (found.kind === 'found') await harness.cluster.delete(dead, ref, uidOf(found.object))
      })

      test('KA10 core kinds have the empty group, and names are the server’s', () => {
        expect(resource('Namespace')).toMatchObject({ group: '', version: 'v1', plural: 'namespaces', namespaced: false })
        expect(resource('Ingress')).toMatchObject({ group: 'networking.k8s.io', plural: 'ingresses', namespaced: true })
        expect(resources.filter(({ kind }) => kind === 'HorizontalPodAutoscaler').map(({ version }) => version)).toEqual(['v2', 'v1'])
      })

      test('KA10 the cluster is known by the uid of kube-system', async () => {
        const { uid, version } = await harness.cluster.info()
        expect(uid).toMatch(/^[0-9a-f-]{36}$/)
        expect(version).toBe('v1.36.3')
        const system = await live({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system' } })
        expect(uidOf(system)).toBe(uid)
      })
    })
  })
}
