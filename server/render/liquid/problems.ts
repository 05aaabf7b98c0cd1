// What is wrong with a template, for its author: where, the line as written, and the name that was probably meant. Never a value of an input.
import type { Problem } from '../../../shared/protocol/error.ts'
import { editDistance } from '../../../shared/runtime/edit-distance.ts'
import { excerptOf } from '../excerpts.ts'
import type { RenderInputs } from '../inputs.ts'

export interface TemplatePlace {
  file: string
  /** Of the text's first line in that file, default 1. Null: the file has no lines to speak of, as a value in a resource. */
  line?: number | null
}

/** Names that are held against a wrong one. */
const NAMES_MAX = 500
const NAME_DEPTH_MAX = 4

export function problemAt(place: TemplatePlace, text: string, at: number, message: string): Problem {
  const before = text.slice(0, at)
  const start = before.lastIndexOf('\n') + 1
  const end = text.indexOf('\n', at)
  const whole = text.slice(start, end < 0 ? text.length : end)
  const excerpt = excerptOf(whole, at - start + 1)
  const line = before.split('\n').length + (place.line ?? 1) - 1
  const path = place.line === null ? place.file : `${place.file}:${line}:${at - start + 1}`
  return { path, message, ...(excerpt === '' ? {} : { excerpt }) }
}

export function nearestName(wrong: string, names: Iterable<string>): string | null {
  let [nearest, least]: [string | null, number] = [null, Math.max(2, Math.floor(wrong.length / 4)) + 1]
  for (const name of names) {
    // What the wrong name was looked up in is there, and no answer.
    if (name === wrong || wrong.startsWith(`${name}.`)) continue
    const whole = Math.abs(name.length - wrong.length) >= least ? least : editDistance(wrong, name)
    const distance = Math.min(whole, misplacedBy(wrong, name))
    if (distance < least) [nearest, least] = [name, distance]
  }
  return nearest
}

/** Right name, wrong place: `cluster.region` for `cluster.labels.region`. */
function misplacedBy(wrong: string, name: string): number {
  const [last, other] = [lastName(wrong), lastName(name)]
  if (!wrong.includes('.') || !name.includes('.') || last.length < 3) return Number.POSITIVE_INFINITY
  const distance = Math.abs(last.length - other.length) > 1 ? 2 : editDistance(last, other)
  return distance > 1 || (distance === 1 && last.length < 5) ? Number.POSITIVE_INFINITY : 1 + distance
}
const lastName = (path: string): string => path.slice(path.lastIndexOf('.') + 1)

/** As templates write them. Lists names of inputs, which is a look at all of them: only for a render that failed. */
export function inputNames(inputs: RenderInputs): string[] {
  const names: string[] = []
  const visit = (value: unknown, path: string, depth: number): void => {
    if (names.length >= NAMES_MAX) return
    if (path !== '') names.push(path)
    if (depth === NAME_DEPTH_MAX || typeof value !== 'object' || value === null || Array.isArray(value)) return
    for (const name of Object.keys(value).sort()) visit(Reflect.get(value, name), memberPath(path, name), depth + 1)
  }
  const { cluster, config, service, source } = inputs
  if (cluster !== null) {
    names.push('cluster.name', 'cluster.facts.kubernetesVersion', 'cluster.facts.apiVersions')
    visit(cluster.labels, 'cluster.labels', 1)
  }
  visit(config, 'config', 1)
  for (const name of Object.keys(service)) names.push(`service.${name}`)
  for (const name of Object.keys(source)) names.push(`source.${name}`)
  return names
}

const memberPath = (path: string, name: string): string =>
  /^[A-Za-z_][-A-Za-z0-9_]*$/.test(name) ? `${path}.${name}` : `${path}['${name}']`

export function misspelledMessage(text: string, inputs: RenderInputs): string | null {
  const nearest = nearestName(text, inputNames(inputs))
  return nearest === null ? null : `there is no ${text}; did you mean ${nearest}?`
}

/** `text`: the name as the template has it. */
export function missingMessage(text: string, inputs: RenderInputs): string {
  const root = /^[\w-]+/.exec(text)?.[0] ?? text
  if (root === 'cluster' && inputs.cluster === null) return `${text}: this is rendered for no cluster, so there is none to ask`
  const misspelled = misspelledMessage(text, inputs)
  if (misspelled !== null) return misspelled
  if (!['cluster', 'config', 'service', 'source'].includes(root))
    return `there is no ${text}; templates know cluster, config, service and source`
  const place = root === 'config' ? "set it in the service's config, or " : ''
  return `there is no ${text}; ${place}say what to take instead: {{ ${text} | default: "…" }}`
}
