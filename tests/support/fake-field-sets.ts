// Field ownership as the API server keeps it in managedFields, for the fake cluster: what an object's fields are as
// fieldsV1, how an apply merges, who loses what. Less strict than the real thing in three places: lists are atomic
// unless named here, an Update entry does not list the containers it created ("." of a map), and who fills a map that
// was applied empty or null takes it from its owner.
import { canonicalJson } from '../../shared/kube/canonical.ts'
import type { K8sObject } from '../../shared/kube/object.ts'

/** Elements as in fieldsV1: `f:name`, `k:{"name":"c"}`, `v:"x"`; a last `.` is the list item itself. */
type Path = readonly string[]
/** Leaf paths by their JSON, with the leaf's value in canonical JSON. */
export type Leaves = ReadonlyMap<string, { path: Path; value: string }>
export type FieldSet = ReadonlySet<string>
type Tree = Record<string, unknown>

/** Keys of the lists that built-in kinds merge by item; a value is the schema's default for an absent key. */
const LIST_KEYS: Record<string, Record<string, string | null>> = {
  containers: { name: null },
  initContainers: { name: null },
  env: { name: null },
  volumes: { name: null },
  volumeMounts: { mountPath: null },
  volumeDevices: { devicePath: null },
  imagePullSecrets: { name: null },
  secrets: { name: null },
  conditions: { type: null },
  hostAliases: { ip: null },
  'containers.ports': { containerPort: null, protocol: 'TCP' },
  'initContainers.ports': { containerPort: null, protocol: 'TCP' },
  'spec.ports': { port: null, protocol: 'TCP' },
  ownerReferences: { uid: null },
}
const SET_LISTS = new Set(['finalizers'])
const ATOMIC_MAPS = new Set(['selector', 'nodeSelector', 'roleRef', 'matchLabels', 'configMapKeyRef', 'secretKeyRef', 'fieldRef'])
/** Fields that belong to nobody: identity, and what the server keeps itself. */
const NOT_OWNED = new Set(
  [
    'name',
    'namespace',
    'uid',
    'resourceVersion',
    'generation',
    'creationTimestamp',
    'deletionTimestamp',
    'deletionGracePeriodSeconds',
  ].concat(['managedFields', 'selfLink', 'generateName']),
)

const isTree = (value: unknown): value is Tree => value !== null && typeof value === 'object' && !Array.isArray(value)
const keyOf = (path: Path): string => JSON.stringify(path)

/** How a list at `trail` (field names only) is merged. Custom resources have no keyed lists but those of metadata. */
function listKeys(trail: readonly string[], custom: boolean): Record<string, string | null> | null {
  if (custom && trail[0] !== 'metadata') return null
  const [parent, field] = trail.slice(-2)
  return LIST_KEYS[`${parent}.${field}`] ?? LIST_KEYS[trail.at(-1) ?? ''] ?? null
}

const isAtomicMap = (trail: readonly string[], custom: boolean): boolean =>
  !custom && ATOMIC_MAPS.has(trail.at(-1) ?? '') && trail[0] !== 'data' && trail[0] !== 'metadata'

/** A second item under one key: where. The real server refuses such a patch with code 500. */
export class DuplicateItem extends Error {}

function itemElement(item: unknown, keys: Record<string, string | null>): string {
  const tree = isTree(item) ? item : {}
  const values = Object.entries(keys).flatMap(([key, fallback]) => {
    const value = tree[key] ?? fallback
    return value === null ? [] : [[key, value] as const]
  })
  return `k:${canonicalJson(Object.fromEntries(values))}`
}

