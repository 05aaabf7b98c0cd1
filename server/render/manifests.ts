// Texts → objects, or everything that is wrong with them, each with file and line. Pure: nothing half-good leaves here.
import { parseYamlDocuments } from '../../shared/adapters/yaml.ts'
import { type K8sObject, k8sObjectSchema } from '../../shared/kube/object.ts'
import { orderOf } from '../../shared/kube/waves.ts'
import type { Problem } from '../../shared/runtime/error.ts'
import { SOPS } from '../../shared/sops/parcel.ts'
import { nameFaults, shown, wrongNamespace, wrongSegment } from './object-names.ts'
import { type SopsFiles, sopsFilesIn, sopsMacOf, sopsManifest } from './sops/documents.ts'
import { decodeUtf8 } from './utf8.ts'

/** Levels of Lists within Lists that are followed; deeper ones are refused. */
const LIST_DEPTH_MAX = 4

/** Where people find what an object is made of. */
export interface ManifestOrigin {
  /** Label of its source. */
  source: string
  /** Path in the source. Null: a program made the object and does not say of what. */
  file: string | null
  /** From 1. Null where the object is not written in the file itself, such as in a template. */
  line: number | null
}

export interface Manifest {
  object: K8sObject
  /** `file:line:column`. */
  place: string
  /** The place of a field with a wrong name (RN10). Absent if nothing was wrong when it was read. */
  placeOf?: (path: readonly PropertyKey[]) => string
  /** Absent: nobody asked for it. */
  origin?: ManifestOrigin
}

export interface Manifests {
  found: Manifest[]
  problems: Problem[]
  warnings: Problem[]
}

/** RN6: in the order of their names. `named`: what a file is called in messages. `sops`: the files of SOPS that a
 *  program wrote anew. Absent means the files themselves. */
export function readManifests(
  files: ReadonlyMap<string, Uint8Array>,
  named: (file: string) => string = (file) => file,
  sops?: SopsFiles,
): Manifests {
  const manifests: Manifests = { found: [], problems: [], warnings: [] }
  for (const [file, bytes] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) readFile(named(file), bytes, manifests, sops)
  return manifests
}

function readFile(file: string, bytes: Uint8Array, manifests: Manifests, given?: SopsFiles): void {
  const text = decodeUtf8(bytes)
  if (text === null) {
    manifests.problems.push({ path: file, message: 'is not UTF-8 text' })
    return
  }
  const parsed = parseYamlDocuments(text, { file })
  manifests.problems.push(...parsed.problems)
  manifests.warnings.push(...parsed.warnings)
  if (parsed.problems.length > 0) return
  const sops = given ?? sopsFilesIn(text)
  for (const { value, line } of parsed.documents) expand(value, `${file}:${line}:1`, 0)

  /** `around`: the place of what the value is in, for a value that has none of its own. */
  function expand(value: unknown, around: string, depth: number): void {
    const hasPlace = typeof value === 'object' && value !== null
    const place = hasPlace ? parsed.placeOf(value) : around
    const items = listItems(value)
    const mac = hasPlace ? sopsMacOf(value) : null
    if (mac !== null && (items !== null || depth > 0)) manifests.problems.push({ path: place, message: SOPS_LIST })
    else if (items === null) readObject(value, (path) => (hasPlace ? parsed.placeOf(value, path) : place), manifests, sops)
    else if (depth >= LIST_DEPTH_MAX) manifests.problems.push({ path: place, message: `a List more than ${LIST_DEPTH_MAX} levels deep` })
    else for (const [index, item] of items.entries()) expand(item, parsed.placeOf(value, ['items', index]), depth + 1)
  }
}

const SOPS_LIST = 'a List that SOPS encrypted cannot be opened as its objects; write each object as a document of its own'

/** The objects in a `kind: List`, or in a typed list such as `ConfigMapList`, which are no objects themselves. Null
 *  means that the value is no list. */
function listItems(value: unknown): unknown[] | null {
  if (typeof value !== 'object' || value === null || !('kind' in value) || !('items' in value)) return null
  return typeof value.kind === 'string' && value.kind.endsWith('List') && Array.isArray(value.items) ? value.items : null
}

const KIND = /^[A-Za-z][A-Za-z0-9]{0,62}$/
const API_VERSION = /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\/)?[a-z][a-z0-9]{0,62}$/

/** Charts leave `annotations:` and `labels:` empty where they have none; kubectl takes it for what it is. */
const withoutNulls = (metadata: unknown): unknown =>
  typeof metadata === 'object' && metadata !== null
    ? Object.fromEntries(Object.entries(metadata).filter(([, member]) => member !== null))
    : metadata

/** RN9: of tools that run where the files are written (kpt, kustomize), which read it in the same way. */
function isLocal(value: object): boolean {
  const { metadata } = value as { metadata?: { annotations?: unknown } | null }
  const annotations = metadata?.annotations
  if (typeof annotations !== 'object' || annotations === null || !Object.hasOwn(annotations, LOCAL_MARK)) return false
  return (annotations as Record<string, unknown>)[LOCAL_MARK] !== 'false'
}
const LOCAL_MARK = 'config.kubernetes.io/local-config'

