// The reconciler on a real API server with real controllers: what Kubernetes does to objects, and what is healed, left
// alone, pruned.
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { SERVICE_LABEL } from '../../shared/kube/marks.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { CLUSTER_START_TIMEOUT_MS, eventually, type KubeCluster, WRITE_VERBS } from '../support/kube-cluster.ts'
import { agentsOn, type RealCluster, settled, startRealCluster } from '../support/real-cluster.ts'
import { configMap, configMaps } from '../support/reconcile-kit.ts'

const USER_AGENT = 'skerry-agent/test'
let real: RealCluster
let server: KubeCluster
beforeAll(async () => {
  real = await startRealCluster({ name: 'reconcile', controllers: true, userAgent: USER_AGENT })
  server = real.server
}, CLUSTER_START_TIMEOUT_MS)
const { start, removeAll } = agentsOn(() => real.cluster, { place: 'this machine' })
afterEach(removeAll, 90_000)
afterAll(() => real?.stop())

const labels = { app: 'web' }
const template = {
  metadata: { labels },
  spec: { containers: [{ name: 'web', image: 'web:1', resources: { requests: { cpu: '1000m', memory: '3072Mi' } } }] },
}
const object = (
  apiVersion: string,
  kind: string,
  name: string,
  rest: Record<string, unknown> = {},
  namespace: string | null = 'shop',
): K8sObject => ({ apiVersion, kind, metadata: { name, ...(namespace === null ? {} : { namespace }) }, ...rest }) as K8sObject
const deployment = (name: string, replicas: number | undefined = 2): K8sObject =>
  object('apps/v1', 'Deployment', name, {
    spec: { ...(replicas === undefined ? {} : { replicas }), selector: { matchLabels: labels }, template },
  })
const crd = object(
  'apiextensions.k8s.io/v1',
  'CustomResourceDefinition',
  'things.example.com',
  {
    spec: {
      group: 'example.com',
      names: { kind: 'Thing', plural: 'things', singular: 'thing', listKind: 'ThingList' },
      scope: 'Namespaced',
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        },
      ],
    },
  },
  null,
)
const rbac = 'rbac.authorization.k8s.io/v1'
const MIXED: K8sObject[] = [
  object('example.com/v1', 'Thing', 't', { spec: { size: 1 } }),
  object('networking.k8s.io/v1', 'Ingress', 'web', {
    spec: {
      rules: [
        { host: 'web', http: { paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }] } },
      ],
    },
  }),
  object('autoscaling/v2', 'HorizontalPodAutoscaler', 'auto', {
    spec: { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'auto' }, minReplicas: 1, maxReplicas: 3 },
  }),
  object('policy/v1', 'PodDisruptionBudget', 'web', { spec: { minAvailable: 1, selector: { matchLabels: labels } } }),
  deployment('web'),
  deployment('auto', undefined),
  object('apps/v1', 'StatefulSet', 'db', {
    spec: {
      replicas: 1,
      serviceName: 'web',
      selector: { matchLabels: { app: 'db' } },
      template: { ...template, metadata: { labels: { app: 'db' } } },
    },
  }),
  object('apps/v1', 'DaemonSet', 'node', {
    spec: { selector: { matchLabels: { app: 'node' } }, template: { ...template, metadata: { labels: { app: 'node' } } } },
  }),
  object('batch/v1', 'CronJob', 'cron', {
    spec: {
      schedule: '0 0 1 1 *',
      jobTemplate: { spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'c' }] } } } },
    },
  }),
  object('v1', 'Service', 'web', { spec: { selector: labels, ports: [{ port: 80 }] } }),
  object('v1', 'Secret', 'secret', { stringData: { password: 'x' } }),
  object('v1', 'ServiceAccount', 'sa'),
  object(rbac, 'Role', 'r', { rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }] }),
  object(rbac, 'RoleBinding', 'r', {
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'r' },
    subjects: [{ kind: 'ServiceAccount', name: 'sa', namespace: 'shop' }],
  }),
  object(rbac, 'ClusterRole', 'skerry-test', { rules: [] }, null),
  object('v1', 'LimitRange', 'limits', { spec: { limits: [{ type: 'Container', default: { cpu: '1' } }] } }),
  object('storage.k8s.io/v1', 'StorageClass', 'skerry-test', { provisioner: 'example.com/none' }, null),
  object('scheduling.k8s.io/v1', 'PriorityClass', 'skerry-test', { value: 10 }, null),
  object('networking.k8s.io/v1', 'NetworkPolicy', 'np', { spec: { podSelector: {}, policyTypes: ['Ingress'] } }),
  crd,
  object('v1', 'Namespace', 'shop', {}, null),
  ...configMaps(79, 'shop'),
]

const writesSince = (mark: number) => server.auditLines({ since: mark, userAgent: USER_AGENT, verbs: WRITE_VERBS })
const field = (path: string, ...what: string[]) => server.kubectl(['-n', 'shop', 'get', ...what, '-o', `jsonpath=${path}`])

