// Manifests that SOPS encrypted: they stay encrypted in rows, and the agent opens them with a key of its site. What the
// server needs to route and order an object must be readable. Pure.
import type { K8sObject } from '../../../shared/kube/object.ts'
import type { Problem } from '../../../shared/runtime/error.ts'
import { misplacedSops, withSopsMember } from '../../../shared/sops/object.ts'
import { isSopsValue, SOPS, SOPS_ANNOTATION, type SopsMember, type SopsParcel, sopsMemberOf } from '../../../shared/sops/parcel.ts'
import { readSops, type SopsRead, sopsFormatOf } from '../../../shared/sops/read.ts'
import { decodeUtf8 } from '../utf8.ts'

/** The SOPS file with this MAC, of which a renderer wrote a document. */
export type SopsFiles = (mac: string) => SopsRead

/** The documents with the same MAC in the file of a document. */
export function sopsFilesIn(text: string): SopsFiles {
  const known = new Map<string, SopsRead>()
  return (mac) => {
    const read = known.get(mac) ?? readSops(text, 'yaml', mac)
    known.set(mac, read)
    return read
  }
}

/** Finds documents of files that a program read and wrote anew, in another order. */
export function sopsFilesOf(files: ReadonlyMap<string, Uint8Array>): SopsFiles {
  const texts = [...files.values()].flatMap((bytes) => decodeUtf8(bytes) ?? [])
  return (mac) => {
    const text = texts.find((one) => one.includes(mac))
    return text === undefined
      ? { kind: 'refused', why: 'its file is not found; the values of a SOPS file have to stay as they are' }
      : readSops(text, 'yaml', mac)
  }
}

/** Operators of their own decrypt these in the cluster. */
const isForOperator = (kind: unknown): boolean => kind === 'SopsSecret' || kind === 'GlobalSopsSecret'

/** The MAC of a manifest that SOPS encrypted. Null means that it is none, or is to be applied as it is. */
export function sopsMacOf(value: object): string | null {
  const { sops, kind, metadata } = value as {
    sops?: unknown
    kind?: unknown
    metadata?: { annotations?: Record<string, unknown> | null } | null
  }
  if (typeof sops !== 'object' || sops === null || isForOperator(kind)) return null
  if (metadata?.annotations?.[SOPS_ANNOTATION] === 'disabled') return null
  const { mac } = sops as { mac?: unknown }
  return typeof mac === 'string' && isSopsValue(mac) ? mac : null
}

/** `path`: of a field that has to be readable and is not; [] for the object. */
export type SopsManifest =
  | { kind: 'object'; value: Record<string, unknown> }
  | { kind: 'refused'; problems: Array<{ path: string[]; message: string }> }

/** The manifest with its documents in place of its `sops` member. */
export function sopsManifest(value: object, mac: string, files: SopsFiles): SopsManifest {
  const hidden = [...encryptedFields(value)]
  if (hidden.length > 0)
    return { kind: 'refused', problems: hidden.map((path) => ({ path, message: `${path.join('.')} is encrypted by SOPS; ${READABLE}` })) }
  const read = files(mac)
  if (read.kind !== 'parcel') {
    const why = read.kind === 'refused' ? read.why : 'its file is not found'
    return { kind: 'refused', problems: [{ path: ['sops'], message: `a manifest that SOPS encrypted: ${why}` }] }
  }
  const { sops: _, ...object } = value as Record<string, unknown>
  const member: SopsMember = { v: 1, object: read.parcel }
  return { kind: 'object', value: { ...object, [SOPS]: member } }
}

const READABLE =
  "apiVersion, kind and metadata must be readable: encrypt with `sops encrypt --encrypted-regex '^(data|stringData)$'`, or with other fields of the spec"

function* encryptedFields(value: object): Generator<string[]> {
  const { apiVersion, kind, metadata } = value as Record<string, unknown>
  for (const [field, part] of Object.entries({ apiVersion, kind })) if (isSopsValue(part)) yield [field]
  yield* encryptedIn(metadata, ['metadata'])
}

function* encryptedIn(value: unknown, path: string[]): Generator<string[]> {
  if (isSopsValue(value)) yield path
  else if (typeof value === 'object' && value !== null)
    for (const [key, member] of Object.entries(value)) yield* encryptedIn(member, [...path, key])
}

/** The objects as their rows have them: with the SOPS files among the values of a Secret, after patches and labels. */
export const sopsRows = <T extends { object: K8sObject; place: string }>(found: readonly T[], problems: Problem[]): T[] =>
  found.map((manifest) => {
    const row = sopsRow(manifest.object)
    if (row.kind === 'object') return row.object === manifest.object ? manifest : { ...manifest, object: row.object }
    const { kind, metadata } = manifest.object
    problems.push({ path: manifest.place, message: `${kind} ${metadata.name ?? ''}: ${row.message}` })
    return manifest
  })

type SopsRow = { kind: 'object'; object: K8sObject } | { kind: 'refused'; message: string }

function sopsRow(object: K8sObject): SopsRow {
  const member = sopsMemberOf(object)
  const wrong = member === null ? null : misplacedSops(object, member)
  if (wrong !== null) return { kind: 'refused', message: wrong }
  const own: SopsRow = { kind: 'object', object: member === null ? object : withSopsMember(object, member) }
  if (hasSplitEnv(object)) return { kind: 'refused', message: SPLIT }
  if (object.kind !== 'Secret' || object.apiVersion !== 'v1') return own
  if (object.metadata.annotations?.[SOPS_ANNOTATION] === 'disabled') return own
  const entries: Record<string, SopsParcel> = {}
  for (const { place, text } of textsOf(object)) {
    const format = sopsFormatOf(text)
    if (format === null) continue
    const read = readSops(text, format)
    if (read.kind === 'refused') return { kind: 'refused', message: `${place.replace('/', '.')} is a SOPS file: ${read.why}` }
    if (read.kind === 'parcel') entries[place] = read.parcel
  }
  if (Object.keys(entries).length === 0) return own
  return { kind: 'object', object: withSopsMember(object, { ...(member ?? { v: 1 }), entries }) }
}

/** Members of an env file that SOPS encrypted became entries of the object. */
function hasSplitEnv(object: K8sObject): boolean {
  const { data, stringData } = object as { data?: Record<string, unknown> | null; stringData?: Record<string, unknown> | null }
  const mac = data?.['sops_mac'] ?? stringData?.['sops_mac']
  return typeof mac === 'string' && (isSopsValue(mac) || isSopsValue(Buffer.from(mac, 'base64').toString('latin1')))
}

const SPLIT =
  'its values come from an env file that SOPS encrypted, and the order of the file is lost; name the file under `files` of the secretGenerator'

function* textsOf(object: K8sObject): Generator<{ place: string; text: string }> {
  const { data, stringData } = object as { data?: unknown; stringData?: unknown }
  for (const [key, value] of entriesOf(stringData)) yield { place: `stringData/${key}`, text: value }
  for (const [key, value] of entriesOf(data)) {
    if (value.length < MAC_CHARS_MIN || isSopsValue(value)) continue
    const text = decodeUtf8(Buffer.from(value, 'base64'))
    if (text !== null) yield { place: `data/${key}`, text }
  }
}

/** Shorter texts hold no SOPS metadata. */
const MAC_CHARS_MIN = 100

const entriesOf = (values: unknown): Array<[string, string]> =>
  typeof values === 'object' && values !== null
    ? Object.entries(values).flatMap(([key, value]): Array<[string, string]> => (typeof value === 'string' ? [[key, value]] : []))
    : []
