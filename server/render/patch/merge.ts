// Merge patches with the results of kubectl: the strategic one of built-in kinds, which merges lists by key and knows
// directives, and RFC 7396 for all others. Pure: neither the object nor the patch is changed. Unexpected details (nulls
// inside of added items, the order of merged lists) are kubectl's, and compared with it.
import type { PatchField, PatchType } from './schema.ts'

export type Json = null | boolean | number | string | Json[] | JsonMap
export type JsonMap = { [key: string]: Json }

/** A problem with a patch, for its author; `path` leads to the place in the object. */
export class PatchError extends Error {}

const DIRECTIVE = '$patch'
const RETAIN = '$retainKeys'
const DELETE_FROM = '$deleteFromPrimitiveList/'
const ORDER = '$setElementOrder/'

export const isMap = (value: Json | undefined): value is JsonMap => typeof value === 'object' && value !== null && !Array.isArray(value)
const typeOf = (value: Json): string => (Array.isArray(value) ? 'list' : value === null ? 'null' : typeof value)

/** RFC 7396; and as kubectl has it, objects in lists lose their nulls, too. */
export function mergePatch(original: Json | undefined, patch: Json): Json {
  if (Array.isArray(patch)) return patch.map((item) => (item === null ? null : withoutNulls(item)))
  if (!isMap(patch)) return patch
  const merged: JsonMap = isMap(original) ? { ...original } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith('$')) throw new PatchError(`${key} works for built-in kinds only; this kind uses JSON merge patch (RFC 7396)`)
    if (value === null) delete merged[key]
    else merged[key] = mergePatch(merged[key], value)
  }
  return merged
}

/** A strategic merge of a patch into an object of that type; both stay as they are. Throws PatchError with the path of
 *  what cannot be merged. */
export const strategicMerge = (original: JsonMap, patch: JsonMap, type: PatchType): JsonMap => mergeMap(original, patch, type, '')

function mergeMap(original: JsonMap, given: JsonMap, type: PatchType | null, path: string): JsonMap {
  const { [DIRECTIVE]: directive, ...patch } = given
  if (directive === 'replace') return patch
  if (directive === 'delete') return {}
  if (directive !== undefined && directive !== 'merge') throw new PatchError(`${path || '/'}: $patch must be replace, delete or merge`)
  const merged = retained({ ...original }, patch, path)
  mergeOrdered(merged, patch, type, path)
  for (const key of Object.keys(patch).sort()) {
    const value = patch[key] ?? null
    const field = key.startsWith(DELETE_FROM) ? key.slice(DELETE_FROM.length) : key
    const isDeletion = field !== key
    const held = merged[field]
    if (value === null) delete merged[field]
    else if (held === undefined || typeOf(held) !== typeOf(value)) {
      if (!isDeletion) setClean(merged, field, withoutNulls(value))
    } else if (isMap(held) && isMap(value)) merged[field] = mergeField(held, value, type?.get(field), `${path}/${field}`)
    else if (Array.isArray(held) && Array.isArray(value))
      merged[field] = mergeList(held, value, type?.get(field), `${path}/${field}`, isDeletion)
    else setClean(merged, field, value)
  }
  return merged
}

const mergeField = (held: JsonMap, value: JsonMap, field: PatchField | undefined, path: string): JsonMap =>
  field?.replace === true ? value : mergeMap(held, value, field?.type ?? null, path)

function setClean(target: JsonMap, key: string, value: Json): void {
  const clean = withoutDirectives(value)
  if (clean === undefined) delete target[key]
  else target[key] = clean
}

/** Removes directives from an added value. Undefined if the value itself is one. */
function withoutDirectives(value: Json): Json | undefined {
  if (Array.isArray(value)) return value.map(withoutDirectives).filter((item) => item !== undefined)
  if (!isMap(value)) return value
  if (value[DIRECTIVE] === 'merge') return withoutDirectives(Object.fromEntries(Object.entries(value).filter(([key]) => key !== DIRECTIVE)))
  if (DIRECTIVE in value) return undefined
  const kept = Object.entries(value).flatMap(([key, member]): [string, Json][] => {
    const clean = withoutDirectives(member)
    return clean === undefined ? [] : [[key, clean]]
  })
  return Object.fromEntries(kept)
}

