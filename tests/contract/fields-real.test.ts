// Fields that stay with other managers and fields that are taken from them, on a real API server with its controllers:
// no needless write, no fight, and a field that Git removes is removed.
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { objectPart } from '../../agent/messages/object-messages.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { crd } from '../support/contract-kit.ts'
import { CLUSTER_START_TIMEOUT_MS, type KubeCluster, WRITE_VERBS } from '../support/kube-cluster.ts'
import { type RealCluster, startRealAgent } from '../support/real-cluster.ts'
import type { ReconcileKit, RowOptions } from '../support/reconcile-kit.ts'
import { until } from '../support/watch-probe.ts'

const AGENT = 'fields-agent'
/** What a first revision of one object writes. */
const NAMESPACE_AND_OBJECT = 2
let real: RealCluster
let server: KubeCluster
let kit: ReconcileKit
beforeAll(async () => {
  const started = await startRealAgent({ name: 'fields', controllers: true, kwok: false, userAgent: AGENT })
  ;[real, server, kit] = [started, started.server, started.kit]
}, CLUSTER_START_TIMEOUT_MS)
afterAll(() => real?.stop())

let count = 0
let ns = ''
let service: ServiceId = { project: 'web', service: 'n' }
beforeEach(() => {
  count += 1
  ns = `fields-${count}`
  service = { project: 'web', service: ns }
})

