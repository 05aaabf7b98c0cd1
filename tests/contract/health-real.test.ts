// Health, explanations and Kubernetes Events on a real API server with its controllers, scheduler and nodes.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createRestCluster } from '../../agent/cluster/rest-cluster.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import type { ServiceHealth } from '../../shared/model/health-rules.ts'
import { crd } from '../support/contract-kit.ts'
import { CLUSTER_START_TIMEOUT_MS, eventually, type KubeCluster } from '../support/kube-cluster.ts'
import { REST_DEPS, type RealCluster, startRealAgent } from '../support/real-cluster.ts'
import type { ReconcileKit } from '../support/reconcile-kit.ts'

const AGENT = 'health-agent'
let real: RealCluster
let server: KubeCluster
let kit: ReconcileKit
beforeAll(async () => {
  const started = await startRealAgent({ name: 'health', controllers: true, userAgent: AGENT }, { told: { kubeEvents: 'problems' } })
  ;[real, server, kit] = [started, started.server, started.kit]
}, CLUSTER_START_TIMEOUT_MS)
afterAll(() => real?.stop())

const serviceOf = (service: string) => ({ project: 'web', service })
const requests = (since: number, verbs?: readonly string[]) =>
  server
    .auditLines({ userAgent: AGENT, since, ...(verbs === undefined ? {} : { verbs }) })
    .filter(({ stage }) => stage === 'ResponseComplete')
const json = async <T>(args: readonly string[]): Promise<T> => JSON.parse(await server.kubectl([...args, '-o', 'json'])) as T

const workload = (name: string, podSpec: Record<string, unknown>): K8sObject =>
  ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name },
    spec: {
      replicas: 1,
      progressDeadlineSeconds: 1,
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'app', image: 'app:1' }], ...podSpec } },
    },
  }) as unknown as K8sObject

test('HE8 a Deployment whose Pod finds no node says so in the scheduler’s words, and asks once', async () => {
  const mark = server.auditMark()
  const id = serviceOf('explained')
  kit.desire([workload('lost', { nodeSelector: { nobody: 'has-this' } })], { namespace: 'explained' }, id)
  const status = await eventually('the explanation', async () => {
    const found = kit.object('apps/Deployment/explained/lost', id)
    return found?.message.includes('Unschedulable') ? found : undefined
  })
  expect(status).toMatchObject({ health: 'Degraded', reason: 'ProgressDeadlineExceeded' })
  expect(status.message).toMatch(
    /; Pod explained\/lost-[a-z0-9]+-[a-z0-9]+: Unschedulable: 0\/2 nodes are available: .*node\(s\) didn't match/,
  )
  expect(kit.service(id)?.message).toContain('Unschedulable')
  await Bun.sleep(2_000)
  const asked = requests(mark).filter(({ requestURI }) => requestURI.includes('/pods'))
  expect(asked.map(({ verb, requestURI }) => `${verb} ${requestURI}`)).toEqual([expect.stringContaining('/pods?')])
}, 60_000)

test('HE8 what is well is asked nothing', async () => {
  const mark = server.auditMark()
  const id = serviceOf('well')
  kit.desire([workload('fine', {})], { namespace: 'well' }, id)
  await eventually('a healthy service', async () => kit.service(id)?.health === 'Healthy')
  expect(requests(mark).filter(({ requestURI }) => requestURI.includes('/pods'))).toEqual([])
}, 60_000)

interface Events {
  items: Array<{ reason: string; count: number; message: string; involvedObject: { uid: string } }>
}

test('KE3 kubectl shows what was put back, once with a count that grows', async () => {
  const id = serviceOf('told')
  kit.desire(
    [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { n: '1' } } as unknown as K8sObject],
    { namespace: 'told' },
    id,
  )
  await eventually('the object', async () => kit.service(id)?.sync === 'Synced')
  const drift = async (count: number) => {
    await server.kubectl([
      'patch',
      'configmap',
      'a',
      '-n',
      'told',
      '--type=merge',
      '--field-manager=somebody',
      '-p',
      JSON.stringify({ data: { n: `x${count}` } }),
    ])
    return eventually(`count ${count}`, async () => {
      const { items } = await json<Events>(['get', 'events', '-n', 'told'])
      return items.length === 1 && items[0]?.count === count ? items[0] : undefined
    })
  }
  await drift(1)
  const event = await drift(2)
  expect(event).toMatchObject({
    reason: 'DriftHealed',
    message: expect.stringContaining(': .data.n changed by somebody; restored (commit '),
  })
  const { metadata } = await json<K8sObject>(['get', 'configmap', 'a', '-n', 'told'])
  expect(event.involvedObject.uid).toBe(metadata.uid ?? '')
  expect(await server.kubectl(['describe', 'configmap', 'a', '-n', 'told'])).toContain('DriftHealed')
  expect(await server.kubectl(['get', 'events', '-n', 'told'])).toMatch(/Normal\s+DriftHealed\s+configmap\/a\s/)
}, 60_000)