/** The object's own fields; `part: 'status'` takes the status alone. */
export function leavesOf(object: K8sObject, custom: boolean, part: 'main' | 'status' = 'main'): Leaves {
  const leaves = new Map<string, { path: Path; value: string }>()
  const add = (path: Path, value: string) => leaves.set(keyOf(path), { path, value })

  function walk(value: unknown, path: Path, trail: readonly string[]): void {
    if (Array.isArray(value)) walkList(value, path, trail)
    else if (!isTree(value) || Object.keys(value).length === 0 || isAtomicMap(trail, custom)) add(path, canonicalJson(value))
    else for (const [key, member] of Object.entries(value)) walk(member, [...path, `f:${key}`], [...trail, key])
  }

  function walkList(list: readonly unknown[], path: Path, trail: readonly string[]): void {
    const keys = listKeys(trail, custom)
    if (list.length > 0 && SET_LISTS.has(trail.at(-1) ?? '')) {
      for (const item of list) add([...path, `v:${JSON.stringify(item)}`], 'item')
    } else if (list.length > 0 && keys !== null) {
      for (const item of list) {
        const itemPath = [...path, itemElement(item, keys)]
        if (leaves.has(keyOf([...itemPath, '.'])))
          throw new DuplicateItem(`${pathText(path)}: duplicate entries for key ${pathText(itemPath.slice(-1))}`)
        add([...itemPath, '.'], 'item')
        walk(item, itemPath, trail)
      }
    } else add(path, canonicalJson(list))
  }

  for (const [key, value] of Object.entries(object)) {
    if (key === 'apiVersion' || key === 'kind' || (key === 'status') !== (part === 'status')) continue
    if (key !== 'metadata') walk(value, [`f:${key}`], [key])
    else
      for (const [field, member] of Object.entries(object.metadata)) {
        if (!NOT_OWNED.has(field)) walk(member, ['f:metadata', `f:${field}`], ['metadata', field])
      }
  }
  return leaves
}

/** `.spec.containers[name="c"].image`, as conflicts and typed-patch errors show it. */
export const pathText = (path: Path): string =>
  path
    .filter((element) => element !== '.')
    .map((element) => {
      if (element.startsWith('f:')) return `.${element.slice(2)}`
      if (element.startsWith('v:')) return `[=${element.slice(2)}]`
      const keys = JSON.parse(element.slice(2)) as Tree
      return `[${Object.entries(keys)
        .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
        .join(',')}]`
    })
    .join('')

export const pathOf = (key: string): Path => JSON.parse(key) as string[]

export function toFieldsV1(set: FieldSet): Tree {
  const root: Tree = {}
  for (const key of [...set].sort()) {
    let node = root
    for (const element of pathOf(key)) {
      const next = isTree(node[element]) ? node[element] : {}
      node[element] = next
      node = next
    }
  }
  return root
}

export function fromFieldsV1(fields: Tree): Set<string> {
  const set = new Set<string>()
  const walk = (node: Tree, path: Path) => {
    const entries = Object.entries(node)
    if (entries.length === 0 && path.length > 0) set.add(keyOf(path))
    for (const [element, child] of entries) walk(isTree(child) ? child : {}, [...path, element])
  }
  walk(fields, [])
  return set
}

/** The order that structured-merge-diff gives merged items: that of the applied list, live-only items where they stood.
 *  sigs.k8s.io/structured-merge-diff/v6/typed/merge.go, visitListItems */
function mergedOrder(live: readonly string[], applied: readonly string[]): string[] {
  const [inLive, inApplied] = [new Set(live), new Set(applied)]
  const shared = applied.filter((element) => inLive.has(element))
  const order: string[] = []
  const taken = new Set<string>()
  let next = 0
  for (let left = 0, right = 0; left < live.length || right < applied.length; ) {
    const [fromLive, fromApplied] = [live[left], applied[right]]
    if (fromLive !== undefined && fromApplied !== undefined) {
      if (fromLive === fromApplied) {
        order.push(fromLive)
        taken.add(fromLive)
        left += 1
        right += 1
        next += 1
        continue
      }
      if (inApplied.has(fromLive) && shared[next] !== undefined && shared[next] !== fromLive) {
        left += 1
        continue
      }
    }
    if (fromLive !== undefined && !inApplied.has(fromLive)) {
      order.push(fromLive)
      left += 1
      continue
    }
    if (fromLive !== undefined && taken.has(fromLive)) left += 1
    if (fromApplied !== undefined) {
      order.push(fromApplied)
      taken.add(fromApplied)
      right += 1
      if (shared[next] === fromApplied) next += 1
    }
  }
  return order
}

