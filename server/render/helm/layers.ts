// The values that a release is rendered with, from every place that gives some, level by level: the service < its
// overrides < the cluster, and within a level valuesFiles < valuesFrom < values. What the chart itself has is below all
// of them, and put there by helm.

import { type Problem, plainProblem } from '../../../shared/runtime/error.ts'
import { sopsFormatOf } from '../../../shared/sops/read.ts'
import { evaluate, renderText } from '../liquid/engine.ts'
import { isTemplateText, makeName } from '../name-template.ts'
import type { JobSource, RenderJob } from '../renderer.ts'
import { clearSopsFile } from '../sops/clear-file.ts'
import { treePath } from '../tree-path.ts'
import { decodeUtf8 } from '../utf8.ts'
import { isValues, mapTexts, mergeValues, type ReadValues, readValues, type Values, valueAt } from './values.ts'

/** The limit of all values together, written as JSON. Content that aliases repeat counts each time. */
export const HELM_VALUES_BYTES_MAX = 4 * 1024 * 1024

/** `place`: for messages. */
export interface ValuesLayer {
  place: string
  values: Values
  /** For people, where it is more than the place. */
  from?: string
  /** Places in `values` (`auth.password`) that a secret of a Config went into. */
  secretAt?: ReadonlySet<string> | 'all'
}
export type GatheredValues = { kind: 'values'; merged: Values; layers: readonly ValuesLayer[] } | { kind: 'refused'; problems: Problem[] }

type LayerResult = { kind: 'layer'; layer: ValuesLayer } | { kind: 'none' } | { kind: 'refused'; problems: Problem[] }
const refused = (path: string, message: string): LayerResult => ({ kind: 'refused', problems: [{ path, message }] })
const layerOf = (place: string, read: ReadValues, more: Partial<ValuesLayer> = {}): LayerResult =>
  read.kind === 'refused' ? read : { kind: 'layer', layer: { place, values: read.values, ...more } }
/** Whether `read` looked at a secret. */
function watched<T>(job: RenderJob, read: () => T): { value: T; secret: boolean } {
  const before = job.secretReads?.() ?? 0
  const value = read()
  return { value, secret: (job.secretReads?.() ?? 0) > before }
}

