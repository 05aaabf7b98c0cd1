// Broken deployments of which a real API server, its controllers and its scheduler say what is wrong. Those of which a
// kubelet says it come from the corpus (why-corpus.ts).
import type { K8sObject, ObjectRef } from '../../shared/kube/object.ts'
import { eventually } from './kube-cluster.ts'
import { onNode } from './kubelet-player.ts'
import { WHY_CASES } from './why-corpus.ts'
import type { RealWhyCase, WhySite } from './why-site.ts'

const object = (apiVersion: string, kind: string, name: string, rest: object = {}): K8sObject =>
  ({ apiVersion, kind, metadata: { name }, ...rest }) as unknown as K8sObject
const placed = (namespace: string, { metadata, ...rest }: K8sObject): K8sObject => ({ ...rest, metadata: { ...metadata, namespace } })
const named = (name: string, labels: Record<string, string> = {}): K8sObject =>
  ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } }) as unknown as K8sObject

interface Template {
  pod?: object
  container?: object
  replicas?: number
  app?: string
}
const workload = ({ pod = {}, container = {}, replicas = 1, app = 'web' }: Template = {}): K8sObject =>
  object('apps/v1', 'Deployment', 'web', {
    spec: {
      ...{ replicas, progressDeadlineSeconds: 1, selector: { matchLabels: { app } } },
      template: { metadata: { labels: { app } }, spec: { containers: [{ name: 'app', image: 'app:1', ...container }], ...pod } },
    },
  })
const requests = (amounts: object) => ({ resources: { requests: amounts } })
const volume = (claimName: string) => ({ volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }] })
const claim = (spec: object): K8sObject =>
  object('v1', 'PersistentVolumeClaim', 'data', {
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
  })
const AWAITED = { sync: { healthDeadline: '4s' } }
const configMap = (name = 'settings', more: object = {}): K8sObject => object('v1', 'ConfigMap', name, { data: { n: '1' }, ...more })
const refTo = ({ apiVersion, kind, metadata }: K8sObject, namespace: string): ObjectRef => ({
  ...{ kind, namespace, name: metadata.name ?? '' },
  group: apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '',
})
const job = (spec: object): K8sObject =>
  object('batch/v1', 'Job', 'migrate', {
    spec: { ...spec, template: { spec: { restartPolicy: 'Never', containers: [{ name: 'app', image: 'app:1' }] } } },
  })
const service = (name: string, spec: object): K8sObject => object('v1', 'Service', name, { spec: { selector: { app: 'web' }, ...spec } })
const affinity = (kind: 'podAffinity' | 'podAntiAffinity', app: string) => ({
  affinity: {
    [kind]: {
      requiredDuringSchedulingIgnoredDuringExecution: [{ labelSelector: { matchLabels: { app } }, topologyKey: 'kubernetes.io/hostname' }],
    },
  },
})
const role = (rules: object[]): K8sObject => object('rbac.authorization.k8s.io/v1', 'Role', 'reader', { rules })
const FINALIZER = { finalizers: ['example.com/cleanup'] }
const held = (one: K8sObject): K8sObject => ({ ...one, metadata: { ...one.metadata, ...FINALIZER } })

const ADMISSION = 'admissionregistration.k8s.io/v1'
const within = (namespace: string) => ({ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } } })
const everywhere = (resource: string, group: string) => ({
  ...{ apiGroups: [group], apiVersions: ['*'], resources: [resource], operations: ['CREATE', 'UPDATE'] },
})

/** Refuses objects of one kind in one namespace. */
async function deny(site: WhySite, namespace: string, rule: ReturnType<typeof everywhere>, tried: K8sObject): Promise<void> {
  await site.put(named(namespace))
  await site.put(
    object(ADMISSION, 'ValidatingAdmissionPolicy', namespace, {
      spec: {
        matchConstraints: { resourceRules: [rule] },
        validations: [{ expression: 'false', message: 'images need a digest' }],
      },
    }),
  )
  const binding = { policyName: namespace, validationActions: ['Deny'], matchResources: within(namespace) }
  await site.put(object(ADMISSION, 'ValidatingAdmissionPolicyBinding', namespace, { spec: binding }))
  await site.untilRefused(placed(namespace, tried))
}

