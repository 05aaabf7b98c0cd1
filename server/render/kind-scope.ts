// Which kinds live in a namespace, as far as a render can know without a cluster: Kubernetes' own kinds by a table,
// custom ones by the definitions in the same set. The agent has the last word: it asks the API server's discovery.
import type { K8sObject } from '../../shared/kube/object.ts'

export type Scope = 'namespaced' | 'cluster' | 'unknown'

/** Kinds of Kubernetes' own groups that live outside namespaces; every other kind of these groups lives in one. */
const CLUSTER_KINDS: Record<string, readonly string[]> = {
  '': ['Namespace', 'Node', 'PersistentVolume', 'ComponentStatus'],
  'admissionregistration.k8s.io': [
    'MutatingAdmissionPolicy',
    'MutatingAdmissionPolicyBinding',
    'MutatingWebhookConfiguration',
    'ValidatingAdmissionPolicy',
    'ValidatingAdmissionPolicyBinding',
    'ValidatingWebhookConfiguration',
  ],
  'apiextensions.k8s.io': ['CustomResourceDefinition'],
  'apiregistration.k8s.io': ['APIService'],
  apps: [],
  'authentication.k8s.io': ['SelfSubjectReview', 'TokenReview'],
  'authorization.k8s.io': ['SelfSubjectAccessReview', 'SelfSubjectRulesReview', 'SubjectAccessReview'],
  autoscaling: [],
  batch: [],
  'certificates.k8s.io': ['CertificateSigningRequest', 'ClusterTrustBundle'],
  'coordination.k8s.io': [],
  'discovery.k8s.io': [],
  'events.k8s.io': [],
  extensions: [],
  'flowcontrol.apiserver.k8s.io': ['FlowSchema', 'PriorityLevelConfiguration'],
  'internal.apiserver.k8s.io': ['StorageVersion'],
  'networking.k8s.io': ['IngressClass', 'IPAddress', 'ServiceCIDR'],
  'node.k8s.io': ['RuntimeClass'],
  policy: ['PodSecurityPolicy'],
  'rbac.authorization.k8s.io': ['ClusterRole', 'ClusterRoleBinding'],
  'resource.k8s.io': ['DeviceClass', 'DeviceTaintRule', 'ResourcePoolStatusRequest', 'ResourceSlice'],
  'scheduling.k8s.io': ['PriorityClass'],
  'storage.k8s.io': ['CSIDriver', 'CSINode', 'StorageClass', 'VolumeAttachment', 'VolumeAttributesClass'],
  'storagemigration.k8s.io': ['StorageVersionMigration'],
}

/** Scopes that the set's own CustomResourceDefinitions declare, by `group/kind`. */
export type DeclaredScopes = ReadonlyMap<string, Scope>

/** The scopes of the kinds that CustomResourceDefinitions among the objects define. */
export function declaredScopes(objects: Iterable<K8sObject>): DeclaredScopes {
  const scopes = new Map<string, Scope>()
  for (const { kind, spec } of objects) {
    if (kind !== 'CustomResourceDefinition' || typeof spec !== 'object' || spec === null) continue
    const { group, names, scope } = spec as { group?: unknown; names?: { kind?: unknown }; scope?: unknown }
    if (scope === 'Cluster' || scope === 'Namespaced') scopes.set(`${group}/${names?.kind}`, scope === 'Cluster' ? 'cluster' : 'namespaced')
  }
  return scopes
}

/** Whether objects of a kind have a namespace: by what is built in, then by what is declared, else `unknown`. */
export function scopeOf(group: string, kind: string, declared: DeclaredScopes): Scope {
  const known = Object.hasOwn(CLUSTER_KINDS, group) ? CLUSTER_KINDS[group] : undefined
  if (known !== undefined) return known.includes(kind) ? 'cluster' : 'namespaced'
  return declared.get(`${group}/${kind}`) ?? 'unknown'
}
