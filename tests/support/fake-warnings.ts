// What the fake API server warns of in its answers, in the words of the real one: versions of the API that are
// deprecated, and Pods against the restricted security standard in a namespace with the label
// `pod-security.kubernetes.io/warn`. Only what a container lacks that names no security at all is known here.
import type { ApiResource } from '../../agent/cluster/cluster.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { valueAt } from './fake-kube-kinds.ts'

const WARN_LABEL = 'pod-security.kubernetes.io/warn'
const DEPRECATED: Readonly<Record<string, string>> = {
  'v1/Endpoints': 'v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice',
}

/** `namespace`: that of the object; null for a cluster-scoped one. */
export function warningsAbout(resource: ApiResource, object: K8sObject, namespace: K8sObject | null): string[] {
  const deprecated = DEPRECATED[`${resource.version}/${resource.kind}`]
  const level = namespace?.metadata.labels?.[WARN_LABEL]
  const pod = valueAt(object, object.kind === 'Pod' ? ['spec'] : ['spec', 'template', 'spec'])
  const violations = level === 'restricted' && pod !== undefined ? restrictedViolations(pod) : ''
  return [
    ...(deprecated === undefined ? [] : [deprecated]),
    ...(violations === '' ? [] : [`would violate PodSecurity "restricted:latest": ${violations}`]),
  ]
}

function restrictedViolations(pod: unknown): string {
  const containers = valueAt(pod, ['containers'])
  if (valueAt(pod, ['securityContext']) !== undefined || !Array.isArray(containers)) return ''
  const bare = containers.filter((container) => valueAt(container, ['securityContext']) === undefined)
  if (bare.length === 0) return ''
  const names = bare.map((container) => `"${valueAt(container, ['name'])}"`).join(', ')
  const of = `${bare.length === 1 ? 'container' : 'containers'} ${names}`
  return [
    `allowPrivilegeEscalation != false (${of} must set securityContext.allowPrivilegeEscalation=false)`,
    `unrestricted capabilities (${of} must set securityContext.capabilities.drop=["ALL"])`,
    `runAsNonRoot != true (pod or ${of} must set securityContext.runAsNonRoot=true)`,
    `seccompProfile (pod or ${of} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")`,
  ].join(', ')
}

/** The header that carries them. Null means that there are none. */
export const warningHeader = (texts: readonly string[]): string | null =>
  texts.length === 0 ? null : texts.map((text) => `299 - "${text.replace(/[\\"]/g, '\\$&')}"`).join(', ')
