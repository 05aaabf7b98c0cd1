// The values that a chart gets, each with the level that it comes from. Values that a secret of a Config went into, by
// whatever filter, are left out: that they are secret is known from what was read, not from their looks. Values that
// were committed in clear are known by their names alone. Pure.
import type { ExplainedValue } from '../../../shared/model/render-views.ts'
import { decodeUtf8 } from '../utf8.ts'
import type { Chart, ChartNode } from './chart.ts'
import type { ValuesLayer } from './layers.ts'
import { isValues, mergeValues, readValues, type Values } from './values.ts'

/** Stands for a secret. */
export const SECRET_SHOWN = '[secret]'

/** `helm`: label of its source. */
export function explainHelmValues(chart: Chart, layers: readonly ValuesLayer[], helm: string): ExplainedValue[] {
  const all = [...chartLayers(chart), ...layers]
  const merged = all.reduce((below, { values }) => mergeValues(below, values), {} as Values)
  return leavesOf(merged, []).map(({ names, value }) => {
    const setters = all.filter(({ values }) => valueAt(values, names) !== undefined)
    const last = setters.pop()
    const secret =
      (last !== undefined && isSecretAt(last, names.join('.'))) || isNamedSecret(names.at(-1) ?? '', value) || holdsNamedSecret(value)
    const shown = `.Values${names.map(segment).join('')}`
    return { path: shown, value: secret ? SECRET_SHOWN : value, secret, from: nameOf(last), over: setters.map(nameOf), helm }
  })
}

const nameOf = (layer: ValuesLayer | undefined): string => layer?.from ?? layer?.place ?? 'unknown'

/** Values of the chart itself, below everything else: those of charts that it depends on first. */
function chartLayers({ files, node }: Chart): ValuesLayer[] {
  const found: ValuesLayer[] = []
  const visit = ({ folder, children }: ChartNode, names: readonly string[]) => {
    for (const [name, child] of children) visit(child, [...names, name])
    const path = folder === '' ? 'values.yaml' : `${folder}/values.yaml`
    const text = decodeUtf8(files.get(path)?.bytes ?? new Uint8Array())
    const read = text === null ? null : readValues(text, path)
    if (read?.kind !== 'values' || Object.keys(read.values).length === 0) return
    const values = names.toReversed().reduce((inner: Values, name) => ({ [name]: inner }), read.values)
    found.push({ place: `chart ${path}`, values })
  }
  visit(node, [])
  return found
}

/** A list is one value: a secret in it makes all of it one. */
const isSecretAt = ({ secretAt }: ValuesLayer, place: string): boolean =>
  secretAt === 'all' || (secretAt !== undefined && [...secretAt].some((at) => at === place || at.startsWith(`${place}.`)))

const SECRET_NAME =
  /(?:pass(?:word|wd|phrase|code)?|pwd|secret|token|credentials?|dsn|(?:api|private|access|account|shared|encryption|signing|client)[-_]?key)s?$/i
/** A name of a Secret is no secret. */
const OBJECT_NAME = /(?:existing|pull|tls)[-_]?secrets?$/i

/** A text, a number or a list by whose name its author keeps a secret in it (`auth.rootPassword`). */
const isNamedSecret = (name: string, value: unknown): boolean => {
  const isHeld = typeof value === 'number' || (typeof value === 'string' && value !== '') || (Array.isArray(value) && value.length > 0)
  return isHeld && SECRET_NAME.test(name) && !OBJECT_NAME.test(name)
}

/** In a list, which is shown as a whole: members of its mappings, and variables (`{name: DB_PASSWORD, value: …}`). */
function holdsNamedSecret(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(holdsNamedSecret)
  if (!isValues(value)) return false
  const { name, value: ofName } = value
  if (typeof name === 'string' && isNamedSecret(name, ofName)) return true
  return Object.entries(value).some(([key, member]) => isNamedSecret(key, member) || holdsNamedSecret(member))
}

interface Leaf {
  names: string[]
  value: unknown
}

/** A list is one value, as it is when levels are merged; so is an empty mapping. */
function leavesOf(value: unknown, names: string[]): Leaf[] {
  const members = isValues(value) ? Object.entries(value) : []
  if (members.length === 0) return names.length === 0 ? [] : [{ names, value }]
  return members.sort(([a], [b]) => (a < b ? -1 : 1)).flatMap(([name, member]) => leavesOf(member, [...names, name]))
}

const valueAt = (value: unknown, names: readonly string[]): unknown =>
  names.reduce<unknown>((at, name) => (isValues(at) && Object.hasOwn(at, name) ? at[name] : undefined), value)

const segment = (name: string): string => (/^[A-Za-z_][\w-]*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`)