test('KE3 an Event about what has no namespace is taken, too', async () => {
  const id = serviceOf('wide')
  const role = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'wide:reader' },
    rules: [],
  } as unknown as K8sObject
  kit.desire([role], {}, id)
  await eventually('the role', async () => kit.service(id)?.sync === 'Synced')
  const rules = [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }]
  await server.kubectl(['patch', 'clusterrole', 'wide:reader', '--type=merge', '-p', JSON.stringify({ rules })])
  await eventually('the event', async () => (await server.kubectl(['get', 'events', '-n', 'default'])).includes('clusterrole/wide:reader'))
}, 60_000)

test('KE2 a refusal by the API server is an Event of the object that it refused', async () => {
  const id = serviceOf('refused')
  const bad = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'bad' },
    spec: { ports: [{ port: 99_999_999 }] },
  } as unknown as K8sObject
  kit.desire([bad], { namespace: 'refused' }, id)
  await eventually(
    'the event',
    async () => (await server.kubectl(['get', 'events', '-n', 'refused'])).match(/Warning\s+Failed\s+service\/bad/) !== null,
  )
}, 60_000)

const volumeClaim = (name: string, storageClassName: string): K8sObject =>
  ({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } }, storageClassName },
  }) as unknown as K8sObject
const inWave = (wave: number, object: K8sObject): K8sObject => ({
  ...object,
  metadata: { ...object.metadata, annotations: { 'skerry.dev/wave': String(wave) } },
})

test('HE20 a claim that is bound at first use does not hold the wave of its consumer, and is bound then', async () => {
  const id = serviceOf('volumes')
  const late = {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'late' },
    provisioner: 'kubernetes.io/host-path',
    volumeBindingMode: 'WaitForFirstConsumer',
  } as unknown as K8sObject
  const consumer = workload('consumer', {
    volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
  })
  Object.assign(consumer['spec'] as object, { progressDeadlineSeconds: 600 })
  kit.desire([late, inWave(1, volumeClaim('data', 'late'))], { namespace: 'volumes' }, id)
  const claim = () => kit.object('/PersistentVolumeClaim/volumes/data', id)
  await eventually('a claim that waits', async () => claim()?.reason === 'WaitForFirstConsumer')
  expect([claim()?.health, kit.service(id)?.health]).toEqual(['Healthy', 'Healthy'])
  kit.desire([late, inWave(1, volumeClaim('data', 'late')), inWave(2, consumer)], { namespace: 'volumes' }, id)
  await eventually('the consumer', async () => kit.object('apps/Deployment/volumes/consumer', id)?.health === 'Healthy', 60_000)
  await eventually('a bound claim', async () => claim()?.reason === 'Healthy')
}, 90_000)

test('HE8 HE21 what hangs is Degraded after its deadline, and says why: a Job without a node, Pods without quota, a claim without a class', async () => {
  const id = serviceOf('hanging')
  const template = { spec: { containers: [{ name: 'app', image: 'app:1' }], restartPolicy: 'Never', nodeSelector: { nobody: 'has-this' } } }
  const job = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'work' }, spec: { template } } as unknown as K8sObject
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'hanging-quota' } } as unknown as K8sObject
  const quota = {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'none', namespace: 'hanging-quota' },
    spec: { hard: { 'count/pods': '0' } },
  } as unknown as K8sObject
  const labels = { app: 'set' }
  const spec = {
    selector: { matchLabels: labels },
    template: {
      metadata: { labels },
      spec: { containers: [{ name: 'app', image: 'app:1', env: [{ name: 'PASSWORD', value: 'hunter2' }] }] },
    },
  }
  const named = (kind: string, more: Record<string, unknown> = {}) =>
    inWave(1, {
      apiVersion: 'apps/v1',
      kind,
      metadata: { name: kind.toLowerCase(), namespace: 'hanging-quota' },
      spec: { ...spec, ...more },
    } as unknown as K8sObject)
  kit.desire(
    [namespace, quota, job, volumeClaim('orphan', 'nowhere'), named('StatefulSet', { serviceName: 'x' }), named('DaemonSet')],
    { namespace: 'hanging', sync: { healthDeadline: '8s', waitForHealth: false } },
    id,
  )
  const expected: Array<[key: string, cause: string]> = [
    ['batch/Job/hanging/work', 'Unschedulable: 0/2 nodes are available'],
    ['apps/StatefulSet/hanging-quota/statefulset', 'quota: none'],
    ['apps/DaemonSet/hanging-quota/daemonset', 'quota: none'],
    ['/PersistentVolumeClaim/hanging/orphan', 'ProvisioningFailed: storageclass.storage.k8s.io "nowhere" not found'],
  ]
  for (const [key, cause] of expected) {
    await eventually(key, async () => {
      const status = kit.object(key, id)
      return status?.reason === 'DeadlineExceeded' && status.message.includes(cause)
    })
  }
  expect(JSON.stringify(expected.map(([key]) => kit.object(key, id)))).not.toContain('hunter2')
}, 90_000)

