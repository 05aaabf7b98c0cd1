// The ownership of fields in the API server: reads `fieldsV1`, the set of paths of one managedFields entry. Keys are
// `f:<field>`, `k:<key fields of a list item>`, `v:<value of a set>`, `i:<index>` and `.` for the item itself; an empty
// node owns its whole value.
import { canonicalJson, sha256Hex } from '../../../../shared/kube/canonical.ts'
import { FIELD_MANAGER } from '../../../../shared/kube/marks.ts'
import type { K8sObject, ManagedFieldsEntry } from '../../../../shared/kube/object.ts'

export type FieldsNode = Record<string, unknown>

const isNode = (value: unknown): value is FieldsNode => value !== null && typeof value === 'object' && !Array.isArray(value)

export const isOwnEntry = (entry: ManagedFieldsEntry): boolean =>
  entry.manager === FIELD_MANAGER && entry.operation === 'Apply' && (entry.subresource ?? '') === ''

/** Our Apply entry, or null when the object has none. */
export const ownEntry = (object: K8sObject): ManagedFieldsEntry | null => object.metadata.managedFields?.find(isOwnEntry) ?? null

const HASH_CHARS = 16
const shortHash = (value: unknown): string => sha256Hex(canonicalJson(value)).slice(0, HASH_CHARS)

/**
 * DR1: identifies the values at the owned paths, and the paths themselves. It is equal only if both are. '' if Skerry
 * owns nothing. Short, because every object has one. Its second half is the content under empty nodes, whose owner is
 * unknown.
 */
export function ownedHash(object: K8sObject): string {
  const owned = ownEntry(object)?.fieldsV1
  if (owned === undefined) return ''
  const wholes: unknown[] = []
  const values = project(object, owned, (whole, path) => wholes.push(withoutTheirs(whole, theirNodes(object, path))))
  return shortHash(values) + shortHash(wholes)
}

/**
 * True: all differences from `before` are under empty nodes, and others own a field under one. A map that was sent
 * empty (`strategy: {}`) gets defaults, which have no owner until somebody changes one.
 */
export function isFilledByOthers(before: string, object: K8sObject): boolean {
  const owned = ownEntry(object)?.fieldsV1
  if (owned === undefined || before === '') return false
  let isFilled = false
  const values = project(object, owned, (_, path) => {
    isFilled ||= theirNodes(object, path).some((node) => !isLeaf(node))
  })
  return isFilled && before.startsWith(shortHash(values))
}

const theirNodes = (object: K8sObject, path: readonly string[]): FieldsNode[] =>
  (object.metadata.managedFields ?? [])
    .map((entry) => (isOwnEntry(entry) ? undefined : nodeAt(entry.fieldsV1, path)))
    .filter((node) => node !== undefined)

/** The value reduced to the owned paths. Maps and lists under empty nodes go to `onWhole` instead, with their place. */
function project(
  value: unknown,
  node: FieldsNode,
  onWhole: (whole: object, path: readonly string[]) => void,
  path: string[] = [],
): unknown {
  const keys = Object.keys(node)
  if (keys.length === 0) {
    // A null counts for the API server as an empty map: fields that others put into it stay theirs.
    if (value === null) return {}
    if (typeof value !== 'object') return value
    onWhole(value, path)
    return Array.isArray(value) ? [] : {}
  }
  const result: Record<string, unknown> = {}
  for (const key of keys) {
    const child = node[key]
    if (key === '.' || !isNode(child)) continue
    const member = childOf(value, key)
    // Skerry does not own an empty map or list that the API server drops (`data: {}`): another manager may fill it.
    if (member === undefined) continue
    path.push(key)
    result[key] = project(member, child, onWhole, path)
    path.pop()
  }
  return result
}

/** An empty node is a whole value (an atomic map or list), but also a map that was applied empty: fields that others
 *  put into it are theirs. */
function withoutTheirs(value: unknown, theirs: readonly FieldsNode[]): unknown {
  if (theirs.every((node) => Object.keys(node).length === 0)) return value
  if (Array.isArray(value)) {
    const keys = new Set(theirs.flatMap((node) => Object.keys(node)).map((key) => childOf(value, key)))
    return value.filter((item) => !keys.has(item))
  }
  if (!isNode(value)) return value
  const result: Record<string, unknown> = {}
  for (const [name, member] of Object.entries(value)) {
    const nodes = theirs.map((node) => childNode(node, `f:${name}`)).filter((node) => node !== undefined)
    const left =
      nodes.length === 0 ? member : nodes.some((node) => Object.keys(node).length === 0) ? undefined : withoutTheirs(member, nodes)
    if (left !== undefined && (nodes.length === 0 || !isEmpty(left))) result[name] = left
  }
  return result
}

const isEmpty = (value: unknown): boolean => value !== null && typeof value === 'object' && Object.keys(value).length === 0

function nodeAt(fields: FieldsNode | undefined, path: readonly string[]): FieldsNode | undefined {
  let node = fields
  for (const key of path) node = childNode(node, key)
  return node
}

/** The member of a map or list that one fieldsV1 key stands for. */
export function childOf(value: unknown, key: string): unknown {
  const name = key.slice(2)
  switch (key.slice(0, 2)) {
    case 'f:':
      return isNode(value) && Object.hasOwn(value, name) ? value[name] : undefined
    case 'k:':
      return Array.isArray(value) ? value.find((item) => hasKeyFields(item, name)) : undefined
    case 'v:':
      return Array.isArray(value) ? value.find((item) => JSON.stringify(item) === name) : undefined
    case 'i:':
      return Array.isArray(value) ? value[Number(name)] : undefined
    default:
      return undefined
  }
}

/** A key field that the item leaves out counts as met: the API server fills it with its default (a port's protocol). */
export function hasKeyFields(item: unknown, keyJson: string): boolean {
  if (!isNode(item)) return false
  let keyFields: unknown
  try {
    keyFields = JSON.parse(keyJson)
  } catch {
    return false
  }
  return isNode(keyFields) && Object.entries(keyFields).every(([name, value]) => item[name] === undefined || item[name] === value)
}

/** The node under `key`, or undefined. */
export function childNode(node: FieldsNode | undefined, key: string): FieldsNode | undefined {
  const child = node?.[key]
  return isNode(child) ? child : undefined
}

/** The nodes under `key` of those that have one. */
export const under = (nodes: readonly FieldsNode[], key: string): FieldsNode[] =>
  nodes.map((node) => childNode(node, key)).filter((node) => node !== undefined)

/** A whole value, or that a map or list is there. */
export const isLeaf = (node: FieldsNode): boolean => Object.keys(node).length === 0
/** Does it own anything inside, and not only that the thing is there? */
export const ownsInside = (node: FieldsNode): boolean => Object.keys(node).some((key) => key !== '.')

/** Does this entry own anything at `path` (fieldsV1 keys from the root)? */
export function ownsPath(fields: FieldsNode | undefined, path: readonly string[]): boolean {
  let node = fields
  for (const key of path) {
    node = childNode(node, key)
    if (node === undefined) return false
    if (Object.keys(node).length === 0) return true
  }
  return node !== undefined
}