const POD = object('v1', 'Pod', 'tried', { spec: { containers: [{ name: 'app', image: 'app:1' }], automountServiceAccountToken: false } })
const SCHEDULING: readonly RealWhyCase[] = [
  { name: 'no-label', cause: 'NodeSelectorMismatch', objects: [workload({ pod: { nodeSelector: { nobody: 'has-this' } } })] },
  { name: 'much-cpu', cause: 'InsufficientResources', objects: [workload({ pod: onNode('well'), container: requests({ cpu: '9000' }) })] },
  {
    name: 'much-memory',
    cause: 'InsufficientResources',
    objects: [workload({ pod: onNode('well'), container: requests({ memory: '1Pi' }) })],
  },
  { name: 'taint', cause: 'TaintNotTolerated', objects: [workload({ pod: onNode('gpu') })] },
  { name: 'disk-pressure', cause: 'NodePressure', objects: [workload({ pod: onNode('full') })] },
  { name: 'node-lost', cause: 'NodeNotReady', objects: [workload({ pod: onNode('lost') })] },
  { name: 'node-cordoned', cause: 'NodeCordoned', objects: [workload({ pod: onNode('cordoned') })] },
  {
    name: 'anti-affinity',
    cause: 'SpreadConstraint',
    objects: [workload({ replicas: 2, app: 'alone', pod: { ...onNode('well'), ...affinity('podAntiAffinity', 'alone') } })],
  },
  {
    name: 'affinity',
    cause: 'SpreadConstraint',
    objects: [workload({ pod: { ...onNode('well'), ...affinity('podAffinity', 'nobody') } })],
  },
  {
    name: 'host-port',
    cause: 'HostPortConflict',
    objects: [workload({ replicas: 2, pod: onNode('well'), container: { ports: [{ containerPort: 80, hostPort: 8_123 }] } })],
  },
]

const VOLUMES: readonly RealWhyCase[] = [
  { name: 'no-claim', cause: 'VolumeClaimMissing', objects: [workload({ pod: volume('nowhere') })] },
  {
    name: 'no-class',
    cause: 'StorageClassMissing',
    row: AWAITED,
    objects: [claim({ storageClassName: 'nothing' }), workload({ pod: volume('data') })],
  },
  {
    name: 'classless',
    cause: 'StorageClassMissing',
    row: AWAITED,
    objects: [claim({ storageClassName: '' }), workload({ pod: volume('data') })],
  },
  {
    name: 'no-provisioner',
    cause: 'VolumeNotProvisioned',
    row: AWAITED,
    objects: [claim({ storageClassName: 'uninstalled' }), workload({ pod: volume('data') })],
    before: (site) => site.put(object('storage.k8s.io/v1', 'StorageClass', 'uninstalled', { provisioner: 'disks.example.com' })),
  },
  {
    name: 'other-zone',
    cause: 'VolumeZone',
    objects: [claim({ storageClassName: 'by-hand', volumeName: 'far' }), workload({ pod: { ...onNode('well'), ...volume('data') } })],
    before: (site) =>
      site.put(
        object('v1', 'PersistentVolume', 'far', {
          spec: {
            ...{ capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], storageClassName: 'by-hand', local: { path: '/data' } },
            nodeAffinity: {
              required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: ['far'] }] }] },
            },
          },
        }),
      ),
  },
]

const LIMITS: readonly RealWhyCase[] = [
  {
    name: 'quota',
    cause: 'QuotaExceeded',
    objects: [object('v1', 'ResourceQuota', 'none', { spec: { hard: { pods: '0' } } }), workload()],
  },
  {
    name: 'quota-of-cpu',
    cause: 'QuotaExceeded',
    objects: [object('v1', 'ResourceQuota', 'compute', { spec: { hard: { 'requests.cpu': '4' } } }), workload()],
  },
  {
    name: 'range',
    cause: 'LimitRangeViolated',
    objects: [
      object('v1', 'LimitRange', 'small', { spec: { limits: [{ type: 'Container', max: { memory: '8Mi' } }] } }),
      workload({ container: { resources: { limits: { memory: '1Gi' } } } }),
    ],
  },
  {
    name: 'secured',
    cause: 'PodSecurity',
    objects: [named('secured', { 'pod-security.kubernetes.io/enforce': 'restricted' }), workload()],
  },
  { name: 'account', cause: 'ServiceAccountMissing', objects: [workload({ pod: { serviceAccountName: 'nobody' } })] },
  { name: 'priority', cause: 'PriorityClassMissing', objects: [workload({ pod: { priorityClassName: 'nothing' } })] },
  {
    name: 'denied-pods',
    cause: 'AdmissionDenied',
    objects: [workload()],
    before: (site) => deny(site, 'denied-pods', everywhere('pods', ''), POD),
  },
  {
    name: 'denied',
    cause: 'AdmissionDenied',
    objects: [workload()],
    before: (site) => deny(site, 'denied', everywhere('deployments', 'apps'), workload()),
  },
  {
    name: 'no-backend',
    cause: 'WebhookUnavailable',
    objects: [configMap()],
    async before(site) {
      await site.put(named('no-backend'))
      const hook = {
        ...{ name: 'validate.example.com', admissionReviewVersions: ['v1'], sideEffects: 'None', failurePolicy: 'Fail' },
        ...{ clientConfig: { service: { namespace: 'no-backend', name: 'gone' } }, rules: [everywhere('configmaps', '')] },
        ...within('no-backend'),
      }
      await site.put(object(ADMISSION, 'ValidatingWebhookConfiguration', 'no-backend', { webhooks: [hook] }))
      await site.untilRefused(placed('no-backend', configMap()))
    },
  },
]