const BOATS = crd('harbour.example', {
  subresources: { status: {} },
  schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
})

test('HE6 HE9 a service’s rule tells the health of custom resources; another rule looks at each of them once', async () => {
  const id = serviceOf('harbour')
  const boats = ['a', 'b'].map(
    (name) => ({ apiVersion: 'harbour.example/v1', kind: 'Boat', metadata: { name }, spec: { seats: 2 } }) as unknown as K8sObject,
  )
  const rule: ServiceHealth = {
    apiVersion: 'harbour.example/v1',
    kind: 'Boat',
    current: "status.state == 'Afloat' && status.seats + 0 == spec.seats",
    inProgress: '!has(status.state)',
    failed: "status.?state.orValue('') == 'Sunk'",
  }
  const health = (name: string) => kit.object(`harbour.example/Boat/harbour/${name}`, id)
  const setStatus = (name: string, status: Record<string, unknown>) =>
    server.kubectl(['patch', 'boats', name, '-n', 'harbour', '--subresource=status', '--type=merge', '-p', JSON.stringify({ status })])
  kit.desire([BOATS, ...boats], { namespace: 'harbour', health: [rule] }, id)
  await eventually('boats', async () => health('a')?.reason === 'HealthRuleInProgress' && health('b')?.reason === 'HealthRuleInProgress')
  await setStatus('a', { state: 'Afloat', seats: 2 })
  await setStatus('b', { state: 'Sunk' })
  await eventually('both words', async () => health('a')?.health === 'Healthy' && health('b')?.health === 'Degraded')
  const mark = server.auditMark()
  const { current, apiVersion, kind } = rule
  kit.desire([BOATS, ...boats], { namespace: 'harbour', health: [{ apiVersion, kind, current }], commit: 'second' }, id)
  await eventually('the new rule', async () => health('b')?.reason === 'HealthRuleNotMet' && health('a')?.health === 'Healthy')
  expect(
    requests(mark, ['get', 'list', 'patch', 'create', 'update']).filter(({ requestURI }) => requestURI.includes('/boats')),
  ).toHaveLength(2)
}, 60_000)

test('HE8 KE1 idle asks nothing and writes nothing, with a workload that stays Degraded', async () => {
  await Bun.sleep(1_000)
  const mark = server.auditMark()
  await Bun.sleep(5_000)
  expect(requests(mark).filter(({ verb }) => verb !== 'watch')).toEqual([])
}, 20_000)

test('HE8 a log that cannot be had is a failure with the API server’s reason', async () => {
  const pod = { group: '', kind: 'Pod', namespace: 'default', name: 'nobody' }
  const options = { container: 'app', previous: false, lines: 5 }
  expect(await real.cluster.logTail(pod, options)).toMatchObject({ kind: 'failed', failure: { kind: 'not_found' } })
})

test('HE8 a log is read by its last lines, as text', async () => {
  const asked: string[] = []
  const listener = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request) => {
      asked.push(request.url.slice(request.url.indexOf('/api')))
      return new Response('{"level":"error"}\nlast\n')
    },
  })
  const read = async () => ({ tls: { insecure: false }, authorization: null })
  const client = createRestCluster({ source: 'test', server: `http://127.0.0.1:${listener.port}`, read }, REST_DEPS)
  const pod = { group: '', kind: 'Pod', namespace: 'shop', name: 'web-0' }
  expect(await client.logTail(pod, { container: 'app', previous: true, lines: 5 })).toEqual({
    kind: 'log',
    text: '{"level":"error"}\nlast\n',
  })
  expect(asked).toEqual(['/api/v1/namespaces/shop/pods/web-0/log?container=app&tailLines=5&limitBytes=16384&previous=true'])
  client.close()
  await listener.stop(true)
})
