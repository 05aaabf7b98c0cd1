// The sent document, made from the wanted one: without fields that a rule leaves to others and that others own. A leaf
// without another owner stays, because leaving it out would reset it to its default. A released leaf stays out as long
// as the rule exists.
import { canonicalJson } from '../../../../shared/kube/canonical.ts'
import { SERVICE_LABEL, TRACKING_ANNOTATION } from '../../../../shared/kube/marks.ts'
import type { K8sObject } from '../../../../shared/kube/object.ts'
import { EACH, type Leave } from './ignore.ts'
import { type OtherFields, treesOf } from './other-fields.ts'
import { childNode, childOf, type FieldsNode, hasKeyFields, isLeaf, ownEntry, ownedHash, under } from './owned-fields.ts'

export interface LeftOut {
  /** As in fieldsV1. */
  keys: readonly string[]
  value: unknown
}
export interface Shaped {
  /** Canonical JSON. */
  doc: string
  left: readonly LeftOut[]
}

/** Names that identify an object: no rule removes them. */
const KEPT = new Set(
  [['apiVersion'], ['kind'], ['metadata', 'name'], ['metadata', 'namespace']]
    .concat([
      ['metadata', 'labels', SERVICE_LABEL],
      ['metadata', 'annotations', TRACKING_ANNOTATION],
    ])
    .map((path) => path.map((name) => `f:${name}`).join('\n')),
)

const LEFT = Symbol('left out')
const ABSENT = Symbol('not applied')
/** Nothing was applied yet, or the object is gone: nothing was released. */
const NEVER = Symbol('never applied')

interface At {
  keys: readonly string[]
  /** Rules that point at or below this place, as the segments still to go; an empty one points here. */
  rules: ReadonlyArray<readonly string[]>
  ruled: boolean
  any: readonly FieldsNode[]
  named: readonly FieldsNode[]
  applied: unknown
  left: LeftOut[]
}

/** DR9. `applied`: the applied document, null when the object is created (again). */
export function shapeDoc(wanted: string, leave: Leave, others: readonly OtherFields[] | null, applied: string | null): Shaped {
  const trees = treesOf(others)
  const left: LeftOut[] = []
  const object: unknown = JSON.parse(wanted)
  const shaped = keep(object, {
    keys: [],
    rules: leave.paths,
    ruled: false,
    any: trees.map(({ fields }) => fields),
    named: trees.flatMap(({ manager, fields }) => (leave.managers.includes(manager) ? [fields] : [])),
    applied: applied === null ? NEVER : applied === wanted ? object : (JSON.parse(applied) as unknown),
    left,
  })
  return { doc: left.length === 0 ? wanted : canonicalJson(shaped), left }
}

const isMap = (value: unknown): value is Record<string, unknown> => value !== null && typeof value === 'object' && !Array.isArray(value)

function keep(value: unknown, at: At): unknown {
  const isTheirs =
    (at.named.some(isLeaf) && at.keys.length > 0) ||
    (at.ruled && at.applied === ABSENT) ||
    // One value for its owner: a rule that points into it can only mean all of it.
    ((at.ruled || at.rules.length > 0) && at.any.some(isLeaf) && at.keys.length > 0)
  if (isTheirs) return leaveOut(value, at)
  if (at.rules.length === 0 && !at.ruled && at.named.length === 0) return value
  if (Array.isArray(value)) return keepItems(value, at)
  return isMap(value) ? keepMembers(value, at, new Set()) : value
}

function leaveOut(value: unknown, at: At): typeof LEFT {
  at.left.push({ keys: at.keys, value })
  return LEFT
}

function keepMembers(value: Record<string, unknown>, at: At, keyFields: ReadonlySet<string>): unknown {
  const kept: Record<string, unknown> = {}
  let others = 0
  for (const [name, member] of Object.entries(value)) {
    const key = `f:${name}`
    const keys = [...at.keys, key]
    const result =
      keyFields.has(name) || KEPT.has(keys.join('\n')) ? member : keep(member, below(at, key, [name], appliedMember(at.applied, name)))
    if (result === LEFT) continue
    kept[name] = result
    if (!keyFields.has(name)) others += 1
  }
  const wasEmptied = others === 0 && Object.keys(value).some((name) => !keyFields.has(name))
  if (!wasEmptied) return kept
  // Only the name of a list item is left: it is removed when others have the item itself.
  const guides = at.ruled ? at.any : at.named
  return keyFields.size === 0 || guides.some((node) => [...keyFields].every((name) => childNode(node, `f:${name}`))) ? LEFT : kept
}