const APPLIED: readonly RealWhyCase[] = [
  { name: 'no-crd', cause: 'CrdMissing', objects: [object('nowhere.example/v1', 'Widget', 'w')] },
  { name: 'no-such-port', cause: 'InvalidManifest', objects: [service('web', { ports: [{ port: 99_999 }] })] },
  { name: 'no-such-field', cause: 'InvalidManifest', objects: [workload({ pod: { contaners: [] } })] },
  { name: 'no-namespace', cause: 'NamespaceMissing', row: { sync: { createNamespace: false } }, objects: [configMap()] },
  {
    name: 'leaving',
    cause: 'NamespaceTerminating',
    objects: [configMap()],
    async before(site) {
      await site.put(named('leaving'))
      await site.put(placed('leaving', held(configMap('held'))))
      await site.remove({ group: '', kind: 'Namespace', namespace: '', name: 'leaving' })
    },
  },
  { name: 'no-right', cause: 'RbacForbidden', row: { sync: { serviceAccount: 'nobody' } }, objects: [configMap()] },
  {
    name: 'no-grant',
    cause: 'RbacForbidden',
    row: { sync: { serviceAccount: 'roles-only' } },
    objects: [role([{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }])],
    async before(site) {
      await site.put(named('no-grant'))
      const rules = [{ apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles'], verbs: ['get', 'create', 'patch', 'update'] }]
      const own = role(rules)
      await site.put(placed('no-grant', { ...own, metadata: { name: 'roles-only' } }))
      const binding = object('rbac.authorization.k8s.io/v1', 'RoleBinding', 'roles-only', {
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'roles-only' },
        subjects: [{ kind: 'ServiceAccount', namespace: 'no-grant', name: 'roles-only' }],
      })
      await site.put(placed('no-grant', binding))
    },
  },
  { name: 'selector', cause: 'Immutable', objects: [workload()], next: [workload({ app: 'renamed' })] },
  {
    name: 'node-port',
    cause: 'AlreadyTaken',
    objects: [service('web', { type: 'NodePort', ports: [{ port: 80, nodePort: 30_123 }] })],
    before: (site) => site.put(placed('default', service('first', { type: 'NodePort', ports: [{ port: 80, nodePort: 30_123 }] }))),
  },
  {
    name: 'owned',
    cause: 'OwnedByOther',
    objects: [configMap()],
    async before({ kit }) {
      const first = { project: 'web', service: 'owner' }
      kit.desire([configMap()], { namespace: 'owned' }, first)
      await eventually('the first owner', async () => kit.object('/ConfigMap/owned/settings', first)?.sync === 'Synced')
    },
  },
  {
    name: 'stuck',
    cause: 'DeletionStuck',
    row: AWAITED,
    objects: [held(configMap('held')), configMap('a'), configMap('b')],
    next: [configMap('a'), configMap('b')],
  },
  {
    name: 'fight',
    cause: 'FieldConflict',
    objects: [configMap()],
    meanwhile: ({ patch }) => patch(refTo(configMap(), 'fight'), { data: { n: crypto.randomUUID() } }),
  },
]

const CONTROLLED: readonly RealWhyCase[] = [
  {
    name: 'job-fails',
    cause: 'JobFailed',
    objects: [job({ backoffLimit: 0 })],
    pod: { status: { phase: 'Failed', containerStatuses: [{ name: 'app', state: { terminated: { exitCode: 1, reason: 'Error' } } }] } },
  },
  { name: 'job-late', cause: 'JobDeadline', objects: [job({ activeDeadlineSeconds: 10 })] },
  {
    name: 'no-address',
    cause: 'AddressPending',
    row: { sync: { healthDeadline: '4s', waitForAddress: true } },
    objects: [service('web', { type: 'LoadBalancer', ports: [{ port: 80 }] })],
  },
  {
    name: 'no-target',
    cause: 'AutoscalerTargetMissing',
    objects: [
      object('autoscaling/v2', 'HorizontalPodAutoscaler', 'web', {
        spec: {
          ...{ scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'nobody' }, minReplicas: 1, maxReplicas: 3 },
          metrics: [{ type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } } }],
        },
      }),
    ],
  },
]

interface PodStatus {
  phase?: string
  containerStatuses?: unknown
  initContainerStatuses?: unknown
}

/** Cases of the corpus whose Pod a kubelet has tried to run. */
function ofKubelets(): RealWhyCase[] {
  return WHY_CASES.flatMap(({ cause, live = [], refused }, index): RealWhyCase[] => {
    const [one, ...others] = live
    const status = (one?.pods?.[0]?.['status'] ?? {}) as PodStatus & Record<string, unknown>
    if (refused !== undefined || others.length > 0 || (status.containerStatuses === undefined && status.phase !== 'Failed')) return []
    const init = status.initContainerStatuses === undefined ? {} : { initContainers: [{ name: 'migrate', image: 'app:1' }] }
    const pod = { status, ...(one?.podEvents === undefined ? {} : { events: one.podEvents }) }
    return [{ name: `kubelet-${index}`, cause, objects: [workload({ pod: init })], pod }]
  })
}

export const REAL_WHY_CASES: readonly RealWhyCase[] = [...[SCHEDULING, VOLUMES, LIMITS, APPLIED, CONTROLLED].flat(), ...ofKubelets()]