async function request(method: string, path: string, body?: unknown, type = 'application/merge-patch+json'): Promise<K8sObject> {
  const answer = await fetch(server.server + path, {
    method,
    headers: { authorization: `Bearer ${server.token}`, 'content-type': type, 'user-agent': 'somebody-else' },
    tls: { ca: server.caPem },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const json = (await answer.json()) as K8sObject & { message?: string }
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${json.message}`)
  return json
}
const deploymentPath = (name = 'web') => `/apis/apps/v1/namespaces/${ns}/deployments/${name}`
const live = (path = deploymentPath()) => request('GET', path)
const merge = (path: string, manager: string, body: unknown) => request('PATCH', `${path}?fieldManager=${manager}`, body)
const scale = (manager: string, replicas: number) => merge(`${deploymentPath()}/scale`, manager, { spec: { replicas } })
const replicasOf = async () => ((await live())['spec'] as { replicas: number }).replicas
const key = (kind: string, name: string, group = '') => `${group}/${kind}/${ns}/${name}`

const deployment = ({ replicas, annotations }: { replicas?: number; annotations?: Record<string, string> } = {}): K8sObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace: ns, ...(annotations === undefined ? {} : { annotations }) },
  spec: {
    ...(replicas === undefined ? {} : { replicas }),
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'web', image: 'web:1' }] } },
  },
})
const autoscaler = (minReplicas: number): K8sObject => ({
  apiVersion: 'autoscaling/v2',
  kind: 'HorizontalPodAutoscaler',
  metadata: { name: 'web', namespace: ns },
  spec: {
    scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
    minReplicas,
    maxReplicas: 500,
    metrics: [{ type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } } }],
  },
})
const configMap = (data: Record<string, string>): K8sObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'c', namespace: ns },
  data,
})
const configMapPath = () => `/api/v1/namespaces/${ns}/configmaps/c`
const dataOf = async () => ((await live(configMapPath()))['data'] ?? {}) as Record<string, string>

async function desire(objects: K8sObject[], options: RowOptions = {}) {
  const digest = kit.desire(objects, { namespace: ns, ...options }, service)
  await until('the revision is applied', () => kit.service(service)?.applied?.digest === digest)
}
/** The agent's changes in this test's namespace so far. */
const writes = () =>
  server.auditLines({ userAgent: AGENT, verbs: WRITE_VERBS }).filter(({ objectRef }) => objectRef?.namespace === ns).length
const settle = () => systemClock.sleep(700)
const statusOf = (name: string, kind: string, group = '') => kit.object(key(kind, name, group), service)

test('DR10 fifty changes by an autoscaler that is not ours cost no write and no quarrel; when it goes, Git has its replicas again', async () => {
  await desire([deployment({ replicas: 2 })])
  await request(
    'POST',
    `/apis/autoscaling/v2/namespaces/${ns}/horizontalpodautoscalers?fieldManager=somebody`,
    autoscaler(3),
    'application/json',
  )
  // The controller itself, which needs no metrics to reach the minimum.
  await until('the autoscaler has acted', async () => (await replicasOf()) === 3)
  await settle()
  const before = writes()
  for (let replicas = 4; replicas < 54; replicas += 1) await scale('kube-controller-manager', replicas)
  await settle()
  expect(await replicasOf()).toBe(53)
  expect(writes()).toBe(before)
  expect(before).toBe(NAMESPACE_AND_OBJECT)
  const status = statusOf('web', 'Deployment', 'apps')
  expect([status?.sync, kit.drift(key('Deployment', 'web', 'apps'), service)]).toEqual(['Synced', null])
  expect(status?.message).toContain('replicas are ignored, managed by HorizontalPodAutoscaler web')

  await request('DELETE', `/apis/autoscaling/v2/namespaces/${ns}/horizontalpodautoscalers/web`)
  await until('Git has it again', async () => (await replicasOf()) === 2)
  await settle()
  expect(statusOf('web', 'Deployment', 'apps')?.message).not.toContain('left to')
}, 60_000)

test('DR10 kubectl scale without an autoscaler is put back', async () => {
  await desire([deployment({ replicas: 2 })])
  await server.kubectl(['--namespace', ns, 'scale', 'deployment/web', '--replicas=5'])
  await until('put back', async () => (await replicasOf()) === 2)
  await until('said', () => kit.drift(key('Deployment', 'web', 'apps'), service)?.manager === 'kubectl (scale)')
}, 30_000)

test('RC25 nulls in the values of a custom resource arrive, stay, and cost no second write', async () => {
  const group = `${ns}.example`
  const values = {
    type: 'object',
    properties: { values: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }, chart: { type: 'string' } },
  }
  const definition = crd(group, { schema: { openAPIV3Schema: { type: 'object', properties: { spec: values } } } })
  const boat = (name: string, spec: object): K8sObject => ({
    apiVersion: `${group}/v1`,
    kind: 'Boat',
    metadata: { name, namespace: ns },
    spec,
  })
  const kept = { values: { nodeSelector: null, tolerations: [{ key: null }] } }
  await desire([definition, boat('kept', kept), boat('refused', { chart: null })])
  const path = (name: string) => `/apis/${group}/v1/namespaces/${ns}/boats/${name}`
  expect((await live(path('kept')))['spec']).toEqual(kept)
  expect((await live(path('refused')))['spec']).toEqual({})
  await settle()
  const before = writes()
  await merge(path('kept'), 'editor', { spec: { values: { nodeSelector: 'ssd' } } })
  await until('healed', async () => JSON.stringify((await live(path('kept')))['spec']) === JSON.stringify(kept))
  await settle()
  expect(writes()).toBe(before + 1)
  expect(kit.drift(key('Boat', 'kept', group), service)).toMatchObject({
    paths: ['.spec.values.nodeSelector'],
    manager: 'editor',
    count: 1,
  })
  expect([kit.service(service)?.sync, kit.drift(key('Boat', 'refused', group), service)]).toEqual(['Synced', null])
  // What others put into a null is theirs, as in an empty map.
  await merge(path('kept'), 'editor', { spec: { values: { nodeSelector: { disk: 'ssd' } } } })
  await settle()
  expect([writes(), kit.drift(key('Boat', 'kept', group), service)?.count]).toEqual([before + 1, 1])
}, 60_000)

test('DR9 an ignored field gets its first value, is then left to who takes it, and is taken back when the rule goes', async () => {
  const ignore = [{ kind: 'ConfigMap', jsonPointers: ['/data/tuned', '/data/nowhere'] }]
  await desire([configMap({ tuned: '1', fixed: '1' })], { ignore })
  expect(await dataOf()).toEqual({ tuned: '1', fixed: '1' })
  const before = writes()
  for (let n = 2; n < 12; n += 1) await merge(configMapPath(), 'tuner', { data: { tuned: String(n) } })
  await settle()
  expect([await dataOf(), writes() - before]).toEqual([{ tuned: '11', fixed: '1' }, 0])
  await merge(configMapPath(), 'tuner', { data: { fixed: '2' } })
  await until('what is not ignored is put back', async () => (await dataOf())['fixed'] === '1')
  expect((await dataOf())['tuned']).toBe('11')
  await desire([configMap({ tuned: '1', fixed: '3' })], { ignore })
  expect(await dataOf()).toEqual({ tuned: '11', fixed: '3' })
  await desire([configMap({ tuned: '1', fixed: '3' })])
  await until('Git has it again', async () => (await dataOf())['tuned'] === '1')
  expect(await dataOf()).toEqual({ tuned: '1', fixed: '3' })
}, 30_000)

test('DR9 a manager whose fields are left to it may take any of them', async () => {
  await desire([configMap({ a: '1', b: '1' })], { ignore: [{ kind: 'ConfigMap', managers: ['tuner'] }] })
  await merge(configMapPath(), 'tuner', { data: { a: '2' } })
  await settle()
  expect(await dataOf()).toEqual({ a: '2', b: '1' })
  await merge(configMapPath(), 'stranger', { data: { b: '2' } })
  await until('put back', async () => (await dataOf())['b'] === '1')
  expect(await dataOf()).toEqual({ a: '2', b: '1' })
}, 30_000)

test('DR11 additions of others stay and cost no write; asked for, they are named', async () => {
  await desire([configMap({ a: '1' })], { sync: { driftAdditions: 'report' } })
  const before = writes()
  await merge(configMapPath(), 'stranger', { data: { added: 'secret' }, metadata: { labels: { team: 'x' } } })
  await until('named', () => (statusOf('c', 'ConfigMap')?.message ?? '') !== '')
  expect(statusOf('c', 'ConfigMap')?.message).toBe(
    objectPart('fields_added', { paths: '.data.added (stranger), .metadata.labels.team (stranger)' }),
  )
  expect([await dataOf(), writes() - before, statusOf('c', 'ConfigMap')?.sync]).toEqual([{ a: '1', added: 'secret' }, 0, 'Synced'])
}, 30_000)

const APPLIERS: ReadonlyArray<readonly [string, (object: K8sObject) => Promise<unknown>]> = [
  ['kubectl apply', (object) => server.kubectl(['apply', '-f', '-'], { stdin: JSON.stringify(object) })],
  ['kubectl apply --server-side', (object) => server.kubectl(['apply', '--server-side', '-f', '-'], { stdin: JSON.stringify(object) })],
  ['kubectl create', (object) => server.kubectl(['create', '-f', '-'], { stdin: JSON.stringify(object) })],
  ['helm', (object) => request('POST', `/api/v1/namespaces/${ns}/configmaps?fieldManager=helm`, object, 'application/json')],
  [
    'Argo CD',
    (object) => request('POST', `/api/v1/namespaces/${ns}/configmaps?fieldManager=argocd-controller`, object, 'application/json'),
  ],
  [
    'Flux',
    (object) => request('PATCH', `${configMapPath()}?fieldManager=kustomize-controller&force=true`, object, 'application/apply-patch+yaml'),
  ],
]
test.each(APPLIERS)(
  'TK1 what was applied by %s and is not in Git goes at adoption, the rest changes hands',
  async (_, apply) => {
    await server.kubectl(['create', 'namespace', ns])
    await apply(configMap({ a: '1', gone: '1' }))
    await merge(configMapPath(), 'stranger', { data: { stays: '1' } })
    await desire([configMap({ a: '2' })])
    expect(await dataOf()).toEqual({ a: '2', stays: '1' })
    const { annotations, managedFields } = (await live(configMapPath())).metadata
    expect(Object.keys(annotations ?? {})).toEqual(['skerry.dev/commit', 'skerry.dev/revision', 'skerry.dev/tracking'])
    expect(managedFields?.map(({ manager }) => manager).sort()).toEqual(['skerry', 'stranger'])
    await desire([configMap({ b: '1' })])
    expect(await dataOf()).toEqual({ b: '1', stays: '1' })
  },
  30_000,
)

test('TK1 kubectl apply on an object of ours is undone, also what it only added', async () => {
  await desire([configMap({ a: '1' })])
  await server.kubectl(['apply', '-f', '-'], { stdin: JSON.stringify(configMap({ a: '2', more: '1' })) })
  await until('undone', async () => JSON.stringify(await dataOf()) === '{"a":"1"}')
  await settle()
  const before = writes()
  const { annotations, managedFields } = (await live(configMapPath())).metadata
  expect([Object.keys(annotations ?? {}), managedFields?.map(({ manager }) => manager)]).toEqual([
    ['skerry.dev/commit', 'skerry.dev/revision', 'skerry.dev/tracking'],
    ['skerry'],
  ])
  await settle()
  expect(writes()).toBe(before)
}, 30_000)

test('TK1 without sync.force nothing is taken from anybody', async () => {
  await server.kubectl(['create', 'namespace', ns])
  await server.kubectl(['apply', '-f', '-'], { stdin: JSON.stringify(configMap({ a: '1', theirs: '1' })) })
  await desire([configMap({ a: '1' })], { sync: { force: false } })
  expect(await dataOf()).toEqual({ a: '1', theirs: '1' })
}, 30_000)

test('TK1 of objects without managedFields only what Git names is taken: a claim keeps its volume, a Job its selector', async () => {
  const template = { metadata: { labels: { app: 'web' } }, spec: { restartPolicy: 'Never', containers: [{ name: 'web', image: 'web:1' }] } }
  const claim = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName: 'x', volumeName: 'v' }
  const { volumeName, ...wanted } = claim
  const objects = (size: number): K8sObject[] => [
    { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'p', namespace: ns, labels: { size: `${size}` } }, spec: wanted },
    { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'j', namespace: ns, labels: { size: `${size}` } }, spec: { template } },
  ]
  const claims = `/api/v1/namespaces/${ns}/persistentvolumeclaims`
  const paths = [`${claims}/p`, `/apis/batch/v1/namespaces/${ns}/jobs/j`] as const
  await desire([configMap({})])
  await request(
    'POST',
    claims,
    { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'p' }, spec: claim },
    'application/json',
  )
  const job = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'j' }, spec: { template } }
  await request('POST', `/apis/batch/v1/namespaces/${ns}/jobs`, job, 'application/json')
  await settle()
  for (const path of paths) await request('PATCH', path, { metadata: { managedFields: [{}] } })
  const specs = async () => (await Promise.all(paths.map((path) => live(path)))).map((object) => object['spec'])
  const before = await specs()
  for (const size of [1, 2]) {
    kit.desire(objects(size), { namespace: ns }, service)
    await until('both are as they are to be', () =>
      [statusOf('p', 'PersistentVolumeClaim'), statusOf('j', 'Job', 'batch')].every((status) => status?.sync === 'Synced'),
    )
    await settle()
    expect(await specs()).toEqual(before)
    expect((await live(paths[0])).metadata.labels).toMatchObject({ size: `${size}` })
  }
  expect(volumeName).toBe((before[0] as { volumeName: string }).volumeName)
}, 30_000)
