// Bodies of writes, as an API server stores them. Pure.
import type { K8sObject } from '../../shared/kube/object.ts'

/** Typed objects do not store these when they are empty. */
export function withoutEmptyMaps(object: K8sObject): K8sObject {
  const isEmpty = (value: unknown) => value !== null && typeof value === 'object' && Object.keys(value).length === 0
  for (const field of ['labels', 'annotations', 'finalizers', 'ownerReferences'])
    if (isEmpty(object.metadata[field])) delete object.metadata[field]
  if (isEmpty(object['data'])) delete object['data']
  return object
}

/** Nulls in an apply of a built-in kind: an empty string in `data`, nothing elsewhere. */
export function withoutNulls(object: K8sObject): K8sObject {
  const strip = (value: unknown, inData: boolean): unknown => {
    if (Array.isArray(value)) return value.map((item) => strip(item, false))
    if (value === null || typeof value !== 'object') return value
    return Object.fromEntries(
      Object.entries(value).flatMap(([key, member]) =>
        member === null ? (inData ? [[key, '']] : []) : [[key, strip(member, key === 'data')]],
      ),
    )
  }
  return strip(object, false) as K8sObject
}

/** Moves `stringData` of a Secret into `data`. */
export function absorbStringData(object: K8sObject): K8sObject {
  const added = object['stringData']
  if (object.kind !== 'Secret' || added === null || typeof added !== 'object') return object
  const encoded = Object.fromEntries(Object.entries(added).map(([key, value]) => [key, Buffer.from(String(value)).toString('base64')]))
  const { stringData: _, ...rest } = object
  return { ...rest, data: { ...(rest['data'] as Record<string, string> | undefined), ...encoded } } as K8sObject
}

/** RFC 7396. */
export function mergePatched(target: unknown, patch: unknown): unknown {
  if (patch === null || typeof patch !== 'object' || Array.isArray(patch)) return patch
  const result: Record<string, unknown> = target !== null && typeof target === 'object' && !Array.isArray(target) ? { ...target } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key]
    else result[key] = mergePatched(result[key], value)
  }
  return result
}
