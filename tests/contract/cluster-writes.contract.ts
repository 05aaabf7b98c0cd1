// What a write to an API server answers, and whose fields it leaves: apply, delete, patch.
import { describe, expect, test } from 'bun:test'
import { type K8sObject, refOf } from '../../shared/kube/object.ts'
import { bare, type ContractKit, configMap, crd, deployment, LABELS } from '../support/contract-kit.ts'
import { until, WatchProbe } from '../support/watch-probe.ts'

export function applyCases(kit: ContractKit): void {
  const { harness, resource, apply, applied, failureOf, get, live, namespace, established, uidOf, ourFields } = kit
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
      await harness().patchAs('other', refOf(object), { data: { theirs: '1' } })
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

    test('KA13 status is not taken from an apply', async () => {
      const object = deployment(await namespace(), 'd')
      const { object: stored } = await applied({ ...object, status: { replicas: 7, observedGeneration: 7 } })
      expect((stored['status'] as { replicas?: number } | undefined)?.replicas).toBeUndefined()
      expect(JSON.parse(ourFields(stored))).not.toHaveProperty('f:status')
    })

    test('KA13 a volume claim is Pending from its creation', async () => {
      const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName: 'none' }
      const metadata = { name: 'data', namespace: await namespace(), labels: LABELS }
      const { object } = await applied({ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata, spec } as K8sObject)
      expect(object['status']).toEqual({ phase: 'Pending' })
    })

    test('KA55 an apply brings what the API server warns of, also of a dry run, and nothing where it warns of nothing', async () => {
      const strict = await namespace({ labels: { 'pod-security.kubernetes.io/warn': 'restricted' } })
      const warned = await apply(deployment(strict, 'd'))
      expect(warned.kind).toBe('applied')
      expect(warned.warnings).toEqual([
        'would violate PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
      ])
      expect((await apply(deployment(strict, 'dry'), { dryRun: true })).warnings).toEqual(warned.warnings)
      expect(await apply(configMap(strict, 'a', {}))).not.toHaveProperty('warnings')
      const endpoints = { apiVersion: 'v1', kind: 'Endpoints', metadata: { name: 'old', namespace: strict } } as K8sObject
      expect(await apply(endpoints)).toMatchObject({
        kind: 'applied',
        warnings: ['v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice'],
      })
      const refused = await apply({ ...endpoints, metadata: { ...endpoints.metadata, uid: 'other' } } as K8sObject)
      expect(refused).toMatchObject({ kind: 'failed', failure: { kind: 'invalid' } })
    })

    test('KA19 resourceVersions are numbers that grow over all objects of a kind, and an event carries that of its write', async () => {
      const space = await namespace()
      const watch = new WatchProbe(harness().cluster, resource('ConfigMap'), { namespace: space })
      await watch.seen('synced')
      const versions: number[] = []
      for (const name of ['a', 'b', 'a']) {
        const { metadata } = (await applied(configMap(space, name, { n: String(versions.length) }))).object
        versions.push(Number(metadata.resourceVersion))
      }
      await until('three events', () => watch.events.length >= 5)
      const seen = watch.events.flatMap((event) => ('object' in event ? [Number(event.object.metadata.resourceVersion)] : []))
      expect(versions).toEqual([...versions].sort((x, y) => x - y))
      expect(new Set(versions).size).toBe(3)
      expect(seen).toEqual(versions)
      await watch.stop()
    })

    test('KA13 a dry run answers as if, and stores nothing', async () => {
      const object = configMap(await namespace(), 'a', { k: '1' })
      const result = await apply(object, { dryRun: true })
      expect(result.kind).toBe('applied')
      expect((await get(object)).kind).toBe('absent')
    })

    test('KA14 without force a conflict changes nothing and names the other manager; with force we win', async () => {
      const object = configMap(await namespace(), 'a', { k: '1' })
      await harness().applyAs('other', bare(object, { k: 'theirs' }))
      const failure = await failureOf(object, { force: false })
      const message = 'Apply failed with 1 conflict: conflict with "other": .data.k'
      expect(failure).toMatchObject({ kind: 'conflict', status: 409, message })
      expect((await live(object))['data']).toEqual({ k: 'theirs' })
      await applied(object)
      expect((await live(object))['data']).toEqual({ k: '1' })
    })

    test('KA14 several conflicts, with appliers and editors', async () => {
      const object = configMap(await namespace(), 'a', { k: '1', l: '1', m: '1' })
      await harness().applyAs('other', bare(object, { k: 'theirs', l: 'theirs' }))
      await harness().patchAs('kubectl-edit', refOf(object), { data: { m: 'edited' } })
      const { message } = await failureOf(object, { force: false })
      expect(message).toBe(
        'Apply failed with 3 conflicts: conflict with "kubectl-edit" using v1: .data.m; conflict with "other": .data.k, .data.l',
      )
    })

    test('KA15 what another manager changes or removes leaves our entry; what it adds does not touch it', async () => {
      const object = configMap(await namespace(), 'a', { changed: '1', removed: '1', kept: '1' })
      const before = ourFields((await applied(object)).object)
      await harness().patchAs('kubectl-edit', refOf(object), { data: { added: '2' } })
      expect(ourFields(await live(object))).toBe(before)
      await harness().patchAs('kubectl-edit', refOf(object), { data: { changed: '2', removed: null } })
      const after = await live(object)
      expect(JSON.parse(ourFields(after))['f:data']).toEqual({ 'f:kept': {} })
      const theirs = after.metadata.managedFields?.find(({ manager }) => manager === 'kubectl-edit')
      expect(theirs).toMatchObject({ operation: 'Update', fieldsV1: { 'f:data': { 'f:added': {}, 'f:changed': {} } } })
      const healed = await applied(object)
      expect(healed.object['data']).toEqual({ changed: '1', removed: '1', kept: '1', added: '2' })
      expect(ourFields(healed.object)).toBe(before)
    })

    test('KA35 a null in a custom resource is kept where the schema is open or nullable, and is refused elsewhere', async () => {
      const space = await namespace()
      const group = `${space}.example`
      const spec = {
        type: 'object',
        properties: {
          values: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
          limit: { type: 'string', nullable: true },
          name: { type: 'string' },
          mode: { type: 'string', default: 'auto' },
        },
      }
      const definition = crd(group, { schema: { openAPIV3Schema: { type: 'object', properties: { spec } } } })
      await applied(definition)
      await established(definition)
      const boats = await until('boats are served', async () => {
        const { resources } = await harness().cluster.discover()
        return resources.find((candidate) => candidate.group === group)
      })
      const boat = (name: string, fields: object): K8sObject => ({
        apiVersion: `${group}/v1`,
        kind: 'Boat',
        metadata: { name, namespace: space, labels: LABELS },
        spec: fields,
      })
      const send = (object: K8sObject) => harness().cluster.apply(boats, object, { force: true })
      const open = boat('open', { values: { nodeSelector: null, list: [{ a: null }] }, limit: null, mode: null })
      const [first, again] = [await send(open), await send(open)]
      if (first.kind === 'failed' || again.kind === 'failed') throw new Error(JSON.stringify([first, again]))
      expect(first.object['spec']).toEqual({ values: { nodeSelector: null, list: [{ a: null }] }, limit: null, mode: 'auto' })
      expect(JSON.parse(ourFields(first.object))['f:spec']).toMatchObject({
        'f:values': { 'f:nodeSelector': {} },
        'f:limit': {},
        'f:mode': {},
      })
      expect(again.object.metadata.resourceVersion).toBe(first.object.metadata.resourceVersion ?? '')
      expect(await send(boat('strict', { name: null }))).toMatchObject({ kind: 'failed', failure: { kind: 'invalid', status: 422 } })
    })

    test('KA15 one item of a list that merges by key', async () => {
      const object = deployment(await namespace(), 'd')
      await applied(object)
      await harness().patchAs('kubectl-set', refOf(object), {
        spec: { template: { spec: { containers: [{ name: 'c', image: 'app:evil' }] } } },
      })
      const fields = JSON.parse(ourFields(await live(object)))
      const item = fields['f:spec']['f:template']['f:spec']['f:containers']['k:{"name":"c"}']
      expect(item).toEqual({ '.': {}, 'f:name': {} })
    })
  })
}

