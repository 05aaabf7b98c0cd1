// Changes by others to a Skerry object: which applied paths Skerry no longer owns, and who owns them now. Paths and
// names only: a value (it may be a Secret's) never leaves this file.

import type { K8sObject, ManagedFieldsEntry } from '../../../../shared/kube/object.ts'
import { compareText } from '../../../../shared/kube/order.ts'
import { andMore } from '../../../../shared/runtime/messages.ts'
import { isShownIdentity } from '../../../cluster/redact/field-path.ts'
import { MARK } from '../../../cluster/redact/marks.ts'
import { objectPart } from '../../../messages/object-messages.ts'
import { BEFORE_FIRST_APPLY } from './common-fields.ts'
import { childNode, childOf, type FieldsNode, hasKeyFields, isOwnEntry, ownEntry, ownsPath, under } from './owned-fields.ts'

export interface DriftNote {
  /** `.spec.replicas`, sorted. Empty: the paths are all ours still, a value under them changed. */
  paths: string[]
  /**
   * The managers that own these paths now, with their subresources, the latest writer first; '' if nobody owns them.
   */
  manager: string
  /** The live object no longer has any of these paths. */
  removed?: true
}

/** For an object that was found different without a note. */
export const NO_NOTE: DriftNote = { paths: [], manager: '' }

/** The change of an object, for events and statuses: `.spec.replicas changed by kubectl (scale)`. `deleted`: the
 *  object itself is gone. */
export function driftText({ paths, manager, removed }: DriftNote, deleted = false): string {
  if (deleted) return objectPart('deleted_outside')
  const names = shownPaths(paths.slice(0, PATHS_TOLD_MAX))
  const more = Math.max(0, paths.length - PATHS_TOLD_MAX)
  // The API server records the owner of a field, but not who removed one.
  const change = { paths: andMore(names, names.length + more), manager: manager || objectPart('unknown_manager') }
  return objectPart(removed ? 'fields_removed' : 'fields_changed', change).trim()
}

const KEYED_ITEM = /\[(\{(?:"(?:[^"\\]|\\.)*"|[^"{}])*\})\]/g

/** KA31: the paths of a drift without the values of list keys that may be no names. */
export const shownPaths = (paths: readonly string[]): string[] => [
  ...new Set(paths.map((path) => path.replace(KEYED_ITEM, (_, item: string) => `[${shownItem(item)}]`))),
]

function shownItem(item: string): string {
  try {
    const fields = Object.entries(JSON.parse(item) as Record<string, unknown>)
    return JSON.stringify(Object.fromEntries(fields.map(([key, value]) => [key, isShownIdentity(key, value) ? value : MARK])))
  } catch {
    // Part of the name of a field.
    return MARK
  }
}

const PATHS_MAX = 50
const PATHS_TOLD_MAX = 5
const MANAGERS_MAX = 3
const MANAGER_CHARS_MAX = 256
/** A missing entry owns nothing: then each top-level field is named, not the empty path. */
const NOTHING: FieldsNode = { '.': {} }

interface At {
  text: string
  keys: string[]
}
interface Lost extends At {
  /** The live object has a value there. */
  isThere: boolean
}

/** DR2: `applied` is the sent document, `live` the present one. */
export function describeDrift(applied: K8sObject, live: K8sObject): DriftNote {
  const others = (live.metadata.managedFields ?? []).filter((entry) => !isOwnEntry(entry))
  const guides = others.flatMap((entry) => (entry.fieldsV1 === undefined ? [] : [entry.fieldsV1]))
  const [lost, emptied]: [Lost[], Lost[]] = [[], []]
  const { apiVersion: _apiVersion, kind: _kind, ...rest } = applied
  const { name: _name, namespace: _namespace, ...metadata } = applied.metadata
  const root = { value: { ...rest, metadata }, live, own: ownEntry(live)?.fieldsV1 ?? NOTHING, guides }
  collectLost(root, { text: '', keys: [] }, { lost, emptied })
  // A map or list that was sent empty may never have been ours: it counts only if nothing else was lost.
  if (lost.length === 0) lost.push(...emptied)
  const paths = [...new Set(lost.map(({ text }) => text))].sort(compareText).slice(0, PATHS_MAX)
  const isRemoved = lost.length > 0 && lost.every(({ isThere }) => !isThere)
  return { paths, manager: rivalOf(others, lost), ...(isRemoved ? { removed: true } : {}) }
}