/**
 * The problem with the identity (apiVersion, kind, name, namespace) of an object that was changed after it was read.
 * Null if there is none.
 */
export function wrongIdentity({ apiVersion, kind, metadata }: K8sObject): string | null {
  const { name, generateName, namespace, annotations } = metadata
  if (!API_VERSION.test(apiVersion)) return 'apiVersion is not valid in Kubernetes'
  if (!KIND.test(kind)) return 'kind is not valid in Kubernetes'
  const [field, text] = name === undefined && generateName !== undefined ? ['generateName', `${generateName}0`] : ['name', name ?? '']
  if (field === 'generateName' && orderOf(annotations).kind !== 'hook') return 'generateName is for hooks only'
  if (text === '' || wrongSegment(text) !== null) return `metadata.${field} is not a valid name in Kubernetes`
  return namespace === undefined || namespace === '' || wrongNamespace(namespace) === null
    ? null
    : 'metadata.namespace is not a valid namespace'
}

/** `placeOf`: where a part of the value stands, or what would hold it. */
function readObject(
  written: unknown,
  placeOf: (path: readonly PropertyKey[]) => string,
  { found, problems }: Manifests,
  sops: SopsFiles,
): void {
  const refuse: Refuse = (path, message) => problems.push({ path: placeOf(path), message })
  if (typeof written !== 'object' || written === null || Array.isArray(written)) {
    refuse([], 'expected an object with apiVersion, kind and metadata')
    return
  }
  if (isLocal(written)) return
  if (Object.hasOwn(written, SOPS)) refuse([SOPS], `${SOPS} is no field of an object; remove it`)
  const mac = sopsMacOf(written)
  const manifest = mac === null ? null : sopsManifest(written, mac, sops)
  if (manifest?.kind === 'refused') {
    for (const { path, message } of manifest.problems) refuse(path, message)
    return
  }
  const value = manifest?.value ?? written
  const before = problems.length
  const { apiVersion, kind, metadata } = value as Record<string, unknown>
  if (apiVersion === undefined || apiVersion === null) refuse(['apiVersion'], 'apiVersion is missing')
  else if (typeof apiVersion !== 'string' || !API_VERSION.test(apiVersion))
    refuse(['apiVersion'], `invalid apiVersion ${JSON.stringify(apiVersion)}`)
  if (kind === undefined || kind === null) refuse(['kind'], 'kind is missing')
  else if (typeof kind !== 'string' || !KIND.test(kind)) refuse(['kind'], `invalid kind ${JSON.stringify(kind)}`)
  const what = typeof kind === 'string' ? kind : 'the object'
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata)) refuse(['metadata'], `${what} has no metadata`)
  else checkNames(metadata as Record<string, unknown>, what, refuse)
  if (problems.length > before) return
  const parsed = k8sObjectSchema.safeParse({ ...value, metadata: withoutNulls(metadata) })
  if (parsed.success) {
    const isWrong = nameFaults(parsed.data).length > 0
    found.push({ object: parsed.data, place: placeOf([]), ...(isWrong ? { placeOf } : {}) })
  } else
    for (const issue of parsed.error.issues)
      refuse(issue.path, `${what}: ${issue.path.join('.')}: ${issue.message}; quote it if it is text`)
}

type Refuse = (path: readonly PropertyKey[], message: string) => void

function checkNames(metadata: Record<string, unknown>, what: string, refuse: Refuse): void {
  const { name, generateName, namespace } = metadata
  const at = ['metadata', 'name']
  if (name === undefined && generateName !== undefined) checkGenerated(generateName, metadata, what, refuse)
  else if (name === undefined || name === null || name === '') refuse(at, `${what} has no metadata.name`)
  else if (typeof name !== 'string') refuse(at, `metadata.name ${JSON.stringify(name)} is not text; quote it`)
  else {
    const expected = wrongSegment(name)
    if (expected !== null) refuse(at, `metadata.name ${shown(name)} is not a valid name in Kubernetes: ${expected}`)
  }
  if (typeof namespace !== 'string' || namespace === '') return
  const expected = wrongNamespace(namespace)
  if (expected !== null) refuse(['metadata', 'namespace'], `metadata.namespace ${shown(namespace)} is not a valid namespace: ${expected}`)
}

/** HK9: each run of a hook has an object of its own; any other object would be created again by each reconciliation. */
function checkGenerated(generateName: unknown, metadata: Record<string, unknown>, what: string, refuse: Refuse): void {
  const at = ['metadata', 'generateName']
  const parsed = k8sObjectSchema.shape.metadata.shape.annotations.safeParse(metadata['annotations'])
  if (!parsed.success || orderOf(parsed.data).kind !== 'hook')
    refuse(
      at,
      `${what} has generateName, which is for hooks only: set metadata.name, because each reconciliation would create another object`,
    )
  else if (typeof generateName !== 'string') refuse(at, `metadata.generateName ${JSON.stringify(generateName)} is not text; quote it`)
  else {
    const expected = wrongSegment(generateName, true)
    if (expected !== null) refuse(at, `metadata.generateName ${shown(generateName)} is not a valid name prefix in Kubernetes: ${expected}`)
  }
}