/** The maps and items on the way to these fields: a container that appears or goes is a change of its own. */
export function containersOf(keys: Iterable<string>): Set<string> {
  const containers = new Set<string>()
  for (const key of keys) {
    const path = pathOf(key)
    for (let length = 1; length < path.length; length += 1) containers.add(keyOf(path.slice(0, length)))
  }
  return containers
}

/** `applied` laid over `live`: maps and keyed lists by member, everything else replaced. */
export function mergeApplied(live: K8sObject, applied: K8sObject, custom: boolean): K8sObject {
  const merge = (base: unknown, top: unknown, trail: readonly string[]): unknown => {
    if (isTree(base) && isTree(top)) {
      if (isAtomicMap(trail, custom)) return structuredClone(top)
      const result: Tree = { ...base }
      for (const [key, value] of Object.entries(top)) result[key] = merge(base[key], value, [...trail, key])
      return result
    }
    if (!Array.isArray(base) || !Array.isArray(top)) return structuredClone(top)
    const keys = listKeys(trail, custom)
    const isSet = SET_LISTS.has(trail.at(-1) ?? '')
    if (keys === null && !isSet) return structuredClone(top)
    const elementOf = (item: unknown) => (keys === null || isSet ? JSON.stringify(item) : itemElement(item, keys))
    const [baseItems, topItems] = [base, top].map((list: unknown[]) => new Map(list.map((item) => [elementOf(item), item])))
    return mergedOrder([...(baseItems?.keys() ?? [])], [...(topItems?.keys() ?? [])]).map((element) => {
      if (!topItems?.has(element)) return baseItems?.get(element)
      return merge(baseItems?.get(element), topItems.get(element), trail)
    })
  }
  return merge(live, applied, []) as K8sObject
}

/** Takes the fields out, and the maps and items that this leaves empty. `kept` are the fields that somebody else owns.
 */
export function withoutFields(object: K8sObject, removed: readonly string[], kept: ReadonlySet<string>): K8sObject {
  const result = structuredClone(object)
  const keptPrefixes = new Set([...kept].flatMap((key) => pathOf(key).map((_, index, path) => keyOf(path.slice(0, index + 1)))))
  for (const key of [...removed].sort((a, b) => pathOf(b).length - pathOf(a).length)) {
    const path = pathOf(key)
    const target = path.at(-1) === '.' ? path.slice(0, -1) : path
    if (!keptPrefixes.has(keyOf(target))) removeAt(result, target)
  }
  return result
}

function removeAt(root: K8sObject, path: Path): void {
  const chain: Array<{ node: unknown; element: string }> = []
  let node: unknown = root
  for (const element of path) {
    chain.push({ node, element })
    node = child(node, element)
    if (node === undefined) return
  }
  for (const [index, { node: parent, element }] of [...chain.entries()].reverse()) {
    const value = child(parent, element)
    const empty = Array.isArray(value) ? value.length === 0 : isTree(value) && Object.keys(value).length === 0
    if (index < path.length - 1 && !empty) return
    if (Array.isArray(parent)) parent.splice(parent.indexOf(value), 1)
    else if (isTree(parent) && element !== 'f:metadata') delete parent[element.slice(2)]
  }
}

function child(node: unknown, element: string): unknown {
  const body = element.slice(2)
  if (element.startsWith('f:')) return isTree(node) ? node[body] : undefined
  if (!Array.isArray(node)) return undefined
  if (element.startsWith('v:')) return node.find((item) => JSON.stringify(item) === body)
  const keys = JSON.parse(body) as Tree
  return node.find((item) => isTree(item) && Object.entries(keys).every(([key, value]) => (item[key] ?? defaultOf(key)) === value))
}

const defaultOf = (key: string): unknown => (key === 'protocol' ? 'TCP' : undefined)
