// What the fake cluster serves and refuses: built-in kinds, kinds from CRDs, and the few validations that agents meet
// in practice, in the API server's own words (the contract suite compares them with the real one).
import { z } from 'zod'
import type { ApiResource } from '../../agent/cluster/cluster.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { DuplicateItem, leavesOf } from './fake-field-sets.ts'

/** A refusal as HTTP says it; the fake puts it through the same table as the real adapter. */
export class Refusal extends Error {
  readonly status: number
  readonly body: unknown
  constructor(status: number, reason: string, message: string, details: Record<string, unknown> = {}) {
    super(message)
    this.status = status
    this.body = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, details, code: status }
  }
}

const VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']

const kind = (
  group: string,
  version: string,
  name: string,
  plural: string,
  namespaced = true,
  hasStatus = !STATELESS.has(name),
): ApiResource => ({
  group,
  version,
  kind: name,
  plural,
  namespaced,
  verbs: VERBS,
  hasStatus,
})
/** Built-in kinds without a status subresource. */
const STATELESS: ReadonlySet<string> = new Set([
  'ClusterRole',
  'ClusterRoleBinding',
  'ConfigMap',
  'Event',
  'IngressClass',
  'Lease',
  'LimitRange',
  'MutatingWebhookConfiguration',
  'NetworkPolicy',
  'PriorityClass',
  'Role',
  'RoleBinding',
  'Secret',
  'ServiceAccount',
  'StorageClass',
  'ValidatingWebhookConfiguration',
])

const RBAC = 'rbac.authorization.k8s.io'
export const CRD_GROUP = 'apiextensions.k8s.io'
export const APISERVICE_GROUP = 'apiregistration.k8s.io'

export const BUILT_IN: readonly ApiResource[] = [
  kind('', 'v1', 'Namespace', 'namespaces', false),
  kind('', 'v1', 'Node', 'nodes', false),
  kind('', 'v1', 'ConfigMap', 'configmaps'),
  kind('', 'v1', 'Event', 'events'),
  kind('', 'v1', 'Endpoints', 'endpoints'),
  kind('', 'v1', 'Secret', 'secrets'),
  kind('', 'v1', 'Service', 'services'),
  kind('', 'v1', 'ServiceAccount', 'serviceaccounts'),
  kind('', 'v1', 'Pod', 'pods'),
  kind('', 'v1', 'PersistentVolume', 'persistentvolumes', false),
  kind('', 'v1', 'PersistentVolumeClaim', 'persistentvolumeclaims'),
  kind('', 'v1', 'ResourceQuota', 'resourcequotas'),
  kind('', 'v1', 'LimitRange', 'limitranges'),
  kind('apps', 'v1', 'Deployment', 'deployments'),
  kind('apps', 'v1', 'StatefulSet', 'statefulsets'),
  kind('apps', 'v1', 'DaemonSet', 'daemonsets'),
  kind('apps', 'v1', 'ReplicaSet', 'replicasets'),
  kind('batch', 'v1', 'Job', 'jobs'),
  kind('batch', 'v1', 'CronJob', 'cronjobs'),
  kind('autoscaling', 'v2', 'HorizontalPodAutoscaler', 'horizontalpodautoscalers'),
  kind('autoscaling', 'v1', 'HorizontalPodAutoscaler', 'horizontalpodautoscalers'),
  kind('policy', 'v1', 'PodDisruptionBudget', 'poddisruptionbudgets'),
  kind('networking.k8s.io', 'v1', 'Ingress', 'ingresses'),
  kind('networking.k8s.io', 'v1', 'NetworkPolicy', 'networkpolicies'),
  kind('networking.k8s.io', 'v1', 'IngressClass', 'ingressclasses', false),
  kind('scheduling.k8s.io', 'v1', 'PriorityClass', 'priorityclasses', false),
  kind('storage.k8s.io', 'v1', 'StorageClass', 'storageclasses', false),
  kind('coordination.k8s.io', 'v1', 'Lease', 'leases'),
  kind(RBAC, 'v1', 'Role', 'roles'),
  kind(RBAC, 'v1', 'RoleBinding', 'rolebindings'),
  kind(RBAC, 'v1', 'ClusterRole', 'clusterroles', false),
  kind(RBAC, 'v1', 'ClusterRoleBinding', 'clusterrolebindings', false),
  kind(CRD_GROUP, 'v1', 'CustomResourceDefinition', 'customresourcedefinitions', false),
  kind(APISERVICE_GROUP, 'v1', 'APIService', 'apiservices', false),
  kind('admissionregistration.k8s.io', 'v1', 'ValidatingWebhookConfiguration', 'validatingwebhookconfigurations', false),
  kind('admissionregistration.k8s.io', 'v1', 'MutatingWebhookConfiguration', 'mutatingwebhookconfigurations', false),
]

