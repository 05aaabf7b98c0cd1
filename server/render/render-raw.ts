// Plain manifests → the object rows of a revision, or everything that is wrong with them, each with file and line. Pure: the same files give the same bytes in
// whatever order they come, and nothing half-good leaves here.
import { parseYamlDocuments } from '../../shared/adapters/yaml.ts'
import { canonicalJson, setDigest } from '../../shared/kube/canonical.ts'
import { rowRefOf } from '../../shared/kube/generated-name.ts'
import { groupOf, type K8sObject, k8sObjectSchema, refText } from '../../shared/kube/object.ts'
import { orderOf } from '../../shared/kube/waves.ts'
import { objectRowId } from '../../shared/model/desired.ts'
import type { ServiceId } from '../../shared/model/ids.ts'
import type { Problem } from '../../shared/protocol/error.ts'
import { ROW_DOC_BYTES_MAX, ROW_ID_BYTES_MAX } from '../../shared/protocol/routes.ts'
import { type DeclaredScopes, declaredScopes, scopeOf } from './kind-scope.ts'
import { isManifestPath, otherRenderer } from './manifest-path.ts'

/** Objects of one service. */
export const RENDER_OBJECTS_MAX = 10_000
/** Lists in lists in lists: as deep as anybody has meant it. */
const LIST_DEPTH_MAX = 4
/** A broken generator fails everywhere at once: enough to see it, not enough to drown the page. */
export const RENDER_PROBLEMS_MAX = 200

export interface RenderInput extends ServiceId {
  /** By path in the repository. */
  files: ReadonlyMap<string, Uint8Array>
  /** The service's: given to namespaced objects that name none. */
  namespace: string | undefined
  /** For messages. */
  path: string
  commit: string
}

export type RenderResult =
  | {
      kind: 'rendered'
      objects: ReadonlyMap<string, string>
      digest: string
      count: number
      /** Of `count`, those that are no objects of the revision: hooks, and what is skipped. */
      hooks: number
      warnings: Problem[]
    }
  | { kind: 'failed'; code: 'no_manifests' | 'render_failed'; message: string; problems: Problem[] }

interface Found {
  object: K8sObject
  /** `file:line`. */
  place: string
}

export function renderRaw(input: RenderInput): RenderResult {
  const problems: Problem[] = []
  const warnings: Problem[] = []
  const found: Found[] = []
  for (const [file, bytes] of [...input.files].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (isManifestPath(file)) readFile(file, bytes, { found, problems, warnings })
  }
  if (found.length === 0 && problems.length === 0) {
    const message = `${input.path} holds no manifests at commit ${input.commit.slice(0, 12)}`
    return { kind: 'failed', code: 'no_manifests', message, problems: [] }
  }
  if (found.length > RENDER_OBJECTS_MAX)
    problems.push({ path: input.path, message: `${found.length} objects, more than ${RENDER_OBJECTS_MAX} in one service; split it` })
  const scopes = declaredScopes(found.map(({ object }) => object))
  const objects = problems.length > RENDER_PROBLEMS_MAX ? new Map() : toRows(input, found, scopes, problems)
  if (problems.length > 0) return failed(problems)
  const hooks = found.filter(({ object }) => ['hook', 'skipped'].includes(orderOf(object.metadata.annotations).kind)).length
  return { kind: 'rendered', objects, digest: setDigest(objects), count: objects.size, hooks, warnings }
}

function failed(unsorted: Problem[]): RenderResult {
  const problems = unsorted
    .map((problem) => ({ problem, at: placeOf(problem.path) }))
    .sort(byPlace)
    .map(({ problem }) => problem)
  const message = problems.length === 1 ? '1 error in the manifests' : `${problems.length} errors in the manifests`
  return { kind: 'failed', code: 'render_failed', message, problems: problems.slice(0, RENDER_PROBLEMS_MAX) }
}

type Place = readonly [file: string, line: number, column: number]
function placeOf(path: string): Place {
  const match = /^(.*?)(?::(\d+))?(?::(\d+))?$/.exec(path)
  return [match?.[1] ?? path, Number(match?.[2] ?? 0), Number(match?.[3] ?? 0)]
}
function byPlace({ at: a }: { at: Place }, { at: b }: { at: Place }): number {
  if (a[0] !== b[0]) return a[0] < b[0] ? -1 : 1
  return a[1] - b[1] || a[2] - b[2]
}

interface Collected {
  found: Found[]
  problems: Problem[]
  warnings: Problem[]
}

function readFile(file: string, bytes: Uint8Array, collected: Collected): void {
  const renderer = otherRenderer(file)
  if (renderer !== null) {
    collected.problems.push({ path: file, message: `marks ${renderer}, which this version cannot render; put rendered manifests here` })
    return
  }
  const text = decodeUtf8(bytes)
  if (text === null) {
    collected.problems.push({ path: file, message: 'is not UTF-8 text' })
    return
  }
  const parsed = parseYamlDocuments(text, { file })
  collected.problems.push(...parsed.problems)
  collected.warnings.push(...parsed.warnings)
  if (parsed.problems.length > 0) return
  for (const { value, line } of parsed.documents) expand(value, line, 0)

  function expand(value: unknown, line: number, depth: number): void {
    const items = listItems(value)
    if (items === null) {
      readObject(value, `${file}:${line}`, collected)
      return
    }
    if (depth >= LIST_DEPTH_MAX) {
      collected.problems.push({ path: `${file}:${line}`, message: `a List more than ${LIST_DEPTH_MAX} levels deep` })
      return
    }
    for (const item of items) expand(item, typeof item === 'object' && item !== null ? parsed.lineOf(item) : line, depth + 1)
  }
}

function decodeUtf8(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return null
  }
}

