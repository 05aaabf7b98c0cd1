// Workloads that an API server refuses. Their environment, arguments and annotations hold planted secrets.
import type { K8sObject } from '../../shared/kube/object.ts'
import type { RefusalCase } from './refusal-cases.ts'

export const NAMESPACE = 'corpus'
type Members = Record<string, unknown>

export const meta = (name: string, more: Members = {}) => ({ name, namespace: NAMESPACE, ...more })

const podSpec = (mark: string, spec: Members = {}, container: Members = {}): Members => ({
  restartPolicy: 'Never',
  containers: [
    {
      name: 'main',
      image: 'registry.example/app:1',
      args: ['--password', `canary-argument-${mark}`],
      env: [
        { name: 'TOKEN', value: `canary "environment" {${mark}}: field is immutable` },
        { name: 'PASSWORD', valueFrom: { secretKeyRef: { name: 'db', key: 'password' } } },
      ],
      ...container,
    },
  ],
  ...spec,
})
const template = (mark: string, spec: Members = {}, container: Members = {}): Members => ({
  metadata: { labels: { app: 'x' }, annotations: { note: `canary-note-${mark}` } },
  spec: podSpec(mark, spec, container),
})

export const pod = (mark: string, spec: Members = {}, container: Members = {}, name = 'p'): K8sObject =>
  ({ apiVersion: 'v1', kind: 'Pod', metadata: meta(name), spec: podSpec(mark, spec, container) }) as K8sObject
export const job = (mark: string): K8sObject =>
  ({ apiVersion: 'batch/v1', kind: 'Job', metadata: meta('j'), spec: { template: template(mark) } }) as K8sObject
export const statefulSet = (mark: string, serviceName = 'a'): K8sObject =>
  ({
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: meta('s'),
    spec: { serviceName, selector: { matchLabels: { app: 'x' } }, template: template(mark, { restartPolicy: 'Always' }) },
  }) as K8sObject
export const deployment = (mark: string, spec: Members = {}, container: Members = {}, more: Members = {}): K8sObject =>
  ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: meta('d'),
    spec: { selector: { matchLabels: { app: 'x' } }, template: template(mark, { restartPolicy: 'Always', ...spec }, container), ...more },
  }) as K8sObject

/** A refused Deployment: what is wrong with its Pods, with a container, or with itself. */
const wrong = (name: string, spec: Members, container: Members = {}, more: Members = {}): RefusalCase => ({
  name,
  object: deployment('w', spec, container, more),
})

