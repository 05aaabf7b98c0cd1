// The known members of any Kubernetes object. Loose on purpose: typed model classes drop unknown fields and rewrite
// dates.
import { z } from 'zod'

const ownerReference = z.looseObject({ kind: z.string(), name: z.string(), uid: z.string() })

const managedFieldsEntry = z.looseObject({
  manager: z.string().optional(),
  operation: z.string().optional(),
  apiVersion: z.string().optional(),
  time: z.string().optional(),
  subresource: z.string().optional(),
  fieldsV1: z.record(z.string(), z.unknown()).optional(),
})
export type ManagedFieldsEntry = z.infer<typeof managedFieldsEntry>

export const k8sObjectSchema = z.looseObject({
  apiVersion: z.string().min(1),
  kind: z.string().min(1),
  metadata: z.looseObject({
    name: z.string().optional(),
    generateName: z.string().optional(),
    namespace: z.string().optional(),
    uid: z.string().optional(),
    resourceVersion: z.string().optional(),
    generation: z.number().optional(),
    creationTimestamp: z.string().nullish(),
    deletionTimestamp: z.string().optional(),
    finalizers: z.array(z.string()).optional(),
    labels: z.record(z.string(), z.string()).optional(),
    annotations: z.record(z.string(), z.string()).optional(),
    ownerReferences: z.array(ownerReference).optional(),
    managedFields: z.array(managedFieldsEntry).optional(),
  }),
})
export type K8sObject = z.infer<typeof k8sObjectSchema>

const OPTIONAL_TEXTS = ['name', 'generateName', 'namespace', 'uid', 'resourceVersion', 'deletionTimestamp'] as const

/**
 * Accepts what `k8sObjectSchema` accepts, without the copy that parsing makes: every answer and every event of an API
 * server passes through here.
 */
export function isK8sObject(value: unknown): value is K8sObject {
  if (!isRecord(value) || !isRecord(value['metadata'])) return false
  const { apiVersion, kind, metadata } = value
  if (typeof apiVersion !== 'string' || apiVersion === '' || typeof kind !== 'string' || kind === '') return false
  for (const field of OPTIONAL_TEXTS) if (!isTextOrNone(metadata[field])) return false
  const { generation, creationTimestamp, finalizers, labels, annotations, ownerReferences, managedFields } = metadata
  return (
    (generation === undefined || typeof generation === 'number') &&
    (creationTimestamp === null || isTextOrNone(creationTimestamp)) &&
    isListOrNone(finalizers, (item) => typeof item === 'string') &&
    isTextsOrNone(labels) &&
    isTextsOrNone(annotations) &&
    isListOrNone(ownerReferences, isOwnerReference) &&
    isListOrNone(managedFields, isManagedFieldsEntry)
  )
}

const isRecord = (value: unknown): value is Record<string, unknown> => value !== null && typeof value === 'object' && !Array.isArray(value)
const isTextOrNone = (value: unknown): boolean => value === undefined || typeof value === 'string'
const isTextsOrNone = (value: unknown): boolean =>
  value === undefined || (isRecord(value) && Object.values(value).every((text) => typeof text === 'string'))
const isListOrNone = (value: unknown, isItem: (item: unknown) => boolean): boolean =>
  value === undefined || (Array.isArray(value) && value.every(isItem))
const isOwnerReference = (item: unknown): boolean =>
  isRecord(item) && typeof item['kind'] === 'string' && typeof item['name'] === 'string' && typeof item['uid'] === 'string'
const isManagedFieldsEntry = (item: unknown): boolean =>
  isRecord(item) &&
  ['manager', 'operation', 'apiVersion', 'time', 'subresource'].every((field) => isTextOrNone(item[field])) &&
  (item['fieldsV1'] === undefined || isRecord(item['fieldsV1']))

/** Which object, by API group (no version: an object keeps its identity across versions). `group` and `namespace` are
 *  '' for core kinds and cluster-scoped objects. */
export interface ObjectRef {
  group: string
  kind: string
  namespace: string
  name: string
}

export function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf('/')
  return slash < 0 ? '' : apiVersion.slice(0, slash)
}

export function versionOf(apiVersion: string): string {
  return apiVersion.slice(apiVersion.indexOf('/') + 1)
}

export function refOf(object: K8sObject): ObjectRef {
  return {
    group: groupOf(object.apiVersion),
    kind: object.kind,
    namespace: object.metadata.namespace ?? '',
    name: object.metadata.name ?? '',
  }
}

/** `group/kind/namespace/name`; the last four segments of an object's row id. No part can contain a slash in
 *  Kubernetes. */
export const refKey = (ref: ObjectRef): string => `${ref.group}/${ref.kind}/${ref.namespace}/${ref.name}`

/**
 * The key of the same object if its kind is outside namespaces. A program that does not know the scope of a kind may
 * have given it a namespace.
 */
export function keyOutsideNamespaces(key: string): string {
  const [group, kind, , name] = key.split('/')
  return `${group}/${kind}//${name}`
}

/** The key of the object of the same kind and name in `namespace`. */
export function keyInNamespace(key: string, namespace: string): string {
  const [group, kind, , name] = key.split('/')
  return `${group}/${kind}/${namespace}/${name}`
}

/**
 * Whether `named` is the key of the object `key`, possibly with a namespace from a program that does not know that its
 * kind has none.
 */
export const namesObject = (named: string, key: string): boolean =>
  named === key || (keyOutsideNamespaces(key) === key && keyOutsideNamespaces(named) === key)

export function parseRefKey(key: string): ObjectRef | null {
  const [group, kind, namespace, name, ...rest] = key.split('/')
  if (group === undefined || !kind || namespace === undefined || !name || rest.length > 0) return null
  return { group, kind, namespace, name }
}

/** For people: `Deployment web/podinfo`, with the group only where the kind alone would be ambiguous to kubectl. */
export function refText(ref: ObjectRef): string {
  const name = ref.namespace === '' ? ref.name : `${ref.namespace}/${ref.name}`
  return `${ref.kind} ${name}`
}
