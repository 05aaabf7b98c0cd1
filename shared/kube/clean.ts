// A manifest as it may be sent by server-side apply. What is taken out here each broke an apply or hid a drift on a
// real API server; what is put in are the marks by which an object of ours is known again.
import type { ServiceId } from '../runtime/ids.ts'
import { COMMIT_ANNOTATION, REVISION_ANNOTATION, SERVICE_LABEL, serviceLabel, TRACKING_ANNOTATION, trackingValue } from './marks.ts'
import { groupOf, type K8sObject, refOf } from './object.ts'
import { isBuiltInGroup } from './order.ts'

/** Set by the API server. A resourceVersion would answer 409 for ever, a uid "immutable", managedFields 400. */
const SERVER_METADATA = [
  'uid',
  'resourceVersion',
  'managedFields',
  'creationTimestamp',
  'generation',
  'selfLink',
  'deletionTimestamp',
] as const

/** RC1: status, server-set metadata and the nulls of built-in kinds leave, a Secret's stringData becomes data, the
 *  rules of an aggregated ClusterRole leave. The input is not touched. */
export function cleanObject(object: K8sObject): K8sObject {
  // RC25: only a built-in type is known to have no use for a null. Metadata is of a built-in type in every kind.
  const isBuiltIn = isBuiltInGroup(groupOf(object.apiVersion))
  const { status: _status, ...rest } = isBuiltIn ? withoutNulls(object) : { ...object, metadata: withoutNulls(object.metadata) }
  const metadata: Record<string, unknown> = { ...rest.metadata }
  for (const field of SERVER_METADATA) delete metadata[field]
  const cleaned = { ...rest, metadata } as K8sObject
  if (cleaned.kind === 'Secret' && groupOf(cleaned.apiVersion) === '') return encodeStringData(cleaned)
  if (cleaned.kind === 'ClusterRole' && cleaned['aggregationRule'] !== undefined) return withoutRules(cleaned)
  return cleaned
}

/** RC2: the label that watches select by, and the annotation that says whose object this is, in which cluster, and
 *  under which name. */
export function markObject(object: K8sObject, clusterId: string, { project, service }: ServiceId): K8sObject {
  const { metadata } = object
  const labels = { ...metadata.labels, [SERVICE_LABEL]: serviceLabel(project, service) }
  const annotations = { ...metadata.annotations, [TRACKING_ANNOTATION]: trackingValue(clusterId, project, service, refOf(object)) }
  return { ...object, metadata: { ...metadata, labels, annotations } }
}

/** The revision and commit that brought the document of an object; null fields are not known. */
export interface Origin {
  commit: string | null
  /** Digest of the revision. */
  revision: string | null
}

/** RC24: beside the marks, and no part of the document that is compared: a commit that does not change an object does
 *  not write it. */
export function markOrigin(object: K8sObject, { commit, revision }: Origin): K8sObject {
  const marks = { ...(commit ? { [COMMIT_ANNOTATION]: commit } : {}), ...(revision ? { [REVISION_ANNOTATION]: revision } : {}) }
  if (Object.keys(marks).length === 0) return object
  const { metadata } = object
  return { ...object, metadata: { ...metadata, annotations: { ...metadata.annotations, ...marks } } }
}

/** Without members that are null: in a map of strings of a built-in kind they would arrive as "". Items of lists stay,
 *  because taking one out would move the others. */
export const withoutNulls = <T extends object>(object: T): T => withoutNullMembers(object) as T

function withoutNullMembers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNullMembers)
  if (value === null || typeof value !== 'object') return value
  // From entries, because a ConfigMap may have the key `__proto__`.
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, member]) => (member === null || member === undefined ? [] : [[key, withoutNullMembers(member)]])),
  )
}

/** A controller writes the rules of an aggregated role: applying `rules: []` too would fight with it without end. */
function withoutRules({ rules: _rules, ...role }: K8sObject): K8sObject {
  return role as K8sObject
}

/**
 * Applied as stringData, Skerry would own only `f:stringData`: keys removed from Git would stay, and edits of `data`
 * would not be drift.
 */
function encodeStringData(secret: K8sObject): K8sObject {
  const { stringData, data, ...rest } = secret
  if (stringData === null || typeof stringData !== 'object') return secret
  const encoded: Record<string, unknown> = { ...(data as Record<string, unknown> | undefined) }
  for (const [key, text] of Object.entries(stringData)) encoded[key] = Buffer.from(String(text), 'utf8').toString('base64')
  return { ...rest, data: encoded } as K8sObject
}
