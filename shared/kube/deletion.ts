// The obstacles of a deletion, and who can remove them. In the API server's own words if there are any, the same for
// the same object.
import { groupOf, type K8sObject } from './object.ts'

/** The reason, for people, why the deletion is held up. Null if it is not being deleted. */
export function deletionText(object: K8sObject): string | null {
  const { metadata } = object
  if (metadata.deletionTimestamp === undefined) return null
  const namespace = object.kind === 'Namespace' && groupOf(object.apiVersion) === '' ? namespaceText(object) : ''
  return deletingText(metadata.finalizers ?? []) + namespace
}

export function deletingText(finalizers: readonly string[]): string {
  return finalizers.length === 0
    ? 'it is being deleted'
    : `it is being deleted; held by the finalizers ${[...finalizers].sort().join(', ')}`
}

/** Conditions of a Namespace that is stuck; each is True only while it holds the Namespace. */
const NAMESPACE_HOLDS: ReadonlySet<string> = new Set([
  'NamespaceDeletionDiscoveryFailure',
  'NamespaceDeletionGroupVersionParsingFailure',
  'NamespaceDeletionContentFailure',
  'NamespaceContentRemaining',
  'NamespaceFinalizersRemaining',
])
const HOLD_CHARS_MAX = 400

/** The remaining content, the finalizers that hold it, and the API groups that do not answer. */
function namespaceText(object: K8sObject): string {
  const status = object['status']
  const conditions = status !== null && typeof status === 'object' && 'conditions' in status ? status.conditions : null
  if (!Array.isArray(conditions)) return ''
  const said: string[] = []
  for (const condition of conditions) {
    if (condition === null || typeof condition !== 'object') continue
    const { type, status: state, message } = condition as { type?: unknown; status?: unknown; message?: unknown }
    if (state !== 'True' || typeof type !== 'string' || !NAMESPACE_HOLDS.has(type)) continue
    said.push(typeof message === 'string' && message !== '' ? message.slice(0, HOLD_CHARS_MAX) : type)
  }
  return said.length === 0 ? '' : `; ${said.sort().join('; ')}`
}

/** Advice for common finalizers. */
const KNOWN_FINALIZERS: ReadonlyArray<readonly [finalizer: string, advice: string]> = [
  ['kubernetes.io/pvc-protection', 'a Pod still uses the claim: delete that Pod'],
  ['kubernetes.io/pv-protection', 'a claim is still bound to the volume: delete that claim'],
  ['customresourcecleanup.apiextensions.k8s.io', 'custom resources of the kind remain: check their finalizers'],
  ['foregroundDeletion', 'the garbage collector waits for its dependents: check their finalizers'],
  ['service.kubernetes.io/load-balancer-cleanup', 'the cloud controller has not removed the load balancer: read its log'],
  ['batch.kubernetes.io/job-tracking', 'the Job controller has not counted the Pod: check that kube-controller-manager runs'],
  ['resources-finalizer.argocd.argoproj.io', 'Argo CD must delete the objects of the Application: restart Argo CD'],
  ['finalizers.fluxcd.io', 'Flux must clean up: restart its controller'],
]

/** Advice for a deletion that does not finish. `text` is the result of `deletionText`. */
export function stuckAdvice(kind: string, text: string): string {
  if (kind === 'Namespace') {
    if (text.includes('iscovery failed')) return 'the server of an API group does not answer: restart it, or delete its APIService'
    if (text.includes('finalizers remaining'))
      return 'restart the controller that removes these finalizers, or remove them by hand if the controller no longer exists'
  }
  for (const [finalizer, advice] of KNOWN_FINALIZERS) if (text.includes(finalizer)) return advice
  if (!text.includes('finalizers')) return 'no finalizer is set: check that kube-controller-manager runs'
  return 'restart the controller that owns the finalizer, or remove it with kubectl edit if the controller no longer exists'
}
