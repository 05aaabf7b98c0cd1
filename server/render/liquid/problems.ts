// Problems of a template for its author: the place, the line as written, and the name that was probably meant. Never a
// value of an input.

import { editDistance, nearestOf } from '../../../shared/runtime/edit-distance.ts'
import type { Problem } from '../../../shared/runtime/error.ts'
import { type Excerpts, excerptsOf, speaksOfSecrets } from '../excerpts.ts'
import { FOR_NO_CLUSTER, NONE_TO_ASK } from '../for-nobody.ts'
import type { RenderInputs } from '../inputs.ts'

export interface TemplatePlace {
  /** For the template of a notification, whose only variable is `message`. */
  message?: Readonly<Record<string, unknown>>
  file: string
  /** The text's first line in that file, default 1. Null means that the file has no lines, such as a value in a
   *  resource. */
  line?: number | null
}

/** Names that are held against a wrong one. */
const NAMES_MAX = 500
const NAME_DEPTH_MAX = 4
/** Longer ones are like no other, and shown cut. */
const NAME_LENGTH_MAX = 200

/** A name as messages show it. */
export const shownName = (text: string): string => (text.length > NAME_LENGTH_MAX ? `${text.slice(0, NAME_LENGTH_MAX)}…` : text)

/** A problem at an offset of a text. */
export interface TextFault {
  file: string
  text: string
  at: number
  message: string
  needsCluster?: Problem['needsCluster']
}

/** Sorted by file and place, at most `max`. Of `place.file` as that place counts lines, of other files from 1. */
export function problemsAt(faults: Iterable<TextFault>, place: TemplatePlace, max: number): Problem[] {
  const sorted = [...faults].sort((a, b) => (a.file === b.file ? a.at - b.at : a.file < b.file ? -1 : 1)).slice(0, max)
  // Each is counted on from the one before: texts can be a million lines.
  let before = { text: '', at: 0, line: 1 }
  const excerpts = new Map<string, Excerpts>()
  return sorted.map((fault) => {
    if (before.text !== fault.text) before = { text: fault.text, at: 0, line: 1 }
    before = { ...before, at: fault.at, line: before.line + linesIn(fault.text, before.at, fault.at) }
    const excerptAt = excerpts.get(fault.text) ?? excerptsOf(fault.text)
    excerpts.set(fault.text, excerptAt)
    return problemAt(fault.file === place.file ? place : { file: fault.file }, fault, before.line, excerptAt)
  })
}

function linesIn(text: string, from: number, to: number): number {
  let lines = 0
  for (let at = text.indexOf('\n', from); at >= 0 && at < to; at = text.indexOf('\n', at + 1)) lines += 1
  return lines
}

function problemAt(place: TemplatePlace, { text, at, message, needsCluster }: TextFault, line: number, excerptAt: Excerpts): Problem {
  const start = at === 0 ? 0 : text.lastIndexOf('\n', at - 1) + 1
  // For a value in a resource, the name alone identifies it.
  const excerpt = place.line === null && speaksOfSecrets(place.file) ? '' : excerptAt(line, at - start + 1)
  const path = place.line === null ? place.file : `${place.file}:${line + (place.line ?? 1) - 1}:${at - start + 1}`
  return { path, message, ...(excerpt === '' ? {} : { excerpt }), ...(needsCluster === undefined ? {} : { needsCluster }) }
}

/** The name that was probably meant: a quarter of the letters differ at most (two in short names), or it is the right
 *  name in another place. Looks at the first 500 names. */
export function nearestName(wrong: string, names: Iterable<string>): string | null {
  const limit = Math.max(2, Math.floor(wrong.length / 4)) + 1
  if (wrong.length > NAME_LENGTH_MAX) return null
  return nearestOf(firstOf(names, NAMES_MAX), limit, (name) => {
    // The parent of the wrong name exists, so it is not a suggestion.
    if (name === wrong || wrong.startsWith(`${name}.`)) return limit
    const whole = Math.abs(name.length - wrong.length) >= limit ? limit : editDistance(wrong, name)
    return Math.min(whole, misplacedBy(wrong, name))
  })
}

function* firstOf(names: Iterable<string>, max: number): Generator<string> {
  let count = 0
  for (const name of names) {
    if (++count > max) return
    yield name
  }
}

/** Right name, wrong place: `cluster.region` for `cluster.labels.region`. */
function misplacedBy(wrong: string, name: string): number {
  const [last, other] = [lastName(wrong), lastName(name)]
  if (!wrong.includes('.') || !name.includes('.') || last.length < 3) return Number.POSITIVE_INFINITY
  const distance = Math.abs(last.length - other.length) > 1 ? 2 : editDistance(last, other)
  return distance > 1 || (distance === 1 && last.length < 5) ? Number.POSITIVE_INFINITY : 1 + distance
}
const lastName = (path: string): string => path.slice(path.lastIndexOf('.') + 1)

/** As templates write them. Lists names of inputs, which reads all of them: only for a failed render. */
export function inputNames(inputs: RenderInputs, message?: TemplatePlace['message']): string[] {
  const names: string[] = []
  const visit = (value: unknown, path: string, depth: number): void => {
    if (names.length >= NAMES_MAX) return
    if (path !== '') names.push(path)
    if (depth === NAME_DEPTH_MAX || typeof value !== 'object' || value === null || Array.isArray(value)) return
    for (const name of Object.keys(value).sort()) visit(Reflect.get(value, name), memberPath(path, name), depth + 1)
  }
  const { cluster, config, service, source } = inputs
  if (message !== undefined) {
    visit(message, 'message', 1)
    return names
  }
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

/** `names`: what inputs have, as `inputNames` lists them. Null means none of them is like it. */
export function misspelledMessage(text: string, names: readonly string[]): string | null {
  const nearest = nearestName(text, names)
  return nearest === null ? null : `unknown name ${text}; did you mean ${nearest}?`
}

/** `text`: the name as the template has it. `names` as in `misspelledMessage`. */
export function missingMessage(
  text: string,
  inputs: RenderInputs,
  names: readonly string[],
  facts?: TemplatePlace['message'],
): Pick<Problem, 'message' | 'needsCluster'> {
  const root = /^[\w-]+/.exec(text)?.[0] ?? text
  const shown = shownName(text)
  if (root === 'cluster' && inputs.cluster === null) return { message: `${shown}: ${NONE_TO_ASK}`, needsCluster: 'asks' }
  const misspelled = misspelledMessage(text, names)
  if (misspelled !== null) return { message: misspelled }
  if (root === 'message' && facts !== undefined)
    return { message: `unknown name ${shown}; message has ${Object.keys(facts).sort().join(', ')}` }
  if (!['cluster', 'config', 'service', 'source'].includes(root))
    return { message: `unknown name ${shown}; templates have cluster, config, service and source` }
  // Clusters have variables of their own.
  const isForNobody = root === 'config' && inputs.cluster === null
  const whose = isForNobody ? `${FOR_NO_CLUSTER}, which may have it: set it in the config of clusters or of the service` : ''
  const place = isForNobody ? `${whose}, or ` : root === 'config' ? "set it in the service's config, or " : ''
  const message = `unknown name ${shown}; ${place}set a default: {{ ${shown} | default: "…" }}`
  return isForNobody ? { message, needsCluster: 'may' } : { message }
}
