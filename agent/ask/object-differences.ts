// The fields in which two forms of an object differ, and who owns them. Both forms come from the API server, so defaults
// and spellings of quantities are no differences. Values of Secrets are masked. Pure.
import { canonicalJson } from '../../shared/kube/canonical.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { MARK } from '../cluster/redact/marks.ts'
import { isSecretKind, isSensitiveName } from '../cluster/redact/shown-fields.ts'
import { ownsPath } from '../reconcile/snapshot/fields/owned-fields.ts'
import { LAST_APPLIED, maskedPart } from './masked.ts'

export interface FieldDifference {
  path: string
  /** Absent: the object that is wanted has no such field. */
  desired?: unknown
  live?: unknown
  managers: string[]
  /** When the first of them wrote the object last. */
  writtenMs?: number
}

const FIELDS_MAX = 200
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

interface At {
  text: string
  /** As in fieldsV1. */
  keys: string[]
  isHidden: boolean
}

export function differences(desired: K8sObject, live: K8sObject, { isHidden = false } = {}): FieldDifference[] {
  const found: FieldDifference[] = []
  const hidesContents = isHidden || isSecretKind(live.kind)
  walk(compared(desired), compared(live), { text: '', keys: [], isHidden: false })
  return found.slice(0, FIELDS_MAX)

  function walk(asked: unknown, held: unknown, at: At): void {
    // Labels that one side lacks altogether are told one by one.
    const wanted = asked === undefined && isRecord(held) && at.text.startsWith('.metadata') ? {} : asked
    if (found.length >= FIELDS_MAX || canonicalJson(wanted) === canonicalJson(held)) return
    if (isRecord(wanted) && isRecord(held)) {
      const isVariable = isSensitiveName(String(held['name'] ?? wanted['name'] ?? ''))
      for (const name of [...new Set([...Object.keys(wanted), ...Object.keys(held)])].sort()) {
        const isContents = at.text === '' && hidesContents && (isHidden ? name !== 'metadata' : /^(data|stringData|binaryData)$/.test(name))
        const below = { text: `${at.text}.${name}`, keys: [...at.keys, `f:${name}`] }
        const isCopy = name === LAST_APPLIED
        walk(wanted[name], held[name], { ...below, isHidden: at.isHidden || isContents || isCopy || (isVariable && name === 'value') })
      }
      return
    }
    if (Array.isArray(wanted) && Array.isArray(held)) {
      walkList(wanted, held, at)
      return
    }
    const shown = (value: unknown) => (at.isHidden ? MARK : cut(maskedPart(value)))
    found.push({
      path: at.text,
      ...(wanted === undefined ? {} : { desired: shown(wanted) }),
      ...(held === undefined ? {} : { live: shown(held) }),
      ...writersOf(live, at.keys),
    })
  }

  function walkList(wanted: unknown[], held: unknown[], at: At): void {
    const key = keyOf([...wanted, ...held])
    const names = key === null ? [] : [...new Set([...wanted, ...held].map((item) => String((item as Record<string, unknown>)[key])))]
    if (key === null) {
      for (let index = 0; index < Math.max(wanted.length, held.length); index++)
        walk(wanted[index], held[index], { ...at, text: `${at.text}[${index}]`, keys: [...at.keys, `i:${index}`] })
      return
    }
    const of = (list: unknown[], name: string) => list.find((item) => String((item as Record<string, unknown>)[key]) === name)
    for (const name of names)
      walk(of(wanted, name), of(held, name), {
        ...at,
        text: `${at.text}[${key}=${name}]`,
        keys: [
          ...at.keys,
          `k:${JSON.stringify({ [key]: of(held, name) === undefined ? name : (of(held, name) as Record<string, unknown>)[key] })}`,
        ],
      })
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

/** The latest writer first. */
function writersOf({ metadata }: K8sObject, keys: readonly string[]): Pick<FieldDifference, 'managers' | 'writtenMs'> {
  const writers = (metadata.managedFields ?? [])
    .filter(({ fieldsV1 }) => ownsPath(fieldsV1, keys))
    .toSorted((a, b) => String(b.time ?? '').localeCompare(String(a.time ?? '')))
  const writtenMs = Date.parse(writers[0]?.time ?? '')
  const managers = writers.map(({ manager = '', subresource }) => (subresource ? `${manager} (${subresource})` : manager)).slice(0, 3)
  return { managers, ...(Number.isNaN(writtenMs) ? {} : { writtenMs }) }
}

function cut(value: unknown): unknown {
  const text = JSON.stringify(value) ?? ''
  return text.length <= VALUE_CHARS_MAX ? value : `${text.slice(0, VALUE_CHARS_MAX)}…`
}

const isRecord = (value: unknown): value is Record<string, unknown> => value !== null && typeof value === 'object' && !Array.isArray(value)
