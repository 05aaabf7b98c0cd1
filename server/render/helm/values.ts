// Helm values as Helm itself puts them together: later ones win, maps are merged, lists are replaced, and a null stays
// a null, by which Helm removes what the chart has at that place. Pure; tests/contract/helm-values.test.ts holds it
// against `helm template -f a -f b`.
import { parseYamlDocuments } from '../../../shared/adapters/yaml.ts'
import type { Problem } from '../../../shared/runtime/error.ts'

export type Values = Readonly<Record<string, unknown>>

export const isValues = (value: unknown): value is Values => typeof value === 'object' && value !== null && !Array.isArray(value)

/** As helm merges several `-f`: mappings together, all else replaced. A null stays, for helm to take away what the
 *  chart has there. */
export function mergeValues(below: Values, above: Values): Values {
  const merged: Record<string, unknown> = { ...below }
  for (const [key, value] of Object.entries(above)) {
    const before = Object.hasOwn(merged, key) ? merged[key] : undefined
    put(merged, key, isValues(value) && isValues(before) ? mergeValues(before, value) : value)
  }
  return merged
}

/** `__proto__` is a key like any other. */
function put(target: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true })
}

export type ReadValues = { kind: 'values'; values: Values } | { kind: 'refused'; problems: Problem[] }

/** Several documents of one text are merged, as Helm does. */
export function readValues(text: string, file: string): ReadValues {
  const { documents, problems } = parseYamlDocuments(text, { file })
  const found = [...problems]
  let values: Values = {}
  for (const { value, line } of documents) {
    if (isValues(value)) values = mergeValues(values, value)
    else found.push({ path: `${file}:${line}`, message: 'expected a mapping of names to values' })
  }
  return found.length > 0 ? { kind: 'refused', problems: found } : { kind: 'values', values }
}

/** `ingress.host` → `{ ingress: { host: value } }`; a dot in a name is written `\.`. Null means that it is no path. */
export function valueAt(at: string, value: unknown): Values | null {
  const names = at.split(/(?<!\\)\./).map((name) => name.replaceAll('\\.', '.'))
  if (names.some((name) => name === '' || /[[\]]/.test(name))) return null
  let found: unknown = value
  for (const name of names.reverse()) {
    const outer: Record<string, unknown> = {}
    put(outer, name, found)
    found = outer
  }
  return isValues(found) ? found : null
}

/** Whether there is a value at these names; a null is one. */
export function hasValueAt(values: Values, names: readonly string[]): boolean {
  let found: unknown = values
  for (const name of names) {
    const isThere = Array.isArray(found) ? Number(name) < found.length : isValues(found) && Object.hasOwn(found, name)
    if (!isThere) return false
    found = (found as Record<string, unknown>)[name]
  }
  return true
}

/** Every text in the values, with its place in them: `ingress.hosts.0`. What `change` answers takes its place. */
export function mapTexts(values: Values, change: (text: string, place: string) => unknown): Values {
  const visit = (value: unknown, place: string): unknown => {
    if (typeof value === 'string') return change(value, place)
    if (Array.isArray(value)) return value.map((item, index) => visit(item, `${place}.${index}`))
    if (!isValues(value)) return value
    const members: Record<string, unknown> = {}
    for (const [key, member] of Object.entries(value)) put(members, key, visit(member, place === '' ? key : `${place}.${key}`))
    return members
  }
  return visit(values, '') as Values
}
