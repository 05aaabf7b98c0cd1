// In which order objects are applied and pruned. By kind alone, so that no annotation is needed and the same set always
// has the same order.
import type { ObjectRef } from './object.ts'

/** Apply stages, first to last. Only `namespace` and `definition` are waited for; the others just go first. */
export const STAGES = [
  'namespace',
  'definition',
  'tenancy',
  'configuration',
  'service',
  'workload',
  'scaling',
  'extension',
  'custom',
] as const
export type Stage = (typeof STAGES)[number]

/** Groups that the API server itself serves: whatever is in another group comes from a CRD or an aggregated API.
 *  `*.k8s.io` alone tells nothing: snapshot.storage.k8s.io and gateway.networking.k8s.io are CRDs. */
const BUILT_IN_GROUPS: ReadonlySet<string> = new Set([
  '',
  'admissionregistration.k8s.io',
  'apiextensions.k8s.io',
  'apiregistration.k8s.io',
  'apps',
  'authentication.k8s.io',
  'authorization.k8s.io',
  'autoscaling',
  'batch',
  'certificates.k8s.io',
  'coordination.k8s.io',
  'discovery.k8s.io',
  'events.k8s.io',
  'flowcontrol.apiserver.k8s.io',
  'internal.apiserver.k8s.io',
  'networking.k8s.io',
  'node.k8s.io',
  'policy',
  'rbac.authorization.k8s.io',
  'resource.k8s.io',
  'scheduling.k8s.io',
  'storage.k8s.io',
  'storagemigration.k8s.io',
])
export const isBuiltInGroup = (group: string): boolean => BUILT_IN_GROUPS.has(group)

/** Custom kinds that each stand for the Namespace of their name: it comes with them and is deleted with them. */
const NAMESPACE_KINDS: ReadonlySet<string> = new Set(['project.openshift.io/Project', 'hnc.x-k8s.io/SubnamespaceAnchor'])

/** The Namespace that a deletion takes along. Null means none. */
export function namespaceOfObject({ group, kind, name }: Pick<ObjectRef, 'group' | 'kind' | 'name'>): string | null {
  const key = `${group}/${kind}`
  return key === '/Namespace' || NAMESPACE_KINDS.has(key) ? name : null
}

/** Built-in kinds that are not plain configuration (RBAC, ServiceAccount, ConfigMap, Secret, StorageClass, PVC, quotas,
 *  classes, policies). */
const STAGE_OF: Readonly<Record<string, Stage>> = {
  '/Namespace': 'namespace',
  'apiextensions.k8s.io/CustomResourceDefinition': 'definition',
  '/Service': 'service',
  '/Endpoints': 'service',
  'discovery.k8s.io/EndpointSlice': 'service',
  '/Pod': 'workload',
  '/ReplicationController': 'workload',
  'apps/Deployment': 'workload',
  'apps/StatefulSet': 'workload',
  'apps/DaemonSet': 'workload',
  'apps/ReplicaSet': 'workload',
  'batch/Job': 'workload',
  'batch/CronJob': 'workload',
  'autoscaling/HorizontalPodAutoscaler': 'scaling',
  'policy/PodDisruptionBudget': 'scaling',
  'networking.k8s.io/Ingress': 'scaling',
  'apiregistration.k8s.io/APIService': 'extension',
  'admissionregistration.k8s.io/ValidatingWebhookConfiguration': 'extension',
  'admissionregistration.k8s.io/MutatingWebhookConfiguration': 'extension',
  'admissionregistration.k8s.io/ValidatingAdmissionPolicy': 'extension',
  'admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding': 'extension',
  'admissionregistration.k8s.io/MutatingAdmissionPolicy': 'extension',
  'admissionregistration.k8s.io/MutatingAdmissionPolicyBinding': 'extension',
}

export function stageNameOf({ group, kind }: Pick<ObjectRef, 'group' | 'kind'>): Stage {
  if (NAMESPACE_KINDS.has(`${group}/${kind}`)) return 'tenancy'
  if (!isBuiltInGroup(group)) return 'custom'
  return STAGE_OF[`${group}/${kind}`] ?? 'configuration'
}

/** OR1: 0 goes first. */
export const applyStage = (ref: Pick<ObjectRef, 'group' | 'kind'>): number => STAGES.indexOf(stageNameOf(ref))

/** OR2: 0 goes first: custom resources while their operator and webhooks still run, then everything else backwards,
 *  then what stands for a Namespace, then CRDs, then Namespaces. Plain reversal gives just that, because custom
 *  resources are applied last and Namespaces first. */
export const pruneStage = (ref: Pick<ObjectRef, 'group' | 'kind'>): number => STAGES.length - 1 - applyStage(ref)

/** Custom resources must be gone before what handles them goes: a finalizer without its operator never ends. */
export const PRUNE_STAGE_WAITED = STAGES.length - 1 - STAGES.indexOf('custom')

/** Ties by namespace, name, then kind: the same set has one order. */
export function compareRefs(a: ObjectRef, b: ObjectRef): number {
  return (
    compareText(a.namespace, b.namespace) || compareText(a.name, b.name) || compareText(a.kind, b.kind) || compareText(a.group, b.group)
  )
}
export const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

export const compareApply = (a: ObjectRef, b: ObjectRef): number => applyStage(a) - applyStage(b) || compareRefs(a, b)
export const comparePrune = (a: ObjectRef, b: ObjectRef): number => pruneStage(a) - pruneStage(b) || compareRefs(a, b)
