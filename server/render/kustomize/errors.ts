// Turns kustomize's standard error into problems for the author: with file and line where they can be found, without
// folders of the sandbox and without the configurations that it prints, which may hold values.
import { parseYamlDocuments } from '../../../shared/adapters/yaml.ts'
import type { Problem } from '../../../shared/runtime/error.ts'
import { templateName } from '../liquid/files.ts'
import { readManifests } from '../manifests.ts'
import { KUSTOMIZATION_NAMES } from './paths.ts'

/** The repository's tree in the sandbox. A name that no other folder has: where the sandbox itself lies is no matter of
 *  an author. */
export const TREE_FOLDER = 'source-tree'
const TREE_PATH = `/(?:[^\\s'":]{0,1024}?/)?${TREE_FOLDER}`
const MESSAGE_MAX = 1_000

type Files = ReadonlyMap<string, Uint8Array>
export interface Built {
  /** By path from the tree's root. */
  files: Files
  /** The folder that was built. */
  root: string
}

/** LQ6: lines of what a template became are no lines of its author's. */
export const byTemplates = (problems: readonly Problem[], templates: ReadonlySet<string>): Problem[] =>
  problems.map((problem) => {
    const file = problem.path.replace(/(:\d+)+$/, '')
    return templates.has(file) ? { ...problem, path: templateName(file) } : problem
  })

