// The least RBAC for an agent and a set of kinds, as manifests: its requests to the API server, and nothing else. Pure.
import { AppError } from '../shared/runtime/error.ts'
import { CLAIM_NAME, CLAIM_NAMESPACE } from './reconcile/claim/claim.ts'
import { SOPS_KEYS_NAMESPACE } from './sops/site-keys.ts'

export interface RbacWish {
  /** `apps/Deployment`, `v1/ConfigMap`, `example.com/Thing=things`, `example.com/Tenant=tenants/cluster`. */
  kinds: readonly string[]
  /** In which the agent may write. Null means in all. */
  namespaces: readonly string[] | null
  /** `namespace/name`: services act as these, and the agent itself writes nothing of the kinds. */
  serviceAccounts: readonly string[]
  /** `namespace/name` of the agent's own. */
  agent: string
  /** It reads the last log lines of failing containers. */
  podLogs: boolean
  /** It answers questions: reads logs, nodes, and what controllers make of workloads. */
  asking?: boolean
  /** It opens SOPS files with keys of labelled Secrets. */
  sops?: boolean
}

interface KindRule {
  group: string
  kind: string
  plural: string
  isClusterScoped: boolean
}
interface PolicyRule {
  apiGroups: string[]
  resources: string[]
  verbs: string[]
  resourceNames?: string[]
}

const READ = ['get', 'list', 'watch']
/** An apply of an object that is missing needs `create` as well. */
const WRITE = ['create', 'patch', 'delete']
const RBAC_GROUP = 'rbac.authorization.k8s.io'
const KIND = /^([a-z0-9.-]+)\/([A-Z][A-Za-z0-9]*)(?:=([a-z0-9]+)(\/cluster)?)?$/
const ACCOUNT = /^([a-z0-9]([-a-z0-9]*[a-z0-9])?)\/([a-z0-9]([-a-z0-9.]*[a-z0-9])?)$/
const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
const WORKLOADS: ReadonlySet<string> = new Set(['Deployment', 'StatefulSet', 'ReplicaSet', 'DaemonSet', 'Job', 'CronJob', 'Pod'])
/** Kinds of Kubernetes' own groups that live outside namespaces. */
const CLUSTER_KINDS: ReadonlySet<string> = new Set([
  ...['Namespace', 'PersistentVolume', 'StorageClass', 'CSIDriver', 'VolumeAttributesClass', 'ClusterRole', 'ClusterRoleBinding'],
  ...[
    'CustomResourceDefinition',
    'APIService',
    'PriorityClass',
    'IngressClass',
    'RuntimeClass',
    'FlowSchema',
    'PriorityLevelConfiguration',
  ],
  ...['MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration', 'ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'],
  ...['MutatingAdmissionPolicy', 'MutatingAdmissionPolicyBinding', 'DeviceClass', 'ClusterTrustBundle'],
])

/** Groups of Kubernetes itself name their resources by one rule; of others only the cluster knows. */
const isBuiltIn = (group: string): boolean => !group.includes('.') || (group.endsWith('.k8s.io') && !group.endsWith('.x-k8s.io'))
function pluralOf(kind: string): string {
  const name = kind.toLowerCase()
  if (name === 'endpoints') return name
  if (name.endsWith('s')) return `${name}es`
  return name.endsWith('y') ? `${name.slice(0, -1)}ies` : `${name}s`
}

const wrong = (detail: string) => new AppError('bad_options', { doing: 'make RBAC', detail })

function readKind(text: string): KindRule {
  const [, rawGroup = '', kind = '', plural, cluster] = KIND.exec(text) ?? []
  if (kind === '') throw wrong(`--kinds: ${text} is not a kind; expected group/Kind such as apps/Deployment or v1/ConfigMap`)
  const group = rawGroup === 'v1' ? '' : rawGroup
  if (plural === undefined && !isBuiltIn(group))
    throw wrong(
      `--kinds: the plural of ${text} is not known; write ${text}=PLURAL, or ${text}=PLURAL/cluster for a kind outside namespaces`,
    )
  const isClusterScoped = plural === undefined ? CLUSTER_KINDS.has(kind) : cluster !== undefined
  return { group, kind, plural: plural ?? pluralOf(kind), isClusterScoped }
}

function readAccount(option: string, text: string): { namespace: string; name: string } {
  const [, namespace = '', , name = ''] = ACCOUNT.exec(text) ?? []
  if (name === '') throw wrong(`${option}: ${text} is not a ServiceAccount; expected namespace/name`)
  return { namespace, name }
}

/** Manifests in the order in which they are to be applied. Throws AppError `bad_options` for a wish that makes no
 *  sense. */
