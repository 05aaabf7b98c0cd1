// Objects → the rows of a revision, with the namespace that each goes to, or everything that is wrong with them. Pure:
// the same objects give the same bytes.
import { canonicalJson, setDigest } from '../../shared/kube/canonical.ts'
import { rowRefOf } from '../../shared/kube/generated-name.ts'
import { groupOf, type K8sObject, refText } from '../../shared/kube/object.ts'
import { orderOf } from '../../shared/kube/waves.ts'
import { objectRowId } from '../../shared/model/desired.ts'
import { isSecretRow, keyedDigest, SEALED, type SealingKeys, sealObject } from '../../shared/model/sealed-object.ts'
import { ROW_DOC_BYTES_MAX, ROW_ID_BYTES_MAX } from '../../shared/protocol/routes.ts'
import type { Problem } from '../../shared/runtime/error.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { doubted } from './for-nobody.ts'
import { type DeclaredScopes, declaredScopes, scopeOf } from './kind-scope.ts'
import type { Manifest, ManifestOrigin, Manifests } from './manifests.ts'
import { nameFaults } from './object-names.ts'
import { type RenderBounds, refusedObject, setProblems } from './render-bounds.ts'
import { errorsText } from './spec-problems.ts'

/** Objects of one service. */
export const RENDER_OBJECTS_MAX = 10_000
/** A broken generator fails everywhere at once: enough to see it, not enough to drown the page. */
export const RENDER_PROBLEMS_MAX = 200

export interface RenderedObjects {
  kind: 'rendered'
  objects: ReadonlyMap<string, string>
  digest: string
  count: number
  /** The part of `count` that is not objects of the revision: hooks, and skipped ones. */
  hooks: number
  warnings: Problem[]
  /** By row, of objects that have one. Absent: nobody asked for it. */
  origins?: ReadonlyMap<string, ManifestOrigin>
}
export interface FailedRender {
  kind: 'failed'
  code: 'no_manifests' | 'render_failed'
  message: string
  problems: Problem[]
}
export type RenderResult = RenderedObjects | FailedRender

export interface RowsOf extends ServiceId {
  /** The service's: given to namespaced objects that name none. */
  namespace: string | undefined
  /** For messages: the folder, and the commit or the version. */
  path: string
  commit: string
  /** RD10: for no cluster, and an error of a name may come from the missing cluster. */
  isDoubtful?: boolean
  /** Absent means that all objects are allowed. */
  bounds?: RenderBounds | undefined
  /** Absent means that rows stay in clear. `all`: the render read a secret, which may be in any of its objects (SL1).
   */
  seal?: { keys: SealingKeys; all: boolean } | undefined
}

/** The rows of a revision with their digest, or all problems: those given, objects without a namespace, objects that
 *  are there twice or are too large. `no_manifests` if there is nothing at all. */
export function rowsOf(input: RowsOf, { found, problems: given, warnings }: Manifests): RenderResult {
  const problems = [...given]
  if (found.length === 0 && problems.length === 0) {
    return { kind: 'failed', code: 'no_manifests', message: noManifests(input.path, input.commit), problems: [] }
  }
  if (found.length > RENDER_OBJECTS_MAX)
    problems.push({ path: input.path, message: `${found.length} objects, more than ${RENDER_OBJECTS_MAX} in one service; split it` })
  const scopes = declaredScopes(found.map(({ object }) => object))
  const ofRows: Problem[] = []
  const origins = new Map<string, ManifestOrigin>()
  const objects = problems.length > RENDER_PROBLEMS_MAX ? new Map() : toRows(input, found, scopes, ofRows, origins)
  problems.push(...(input.isDoubtful === true ? doubted(ofRows) : ofRows))
  if (problems.length > 0) return failedRender(problems)
  const hooks = found.filter(({ object }) => ['hook', 'skipped'].includes(orderOf(object.metadata.annotations).kind)).length
  const rendered: RenderedObjects = {
    kind: 'rendered',
    objects,
    digest: setDigest(objects),
    count: objects.size,
    hooks,
    warnings: sortedProblems(warnings),
  }
  return origins.size === 0 ? rendered : { ...rendered, origins }
}

/** RN3. `version`: a commit id, or what a source says of itself. */
export const noManifests = (path: string, version: string): string => `${path} has no manifests at ${versionText(version)}`

/** The same of another commit: all read inputs are equal, so that the render is known from there. */
export const ofVersion = (message: string, version: string): string =>
  message.replace(/ at commit [0-9a-f]{12}(?![0-9a-f])/, () => ` at ${versionText(version)}`)

