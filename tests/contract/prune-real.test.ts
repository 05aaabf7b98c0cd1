// Prunes on a real API server with its controllers, scheduler and one kwok node: what is held by what shall go, and
// what does not go.
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { deletionText } from '../../agent/messages/deletion-messages.ts'
import { objectText } from '../../agent/messages/object-messages.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { crd } from '../support/contract-kit.ts'
import { CLUSTER_START_TIMEOUT_MS, eventually, type KubeCluster } from '../support/kube-cluster.ts'
import { type RealCluster, startRealAgent } from '../support/real-cluster.ts'
import type { ReconcileKit } from '../support/reconcile-kit.ts'
import { SOME, said } from '../support/said.ts'

const TEST_MS = 90_000
let real: RealCluster
let server: KubeCluster
let kit: ReconcileKit
beforeAll(async () => {
  const started = await startRealAgent({ name: 'prune', controllers: true, nodes: 1, userAgent: 'prune-agent' })
  ;[real, server, kit] = [started, started.server, started.kit]
}, CLUSTER_START_TIMEOUT_MS)
afterAll(() => real?.stop(), CLUSTER_START_TIMEOUT_MS)

let count = 0
let ns = ''
let service: ServiceId = { project: 'web', service: 'n' }
beforeEach(() => {
  count += 1
  ns = `prune-${count}`
  service = { project: 'web', service: ns }
})
const configMap = (name: string): K8sObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: ns },
  data: { a: '1' },
})
const deployment = (name: string, ports: object[] = []): K8sObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name, namespace: ns },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: { containers: [{ name: 'c', image: 'c:1', ports }] },
    },
  },
})
/** The only node has that port once. */
const withHostPort = (name: string): K8sObject => deployment(name, [{ containerPort: 80, hostPort: 8_080 }])
const names = async (kind: string) => (await server.kubectl(['-n', ns, 'get', kind, '-o', 'name'])).trim().split('\n')
const row = (): string => `${kit.service(service)?.reason} ${kit.service(service)?.message}`

test(
  'PR6, PR11 a hostPort that the old one holds: both sides are named past the deadline, and pruneWhen: applied lets the new one in',
  async () => {
    const sync = { healthDeadline: '5s' } as const
    kit.desire([withHostPort('old')], { namespace: ns, sync }, service)
    await eventually('the old one runs', async () => kit.service(service)?.health === 'Healthy', TEST_MS)
    kit.desire([withHostPort('new')], { namespace: ns, sync }, service)
    await eventually('overdue', async () => kit.service(service)?.reason === 'PruneOverdue' || undefined, TEST_MS)
    const overdue = { object: `Deployment ${ns}/new`, deadline: '5s', why: SOME, names: `Deployment ${ns}/old` }
    expect(row()).toMatch(said(deletionText('overdue_healthy', overdue)))
    expect(await names('deployments')).toEqual(['deployment.apps/new', 'deployment.apps/old'])
    kit.desire([withHostPort('new')], { namespace: ns, sync: { ...sync, pruneWhen: 'applied' } }, service)
    await eventually(
      'the new one runs',
      async () => kit.service(service)?.reason === 'Synced' && kit.service(service)?.health === 'Healthy',
      TEST_MS,
    )
    expect(await names('deployments')).toEqual(['deployment.apps/new'])
  },
  TEST_MS * 2,
)

const onPort = (name: string, extra: object): K8sObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace: ns },
  spec: { selector: { app: 'x' }, ports: [{ port: 80 }], ...extra },
})
test.each([
  ['nodePort', { type: 'NodePort', ports: [{ port: 80, nodePort: 30_080 }] }, 'provided port is already allocated'],
  ['clusterIP', { clusterIP: '10.0.0.77' }, 'provided IP is already allocated'],
])(
  'KA32, PR6, RC22 a %s that the old Service holds: it says so, and pruneWhen: applied lets the new one have it',
  async (_, spec, words) => {
    kit.desire([onPort('old', spec)], { namespace: ns }, service)
    await eventually('the old one is there', async () => kit.service(service)?.reason === 'Synced', TEST_MS)
    kit.desire([onPort('new', spec)], { namespace: ns }, service)
    await eventually('it is refused', async () => kit.service(service)?.reason === 'AlreadyTaken' || undefined, TEST_MS)
    expect(row()).toMatch(said(objectText('AlreadyTaken', { failure: `${SOME}${words}${SOME}` })))
    expect(await names('services')).toEqual(['service/old'])
    kit.desire([onPort('new', spec)], { namespace: ns, sync: { pruneWhen: 'applied' } }, service)
    await eventually('the new one has it', async () => kit.service(service)?.reason === 'Synced', 20_000)
    expect(await names('services')).toEqual(['service/new'])
  },
  TEST_MS * 2,
)

