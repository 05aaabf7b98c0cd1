// What somebody else did to an object of ours: which of the paths that we applied are no longer ours, and who holds them now. Paths and names
// only: a value (it may be a Secret's) never leaves this file.
import type { K8sObject, ManagedFieldsEntry } from '../../shared/kube/object.ts'
import { compareText } from '../../shared/kube/order.ts'
import { childNode, type FieldsNode, hasKeyFields, isOwnEntry, ownEntry, ownsPath } from './owned-fields.ts'

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
  collectLost({ ...rest, metadata }, ownEntry(live)?.fieldsV1 ?? NOTHING, guides, { text: '', keys: [] }, lost)
  const paths = [...new Set(lost.map(({ text }) => text))].sort(compareText).slice(0, PATHS_MAX)
  return { paths, manager: rivalOf(others, lost) }
}

function collectLost(value: unknown, own: FieldsNode | undefined, guides: readonly FieldsNode[], at: Lost, lost: Lost[]): void {
  if (Array.isArray(value)) {
    collectLostItems(value, own, guides, at, lost)
    return
  }
  const isMap = value !== null && typeof value === 'object'
  // An empty node owns all that is under it: an atomic map, or a plain value.
  if (own !== undefined && (!isMap || Object.keys(own).length === 0)) return
  if (!isMap || (own === undefined && guides.length === 0)) {
    lost.push(at)
    return
  }
  for (const [name, member] of Object.entries(value)) {
    const key = `f:${name}`
    const next = { text: `${at.text}${fieldText(name)}`, keys: [...at.keys, key] }
    collectLost(member, childNode(own, key), under(guides, key), next, lost)
  }
}

function collectLostItems(items: unknown[], own: FieldsNode | undefined, guides: readonly FieldsNode[], at: Lost, lost: Lost[]): void {
  if (own !== undefined && Object.keys(own).length === 0) return
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
    else collectLost(item, childNode(own, key), under(guides, key), { text, keys: [...at.keys, key] }, lost)
  }
}

const standsFor = (key: string, item: unknown): boolean =>
  key.startsWith('k:') ? hasKeyFields(item, key.slice(2)) : key === `v:${JSON.stringify(item)}`

function under(guides: readonly FieldsNode[], key: string): FieldsNode[] {
  return guides.map((guide) => childNode(guide, key)).filter((node) => node !== undefined)
}

export const fieldText = (name: string): string => (/^[A-Za-z_][A-Za-z0-9_-]*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`)

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