export function deleteCases(kit: ContractKit): void {
  const { harness, resource, applied, failureOf, get, live, namespace, uidOf } = kit
  describe('delete and patch', () => {
    test('KA16 only the uid that is meant', async () => {
      const object = configMap(await namespace(), 'a', {})
      const uid = uidOf((await applied(object)).object)
      const remove = (which: string) => harness().cluster.delete(resource('ConfigMap'), refOf(object), which)
      expect(await remove('00000000-0000-0000-0000-000000000000')).toEqual({ kind: 'replaced' })
      expect((await get(object)).kind).toBe('found')
      expect(await remove(uid)).toEqual({ kind: 'gone' })
      expect((await get(object)).kind).toBe('absent')
      expect(await remove(uid)).toEqual({ kind: 'gone' })
      expect(uidOf((await applied(object)).object)).not.toBe(uid)
    })

    test('KA33 only as it was seen, if that is asked', async () => {
      const object = configMap(await namespace(), 'a', {})
      const { object: seen } = await applied(object)
      const resourceVersion = seen.metadata.resourceVersion ?? ''
      const remove = (options: { resourceVersion: string }, uid = uidOf(seen)) =>
        harness().cluster.delete(resource('ConfigMap'), refOf(object), uid, options)
      await harness().patchAs('kubectl', refOf(object), { metadata: { annotations: { keep: 'it' } } })
      expect(await remove({ resourceVersion })).toEqual({ kind: 'changed' })
      expect(await remove({ resourceVersion }, '00000000-0000-0000-0000-000000000000')).toEqual({ kind: 'replaced' })
      const now = (await live(object)).metadata.resourceVersion ?? ''
      expect(await remove({ resourceVersion: now })).toEqual({ kind: 'gone' })
      expect(await remove({ resourceVersion: now })).toEqual({ kind: 'gone' })
    })

    test('KA16 with what it owns first: the garbage collector holds it', async () => {
      const object = configMap(await namespace(), 'a', {})
      const { object: stored } = await applied(object)
      const answer = await harness().cluster.delete(resource('ConfigMap'), refOf(object), uidOf(stored), { foreground: true })
      expect(answer).toEqual({ kind: 'deleting', finalizers: ['foregroundDeletion'] })
    })

    test('KA30 a write as a ServiceAccount has its rights and no others', async () => {
      const [mine, theirs] = [await namespace(), await namespace()]
      const as = `system:serviceaccount:${mine}:deployer`
      const { cluster } = harness()
      const send = (object: K8sObject) => cluster.apply(resource(object.kind), object, { force: true, as })
      const own = configMap(mine, 'a', {})
      expect(await send(own)).toMatchObject({ kind: 'failed', failure: { kind: 'forbidden', status: 403 } })
      await harness().permit(as, mine)
      const stored = await until('the right is known', async () => {
        const result = await send(own)
        return result.kind === 'applied' && result.object
      })
      const message = `User "${as}" cannot patch resource "configmaps" in API group "" in the namespace "${theirs}"`
      expect(await send(configMap(theirs, 'a', {}))).toMatchObject({
        kind: 'failed',
        failure: { kind: 'forbidden', message: expect.stringContaining(message) },
      })
      expect((await send(deployment(mine, 'd'))).kind).toBe('failed')
      const patched = await cluster.mergePatch(resource('ConfigMap'), refOf(own), { metadata: { labels: { l: '1' } } }, { as })
      expect(patched).toMatchObject({ kind: 'applied' })
      const other = (await applied(configMap(theirs, 'b', {}))).object
      const refused = await cluster.delete(resource('ConfigMap'), refOf(other), uidOf(other), { as })
      expect(refused).toMatchObject({ kind: 'failed', failure: { kind: 'forbidden' } })
      expect(await cluster.delete(resource('ConfigMap'), refOf(own), uidOf(stored), { as })).toEqual({ kind: 'gone' })
    })

    test('KA17 finalizers hold it; an apply meanwhile succeeds and revives nothing', async () => {
      const object = configMap(await namespace(), 'a', { k: '1' }, { finalizers: ['example.com/hold'] })
      const first = (await applied(object)).object
      const result = await harness().cluster.delete(resource('ConfigMap'), refOf(object), uidOf(first))
      expect(result).toEqual({ kind: 'deleting', finalizers: ['example.com/hold'] })
      const meanwhile = await applied({ ...object, data: { k: '2' } })
      expect(meanwhile.object.metadata.deletionTimestamp).toBeString()
      expect([meanwhile.created, uidOf(meanwhile.object)]).toEqual([false, uidOf(first)])
      await harness().patchAs('other', refOf(object), { metadata: { finalizers: null } })
      expect((await get(object)).kind).toBe('absent')
    })

    test('KA17 nothing new can hold what is being deleted, and what no longer holds it lets it go', async () => {
      const object = configMap(await namespace(), 'a', {}, { finalizers: ['example.com/hold'] })
      const uid = uidOf((await applied(object)).object)
      const remove = () => harness().cluster.delete(resource('ConfigMap'), refOf(object), uid)
      const deleting = { kind: 'deleting', finalizers: ['example.com/hold'] } as const
      expect([await remove(), await remove()]).toEqual([deleting, deleting])
      const more = { ...object, metadata: { ...object.metadata, finalizers: ['example.com/hold', 'example.com/more'] } }
      expect(await failureOf(more)).toMatchObject({
        kind: 'invalid',
        status: 422,
        message: expect.stringContaining('metadata.finalizers: Forbidden'),
      })
      const { finalizers: _, ...free } = object.metadata
      expect((await applied({ ...object, metadata: free })).created).toBe(false)
      expect((await get(object)).kind).toBe('absent')
    })

    test('KA18 a merge patch that changes nothing leaves the resourceVersion', async () => {
      const object = configMap(await namespace(), 'a', { k: '1' })
      const { metadata } = (await applied(object)).object
      const same = await harness().cluster.mergePatch(resource('ConfigMap'), refOf(object), { metadata: { labels: LABELS } })
      expect(same).toMatchObject({ kind: 'applied', object: { metadata: { resourceVersion: metadata.resourceVersion } } })
    })

    test('KA18 a merge patch with an old resourceVersion is a conflict', async () => {
      const object = configMap(await namespace(), 'a', { k: '1' })
      const { metadata } = (await applied(object)).object
      const patch = (resourceVersion: string | undefined) =>
        harness().cluster.mergePatch(resource('ConfigMap'), refOf(object), { metadata: { resourceVersion, annotations: { mark: 'x' } } })
      await harness().patchAs('other', refOf(object), { data: { more: '1' } })
      expect(await patch(metadata.resourceVersion)).toMatchObject({ kind: 'failed', failure: { kind: 'conflict' } })
      const patched = await patch((await live(object)).metadata.resourceVersion)
      expect(patched).toMatchObject({ kind: 'applied', created: false, object: { metadata: { annotations: { mark: 'x' } } } })
      expect(await harness().cluster.mergePatch(resource('ConfigMap'), { ...refOf(object), name: 'none' }, {})).toMatchObject({
        kind: 'failed',
        failure: { kind: 'not_found' },
      })
    })

    test('KA18 managedFields can be rewritten: another manager’s fields become ours and then go', async () => {
      const object = configMap(await namespace(), 'a', { ours: '1' })
      await harness().applyAs('helm', bare(object, { theirs: '1' }))
      await applied(object)
      const { metadata } = await live(object)
      const ours = metadata.managedFields?.find(({ manager }) => manager === 'skerry')
      const merged = { ...ours, fieldsV1: { ...ours?.fieldsV1, 'f:data': { 'f:ours': {}, 'f:theirs': {} } } }
      const body = { metadata: { resourceVersion: metadata.resourceVersion, managedFields: [merged] } }
      expect((await harness().cluster.mergePatch(resource('ConfigMap'), refOf(object), body)).kind).toBe('applied')
      await applied(object)
      expect((await live(object))['data']).toEqual({ ours: '1' })
    })
  })
}