test(
  'PR9 a Namespace that cannot be finalized says what is left in it, and a finalizer is named',
  async () => {
    const sync = { healthDeadline: '5s' } as const
    const other = `${ns}-other`
    const annotations = { 'skerry.dev/prune': 'allowed' }
    const namespace: K8sObject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: other, annotations } }
    kit.desire([configMap('keep'), configMap('stuck'), namespace], { namespace: ns, sync }, service)
    await eventually('it is there', async () => kit.service(service)?.reason === 'Synced', TEST_MS)
    await server.kubectl([
      '-n',
      ns,
      'patch',
      'configmap',
      'stuck',
      '--type=merge',
      '-p',
      '{"metadata":{"finalizers":["example.com/hold"]}}',
    ])
    await server.kubectl(['-n', other, 'create', 'configmap', 'left'])
    await server.kubectl([
      '-n',
      other,
      'patch',
      'configmap',
      'left',
      '--type=merge',
      '-p',
      '{"metadata":{"finalizers":["example.com/hold"]}}',
    ])
    kit.desire([configMap('keep'), configMap('stuck')], { namespace: ns, sync }, service)
    const key = `/Namespace//${other}`
    await eventually('the namespace is stuck', async () => kit.object(key, service)?.reason === 'DeletionStuck', TEST_MS)
    expect(kit.object(key, service)?.health).toBe('Degraded')
    // Its controller looks at it after 5 s only.
    await eventually(
      'it says what is left',
      async () => kit.object(key, service)?.message.includes('example.com/hold in 1 resource instances'),
      TEST_MS,
    )
    kit.desire([configMap('keep')], { namespace: ns, sync }, service)
    const stuck = `/ConfigMap/${ns}/stuck`
    await eventually('the object is stuck', async () => kit.object(stuck, service)?.reason === 'DeletionStuck', TEST_MS)
    expect(kit.object(stuck, service)?.message).toContain('held by the finalizers example.com/hold')
    for (const [where, name] of [
      [ns, 'stuck'],
      [other, 'left'],
    ] as const)
      await server.kubectl(['-n', where, 'patch', 'configmap', name, '--type=merge', '-p', '{"metadata":{"finalizers":null}}'])
    await eventually('all is gone', async () => kit.service(service)?.reason === 'Synced', TEST_MS)
  },
  TEST_MS * 2,
)

test(
  'PR10 an object that is renamed from one API group to another is the same one, and stays',
  async () => {
    const common = { reason: 'Made', type: 'Normal', eventTime: '2026-01-01T00:00:00.000000Z', action: 'Make', reportingInstance: 'x' }
    const target = { apiVersion: 'v1', kind: 'ConfigMap', name: 'keep', namespace: ns }
    const metadata = { name: 'e', namespace: ns }
    const core = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata,
      ...common,
      reportingComponent: 'example.com/x',
      involvedObject: target,
      message: 'm',
    } as K8sObject
    const group = {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata,
      ...common,
      reportingController: 'example.com/x',
      regarding: target,
      note: 'm',
    } as K8sObject
    kit.desire([configMap('keep'), core], { namespace: ns }, service)
    await eventually('it is there', async () => kit.service(service)?.reason === 'Synced', TEST_MS)
    const uid = async () => (await server.kubectl(['-n', ns, 'get', 'events.v1.', 'e', '-o', 'jsonpath={.metadata.uid}'])).trim()
    const before = await uid()
    kit.desire([configMap('keep'), group], { namespace: ns }, service)
    await eventually(
      'it is renamed',
      async () => kit.object(`events.k8s.io/Event/${ns}/e`, service)?.sync === 'Synced' && kit.object(`/Event/${ns}/e`, service) === null,
      30_000,
    ).catch(() => {
      throw new Error(`${row()} ${JSON.stringify(kit.object(`events.k8s.io/Event/${ns}/e`, service))}`)
    })
    expect(await uid()).toBe(before)
  },
  TEST_MS,
)