export const WORKLOAD_CASES: readonly RefusalCase[] = [
  { name: 'the template of a Job', before: [job('a')], object: job('b') },
  { name: 'the service of a StatefulSet', before: [statefulSet('a')], object: statefulSet('b', 'b') },
  { name: 'the environment of a Pod', before: [pod('a')], object: pod('b') },
  {
    name: 'a container more in a Pod',
    object: pod('a', {
      containers: [...(podSpec('a')['containers'] as unknown[]), { name: 'two', image: 'x', env: [{ name: 'A', value: 'canary' }] }],
    }),
  },
  {
    name: 'the selector of a Deployment',
    before: [deployment('a')],
    object: deployment(
      'b',
      {},
      {},
      {
        selector: { matchLabels: { app: 'y' } },
        template: { ...template('b', { restartPolicy: 'Always' }), metadata: { labels: { app: 'y' } } },
      },
    ),
  },
  wrong(
    'a selector without its label',
    {},
    {},
    {
      template: { ...template('m', { restartPolicy: 'Always' }), metadata: { labels: { other: 'x' }, annotations: { a: 'canary' } } },
    },
  ),
  wrong('a restart policy that a Deployment has not', { restartPolicy: 'Never' }),
  wrong('no image and a pull policy of no sort', {}, { image: '', imagePullPolicy: 'canary-pull' }),
  wrong('a name of a variable', {}, { env: [{ name: 'bad name=canary', value: 'canary' }] }),
  wrong(
    'a variable with two values',
    {},
    {
      env: [{ name: 'A', value: 'canary', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }],
    },
  ),
  wrong(
    'two variables of one name',
    {},
    {
      env: [
        { name: 'A', value: 'canary-1' },
        { name: 'A', value: 'canary-2' },
      ],
    },
  ),
  wrong('two containers of one name', {
    containers: [
      { name: 'c', image: 'a', env: [{ name: 'A', value: 'canary' }] },
      { name: 'c', image: 'b' },
    ],
  }),
  wrong('a variable that is a number', {}, { env: [{ name: 'PIN', value: 987654321 }] }),
  wrong('a variable that is a map', {}, { env: [{ name: 'A', value: { a: 'canary' } }] }),
  wrong('a variable that is a list', {}, { env: [{ name: 'A', value: ['canary', 'canary\nlines'] }] }),
  wrong('arguments that are a text', {}, { args: 'canary and \n.more: expected string, got &{canary}' }),
  wrong('a field that nobody knows', {}, { passwordd: 'canary' }),
  wrong('an amount of no sort', {}, { resources: { limits: { cpu: 'canary-amount' } } }),
  wrong('more asked for than allowed', {}, { resources: { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '2', memory: '2Gi' } } }),
  wrong('a port out of range', {}, { ports: [{ containerPort: 70000, name: 'UPPER_case_name_too_long' }] }),
  wrong('a volume that is missing', {}, { volumeMounts: [{ name: 'nope', mountPath: '/etc/app' }] }),
  wrong('a path out of its folder', { volumes: [{ name: 'v', hostPath: { path: '../canary-path' } }] }),
  wrong('a number that is a text', {}, {}, { replicas: 'canary-replicas' }),
  wrong('a probe with two ways', {}, { livenessProbe: { exec: { command: [] }, httpGet: { path: '/canary', port: 80 } } }),
  wrong(
    'a header of no sort',
    {},
    {
      livenessProbe: { httpGet: { path: '/', port: 80, httpHeaders: [{ name: 'Authorization: canary', value: 'canary' }] } },
    },
  ),
  wrong('a toleration with a value', { tolerations: [{ key: 'k', operator: 'Exists', value: 'canary-toleration' }] }),
  wrong('a node label of no sort', { nodeSelector: { zone: 'canary with spaces' } }),
  wrong('a host of no sort', { hostAliases: [{ ip: 'canary-ip', hostnames: ['canary!'] }] }),
  wrong('a sysctl of no sort', { securityContext: { sysctls: [{ name: 'BAD canary', value: 'canary' }], runAsUser: -5 } }),
  {
    name: 'an annotation of no sort',
    object: { ...deployment('x'), metadata: meta('d', { annotations: { 'bad key canary': 'canary' } }) } as unknown as K8sObject,
  },
  {
    name: 'an annotation that is a number',
    object: { ...deployment('x'), metadata: meta('d', { annotations: { pin: 987654321 } }) } as unknown as K8sObject,
  },
  {
    name: 'annotations that are too long',
    object: { ...deployment('x'), metadata: meta('d', { annotations: { a: 'canary'.repeat(50_000) } }) } as unknown as K8sObject,
  },
  {
    name: 'a label of no sort',
    object: { ...deployment('x'), metadata: meta('d', { labels: { app: 'canary with spaces' } }) } as unknown as K8sObject,
  },
  {
    name: 'a schedule of no sort',
    object: {
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: meta('cron'),
      spec: { schedule: 'canary-schedule', timeZone: 'canary-zone', jobTemplate: { spec: { template: template('cron') } } },
    } as unknown as K8sObject,
  },
  {
    name: 'an autoscaler of no sort',
    object: {
      apiVersion: 'autoscaling/v2',
      kind: 'HorizontalPodAutoscaler',
      metadata: meta('scaler'),
      spec: {
        minReplicas: 5,
        maxReplicas: 2,
        scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'a/b' },
        metrics: [{ type: 'canary-type' }],
      },
    } as unknown as K8sObject,
  },
]