const BUILT_IN_GROUPS = new Set(BUILT_IN.map(({ group }) => group))
export const isCustom = (group: string): boolean => !BUILT_IN_GROUPS.has(group)

/** Kinds whose registry strategy counts a generation; all custom ones do. */
export function hasGeneration({ group, kind: name }: ApiResource): boolean {
  const counting = ['apps', 'batch', 'policy', 'networking.k8s.io', 'admissionregistration.k8s.io', CRD_GROUP]
  return isCustom(group) || counting.includes(group) || (group === '' && name === 'Pod')
}

const crdSchema = z.looseObject({
  spec: z.looseObject({
    group: z.string(),
    scope: z.enum(['Namespaced', 'Cluster']),
    names: z.looseObject({ plural: z.string(), kind: z.string() }),
    versions: z
      .array(
        z.looseObject({
          name: z.string(),
          served: z.boolean(),
          subresources: z.looseObject({ status: z.looseObject({}).optional() }).optional(),
        }),
      )
      .min(1),
  }),
})

/** The kinds that a CRD brings, or a 422 as the API server would give. */
export function kindsOfCrd(object: K8sObject): ApiResource[] {
  const parsed = crdSchema.safeParse(object)
  if (!parsed.success) throw invalid(object, 'FieldValueRequired', 'spec', 'Required value')
  const { group, scope, names, versions } = parsed.data.spec
  if (object.metadata.name !== `${names.plural}.${group}`)
    throw invalid(object, 'FieldValueInvalid', 'metadata.name', 'must be spec.names.plural+"."+spec.group')
  const isNamespaced = scope === 'Namespaced'
  return versions.flatMap(({ name, served, subresources }) =>
    served ? [kind(group, name, names.kind, names.plural, isNamespaced, subresources?.status !== undefined)] : [],
  )
}

function invalid(object: K8sObject, reason: string, field: string, message: string): Refusal {
  const { kind: kindName, apiVersion, metadata } = object
  const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : ''
  const full = group === '' ? kindName : `${kindName}.${group}`
  const details = { name: metadata.name, kind: kindName, ...(group === '' ? {} : { group }), causes: [{ reason, message, field }] }
  return new Refusal(422, 'Invalid', `${full} "${metadata.name}" is invalid: ${field}: ${message}`, details)
}

const NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/
const DATA_KEY = /^[-._a-zA-Z0-9]+$/
const FIELDS: Record<string, readonly string[]> = {
  ConfigMap: ['apiVersion', 'kind', 'metadata', 'data', 'binaryData', 'immutable'],
  Secret: ['apiVersion', 'kind', 'metadata', 'data', 'stringData', 'immutable', 'type'],
}

/** What the server refuses before it looks at the live object. Order as there: request, types, then validation after
 *  the merge. */
export function checkPatch(object: K8sObject, resource: ApiResource): void {
  const { metadata } = object
  if (metadata.managedFields !== undefined) throw new Refusal(400, 'BadRequest', 'metadata.managedFields must be nil')
  const typed = (where: string) =>
    new Refusal(
      500,
      '',
      `failed to create typed patch object (${metadata.namespace}/${metadata.name}; ${object.apiVersion}, Kind=${object.kind}): ${where}`,
    )
  if (resource.group === '') {
    for (const field of Object.keys(object)) {
      if (FIELDS[object.kind]?.includes(field) === false) throw typed(`.${field}: field not declared in schema`)
    }
    for (const [key, value] of Object.entries(recordAt(object, 'data'))) {
      if (value !== null && typeof value !== 'string')
        throw typed(`.data.${key}: expected string, got &value.valueUnstructured{Value:${value}}`)
    }
  }
  try {
    leavesOf(object, isCustom(resource.group))
  } catch (error) {
    throw error instanceof DuplicateItem ? typed(error.message) : error
  }
}