const claim = (name: string): K8sObject => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name, namespace: ns },
  spec: { accessModes: ['ReadWriteOnce'], storageClassName: `host-${ns}`, resources: { requests: { storage: '1Mi' } } },
})
const storageClass = (): K8sObject => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: `host-${ns}` },
  provisioner: 'kubernetes.io/host-path',
  reclaimPolicy: 'Delete',
  volumeBindingMode: 'Immediate',
})
const boundVolume = async (name: string) =>
  (
    await server.kubectl(['-n', ns, 'get', 'pvc', name, '--ignore-not-found', '-o', 'jsonpath={.spec.volumeName}{" "}{.status.phase}'])
  ).trim()

test(
  'RM1, RM2 a bound claim, its volume and its namespace stay until the claim is confirmed; everything else of the service goes',
  async () => {
    const namespace: K8sObject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: ns } }
    const sync = { createNamespace: false } as const
    kit.desire([namespace, storageClass(), claim('data'), configMap('a')], { namespace: ns, sync }, service)
    const bound = await eventually(
      'the claim is bound',
      async () => (/^\S+ Bound$/.test(await boundVolume('data')) ? boundVolume('data') : undefined),
      TEST_MS,
    )
    const volume = bound.split(' ')[0] ?? ''
    kit.remove('prune', service, 1, { namespace: ns, sync })
    await eventually('the rest is gone', async () => (await names('configmaps')).join() === 'configmap/kube-root-ca.crt', TEST_MS)
    await eventually('it asks', async () => kit.service(service)?.reason === 'ConfirmationPending', TEST_MS)
    expect(kit.service(service)).toMatchObject({ refusal: { names: [`PersistentVolumeClaim ${ns}/data`], only: true } })
    expect(await boundVolume('data')).toBe(bound)
    expect((await server.kubectl(['get', 'pv', volume, '-o', 'jsonpath={.metadata.deletionTimestamp}'])).trim()).toBe('')
    expect(kit.confirm(service)).toMatchObject({ kind: 'done' })
    await eventually('it is removed', async () => kit.service(service)?.removed === true, TEST_MS)
    await eventually(
      'its volume no longer exists',
      async () => (await server.kubectl(['get', 'pv', volume, '--ignore-not-found'])).trim() === '',
      TEST_MS,
    )
  },
  TEST_MS * 2,
)

test(
  'RM3 a Namespace with objects of others waits and names them; what controllers made for the service does not count',
  async () => {
    const namespace: K8sObject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: ns } }
    const sync = { createNamespace: false } as const
    kit.desire([namespace, deployment('web'), onPort('web', {})], { namespace: ns, sync }, service)
    await eventually('it runs', async () => kit.service(service)?.health === 'Healthy', TEST_MS)
    await server.kubectl(['-n', ns, 'create', 'configmap', 'theirs'])
    kit.remove('prune', service, 1, { namespace: ns, sync })
    await eventually('it asks', async () => kit.service(service)?.reason === 'ConfirmationPending', TEST_MS).catch(() => {
      throw new Error(row())
    })
    expect(row()).toContain(`Namespace ${ns} (1 object not of this service is deleted with it: ConfigMap ${ns}/theirs)`)
    expect(await names('configmaps')).toEqual(['configmap/kube-root-ca.crt', 'configmap/theirs'])
    expect(kit.confirm(service)).toMatchObject({ kind: 'done' })
    await eventually('it is removed', async () => kit.service(service)?.removed === true, TEST_MS)
  },
  TEST_MS * 2,
)

test(
  'RM3, KA25 a CRD with custom resources of others waits, and the API server deletes none of them; confirmed it goes with them',
  async () => {
    const group = `${ns}.example.com`
    const boat = (name: string): K8sObject => ({ apiVersion: `${group}/v1`, kind: 'Boat', metadata: { name, namespace: ns } })
    const definition = crd(group)
    kit.desire([definition, boat('ours')], { namespace: ns }, service)
    await eventually('it is there', async () => kit.service(service)?.reason === 'Synced', TEST_MS)
    await server.kubectl(['apply', '-f', '-'], { stdin: JSON.stringify(boat('theirs')) })
    kit.remove('prune', service, 1, { namespace: ns })
    await eventually('it asks', async () => kit.service(service)?.reason === 'ConfirmationPending', TEST_MS).catch(() => {
      throw new Error(row())
    })
    expect(kit.service(service)?.refusal?.names).toEqual([`CustomResourceDefinition boats.${group}`])
    expect(await names(`boats.${group}`)).toEqual([`boat.${group}/theirs`])
    expect(kit.confirm(service)).toMatchObject({ kind: 'done' })
    await eventually('it is removed', async () => kit.service(service)?.removed === true, TEST_MS)
  },
  TEST_MS * 2,
)