/** Kustomize logs some with the time of day. */
export const warningsOf = (stderr: string, built: Built): Problem[] =>
  [...new Set(stderr.split('\n').map((line) => line.replace(/^# Warning: |^\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d /, '').trim()))]
    .filter((line) => line !== '')
    .map((line) => ({ path: kustomizationOf(built.root, built.files), message: clean(line) }))

/** The file that kustomize looked for, from the tree's root. Null means that it misses none. */
export function missingFile(stderr: string): string | null {
  const end = stderr.indexOf(NO_FILE)
  const match =
    end < 0
      ? null
      : new RegExp(`${TREE_PATH}/([^'"\\s:]+): ${NO_FILE}`).exec(stderr.slice(Math.max(0, end - ERROR_MAX), end + NO_FILE.length))
  return match?.[1] ?? null
}
const NO_FILE = 'no such file or directory'

/**
 * The limit of the text that is read: it repeats names and files of others, and the patterns here must not take time in
 * the square of its length.
 */
const ERROR_MAX = 4_096

/**
 * Confidential parts are removed before any cut: half of one would not be recognized any more. The middle is cut: the
 * error is at one end or the other.
 */
function shortened(said: string): string {
  const text = withoutValues(said)
  const half = ERROR_MAX / 2
  return text.length <= ERROR_MAX ? text : `${text.slice(0, half)} … ${text.slice(-half)}`
}

/** KU8: an open quote ends with the text. */
function withoutValues(said: string): string {
  const patch = said.indexOf(' [patch: ')
  const patchEnd = patch < 0 ? -1 : said.lastIndexOf(']')
  const text = patch < 0 ? said : said.slice(0, patch).replace(/ from$/, '') + (patchEnd < patch ? '' : said.slice(patchEnd + 1))
  return text
    .replace(/trouble configuring builtin (\w{1,100}) with config: `[^`]*(?:`: |`|$)/g, '')
    .replace(/with config: `[^`]*(?:`|$)/g, '')
    .replace(/ from generator &\{[^}]*(?:\}|$)/g, ' from a generator') // an address, another one each time
    .replace(/literal sources \[.*?(?:\]: |$)/gs, '')
    .replace(/(literal source|Invalid value:?) .*?(?=, expected|: |$)/gs, '$1')
}

/** Reads the problems from the output of a failed `kustomize build`. */
export function problemsOf(stderr: string, built: Built): Problem[] {
  const error = shortened(
    stderr
      .slice(Math.max(0, stderr.lastIndexOf('Error: ')))
      .replace(/^Error: /, '')
      .trim(),
  )
  const unreadable = /MalformedYAML|yaml: |json: |missing (kind|apiVersion|metadata|Resource metadata)|missing metadata\.name/.test(error)
  // It stops at the first; an author wants all.
  const broken = unreadable ? brokenFiles(built.files) : []
  if (broken.length > 0) return broken
  const known = unmatchedPatch(error, built.files) ?? duplicate(error, built.files)
  if (known !== null) return [known]
  return [{ path: placeOf(error, built), message: clean(innermost(error)) || 'kustomize build failed without a message' }]
}

/** As kustomize writes a reference: `ConfigMap.v1.[noGrp]/name.[noNs]`. */
const REFERENCE = '(\\w+)\\.[^/\\s"]*/([^\\s"]+)\\.(?:\\[noNs\\]|[\\w-]+)'

function unmatchedPatch(error: string, files: Files): Problem | null {
  const [, kind, name] = new RegExp(`no resource matches strategic merge patch "${REFERENCE}"`).exec(error) ?? []
  const [place] = kind === undefined || name === undefined ? [] : placesOf(kind, name, files)
  return place === undefined ? null : { path: place, message: `is a patch of ${kind} ${name}, which does not exist` }
}

function duplicate(error: string, files: Files): Problem | null {
  const [, kind, name] = new RegExp(`already registered id: ${REFERENCE}`).exec(error) ?? []
  const [first, ...others] = kind === undefined || name === undefined ? [] : placesOf(kind, name, files)
  const [second] = others
  return first === undefined || second === undefined ? null : { path: second, message: `${kind} ${name} is also in ${first}` }
}

function placesOf(kind: string, name: string, files: Files): string[] {
  const places: string[] = []
  for (const [path, bytes] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (!/\.(ya?ml|json)$/i.test(path)) continue
    for (const { object, place } of readManifests(new Map([[path, bytes]])).found)
      if (object.kind === kind && object.metadata.name === name) places.push(place)
  }
  return places
}

function brokenFiles(files: Files): Problem[] {
  const isKustomization = (path: string) => KUSTOMIZATION_NAMES.some((name) => path === name || path.endsWith(`/${name}`))
  const problems: Problem[] = []
  for (const [path, bytes] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (!/\.(ya?ml|json)$/i.test(path) || isKustomization(path)) continue
    const text = new TextDecoder().decode(bytes)
    const parsed = parseYamlDocuments(text, { file: path })
    problems.push(...parsed.problems)
    // Files of values and of patches are no objects: only what is almost one.
    if (parsed.problems.length === 0 && /^(apiVersion|kind):/m.test(text))
      problems.push(...readManifests(new Map([[path, bytes]])).problems)
  }
  return problems
}

/**
 * Picks, of nested errors, the one that tells the problem: each resource is tried as a file first, then as a folder.
 */
function innermost(error: string): string {
  const asFile = /accumulation err='accumulating resources from '[^']*': (.*)': must build at directory: /s.exec(error)?.[1]
  const shorter = (asFile ?? error)
    .replace(/accumulating (resources|components)( from '[^']*')?: /g, '')
    .replace(/accumulation err='[^']*'[^']*' must resolve to a file': /g, '')
    .replace(/recursed (merging|accumulation)[^:]* '[^']*': /g, '')
    .replace(/couldn't make target for path '[^']*': /g, '')
  return shorter === error ? error : innermost(shorter)
}

function clean(message: string): string {
  const said = shortened(message)
    .replace(new RegExp(`${TREE_PATH}/`, 'g'), '')
    .replace(new RegExp(TREE_PATH, 'g'), '.')
    .replace(RESOURCE_ID, (_, kind, name, namespace) => (namespace === '[noNs]' ? `${kind} ${name}` : `${kind} ${namespace}/${name}`))
    .replace(/\/tmp\/\S+/g, 'a temporary folder')
    .replace(/\s+/g, ' ')
    .trim()
  return said.length > MESSAGE_MAX ? `${said.slice(0, MESSAGE_MAX)}…` : said
}

/** `ConfigMap.v1.[noGrp]/a.[noNs]`. */
const RESOURCE_ID = /\b(\w{1,63})\.[^\s/]{0,300}?\[no(?:Grp|Ver)\][^\s/]{0,300}?\/([^\s."']{1,253})\.(\[noNs\]|[\w-]{1,63})/g

function placeOf(error: string, { files, root }: Built): string {
  const inTree = new RegExp(`${TREE_PATH}/?([^'"\\s:,]*)`, 'g')
  const named = [...error.matchAll(inTree)].map(([, path]) => path ?? '')
  // Errors go from the outside in: the last one that is there is the nearest.
  for (const path of named.reverse()) {
    if (files.has(path)) return path
    const kustomization = findKustomization(path, files)
    if (kustomization !== null) return withLine(error, kustomization, files)
  }
  return withLine(error, kustomizationOf(root, files), files)
}

function withLine(error: string, path: string, files: Files): string {
  const field = /unknown field "([^"]+)"/.exec(error)?.[1] ?? /Go struct field \w+\.(\w+)/.exec(error)?.[1]
  const text = new TextDecoder().decode(files.get(path) ?? new Uint8Array())
  const told = Number(/yaml: line (\d+):/.exec(error)?.[1] ?? 0)
  if (told > 0) return `${path}:${told}`
  const at = field === undefined ? -1 : text.split('\n').findIndex((line) => line.trimStart().replace(/^- /, '').startsWith(`${field}:`))
  return at < 0 ? path : `${path}:${at + 1}`
}

function findKustomization(folder: string, files: Files): string | null {
  for (const name of KUSTOMIZATION_NAMES) {
    const path = folder === '' ? name : `${folder}/${name}`
    if (files.has(path)) return path
  }
  return null
}
/** For messages: the kustomization of that folder, or the folder where it has none. */
export const kustomizationOf = (root: string, files: Files): string => findKustomization(root, files) ?? (root === '' ? '.' : root)