function withoutNulls(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (!isMap(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== null)
      .map(([key, member]) => [key, withoutNulls(member)]),
  )
}

/** $retainKeys: what it does not name goes. */
function retained(original: JsonMap, patch: JsonMap, path: string): JsonMap {
  const keys = patch[RETAIN]
  if (keys === undefined) return original
  delete patch[RETAIN]
  if (!Array.isArray(keys)) throw new PatchError(`${path}/${RETAIN}: expected a list of names`)
  for (const [key, value] of Object.entries(patch))
    if (value !== null && !key.startsWith(DELETE_FROM) && !key.startsWith(ORDER) && !keys.includes(key))
      throw new PatchError(`${path}/${key} is not in ${RETAIN} beside it`)
  return Object.fromEntries(Object.entries(original).filter(([key]) => keys.includes(key)))
}

/** $setElementOrder: its lists are merged first, and then put into that order. */
function mergeOrdered(merged: JsonMap, patch: JsonMap, type: PatchType | null, path: string): void {
  for (const directive of Object.keys(patch).filter((key) => key.startsWith(ORDER))) {
    const field = directive.slice(ORDER.length)
    const [order, held = null, value = null] = [patch[directive], merged[field], patch[field]]
    delete patch[directive]
    if (!Array.isArray(order)) throw new PatchError(`${path}/${directive}: expected a list`)
    for (const list of [held, value]) if (list !== null && !Array.isArray(list)) throw new PatchError(`${path}/${field}: expected a list`)
    const found = type?.get(field)
    if (Array.isArray(value)) checkOrder(value, order, found?.key, `${path}/${field}`)
    const contents =
      Array.isArray(held) && Array.isArray(value)
        ? mergeList(held, value, found, `${path}/${field}`, false)
        : Array.isArray(value)
          ? (withoutDirectives(value) as Json[])
          : held
    if (!Array.isArray(contents)) continue
    merged[field] = inOrder(contents, order, orderBefore(held, value, found?.key), found?.key)
    delete patch[field]
  }
}

/** kubectl deletes in place and adds in the room that is left, in the very list that it asks for the order of before:
 *  there, what is new counts as what comes last. */
function orderBefore(held: Json, patch: Json, key: string | undefined): Json[] {
  if (!Array.isArray(held)) return []
  if (!Array.isArray(patch) || key === undefined) return held
  const [gone, added, isReplaced] = [new Set<Json>(), [] as JsonMap[], patch.some((item) => isMap(item) && item[DIRECTIVE] === 'replace')]
  for (const item of patch) if (isMap(item) && item[DIRECTIVE] === 'delete') gone.add(item[key] ?? null)
  const kept = held.filter((item) => !(isMap(item) && gone.has(item[key] ?? null)))
  const known = new Set(kept.map((item) => (isMap(item) ? item[key] : item)))
  for (const item of patch) if (isMap(item) && [undefined, 'merge'].includes(item[DIRECTIVE] as string | undefined) && !known.has(item[key])) added.push(item) // biome-ignore format: one condition
  return isReplaced || kept.length === held.length ? held : [...kept, ...added].slice(0, held.length)
}

/** Items of the patch must be in the order, and in the same sequence. */
function checkOrder(patch: readonly Json[], order: readonly Json[], key: string | undefined, path: string): void {
  const items = patch.filter((item) => !(isMap(item) && DIRECTIVE in item))
  if (order.length === 0 || patch.length === 0) return
  let at = 0
  for (const place of order) if (at < items.length && identity(items[at] ?? null, key, path) === identity(place, key, path)) at++
  if (at < items.length) throw new PatchError(`${path}: its items are not in the order of ${ORDER.slice(0, -1)}`)
}

