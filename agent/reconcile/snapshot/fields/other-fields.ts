// The managers of further fields in a live object: kept with it as compact text, one copy for all objects with equal
// ones, so that rules, yields and takeovers can be judged at any time without the document. Most objects have none.
import type { K8sObject } from '../../../../shared/kube/object.ts'
import { MARKS_MANAGER } from '../../../cluster/rest-cluster.ts'
import { BEFORE_FIRST_APPLY, splitCommon } from './common-fields.ts'
import { childNode, childOf, type FieldsNode, isLeaf, isOwnEntry, ownsInside } from './owned-fields.ts'

/** One managedFields entry that is not ours, without its status. */
export interface OtherFields {
  manager: string
  operation: string
  subresource: string
  /** JSON of its fieldsV1. */
  fields: string
}

const NOBODY: readonly OtherFields[] = []
const SHARED_MAX = 500
/** Larger ones are seldom equal. */
const SHARED_CHARS_MAX = 4_000
const shared = new Map<string, readonly OtherFields[]>()

/** Null if nobody else owns anything except status. */
export function otherFieldsOf(object: K8sObject): readonly OtherFields[] | null {
  const entries = object.metadata.managedFields
  if (entries === undefined || entries.length < 2) if (entries?.[0] === undefined || isOwnEntry(entries[0])) return null
  const own = entries?.find(isOwnEntry)?.fieldsV1
  const found: OtherFields[] = []
  for (const entry of entries ?? []) {
    const { manager = '', operation = '', subresource = '', fieldsV1 } = entry
    if (fieldsV1 === undefined || isOwnEntry(entry) || (manager === MARKS_MANAGER && subresource === '')) continue
    const { 'f:status': _status, ...rest } = fieldsV1
    // Fields of an unknown writer belong to nobody, except those that would stay after a release.
    const named = manager === BEFORE_FIRST_APPLY ? splitCommon(rest, own ?? {}).taken : rest
    const fields = named === null ? null : withoutBare(named, own, object)
    if (fields !== null) found.push({ manager, operation, subresource, fields: JSON.stringify(fields) })
  }
  return found.length === 0 ? null : oneCopy(found)
}

/** Without entries that only mean the existence of a map or list (`f:securityContext: {}`, a default): a leaf is a
 *  whole value from here on. */
function withoutBare(node: FieldsNode, own: FieldsNode | undefined, value: unknown): FieldsNode | null {
  const result: FieldsNode = {}
  for (const key of Object.keys(node)) {
    const child = childNode(node, key)
    const member = childOf(value, key)
    const ours = childNode(own, key)
    if (child === undefined) continue
    if (key === '.' || !isLeaf(child)) {
      const kept = key === '.' ? child : withoutBare(child, ours, member)
      if (kept !== null) result[key] = kept
    } else if (!isBare(member, ours)) result[key] = child
  }
  return ownsInside(result) ? result : null
}

const isBare = (value: unknown, ours: FieldsNode | undefined): boolean =>
  value !== null && typeof value === 'object' && (Object.keys(value).length === 0 || (ours !== undefined && ownsInside(ours)))

/** A full table is cleared: then some are stored twice, without another effect. */
function oneCopy(found: readonly OtherFields[]): readonly OtherFields[] {
  const name = JSON.stringify(found)
  if (name.length > SHARED_CHARS_MAX) return found
  const known = shared.get(name)
  if (known !== undefined) return known
  if (shared.size >= SHARED_MAX) shared.clear()
  shared.set(name, found)
  return found
}

export const sameOthers = (a: readonly OtherFields[] | undefined, b: readonly OtherFields[] | undefined): boolean =>
  a === b || (a !== undefined && b !== undefined && JSON.stringify(a) === JSON.stringify(b))

export interface FieldTree {
  manager: string
  subresource: string
  fields: FieldsNode
}

export const treesOf = (others: readonly OtherFields[] | null): FieldTree[] =>
  (others ?? NOBODY).map(({ manager, subresource, fields }) => ({ manager, subresource, fields: JSON.parse(fields) as FieldsNode }))