/** Validation of the merged object. */
export function checkObject(object: K8sObject, resource: ApiResource): void {
  const name = object.metadata.name ?? ''
  if (resource.group !== RBAC && !NAME.test(name))
    throw invalid(
      object,
      'FieldValueInvalid',
      'metadata.name',
      `Invalid value: "${name}": a lowercase RFC 1123 subdomain must consist of …`,
    )
  if (object.kind === 'ConfigMap' || object.kind === 'Secret') {
    for (const key of Object.keys(recordAt(object, 'data'))) {
      if (!DATA_KEY.test(key))
        throw invalid(object, 'FieldValueInvalid', `data[${key}]`, `Invalid value: "${key}": a valid config key must consist of …`)
    }
  }
  if (resource.group === 'apps' && valueAt(object, ['spec', 'selector']) === undefined)
    throw invalid(object, 'FieldValueRequired', 'spec.selector', 'Required value')
}

interface Schema {
  type?: string
  nullable?: boolean
  default?: unknown
  properties?: Record<string, Schema>
  items?: Schema
  'x-kubernetes-preserve-unknown-fields'?: boolean
}

/** The structural schema of a custom resource. Undefined means that there is none, and anything is taken. */
export function schemaOf(objects: readonly K8sObject[], { group, version, kind: name }: ApiResource): Schema | undefined {
  const of = (crd: K8sObject) => valueAt(crd, ['spec', 'group']) === group && valueAt(crd, ['spec', 'names', 'kind']) === name
  const versions = valueAt(
    objects.find((object) => object.kind === 'CustomResourceDefinition' && of(object)),
    ['spec', 'versions'],
  )
  const found = Array.isArray(versions) ? versions.find((candidate) => valueAt(candidate, ['name']) === version) : undefined
  return valueAt(found, ['schema', 'openAPIV3Schema']) as Schema | undefined
}

/** Nulls in an apply of a custom resource: kept where the schema is open or says nullable, a default where it has one,
 *  else refused. In labels and annotations, an empty string. */
export function customNulls(object: K8sObject, schema: Schema | undefined): K8sObject {
  const taken = (value: unknown, at: Schema | undefined, path: readonly string[]): unknown => {
    if (value === null) return nullTaken(object, at, path)
    const isOpen = at === undefined || at['x-kubernetes-preserve-unknown-fields'] === true
    if (Array.isArray(value)) return value.map((item, index) => taken(item, isOpen ? undefined : at.items, [...path, String(index)]))
    if (typeof value !== 'object') return value
    const member = (key: string) => at?.properties?.[key]
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, taken(each, member(key), [...path, key])]))
  }
  const { metadata, ...rest } = object
  const texts = (map: unknown) =>
    map === null || typeof map !== 'object' ? map : Object.fromEntries(Object.entries(map).map(([key, value]) => [key, value ?? '']))
  const known = Object.fromEntries(
    Object.entries(metadata).flatMap(([key, value]) =>
      value === null ? [] : [[key, key === 'labels' || key === 'annotations' ? texts(value) : value]],
    ),
  )
  return { ...(taken(rest, schema, []) as object), metadata: known } as K8sObject
}

function nullTaken(object: K8sObject, at: Schema | undefined, path: readonly string[]): unknown {
  if (at === undefined || at.nullable === true || at.type === undefined) return null
  if (at.default !== undefined) return at.default
  const field = path.join('.')
  throw invalid(object, 'FieldValueTypeInvalid', field, `Invalid value: "null": ${field} in body must be of type ${at.type}: "null"`)
}