test('RC7, OR1 a hundred objects of twenty kinds become healthy; a second life of the agent writes nothing', async () => {
  const kit = start()
  const digest = kit.desire(MIXED)
  const startedMs = performance.now()
  await settled(kit, digest, 90_000)
  process.stdout.write(`  100 mixed objects healthy after ${Math.round(performance.now() - startedMs)} ms\n`)
  await kit.stop()
  const mark = server.auditMark()
  kit.start()
  await eventually('claim held', async () => kit.claims.at(-1)?.kind === 'held')
  await Bun.sleep(2_000)
  expect(writesSince(mark)).toEqual([])
  expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy', healthyCount: 100 })

  // What others add, and what controllers do, is left alone.
  const foreign = server.auditMark()
  await server.kubectl(['-n', 'shop', 'annotate', 'deployment', 'web', 'theirs=x'])
  await server.kubectl(['-n', 'shop', 'label', 'configmap', 'm0001', 'theirs=x'])
  await server.kubectl(['-n', 'shop', 'rollout', 'restart', 'deployment', 'web'])
  await server.kubectl(['-n', 'shop', 'scale', 'deployment', 'auto', '--replicas=2'])
  await server.kubectl([
    '-n',
    'shop',
    'patch',
    'deployment',
    'auto',
    '--type=json',
    '-p',
    '[{"op":"add","path":"/spec/template/spec/containers/-","value":{"name":"sidecar","image":"s"}}]',
  ])
  await Bun.sleep(3_000)
  expect(writesSince(foreign)).toEqual([])

  // What others change of ours is put back, each by one write.
  const healing = server.auditMark()
  const heal = async (what: string, args: string[], path: string, wanted: string, object: string[]) => {
    await server.kubectl(['-n', 'shop', ...args])
    await eventually(what, async () => (await field(path, ...object)) === wanted, 10_000)
  }
  await heal('scale', ['scale', 'deployment', 'web', '--replicas=5'], '{.spec.replicas}', '2', ['deployment', 'web'])
  await heal('set image', ['set', 'image', 'deployment/web', 'web=web:2'], '{.spec.template.spec.containers[0].image}', 'web:1', [
    'deployment',
    'web',
  ])
  await heal(
    'label',
    ['label', 'configmap', 'm0002', `${SERVICE_LABEL}-`],
    `{.metadata.labels.${SERVICE_LABEL.replaceAll('.', '\\.')}}`,
    'web.shop',
    ['configmap', 'm0002'],
  )
  await heal('edit', ['patch', 'configmap', 'm0003', '-p', '{"data":{"n":"x"}}'], '{.data.n}', '3', ['configmap', 'm0003'])
  await heal('secret', ['patch', 'secret', 'secret', '-p', '{"stringData":{"password":"y"}}'], '{.data.password}', 'eA==', [
    'secret',
    'secret',
  ])
  await heal('delete', ['delete', 'service', 'web'], '{.metadata.name}', 'web', ['service', 'web'])
  expect(writesSince(healing).map(({ objectRef }) => `${objectRef?.resource} ${objectRef?.name}`)).toEqual([
    'deployments web',
    'deployments web',
    'configmaps m0002',
    'configmaps m0003',
    'secrets secret',
    'services web',
  ])
  expect(kit.drift('apps/Deployment/shop/web')).toMatchObject({
    action: 'healed',
    count: 2,
    paths: ['.spec.template.spec.containers[{"name":"web"}].image'],
  })
  expect(kit.drift('/ConfigMap/shop/m0003')).toMatchObject({ action: 'healed', paths: ['.data.n'], manager: 'kubectl-patch' })
  expect(kit.object('apps/Deployment/shop/web')).toMatchObject({ sync: 'Synced' })
}, 180_000)

test('PR1, PR3 a removed manifest goes, foreign objects stay, a namespace waits for a person', async () => {
  const kit = start()
  const namespaced = [object('v1', 'Namespace', 'prune', {}, null), ...configMaps(10, 'prune')]
  await settled(kit, kit.desire(namespaced))
  await server.kubectl(['-n', 'prune', 'create', 'configmap', 'foreign'])
  await settled(kit, kit.desire(namespaced.slice(0, -1)))
  expect(
    (await server.kubectl(['-n', 'prune', 'get', 'configmap', '-o', 'name'])).split('\n').filter((name) => /m0|foreign/.test(name)),
  ).toHaveLength(10)
  const digest = kit.desire([configMap('other', {}, 'default')])
  await eventually('refused', async () => kit.service()?.refusal?.digest === digest)
  expect(kit.service()?.refusal).toMatchObject({ count: 10, ownedCount: 11 })
  kit.desire([configMap('other', {}, 'default')], { pruneConfirmed: digest })
  await eventually('pruned', async () => (kit.state.inventory({ project: 'web', service: 'shop' }).length === 1 ? true : undefined), 60_000)
  await expect(server.kubectl(['get', 'namespace', 'prune'])).rejects.toThrow('NotFound')
}, 120_000)

test('RC12 an orphaned object keeps its fields and loses our marks and entry', async () => {
  const kit = start()
  await settled(kit, kit.desire([configMap('orphan', { a: 'b' })]))
  kit.remove('orphan')
  await eventually('let go', async () => kit.service()?.removed === true)
  const left = JSON.parse(await server.kubectl(['get', 'configmap', 'orphan', '--show-managed-fields', '-o', 'json']))
  expect(left.data).toEqual({ a: 'b' })
  expect(left.metadata.labels).toBeUndefined()
  expect((left.metadata.managedFields ?? []).map(({ manager }: { manager: string }) => manager)).not.toContain('skerry')
  await server.kubectl(['delete', 'configmap', 'orphan'])
}, 60_000)

test('RC8 a terminal refusal of the API server is said in its words', async () => {
  const kit = start()
  await settled(kit, kit.desire([deployment('web')].map((d) => ({ ...d, metadata: { name: 'web', namespace: 'default' } }) as K8sObject)))
  const changed = { ...deployment('web'), metadata: { name: 'web', namespace: 'default' } } as K8sObject
  kit.desire([
    {
      ...changed,
      spec: { selector: { matchLabels: { app: 'x' } }, template: { ...template, metadata: { labels: { app: 'x' } } } },
    } as K8sObject,
  ])
  await eventually('refused', async () => kit.object('apps/Deployment/default/web')?.reason === 'Immutable')
  expect(kit.object('apps/Deployment/default/web')?.message).toContain('immutable')
}, 60_000)
