// What somebody else did to an object of ours: which of the paths that we applied are no longer ours, and who holds them now. Paths and names
// only: a value (it may be a Secret's) never leaves this file.
import type { K8sObject, ManagedFieldsEntry } from '../../../shared/kube/object.ts'
import { compareText } from '../../../shared/kube/order.ts'
import { childNode, childOf, type FieldsNode, hasKeyFields, isOwnEntry, ownEntry, ownsPath, under } from './owned-fields.ts'

export interface DriftNote {
  /** `.spec.replicas`, sorted. Empty: the paths are all ours still, a value under them changed. */
  paths: string[]
  /** As managedFields name it, with the subresource; '' when nobody else wrote to the object. */
  manager: string
}

const PATHS_MAX = 50
/** An entry that is gone is one that owns nothing: then each top-level field is named, not the empty path. */
const NOTHING: FieldsNode = { '.': {} }

interface Lost {
  text: string
  keys: string[]
}

/** DR2: `applied` is the document as we sent it, `live` what the API server holds now. */
export function describeDrift(applied: K8sObject, live: K8sObject): DriftNote {
  const others = (live.metadata.managedFields ?? []).filter((entry) => !isOwnEntry(entry))
  const guides = others.flatMap((entry) => (entry.fieldsV1 === undefined ? [] : [entry.fieldsV1]))
  const lost: Lost[] = []
  const { apiVersion: _apiVersion, kind: _kind, ...rest } = applied
  const { name: _name, namespace: _namespace, ...metadata } = applied.metadata
  const root = { value: { ...rest, metadata }, live, own: ownEntry(live)?.fieldsV1 ?? NOTHING, guides }
  collectLost(root, { text: '', keys: [] }, lost)
  const paths = [...new Set(lost.map(({ text }) => text))].sort(compareText).slice(0, PATHS_MAX)
  return { paths, manager: rivalOf(others, lost) }
}

/** One place in the applied document: what was sent there, what is there now, who owns it. */
interface Place {
  value: unknown
  live: unknown
  own: FieldsNode | undefined
  guides: readonly FieldsNode[]
}

const isMapValue = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

function collectLost(place: Place, at: Lost, lost: Lost[]): void {
  const { value, own, guides } = place
  if (Array.isArray(value)) {
    collectLostItems(value, place, at, lost)
    return
  }
  const isMap = isMapValue(value)
  // What was sent empty is often not there, and never was ours.
  if (isMap && own === undefined && Object.keys(value).length === 0) return
  if (own !== undefined && !isMap) return
  // An empty node owns all that is under it (an atomic map), or a map from which all was taken.
  const isWhole = own !== undefined && Object.keys(own).length === 0
  if (!isMap || (own === undefined && guides.length === 0)) {
    lost.push(at)
    return
  }
  for (const [name, member] of Object.entries(value)) {
    const key = `f:${name}`
    const next = { text: `${at.text}${fieldText(name)}`, keys: [...at.keys, key] }
    const below = { value: member, live: childOf(place.live, key), own: childNode(own, key), guides: under(guides, key) }
    if (isWhole && below.live !== undefined && below.guides.length === 0) continue
    collectLost(below, next, lost)
  }
}

function collectLostItems(items: unknown[], { own, live, guides }: Place, at: Lost, lost: Lost[]): void {
  if (own === undefined && items.length === 0) return
  if (own !== undefined && Object.keys(own).length === 0) {
    // Atomic, and ours; or a list from which items were taken.
    const left = Array.isArray(live) ? live.length : 0
    if (left < items.length) lost.push(at)
    return
  }
  const known = [own ?? {}, ...guides].flatMap((node) => Object.keys(node).filter((key) => key !== '.'))
  // Nobody owns items one by one: the list is atomic, or gone as a whole.
  if (known.length === 0) {
    lost.push(at)
    return
  }
  for (const item of items) {
    const key = known.find((candidate) => standsFor(candidate, item))
    const text = `${at.text}[${itemText(item, key)}]`
    if (key === undefined) lost.push({ text, keys: at.keys })
    else {
      const below = { value: item, live: childOf(live, key), own: childNode(own, key), guides: under(guides, key) }
      collectLost(below, { text, keys: [...at.keys, key] }, lost)
    }
  }
}

const standsFor = (key: string, item: unknown): boolean =>
  key.startsWith('k:') ? hasKeyFields(item, key.slice(2)) : key === `v:${JSON.stringify(item)}`

export const fieldText = (name: string): string => (/^[A-Za-z_][A-Za-z0-9_-]*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`)

/** As `paths` of a drift name them. */
export const pathText = (keys: readonly string[]): string =>
  keys.map((key) => (key.startsWith('f:') ? fieldText(key.slice(2)) : `[${itemText(undefined, key)}]`)).join('')

/** Key fields and members of sets (finalizers) are names, not contents. */
export function itemText(item: unknown, key: string | undefined): string {
  if (key?.startsWith('k:')) return key.slice(2)
  const name = item !== null && typeof item === 'object' && 'name' in item ? item.name : undefined
  return typeof name === 'string' ? JSON.stringify({ name }) : '*'
}

/** The latest of those who hold a lost path now; when nobody does (it was removed), the latest who wrote at all. Who only writes status removed nothing. */
function rivalOf(others: readonly ManagedFieldsEntry[], lost: readonly Lost[]): string {
  const holding = others.filter(({ fieldsV1 }) => lost.some(({ keys }) => keys.length > 0 && ownsPath(fieldsV1, keys)))
  const suspects = holding.length > 0 ? holding : others.filter(({ subresource = '' }) => subresource !== 'status')
  const [latest] = [...suspects].sort((a, b) => compareText(b.time ?? '', a.time ?? '') || compareText(a.manager ?? '', b.manager ?? ''))
  if (latest === undefined) return ''
  return latest.subresource ? `${latest.manager} (${latest.subresource})` : (latest.manager ?? '')
}