const IMMUTABLE: Record<string, ReadonlyArray<readonly [path: readonly string[], message: string]>> = {
  Deployment: [[['spec', 'selector'], 'field is immutable']],
  DaemonSet: [[['spec', 'selector'], 'field is immutable']],
  StatefulSet: [
    [['spec', 'selector'], "Forbidden: updates to statefulset spec for fields other than 'replicas', … are forbidden"],
    [['spec', 'serviceName'], "Forbidden: updates to statefulset spec for fields other than 'replicas', … are forbidden"],
    [['spec', 'volumeClaimTemplates'], "Forbidden: updates to statefulset spec for fields other than 'replicas', … are forbidden"],
  ],
  Job: [[['spec', 'template'], 'field is immutable']],
  PersistentVolumeClaim: [[['spec'], 'Forbidden: spec is immutable after creation except …']],
  RoleBinding: [[['roleRef'], 'cannot change roleRef']],
  ClusterRoleBinding: [[['roleRef'], 'cannot change roleRef']],
  Secret: [[['type'], 'field is immutable']],
  StorageClass: [
    [['provisioner'], 'Forbidden: updates to provisioner are forbidden.'],
    [['parameters'], 'Forbidden: updates to parameters are forbidden.'],
  ],
  Service: [[['spec', 'clusterIP'], 'may not change once set']],
  PriorityClass: [[['value'], 'Forbidden: may not be changed in an update.']],
  IngressClass: [[['spec', 'controller'], 'field is immutable']],
  CustomResourceDefinition: [[['spec', 'scope'], 'field is immutable']],
  PersistentVolume: [[['spec', 'hostPath'], 'Forbidden: spec.persistentvolumesource is immutable after creation']],
}

/** Nothing new can hold what is being deleted. */
export function checkFinalizers(before: K8sObject, after: K8sObject): void {
  if (before.metadata.deletionTimestamp === undefined) return
  const held = before.metadata.finalizers ?? []
  const added = (after.metadata.finalizers ?? []).filter((finalizer) => !held.includes(finalizer))
  if (added.length === 0) return
  const message = `Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{${added.map((name) => `"${name}"`).join(', ')}}`
  throw invalid(after, 'FieldValueForbidden', 'metadata.finalizers', message)
}

/** A policy of the cluster, as the API server names it in a refusal. */
export function denied({ plural }: ApiResource, name: string, message: string): Refusal {
  const text = `${plural} "${name}" is forbidden: ValidatingAdmissionPolicy 'fake' with binding 'fake' denied request: ${message}`
  return new Refusal(422, 'Invalid', text, { name, kind: plural, causes: [{ message }] })
}

export function checkImmutable(before: K8sObject, after: K8sObject): void {
  for (const [path, message] of IMMUTABLE[after.kind] ?? []) {
    const [old, now] = [before, after].map((object) => canonicalJson(valueAt(object, path) ?? null))
    // The API server prints the new value of the field, whatever is in it.
    if (old !== now)
      throw invalid(after, 'FieldValueInvalid', path.join('.'), message.includes(':') ? message : `Invalid value: ${now}: ${message}`)
  }
  const frozen = before['immutable'] === true && (after.kind === 'Secret' || after.kind === 'ConfigMap')
  if (frozen && canonicalJson(before['data'] ?? null) !== canonicalJson(after['data'] ?? null))
    throw invalid(after, 'FieldValueForbidden', 'data', 'Forbidden: field is immutable when `immutable` is set')
}

export function checkIdentity(sent: K8sObject, live: K8sObject, resource: ApiResource): void {
  const { uid, resourceVersion } = sent.metadata
  if (resourceVersion !== undefined && resourceVersion !== live.metadata.resourceVersion)
    throw new Refusal(
      409,
      'Conflict',
      `Operation cannot be fulfilled on ${resource.plural} "${sent.metadata.name ?? live.metadata.name}": the object has been modified; please apply your changes to the latest version and try again`,
    )
  if (uid !== undefined && uid !== live.metadata.uid)
    throw invalid(live, 'FieldValueInvalid', 'metadata.uid', `Invalid value: "${uid}": field is immutable`)
}

export const notFound = (plural: string, name: string): Refusal =>
  new Refusal(404, 'NotFound', `${plural} "${name}" not found`, { name, kind: plural })
export const notServed = (): Refusal => new Refusal(404, 'NotFound', 'the server could not find the requested resource')

export function terminating(plural: string, name: string, namespace: string): Refusal {
  const cause = { reason: 'NamespaceTerminating', message: `namespace ${namespace} is being terminated`, field: 'metadata.namespace' }
  const message = `${plural} "${name}" is forbidden: unable to create new content in namespace ${namespace} because it is being terminated`
  return new Refusal(403, 'Forbidden', message, { name, kind: plural, causes: [cause] })
}

export function valueAt(object: unknown, path: readonly string[]): unknown {
  let value: unknown = object
  for (const key of path) value = value !== null && typeof value === 'object' ? (value as Record<string, unknown>)[key] : undefined
  return value
}

function recordAt(object: K8sObject, key: string): Record<string, unknown> {
  const value = object[key]
  return value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
}