function keepItems(items: readonly unknown[], at: At): unknown {
  const known = [...at.any, ...at.named].flatMap((node) => Object.keys(node))
  const kept = items.flatMap((item, index) => {
    const key = known.find((candidate) => standsFor(candidate, item)) ?? `i:${index}`
    const names = [String(index), EACH, ...(isMap(item) && typeof item['name'] === 'string' ? [item['name']] : [])]
    const next = below(at, key, names, appliedItem(at.applied, key, item, index))
    const keyFields = key.startsWith('k:') && isMap(item) ? new Set(Object.keys(JSON.parse(key.slice(2)) as object)) : null
    const result = keyFields !== null && isMap(item) && !isGivenUp(next) ? keepMembers(item, next, keyFields) : keep(item, next)
    return result === LEFT ? [] : [result]
  })
  return kept.length === 0 && items.length > 0 ? LEFT : kept
}

const isGivenUp = ({ ruled, applied, any, named }: At): boolean => (ruled && (applied === ABSENT || any.some(isLeaf))) || named.some(isLeaf)

function below(at: At, key: string, names: readonly string[], applied: unknown): At {
  const rules = at.rules.flatMap(([first, ...rest]) => (first !== undefined && names.includes(first) ? [rest] : []))
  const ruled = at.ruled || rules.some((rest) => rest.length === 0)
  return { keys: [...at.keys, key], rules, ruled, any: under(at.any, key), named: under(at.named, key), applied, left: at.left }
}

const standsFor = (key: string, item: unknown): boolean =>
  key.startsWith('k:') ? hasKeyFields(item, key.slice(2)) : key === `v:${JSON.stringify(item)}`

function appliedMember(applied: unknown, name: string): unknown {
  if (applied === NEVER || applied === ABSENT) return applied
  return isMap(applied) && Object.hasOwn(applied, name) ? applied[name] : ABSENT
}

function appliedItem(applied: unknown, key: string, item: unknown, index: number): unknown {
  if (applied === NEVER || applied === ABSENT) return applied
  if (!Array.isArray(applied)) return ABSENT
  if (!key.startsWith('i:')) return childOf(applied, key) ?? ABSENT
  const name = isMap(item) ? item['name'] : undefined
  const found = name === undefined ? applied[index] : applied.find((other) => isMap(other) && other['name'] === name)
  return found ?? ABSENT
}

/** DR9: others took fields that a rule leaves to them, and nothing else happened: then the applied document already
 *  is the shaped one, without a request. The proof puts those fields back: the hash is the former one. Null means it
 *  cannot be shown. */
export function settleShape(
  entry: { appliedDoc: string; ownedHash: string | null },
  live: K8sObject,
  others: readonly OtherFields[] | null,
  leave: Leave,
): string | null {
  const { doc, left } = shapeDoc(entry.appliedDoc, leave, others, entry.appliedDoc)
  const own = ownEntry(live)
  if (left.length === 0 || own?.fieldsV1 === undefined) return null
  const before = structuredClone(live)
  const fields = before.metadata.managedFields?.find((_, index) => live.metadata.managedFields?.[index] === own)?.fieldsV1
  if (fields === undefined) return null
  for (const { keys, value } of left) if (!putBack(before, fields, keys, value)) return null
  return ownedHash(before) === entry.ownedHash ? doc : null
}

function putBack(object: unknown, fields: FieldsNode, keys: readonly string[], value: unknown): boolean {
  const last = keys.at(-1)
  if (last === undefined || !last.startsWith('f:') || (value !== null && typeof value === 'object')) return false
  let place: unknown = object
  let node = fields
  for (const key of keys.slice(0, -1)) {
    place = childOf(place, key)
    const next = childNode(node, key) ?? {}
    node[key] = next
    node = next
  }
  if (!isMap(place) || node[last] !== undefined) return false
  place[last.slice(2)] = value
  node[last] = {}
  return true
}
