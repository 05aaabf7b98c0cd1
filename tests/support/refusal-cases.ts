// Requests that a real API server refuses or warns about, with planted secrets: `canary` is part of every value that
// must never leave the agent, and of nothing else.
import type { K8sObject } from '../../shared/kube/object.ts'
import { SETTING_CASES } from './refusal-cases-settings.ts'
import { job, NAMESPACE, pod, statefulSet, WORKLOAD_CASES } from './refusal-cases-workloads.ts'

export interface RefusalCase {
  name: string
  object: K8sObject
  /** Applied first, in the order given. They succeed. */
  before?: readonly K8sObject[]
  /** Impersonated user. */
  as?: string
  /** Default: a forced apply. */
  verb?: 'apply' | 'apply without force' | 'delete with another uid'
  /** What `before` does shows a moment later: asked again until the answer has these words. */
  until?: string
}

const object = (apiVersion: string, kind: string, name: string, rest: Record<string, unknown> = {}): K8sObject =>
  ({ apiVersion, kind, metadata: { name }, ...rest }) as K8sObject

const RESTRICTED = 'pod-security.kubernetes.io'
const strictNamespace = object('v1', 'Namespace', 'corpus-strict')
strictNamespace.metadata.labels = { [`${RESTRICTED}/enforce`]: 'restricted', [`${RESTRICTED}/warn`]: 'restricted' }
const warnedNamespace = object('v1', 'Namespace', 'corpus-warned')
warnedNamespace.metadata.labels = { [`${RESTRICTED}/warn`]: 'restricted' }
const within = (namespace: string, inner: K8sObject): K8sObject => ({ ...inner, metadata: { ...inner.metadata, namespace } })

const privileged = pod('psa', { hostNetwork: true, volumes: [{ name: 'h', hostPath: { path: '/etc/canary-path' } }] })
const [container] = (privileged as unknown as { spec: { containers: Array<Record<string, unknown>> } }).spec.containers
Object.assign(container ?? {}, {
  securityContext: { privileged: true, capabilities: { add: ['NET_ADMIN'] } },
  ports: [{ containerPort: 80, hostPort: 80 }],
})

/** Policies that quote what they judge, in the ways that people write them. */
const ADMISSION = 'admissionregistration.k8s.io/v1'
const policy = (name: string, validations: unknown[], actions: string[]): K8sObject[] => [
  object(ADMISSION, 'ValidatingAdmissionPolicy', name, {
    spec: {
      failurePolicy: 'Fail',
      matchConstraints: {
        resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], resources: ['configmaps', 'secrets'] }],
      },
      validations,
    },
  }),
  object(ADMISSION, 'ValidatingAdmissionPolicyBinding', name, {
    spec: {
      policyName: name,
      validationActions: actions,
      matchResources: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': NAMESPACE } } },
    },
  }),
]
const unlessMarked = (mark: string) => `!has(object.metadata.labels) || !('${mark}' in object.metadata.labels)`

/** In force before the last cases are run. */
export const POLICIES: readonly K8sObject[] = [
  ...policy(
    'quoting-policy',
    [
      { expression: unlessMarked('quoted'), messageExpression: "'the value ' + string(object.data.k) + ' is not allowed'" },
      {
        expression: unlessMarked('quoted-in-quotes'),
        messageExpression: "'data.k is \"' + string(object.data.k) + '\"; use an ExternalSecret'",
      },
      { expression: unlessMarked('forbidden'), message: 'not on a Friday', reason: 'Forbidden' },
      { expression: unlessMarked('expression-only') },
    ],
    ['Deny'],
  ),
  ...policy(
    'warning-policy',
    [{ expression: unlessMarked('warned'), messageExpression: "'data.k ' + string(object.data.k) + ' is short'" }],
    ['Warn'],
  ),
]

const marked = (kind: string, name: string, mark: string, rest: Record<string, unknown>): K8sObject => {
  const made = within(NAMESPACE, object('v1', kind, name, rest))
  made.metadata.labels = { [mark]: '' }
  return made
}

export const POLICY_CASES: readonly RefusalCase[] = [
  { name: 'a policy quotes a value', object: marked('ConfigMap', 'judged', 'quoted', { data: { k: 'canary words and more' } }) },
  { name: 'a policy quotes a value in quotes', object: marked('ConfigMap', 'judged', 'quoted-in-quotes', { data: { k: 'canary' } }) },
  { name: 'a policy quotes data of a Secret', object: marked('Secret', 'judged', 'quoted', { stringData: { k: 'canary' } }) },
  { name: 'a policy has its own message', object: marked('ConfigMap', 'judged', 'forbidden', { data: { k: 'canary' } }) },
  { name: 'a policy has no message', object: marked('ConfigMap', 'judged', 'expression-only', { data: { k: 'canary' } }) },
  { name: 'a policy warns', object: marked('ConfigMap', 'judged', 'warned', { data: { k: 'canary' } }) },
]

