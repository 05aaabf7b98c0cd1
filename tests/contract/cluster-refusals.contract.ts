// Refusals of an API server. Each is one of three kinds: a repetition may succeed, the object must be replaced, or the
// document must change.
import { describe, expect, test } from 'bun:test'
import type { ApiResource } from '../../agent/cluster/cluster.ts'
import { type K8sObject, refOf } from '../../shared/kube/object.ts'
import { bare, type ContractKit, configMap, crd, deployment, LABELS } from '../support/contract-kit.ts'
import { until } from '../support/watch-probe.ts'

const RBAC = 'rbac.authorization.k8s.io'
const named = (apiVersion: string, kind: string, name: string, namespace: string | null, rest: Record<string, unknown>): K8sObject => ({
  apiVersion,
  kind,
  metadata: { name, ...(namespace === null ? {} : { namespace }) },
  ...rest,
})
const podTemplate = (image: string) => ({
  metadata: { labels: { app: 'x' } },
  spec: { restartPolicy: 'Never', containers: [{ name: 'c', image }] },
})
const claimSpec = (storageClassName: string) => ({
  storageClassName,
  accessModes: ['ReadWriteOnce'],
  resources: { requests: { storage: '1Gi' } },
})

/** As it is created, and changed in a way for which deleting and creating it again is the only cure. */
const IMMUTABLE: ReadonlyArray<[what: string, make: (namespace: string, changed: boolean) => K8sObject]> = [
  ['the type of a Secret', (space, changed) => named('v1', 'Secret', 's', space, { type: changed ? 'example.com/b' : 'example.com/a' })],
  ['an immutable ConfigMap', (space, changed) => named('v1', 'ConfigMap', 'c', space, { immutable: true, data: { k: String(changed) } })],
  [
    'the template of a Job',
    (space, changed) => named('batch/v1', 'Job', 'j', space, { spec: { template: podTemplate(changed ? 'b' : 'a') } }),
  ],
  [
    'the class of a volume claim',
    (space, changed) => named('v1', 'PersistentVolumeClaim', 'p', space, { spec: claimSpec(changed ? 'b' : 'a') }),
  ],
  [
    'the service name of a StatefulSet',
    (space, changed) =>
      named('apps/v1', 'StatefulSet', 's', space, {
        spec: {
          serviceName: changed ? 'b' : 'a',
          selector: { matchLabels: { app: 'x' } },
          template: { metadata: { labels: { app: 'x' } }, spec: { containers: [{ name: 'c', image: 'a' }] } },
        },
      }),
  ],
  [
    'the provisioner of a StorageClass',
    (space, changed) =>
      named('storage.k8s.io/v1', 'StorageClass', space, null, { provisioner: changed ? 'example.com/b' : 'example.com/a' }),
  ],
  [
    'the parameters of a StorageClass',
    (space, changed) =>
      named('storage.k8s.io/v1', 'StorageClass', `${space}-p`, null, {
        provisioner: 'example.com/a',
        parameters: { p: changed ? 'b' : 'a' },
      }),
  ],
  [
    'the role of a ClusterRoleBinding',
    (space, changed) =>
      named(`${RBAC}/v1`, 'ClusterRoleBinding', space, null, {
        roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: changed ? 'b' : 'a' },
      }),
  ],
  [
    'the address of a Service',
    (space, changed) =>
      named('v1', 'Service', 's', space, {
        spec: { clusterIP: changed ? '10.0.77.2' : 'None', ports: [{ port: 80 }], selector: { app: 'x' } },
      }),
  ],
  [
    'the value of a PriorityClass',
    (space, changed) => named('scheduling.k8s.io/v1', 'PriorityClass', space, null, { value: changed ? 2 : 1 }),
  ],
  [
    'the controller of an IngressClass',
    (space, changed) =>
      named('networking.k8s.io/v1', 'IngressClass', space, null, { spec: { controller: changed ? 'example.com/b' : 'example.com/a' } }),
  ],
  [
    'the scope of a CRD',
    (space, changed) => {
      const definition = crd(`${space}.example`)
      return { ...definition, spec: { ...(definition['spec'] as object), scope: changed ? 'Cluster' : 'Namespaced' } }
    },
  ],
  [
    'the source of a PersistentVolume',
    (space, changed) =>
      named('v1', 'PersistentVolume', space, null, {
        spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: changed ? '/b' : '/a' } },
      }),
  ],
]