/** Values that a template made or that a Config holds may be secret: messages about them quote nothing. */
const withoutQuotes = (read: ReadValues): ReadValues =>
  read.kind === 'values'
    ? read
    : {
        ...read,
        problems: read.problems.map(({ path, message, needsCluster }) =>
          plainProblem({ path, needsCluster, message: message.replace(/"[^"]*"|[-+]?\d[\w.]{6,}/g, '…') }),
        ),
      }

/** HM2, without the chart's own values.yaml, which is left to helm. All that is wrong at once. */
export async function gatherValues(job: RenderJob): Promise<GatheredValues> {
  const { valuesFiles = [], valuesFrom = [], values } = job.spec.helm ?? {}
  const results: LayerResult[] = []
  const addFiles = async (from: string, names: readonly string[]) => {
    for (const [index, name] of names.entries()) results.push(await fileLayer(job, name, `${from}.helm.valuesFiles[${index}]`))
  }
  await addFiles('render', valuesFiles)
  results.push(...valuesFrom.map((one) => configLayer(job, one)))
  if (values !== undefined) results.push(inlineLayer(job, 'render.helm.values', values))
  for (const level of job.values) {
    await addFiles(level.from, level.valuesFiles ?? [])
    results.push(inlineLayer(job, `${level.from}.helm.values`, level.values))
  }
  const problems = results.flatMap((result) => (result.kind === 'refused' ? result.problems : []))
  if (problems.length > 0) return { kind: 'refused', problems }
  const layers = results.flatMap((result) => (result.kind === 'layer' ? [result.layer] : []))
  const tooLarge = layers.find(({ values: one }) => bytesOf(one) > HELM_VALUES_BYTES_MAX)
  const merged = tooLarge === undefined ? layers.reduce((below, layer) => mergeValues(below, layer.values), {} as Values) : {}
  if (tooLarge === undefined && bytesOf(merged) <= HELM_VALUES_BYTES_MAX) return { kind: 'values', merged, layers }
  const message = `values of more than ${HELM_VALUES_BYTES_MAX / 1024 / 1024} MiB, with aliases expanded`
  return { kind: 'refused', problems: [{ path: tooLarge?.place ?? 'render.helm', message }] }
}

/** As JSON, about; stops where it is too much. */
function bytesOf(values: Values): number {
  let bytes = 0
  const waiting: unknown[] = [values]
  while (waiting.length > 0 && bytes <= HELM_VALUES_BYTES_MAX) {
    const value = waiting.pop()
    bytes += typeof value === 'string' ? Buffer.byteLength(value) + 2 : 8
    if (Array.isArray(value)) waiting.push(...value)
    else if (isValues(value)) for (const [key, member] of Object.entries(value)) waiting.push(key, member)
  }
  return bytes
}

async function fileLayer(job: RenderJob, written: string, from: string): Promise<LayerResult> {
  const optional = written.endsWith('?')
  const [, other, inOther] = /^\$([^/]+)\/(.+)$/.exec(written) ?? []
  const source: JobSource | undefined = other === undefined ? job.source : job.named.get(other)
  if (source === undefined) return refused(written, `no source has the name ${other}; set sources[].name`)
  const whole = inOther ?? written
  const named = makeName(optional ? whole.slice(0, -1) : whole, from, job.inputs, job.meter)
  if (named.kind === 'refused') return named
  const path = treePath(source.root, named.name)
  if (path === null) return refused(written, 'a values file must be inside its source: expected a relative path without leading ".."')
  const file = await source.tree.file(path)
  const place = other === undefined ? path : `$${other}/${path}`
  if (file === null)
    return optional ? { kind: 'none' } : refused(place, `values file not found${asWritten(named.name, whole)}; ${MAY_BE_MISSING}`)
  const text = decodeUtf8(file.bytes)
  if (text === null) return refused(place, 'is not UTF-8 text')
  const format = sopsFormatOf(text)
  if (format !== null) {
    const clear = await clearSopsFile(job, text, format)
    return clear.kind === 'closed'
      ? refused(place, clear.message)
      : layerOf(place, withoutQuotes(readValues(clear.text, place)), { secretAt: 'all' })
  }
  if (!path.endsWith('.liquid') && job.spec.templated !== true) return layerOf(place, readValues(text, place))
  const { value: rendered, secret } = watched(job, () => renderText(text, { file: place }, job.inputs, undefined, job.meter))
  return rendered.kind === 'failed'
    ? { kind: 'refused', problems: rendered.problems }
    : layerOf(place, withoutQuotes(readValues(rendered.text, place)), secret ? { secretAt: 'all' } : {})
}

type ValuesFrom = NonNullable<NonNullable<RenderJob['spec']['helm']>['valuesFrom']>[number]

function configLayer(job: RenderJob, { name, key, at, optional }: ValuesFrom): LayerResult {
  const place = `Config ${name}, ${key}`
  const { value, secret } = watched(job, () => job.configValue(name, key, at === undefined))
  const about: Partial<ValuesLayer> = { from: `Config/${name}`, ...(secret ? { secretAt: 'all' } : {}) }
  if (value === undefined)
    return optional === true
      ? { kind: 'none' }
      : refused(place, `no Config ${name} has ${key}; \`optional: true\` permits that it is missing`)
  if (at !== undefined) {
    const values = valueAt(at, value)
    if (values === null)
      return refused('render.helm.valuesFrom', `at: expected names with dots between them, such as ingress.host, not ${JSON.stringify(at)}`)
    return { kind: 'layer', layer: { place, values, ...about } }
  }
  if (isValues(value)) return { kind: 'layer', layer: { place, values: value, ...about } }
  if (typeof value !== 'string') return refused(place, 'expected a mapping, or YAML text of one; `at` puts a single value at a path')
  return layerOf(place, withoutQuotes(readValues(value, place)), about)
}

const MAY_BE_MISSING = 'a name that ends with ? is optional, and names can be templates: envs/{{ cluster.name }}.yaml?'
const asWritten = (name: string, written: string): string => (name === written ? '' : ` (named by ${written})`)

function inlineLayer(job: RenderJob, from: string, values: Values): LayerResult {
  const problems: Problem[] = []
  const secretAt = new Set<string>()
  const mapped = mapTexts(values, (text, place) => {
    if (!isTemplateText(text)) return text
    const at = { file: `${from}.${place}`, line: null }
    const { value: evaluated, secret } = watched(job, () => evaluate(text, at, job.inputs, job.meter))
    if (secret) secretAt.add(place)
    if (evaluated.kind === 'value') return evaluated.value
    problems.push(...evaluated.problems.map((problem) => ({ ...problem, message: `${problem.message}${goHint(text)}` })))
    return null
  })
  return problems.length > 0
    ? { kind: 'refused', problems }
    : { kind: 'layer', layer: { place: from, values: mapped, ...(secretAt.size === 0 ? {} : { secretAt }) } }
}

const goHint = (text: string): string =>
  /\{\{-?\s*(\.|include\b|\$)/.test(text)
    ? '; put text for the `tpl` function of the chart between {% raw %} and {% endraw %}, or in a values file'
    : ''