/** Enforced without any controller. */
const quotaOf = (name: string, hard: Record<string, string>, used: Record<string, string>): K8sObject =>
  within('corpus-small', object('v1', 'ResourceQuota', name, { spec: { hard }, status: { hard, used } }))

const LIMIT_CASES: readonly RefusalCase[] = [
  {
    name: 'above the limit of a container',
    before: [
      object('v1', 'Namespace', 'corpus-small'),
      within(
        'corpus-small',
        object('v1', 'LimitRange', 'sizes', {
          spec: {
            limits: [
              { type: 'Container', max: { cpu: '100m', memory: '64Mi' } },
              { type: 'PersistentVolumeClaim', max: { storage: '1Gi' } },
            ],
          },
        }),
      ),
    ],
    object: within('corpus-small', pod('limit', {}, { resources: { requests: { cpu: '1' }, limits: { cpu: '1', memory: '1Gi' } } })),
  },
  {
    name: 'above the limit of a claim',
    object: within(
      'corpus-small',
      object('v1', 'PersistentVolumeClaim', 'large', {
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '5Gi' } } },
      }),
    ),
  },
  {
    name: 'above the quota',
    before: [quotaOf('objects', { configmaps: '1' }, { configmaps: '1' })],
    object: within('corpus-small', object('v1', 'ConfigMap', 'one-more', { data: { k: 'canary' } })),
    until: 'exceeded quota',
  },
]

const POD_SECURITY_CASES: readonly RefusalCase[] = [
  { name: 'a Pod against the security standard', before: [strictNamespace], object: within('corpus-strict', privileged) },
  { name: 'a warning of the security standard', before: [warnedNamespace], object: within('corpus-warned', privileged) },
  { name: 'a warning about the Pods of a StatefulSet', object: within('corpus-warned', statefulSet('warned')) },
  {
    name: 'a deprecated version',
    object: within(NAMESPACE, object('v1', 'Endpoints', 'old', { subsets: [{ addresses: [{ ip: '192.0.2.7' }], ports: [{ port: 80 }] }] })),
  },
]

const ACCESS_CASES: readonly RefusalCase[] = [
  {
    name: 'no right',
    object: within(NAMESPACE, object('v1', 'Secret', 'mine', { stringData: { password: 'canary' } })),
    as: 'jane',
  },
  {
    name: 'more rights than one has',
    before: [
      object('rbac.authorization.k8s.io/v1', 'ClusterRole', 'corpus-roles', {
        rules: [{ apiGroups: ['rbac.authorization.k8s.io'], resources: ['clusterroles'], verbs: ['get', 'create', 'update', 'patch'] }],
      }),
      object('rbac.authorization.k8s.io/v1', 'ClusterRoleBinding', 'corpus-roles', {
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'corpus-roles' },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'joe' }],
      }),
    ],
    object: object('rbac.authorization.k8s.io/v1', 'ClusterRole', 'corpus-more', {
      rules: [{ apiGroups: ['apps'], resources: ['deployments'], verbs: ['create', 'get'] }],
    }),
    as: 'joe',
    until: 'attempting to grant',
  },
  {
    name: 'a priority class that is missing',
    object: within(NAMESPACE, pod('priority', { priorityClassName: 'none-2' }, {}, 'p-priority')),
  },
  {
    name: 'a namespace that is missing',
    object: within('nowhere', object('v1', 'Secret', 'a', { stringData: { password: 'canary' } })),
  },
  {
    name: 'fields of another manager',
    before: [within(NAMESPACE, object('v1', 'ConfigMap', 'owned', { data: { k: 'canary-old', l: 'canary-too' } }))],
    object: within(NAMESPACE, object('v1', 'ConfigMap', 'owned', { data: { k: 'canary-new', l: 'canary-also' } })),
    verb: 'apply without force',
  },
  {
    name: 'a delete of another object',
    object: job('a'),
    verb: 'delete with another uid',
  },
]

export const REFUSAL_CASES: readonly RefusalCase[] = [
  ...WORKLOAD_CASES,
  ...SETTING_CASES,
  ...LIMIT_CASES,
  ...POD_SECURITY_CASES,
  ...ACCESS_CASES,
]