/** `kind: List` and typed lists such as `ConfigMapList` hold objects and are none. */
function listItems(value: unknown): unknown[] | null {
  if (typeof value !== 'object' || value === null || !('kind' in value) || !('items' in value)) return null
  return typeof value.kind === 'string' && value.kind.endsWith('List') && Array.isArray(value.items) ? value.items : null
}

const KIND = /^[A-Za-z][A-Za-z0-9]{0,62}$/
const API_VERSION = /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\/)?[a-z][a-z0-9]{0,62}$/
const DNS_LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/

/** Charts leave `annotations:` and `labels:` empty where they have none; kubectl takes it for what it is. */
const withoutNulls = (metadata: unknown): unknown =>
  typeof metadata === 'object' && metadata !== null
    ? Object.fromEntries(Object.entries(metadata).filter(([, member]) => member !== null))
    : metadata

function readObject(value: unknown, place: string, { found, problems }: Collected): void {
  const refuse = (message: string) => problems.push({ path: place, message })
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    refuse('expected an object with apiVersion, kind and metadata')
    return
  }
  const before = problems.length
  const { apiVersion, kind, metadata } = value as Record<string, unknown>
  if (apiVersion === undefined || apiVersion === null) refuse('apiVersion is missing')
  else if (typeof apiVersion !== 'string' || !API_VERSION.test(apiVersion)) refuse(`apiVersion ${JSON.stringify(apiVersion)} is none`)
  if (kind === undefined || kind === null) refuse('kind is missing')
  else if (typeof kind !== 'string' || !KIND.test(kind)) refuse(`kind ${JSON.stringify(kind)} is none`)
  const what = typeof kind === 'string' ? kind : 'the object'
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata)) refuse(`${what} has no metadata`)
  else {
    const { name, generateName, namespace } = metadata as Record<string, unknown>
    if (name === undefined && generateName !== undefined) checkGenerated(generateName, metadata as Record<string, unknown>, what, refuse)
    else if (name === undefined || name === null || name === '') refuse(`${what} has no metadata.name`)
    else if (typeof name !== 'string') refuse(`metadata.name ${JSON.stringify(name)} is no text; quote it`)
    else if (!isPathSegment(name)) refuse(`metadata.name ${JSON.stringify(name)} cannot be a name in Kubernetes`)
    if (typeof namespace === 'string' && namespace !== '' && !DNS_LABEL.test(namespace))
      refuse(`metadata.namespace ${JSON.stringify(namespace)} cannot be a namespace`)
  }
  if (problems.length > before) return
  const parsed = k8sObjectSchema.safeParse({ ...value, metadata: withoutNulls(metadata) })
  if (parsed.success) found.push({ object: parsed.data, place })
  else for (const issue of parsed.error.issues) refuse(`${what}: ${issue.path.join('.')}: ${issue.message}; quote it if it is text`)
}

/** HK9: each run of a hook has an object of its own; of anything else each pass would make another one. */
function checkGenerated(generateName: unknown, metadata: Record<string, unknown>, what: string, refuse: (message: string) => void): void {
  const parsed = k8sObjectSchema.shape.metadata.shape.annotations.safeParse(metadata['annotations'])
  if (!parsed.success || orderOf(parsed.data).kind !== 'hook')
    refuse(`${what} has generateName, which is for hooks only: give it a name, or each pass would make another one`)
  else if (typeof generateName !== 'string' || !isPathSegment(`${generateName}0`))
    refuse(`metadata.generateName ${JSON.stringify(generateName)} cannot begin a name in Kubernetes`)
}

/** What Kubernetes takes as a name of any kind; some kinds take less, which the API server says. */
const isPathSegment = (name: string): boolean => name.length <= 253 && name !== '.' && name !== '..' && !/[/%\s]/.test(name)

function toRows(input: RenderInput, found: readonly Found[], scopes: DeclaredScopes, problems: Problem[]): Map<string, string> {
  const rows = new Map<string, { doc: string; place: string }>()
  for (const { object, place } of found) {
    const placed = withNamespace(object, input.namespace, scopes)
    if (placed === null) {
      const message = `${object.kind} ${object.metadata.name} names no namespace and the service has none; set metadata.namespace here, or spec.namespace of the service`
      problems.push({ path: place, message })
      continue
    }
    const ref = rowRefOf(placed)
    const id = objectRowId(input, ref)
    const doc = canonicalJson(placed)
    const first = rows.get(id)
    if (first !== undefined) problems.push({ path: place, message: `${refText(ref)} is also in ${first.place}` })
    if (Buffer.byteLength(doc) > ROW_DOC_BYTES_MAX)
      problems.push({ path: place, message: `${refText(ref)} is larger than ${ROW_DOC_BYTES_MAX / 1024 / 1024} MiB` })
    if (Buffer.byteLength(id) > ROW_ID_BYTES_MAX) problems.push({ path: place, message: 'kind, namespace and name together are too long' })
    if (first === undefined) rows.set(id, { doc, place })
  }
  return new Map([...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([id, { doc }]) => [id, doc]))
}

/** A kind of unknown scope goes where the service goes, if it says where. Null: it needs a namespace and there is none to give. */
function withNamespace(object: K8sObject, namespace: string | undefined, scopes: DeclaredScopes): K8sObject | null {
  const scope = scopeOf(groupOf(object.apiVersion), object.kind, scopes)
  const own = object.metadata.namespace
  if (scope === 'cluster') {
    // kubectl drops it in silence, and so do charts' authors expect.
    const { namespace: _, ...metadata } = object.metadata
    return own === undefined ? object : { ...object, metadata }
  }
  if (own !== undefined && own !== '') return object
  if (namespace !== undefined) return { ...object, metadata: { ...object.metadata, namespace } }
  return scope === 'namespaced' ? null : object
}