export function rbacManifests(wish: RbacWish): object[] {
  const kinds = wish.kinds.map(readKind)
  if (kinds.length === 0) throw wrong('--kinds is empty; expected kinds such as apps/Deployment,v1/ConfigMap')
  for (const name of wish.namespaces ?? []) if (!NAMESPACE.test(name)) throw wrong(`--namespaces: ${name} is not a namespace name`)
  const agent = readAccount('--agent', wish.agent)
  const accounts = wish.serviceAccounts.map((text) => readAccount('--service-accounts', text))
  const inCluster: PolicyRule[] = [
    ...rulesFor(kinds, READ),
    ...contextRules(kinds, wish.podLogs || wish.asking === true),
    // Kubernetes Events on the objects of services.
    { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
    ...(wish.asking === true ? ASKING_RULES : []),
  ]
  const clusterWrites = rulesFor(
    kinds.filter(({ isClusterScoped }) => isClusterScoped),
    WRITE,
  )
  const writes = rulesFor(
    kinds.filter(({ isClusterScoped }) => !isClusterScoped),
    WRITE,
  )
  const own = accounts.length > 0 ? [] : [...clusterWrites, ...(wish.namespaces === null ? writes : [])]
  const name = agent.name
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: agent.namespace } },
    ...(agent.namespace === CLAIM_NAMESPACE ? [] : [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: CLAIM_NAMESPACE } }]),
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: agent },
    ...granted('Cluster', { name, rules: [...inCluster, ...own], to: agent }),
    ...granted(CLAIM_NAMESPACE, { name: `${name}-claim`, rules: CLAIM_RULES, to: agent }),
    ...(wish.sops === true ? granted(SOPS_KEYS_NAMESPACE, { name: `${name}-sops`, rules: SOPS_RULES, to: agent }) : []),
    ...(accounts.length > 0 ? [] : (wish.namespaces ?? [])).flatMap((namespace) => granted(namespace, { name, rules: writes, to: agent })),
    ...accounts.flatMap((account) => {
      const impersonate = { apiGroups: [''], resources: ['serviceaccounts'], verbs: ['impersonate', 'get'], resourceNames: [account.name] }
      const places = wish.namespaces ?? [account.namespace]
      return [
        ...granted(account.namespace, { name: `${name}-as-${account.name}`, rules: [impersonate], to: agent }),
        ...places.flatMap((namespace) => granted(namespace, { name: account.name, rules: writes, to: account })),
        ...(clusterWrites.length === 0
          ? []
          : granted('Cluster', { name: `${account.namespace}-${account.name}`, rules: clusterWrites, to: account })),
      ]
    }),
  ]
}

/** Values of the chart skerry-agent with the roles and bindings of these manifests. The chart makes namespaces and the
 *  ServiceAccount itself. */
export function rbacValues(manifests: readonly object[]): object {
  const isRole = (one: object) => 'kind' in one && /Role(Binding)?$/.test(String(one.kind))
  return { rbac: { preset: 'custom', manifests: manifests.filter(isRole) } }
}

/** The claim says which agent enforces the cluster. A name cannot bound `create`. */
const CLAIM_RULES: PolicyRule[] = [
  { apiGroups: [''], resources: ['configmaps'], verbs: [...READ, 'patch'], resourceNames: [CLAIM_NAME] },
  { apiGroups: [''], resources: ['configmaps'], verbs: ['create'] },
]

/** Age keys are found by their label, which no rule can name. */
const SOPS_RULES: PolicyRule[] = [{ apiGroups: [''], resources: ['secrets'], verbs: READ }]

/** Read for questions, besides the kinds of services and the logs of Pods. */
const ASKING_RULES: PolicyRule[] = [
  { apiGroups: [''], resources: ['nodes', 'persistentvolumeclaims', 'pods'], verbs: READ },
  { apiGroups: ['apps'], resources: ['daemonsets', 'deployments', 'replicasets', 'statefulsets'], verbs: READ },
  { apiGroups: ['batch'], resources: ['cronjobs', 'jobs'], verbs: READ },
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: READ },
]

/** Kinds that the agent reads besides the objects of services. */
function contextRules(kinds: readonly KindRule[], podLogs: boolean): PolicyRule[] {
  const hasWorkloads = kinds.some(({ kind, group }) => WORKLOADS.has(kind) || !isBuiltIn(group))
  const has = (wanted: string) => kinds.some(({ kind }) => kind === wanted)
  return [
    // The cluster is known by the UID of kube-system; a namespace that is being deleted explains a refusal.
    ...(has('Namespace') ? [] : [{ apiGroups: [''], resources: ['namespaces'], verbs: ['get'] }]),
    { apiGroups: ['apiextensions.k8s.io'], resources: ['customresourcedefinitions'], verbs: READ },
    { apiGroups: ['apiregistration.k8s.io'], resources: ['apiservices'], verbs: READ },
    { apiGroups: [''], resources: ['events'], verbs: READ },
    ...(hasWorkloads
      ? [
          { apiGroups: [''], resources: ['pods'], verbs: READ },
          { apiGroups: ['autoscaling'], resources: ['horizontalpodautoscalers'], verbs: READ },
          { apiGroups: ['autoscaling.k8s.io'], resources: ['verticalpodautoscalers'], verbs: READ },
        ]
      : []),
    ...(podLogs ? [{ apiGroups: [''], resources: ['pods/log'], verbs: ['get'] }] : []),
    ...(has('PersistentVolumeClaim') || has('StatefulSet')
      ? [{ apiGroups: ['storage.k8s.io'], resources: ['storageclasses'], verbs: READ }]
      : []),
  ]
}

function rulesFor(kinds: readonly KindRule[], verbs: string[]): PolicyRule[] {
  const byGroup = Map.groupBy(kinds, ({ group }) => group)
  return [...byGroup]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([group, ofGroup]) => ({ apiGroups: [group], resources: [...new Set(ofGroup.map(({ plural }) => plural))].sort(), verbs }))
}

/** `place`: a namespace, or `Cluster`. */
function granted(
  place: string,
  { name, rules, to }: { name: string; rules: PolicyRule[]; to: { namespace: string; name: string } },
): object[] {
  if (rules.length === 0) return []
  const [kind, metadata] = place === 'Cluster' ? ['ClusterRole', { name }] : ['Role', { name, namespace: place }]
  const apiVersion = `${RBAC_GROUP}/v1`
  return [
    { apiVersion, kind, metadata, rules },
    {
      ...{ apiVersion, kind: `${kind}Binding`, metadata },
      roleRef: { apiGroup: RBAC_GROUP, kind, name },
      subjects: [{ kind: 'ServiceAccount', ...to }],
    },
  ]
}