export function refusalCases(kit: ContractKit): void {
  const { harness, resource, apply, applied, failureOf, get, live, namespace, established, uidOf } = kit
  describe('refusals', () => {
    test('KA3 a missing namespace', async () => {
      const failure = await failureOf(configMap('nowhere', 'a', {}))
      expect(failure).toMatchObject({ kind: 'namespace_missing', status: 404, message: 'namespaces "nowhere" not found' })
    })

    test('KA2 a namespace that is being deleted', async () => {
      const held = await namespace({ finalizers: ['example.com/hold'] })
      const object: K8sObject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: held } }
      const result = await harness().cluster.delete(resource('Namespace'), refOf(object), uidOf(await live(object)))
      expect(result).toEqual({ kind: 'deleting', finalizers: ['example.com/hold', 'kubernetes'] })
      expect(await failureOf(configMap(held, 'a', {}))).toMatchObject({ kind: 'namespace_terminating', status: 403 })
      await harness().patchAs('other', refOf(object), { metadata: { finalizers: null } })
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
      expect(invalid.message).toContain('data[<redacted>]: Invalid value: <redacted>: a valid config key must consist of')
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

    test.each(IMMUTABLE)('KA5 %s needs a new object', async (_, make) => {
      const space = await namespace()
      await applied(make(space, false))
      await established(make(space, false)) // a CRD may change until then
      const failure = await failureOf(make(space, true))
      expect({ ...failure, message: '' }).toEqual({ kind: 'immutable', status: 422, reason: 'Invalid', message: '' })
    })

    test('KA29 what admission denies is forbidden, not invalid, whatever the code; it is retried', async () => {
      const space = await namespace()
      const denied = (name: string) => configMap(space, name, {}, { labels: { ...LABELS, denied: '' } })
      await harness().deny(space, 'not on a Friday')
      const failure = await until('the policy is in force', async () => {
        const result = await apply(denied('a'), { dryRun: true })
        return result.kind === 'failed' && result.failure
      })
      expect(failure).toMatchObject({ kind: 'forbidden', status: 422 })
      expect(failure.message).toMatch(
        /^configmaps "a" is forbidden: ValidatingAdmissionPolicy '.*' with binding '.*' denied request: not on a Friday$/,
      )
      expect((await get(denied('a'))).kind).toBe('absent')
      expect((await apply(configMap(space, 'b', {}))).kind).toBe('applied')
      expect(await failureOf(denied('b'))).toMatchObject({ kind: 'forbidden' })
      expect((await live(configMap(space, 'b', {}))).metadata.labels).toEqual(LABELS)
    })

    test('KA14 KA5 a dry run is refused as the write would be', async () => {
      const space = await namespace()
      const object = configMap(space, 'a', { k: '1' })
      await harness().applyAs('other', bare(object, { k: 'theirs' }))
      const dryRun = async (sent: K8sObject) => {
        const result = await apply(sent, { dryRun: true, force: false })
        return result.kind === 'failed' && result.failure.kind
      }
      expect(await dryRun(object)).toBe('conflict')
      expect(await dryRun(configMap(space, 'b', { 'bad key!': '1' }))).toBe('invalid')
      expect(await dryRun(configMap('nowhere', 'b', {}))).toBe('namespace_missing')
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
        expect(await harness().cluster.get(ghost, ref)).toMatchObject({ kind: 'failed', failure: { kind: 'not_found' } })
        expect(await harness().cluster.delete(ghost, ref, 'x')).toMatchObject({ kind: 'failed', failure: { kind: 'not_found' } })
        expect(await harness().cluster.apply(ghost, object, { force: true })).toMatchObject({
          kind: 'failed',
          failure: { kind: 'not_found' },
        })
      }
    })

    test('KA7 of each kind that can be applied an object that is not there is absent', async () => {
      const { cluster } = harness()
      const { resources } = await cluster.discover()
      const present: string[] = []
      for (const resource of resources.filter(({ verbs }) => verbs.includes('get') && verbs.includes('patch'))) {
        const { group, kind, namespaced } = resource
        const { kind: answer } = await cluster.get(resource, { group, kind, namespace: namespaced ? 'default' : '', name: 'nobody' })
        if (answer !== 'absent') present.push(`${kind} ${group}`)
      }
      expect(present).toEqual([])
    })

    test('KA7 an object that is not there is absent, also in a namespace that is not there', async () => {
      expect((await get(configMap(await namespace(), 'a', {}))).kind).toBe('absent')
      expect((await get(configMap('nowhere', 'a', {}))).kind).toBe('absent')
    })
  })
}
