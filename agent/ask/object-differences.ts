// The fields in which two forms of an object differ, and who owns them. Both forms come from the API server, so
// defaults and spellings of quantities are no differences. Values of Secrets are masked. Pure.
import { canonicalJson } from '../../shared/kube/canonical.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { isShownIdentity } from '../cluster/redact/field-path.ts'
import { MARK } from '../cluster/redact/marks.ts'
import { ownsPath } from '../reconcile/snapshot/fields/owned-fields.ts'
import type { Hiding } from './hiding.ts'
import { maskOf } from './masked.ts'

export interface FieldDifference {
  path: string
  /** Absent means that the object that is wanted has no such field. */
  desired?: unknown
  live?: unknown
  managers: string[]
  /** When the first of them wrote the object last. */
  writtenMs?: number
}

/** Shown of one object. Some more are looked for, since marks of Skerry are left out afterwards. */
export const FIELDS_MAX = 200
const FIELDS_FOUND_MAX = FIELDS_MAX + 50
const VALUE_CHARS_MAX = 2_000
/** Written by the API server at each write. */
const METADATA_LEFT: ReadonlySet<string> = new Set([
  'managedFields',
  'resourceVersion',
  'generation',
  'uid',
  'creationTimestamp',
  'selfLink',
])

/** A value of one form with what may be shown of it: a mark stands for all that is below it. */
interface Form {
  value: unknown
  shown: unknown
}
const member = ({ value, shown }: Form, key: string | number): Form => {
  const of = (parent: unknown) =>
    parent !== null && typeof parent === 'object' ? (parent as Record<string | number, unknown>)[key] : undefined
  return { value: of(value), shown: shown === MARK ? MARK : of(shown) }
}
const NOTHING: Form = { value: undefined, shown: undefined }

interface At {
  text: string
  /** As in fieldsV1. */
  keys: string[]
}

export function differences(desired: K8sObject, live: K8sObject, { hiding = 'nothing' as Hiding } = {}): FieldDifference[] {
  const found: FieldDifference[] = []
  const mask = maskOf([desired, live])
  const formOf = (object: K8sObject): Form => ({
    value: compared(object),
    shown: compared(hiding === 'nothing' ? mask.object(object) : mask.identity(object)),
  })
  walk(formOf(desired), formOf(live), { text: '', keys: [] })
  return found

  function walk(asked: Form, held: Form, at: At): void {
    // Labels that one side lacks altogether are told one by one.
    const isLeftOut = asked.value === undefined && isRecord(held.value) && at.text.startsWith('.metadata')
    const wanted = isLeftOut ? { value: {}, shown: {} } : asked
    if (found.length >= FIELDS_FOUND_MAX || canonicalJson(wanted.value) === canonicalJson(held.value)) return
    if (isRecord(wanted.value) && isRecord(held.value)) {
      for (const name of [...new Set([...Object.keys(wanted.value), ...Object.keys(held.value)])].sort())
        walk(member(wanted, name), member(held, name), { text: `${at.text}.${name}`, keys: [...at.keys, `f:${name}`] })
      return
    }
    if (Array.isArray(wanted.value) && Array.isArray(held.value)) {
      walkList(wanted, wanted.value, held, held.value, at)
      return
    }
    found.push({
      path: at.text,
      ...(wanted.value === undefined ? {} : { desired: cut(wanted.shown) }),
      ...(held.value === undefined ? {} : { live: cut(held.shown) }),
      ...writersOf(live, at.keys),
    })
  }

  function walkList(wanted: Form, asked: unknown[], held: Form, there: unknown[], at: At): void {
    const key = keyOf([...asked, ...there])
    if (key === null) {
      for (let index = 0; index < Math.max(asked.length, there.length); index++)
        walk(member(wanted, index), member(held, index), { text: `${at.text}[${index}]`, keys: [...at.keys, `i:${index}`] })
      return
    }
    const named = (item: unknown): unknown => (item as Record<string, unknown>)[key]
    const names = new Set([...asked, ...there].map((item) => String(named(item))))
    for (const name of names) {
      const of = (form: Form, list: unknown[]): Form => {
        const index = list.findIndex((item) => String(named(item)) === name)
        return index < 0 ? NOTHING : member(form, index)
      }
      const [one, other] = [of(wanted, asked), of(held, there)]
      const identity = named(other.value ?? one.value)
      const isShown = one.shown !== MARK && other.shown !== MARK && isShownIdentity(key, identity)
      walk(one, other, {
        text: `${at.text}[${key}=${isShown ? name : MARK}]`,
        keys: [...at.keys, `k:${JSON.stringify({ [key]: identity })}`],
      })
    }
  }
}

function compared({ metadata, ...rest }: K8sObject): Record<string, unknown> {
  const { status: _, ...body } = rest as Record<string, unknown>
  return { ...body, metadata: Object.fromEntries(Object.entries(metadata).filter(([name]) => !METADATA_LEFT.has(name))) }
}

/** The field by which items of a list are told apart. */
function keyOf(items: readonly unknown[]): string | null {
  for (const key of ['name', 'containerPort', 'port', 'mountPath', 'ip', 'type', 'key'])
    if (items.length > 0 && items.every((item) => isRecord(item) && item[key] !== undefined)) return key
  return null
}

const MANAGER = /^[-\w.:/@+() ]{1,200}$/

/** The latest writer first. */
function writersOf({ metadata }: K8sObject, keys: readonly string[]): Pick<FieldDifference, 'managers' | 'writtenMs'> {
  const writers = (metadata.managedFields ?? [])
    .filter(({ fieldsV1 }) => ownsPath(fieldsV1, keys))
    .toSorted((a, b) => String(b.time ?? '').localeCompare(String(a.time ?? '')))
  const writtenMs = Date.parse(writers[0]?.time ?? '')
  const managers = writers
    .map(({ manager = '', subresource }) => (subresource ? `${manager} (${subresource})` : manager))
    .filter((name) => MANAGER.test(name))
    .slice(0, 3)
  return { managers, ...(Number.isNaN(writtenMs) ? {} : { writtenMs }) }
}

function cut(value: unknown): unknown {
  const text = JSON.stringify(value) ?? ''
  return text.length <= VALUE_CHARS_MAX ? value : `${text.slice(0, VALUE_CHARS_MAX)}…`
}

const isRecord = (value: unknown): value is Record<string, unknown> => value !== null && typeof value === 'object' && !Array.isArray(value)