function mergeList(original: Json[], patch: Json[], field: PatchField | undefined, path: string, isDeletion: boolean): Json[] {
  if (isDeletion) {
    const gone = new Set(patch)
    return original.filter((item) => !gone.has(item))
  }
  if (field?.merge !== true) return patch
  if (original.length === 0 && patch.length === 0) return original
  const items = [...original, ...patch]
  if (items.some(Array.isArray)) throw new PatchError(`${path}: lists of lists cannot be merged`)
  const { key } = field
  if (new Set(items.map(typeOf)).size > 1) throw new PatchError(`${path}: its items are not all of one type`)
  if (!items.every(isMap)) return inOrder([...new Set(items)], patch, original, undefined)
  if (key === undefined) throw new PatchError(`${path}: no merge key`)
  return mergeItems(original as JsonMap[], patch as JsonMap[], { ...field, key }, path)
}

function mergeItems(original: JsonMap[], patch: JsonMap[], { type, key }: PatchField & { key: string }, path: string): JsonMap[] {
  const wanted: JsonMap[] = []
  const gone = new Set<Json>()
  let isReplaced = false
  for (const item of patch) {
    const { [DIRECTIVE]: directive, ...rest } = item
    if (directive === undefined || directive === 'merge') wanted.push(rest)
    else if (directive === 'replace') isReplaced = true
    else if (directive === 'delete') gone.add(identity(item, key, path))
    else throw new PatchError(`${path}: $patch must be replace, delete or merge`)
  }
  const before = isReplaced ? [] : original.filter((item) => !gone.has(item[key] ?? null))
  const merged = isReplaced ? [...wanted] : [...before]
  const places = new Map<Json, number>()
  for (const [at, item] of merged.entries()) if (!places.has(item[key] ?? null)) places.set(item[key] ?? null, at)
  for (const item of isReplaced ? [] : wanted) {
    const id = identity(item, key, path)
    const at = places.get(id)
    const held = at === undefined ? undefined : merged[at]
    if (at === undefined || held === undefined) places.set(id, merged.push(item) - 1)
    else merged[at] = mergeMap(held, item, type, `${path}/${key}=${String(id)}`)
  }
  for (const item of [...merged, ...before]) identity(item, key, path)
  return inOrder(merged, wanted, before, key) as JsonMap[]
}

function identity(item: Json, key: string | undefined, path: string): Json {
  if (key === undefined) return item
  const value = isMap(item) ? item[key] : undefined
  if (value === undefined) throw new PatchError(`${path}: an item has no ${key}, the merge key of the list`)
  return value
}

/** Those that the patch names are in its order, all others in that of the original, and each of these before the first
 *  that followed it there. */
function inOrder(items: readonly Json[], patchOrder: readonly Json[], originalOrder: readonly Json[], key: string | undefined): Json[] {
  const idOf = (item: Json): Json | undefined => (key === undefined ? item : isMap(item) ? item[key] : undefined)
  const indexIn = (list: readonly Json[]) => {
    const places = new Map<Json | undefined, number>()
    for (const [at, item] of list.entries()) if (!places.has(idOf(item))) places.set(idOf(item), at)
    return (item: Json) => places.get(idOf(item)) ?? -1
  }
  const [inPatch, inOriginal] = [indexIn(patchOrder), indexIn(originalOrder)]
  const ofPatch = items.filter((item) => inPatch(item) >= 0).sort((a, b) => inPatch(a) - inPatch(b))
  const others = items.filter((item) => inPatch(item) < 0).sort((a, b) => inOriginal(a) - inOriginal(b))
  const ordered: Json[] = []
  let next = 0
  for (const item of ofPatch) {
    const place = inOriginal(item)
    // One that was not there before takes no part in the comparison: it comes at once.
    for (; next < others.length && place >= 0; next++) {
      const other = others[next] ?? null
      if (inOriginal(other) < 0 || inOriginal(other) >= place) break
      ordered.push(other)
    }
    ordered.push(item)
  }
  return [...ordered, ...others.slice(next)]
}