interface Found {
  lost: Lost[]
  /** Sent empty, and not ours now. */
  emptied: Lost[]
}

/** One place in the applied document: the sent value, the present one, and the owner. */
interface Place {
  value: unknown
  live: unknown
  own: FieldsNode | undefined
  guides: readonly FieldsNode[]
}

const isMapValue = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

function collectLost(place: Place, at: At, found: Found): void {
  const { value, own, guides } = place
  const isThere = place.live !== undefined
  if (Array.isArray(value)) {
    collectLostItems(value, place, at, found)
    return
  }
  const isMap = isMapValue(value)
  if (isMap && own === undefined && Object.keys(value).length === 0) {
    found.emptied.push({ ...at, isThere })
    return
  }
  if (own !== undefined && !isMap) return
  // An empty node owns everything under it (an atomic map), or is a map from which everything was taken.
  const isWhole = own !== undefined && Object.keys(own).length === 0
  if (!isMap || (own === undefined && guides.length === 0)) {
    found.lost.push({ ...at, isThere })
    return
  }
  for (const [name, member] of Object.entries(value)) {
    const key = `f:${name}`
    const next = { text: `${at.text}${fieldText(name)}`, keys: [...at.keys, key] }
    const below = { value: member, live: childOf(place.live, key), own: childNode(own, key), guides: under(guides, key) }
    if (isWhole && below.live !== undefined && below.guides.length === 0) continue
    collectLost(below, next, found)
  }
}

function collectLostItems(items: unknown[], { own, live, guides }: Place, at: At, found: Found): void {
  const isThere = live !== undefined
  if (own === undefined && items.length === 0) {
    found.emptied.push({ ...at, isThere })
    return
  }
  if (own !== undefined && Object.keys(own).length === 0) {
    // Atomic, and ours; or a list from which items were taken.
    const left = Array.isArray(live) ? live.length : 0
    if (left < items.length) found.lost.push({ ...at, isThere })
    return
  }
  const known = [own ?? {}, ...guides].flatMap((node) => Object.keys(node).filter((key) => key !== '.'))
  // Items without owners: the list is atomic, or gone as a whole.
  if (known.length === 0) {
    found.lost.push({ ...at, isThere })
    return
  }
  for (const item of items) {
    const key = known.find((candidate) => standsFor(candidate, item))
    const text = `${at.text}[${itemText(item, key)}]`
    if (key === undefined) found.lost.push({ text, keys: at.keys, isThere: false })
    else {
      const below = { value: item, live: childOf(live, key), own: childNode(own, key), guides: under(guides, key) }
      collectLost(below, { text, keys: [...at.keys, key] }, found)
    }
  }
}

const standsFor = (key: string, item: unknown): boolean =>
  key.startsWith('k:') ? hasKeyFields(item, key.slice(2)) : key === `v:${JSON.stringify(item)}`

export const fieldText = (name: string): string => (/^[A-Za-z_][A-Za-z0-9_-]*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`)

/** As `paths` of a drift name them. */
export const pathText = (keys: readonly string[]): string =>
  keys.map((key) => (key.startsWith('f:') ? fieldText(key.slice(2)) : `[${itemText(undefined, key)}]`)).join('')

/** With the values of its key fields, which `shownPaths` leaves out where they may be contents. */
export function itemText(item: unknown, key: string | undefined): string {
  if (key?.startsWith('k:')) return key.slice(2)
  const name = item !== null && typeof item === 'object' && 'name' in item ? item.name : undefined
  return typeof name === 'string' ? JSON.stringify({ name }) : '*'
}

/**
 * DR2: a manager is named only for a path that it owns now. Other writers of the object, and their times, prove nothing
 * about a removed field.
 */
function rivalOf(others: readonly ManagedFieldsEntry[], lost: readonly Lost[]): string {
  const holders = others.filter(
    ({ manager, fieldsV1 }) => manager !== BEFORE_FIRST_APPLY && lost.some(({ keys }) => keys.length > 0 && ownsPath(fieldsV1, keys)),
  )
  const latestFirst = holders.sort((a, b) => compareText(b.time ?? '', a.time ?? '') || compareText(a.manager ?? '', b.manager ?? ''))
  const names = latestFirst.map(({ manager = '', subresource = '' }) => (subresource === '' ? manager : `${manager} (${subresource})`))
  return [...new Set(names)].slice(0, MANAGERS_MAX).join(', ').slice(0, MANAGER_CHARS_MAX)
}