/** For messages: `commit 3f2c…` of a commit id, anything else unchanged. */
export const versionText = (version: string): string => (/^[0-9a-f]{12,64}$/.test(version) ? `commit ${version.slice(0, 12)}` : version)

/** Each once, sorted by place, so that many renders of one service say it once. */
export function failedRender(given: readonly Problem[]): FailedRender {
  const problems = sortedProblems(given)
  return { kind: 'failed', code: 'render_failed', message: errorsText(problems), problems: problems.slice(0, RENDER_PROBLEMS_MAX) }
}

/** Each problem once, by file, line and column. */
export function sortedProblems(problems: readonly Problem[]): Problem[] {
  const each = new Map(problems.map((problem) => [`${problem.path}\0${problem.message}`, problem]))
  return [...each.values()]
    .map((problem) => ({ problem, at: placeOf(problem.path) }))
    .sort(byPlace)
    .map(({ problem }) => problem)
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

function toRows(
  input: RowsOf,
  found: readonly Manifest[],
  scopes: DeclaredScopes,
  problems: Problem[],
  origins: Map<string, ManifestOrigin>,
): Map<string, string> {
  const rows = new Map<string, { doc: string; place: string; object: K8sObject }>()
  for (const { object, place, placeOf, origin } of found) {
    for (const { at, message } of nameFaults(object)) problems.push({ path: placeOf?.(at) ?? place, message })
    const placed = withNamespace(object, input.namespace, scopes)
    if (placed === null) {
      const message = `${object.kind} ${object.metadata.name} has no namespace and the service has none; set metadata.namespace here, or spec.namespace of the service`
      problems.push({ path: place, message })
      continue
    }
    if (Object.hasOwn(placed, SEALED)) problems.push({ path: place, message: `${SEALED} is no field of an object; remove it` })
    const ref = rowRefOf(placed, input.seal?.all === true || placed.kind === 'Secret' ? digestOf(input) : undefined)
    const refusal = input.bounds === undefined ? null : refusedObject(input.bounds, placed)
    if (refusal !== null) problems.push({ path: place, message: refusal })
    const id = objectRowId(input, ref)
    const doc = canonicalJson(placed)
    const first = rows.get(id)
    if (first !== undefined) problems.push({ path: place, message: `${refText(ref)} is also in ${first.place}` })
    if (Buffer.byteLength(doc) > ROW_DOC_BYTES_MAX)
      problems.push({ path: place, message: `${refText(ref)} is larger than ${ROW_DOC_BYTES_MAX / 1024 / 1024} MiB` })
    if (Buffer.byteLength(id) > ROW_ID_BYTES_MAX) problems.push({ path: place, message: 'kind, namespace and name together are too long' })
    if (first === undefined) rows.set(id, { doc, place, object: placed })
    if (first === undefined && origin !== undefined) origins.set(id, origin)
  }
  const docs = new Map([...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([id, { doc }]) => [id, doc]))
  if (input.bounds !== undefined) problems.push(...setProblems(input.bounds, input.path, docs))
  return input.seal === undefined || problems.length > 0 ? docs : sealed(input, input.seal, rows, docs, problems)
}

const digestOf = ({ seal }: RowsOf) => (seal === undefined ? undefined : (text: string) => keyedDigest(seal.keys, text))

/** SL1: seals Secrets, and every object of a render that read a secret. */
function sealed(
  input: RowsOf,
  { keys, all }: NonNullable<RowsOf['seal']>,
  rows: ReadonlyMap<string, { object: K8sObject; place: string }>,
  docs: ReadonlyMap<string, string>,
  problems: Problem[],
): Map<string, string> {
  const out = new Map<string, string>()
  for (const [id, doc] of docs) {
    const row = rows.get(id)
    const text = row !== undefined && (all || isSecretRow(input, id)) ? sealObject(keys, id, row.object, doc) : doc
    if (row !== undefined && text !== doc && text.length > ROW_DOC_BYTES_MAX)
      problems.push({
        path: row.place,
        message: `${refText(rowRefOf(row.object))} is larger than ${ROW_DOC_BYTES_MAX / 1024 / 1024} MiB when it is sealed`,
      })
    out.set(id, text)
  }
  return out
}

/** A kind of unknown scope goes where the service goes, if it says where. Null: it needs a namespace and there is none
 *  to give. */
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
