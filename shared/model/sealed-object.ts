// A sealed object row: what the server needs to route, order and list stays readable, everything else is encrypted. The
// document is canonical JSON of an object with the same kind, name and namespace, so that whatever reads only those
// reads sealed and plain rows alike.
import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto'
import { canonicalJson } from '../kube/canonical.ts'
import { isK8sObject, type K8sObject } from '../kube/object.ts'
import type { ServiceId } from '../runtime/ids.ts'
import { objectRowPrefix } from './desired.ts'

/** Member of a sealed document. It sorts before all members of Kubernetes objects. */
export const SEALED = '$sealed'

/** Keys of one service, derived from the sealing key of the fleet. */
export interface SealingKeys {
  /** Id of the sealing key: 8 hex digits. */
  id: string
  mac: Uint8Array
  box: Uint8Array
}

const KEY_BYTES = 32
const MAC_BYTES = 16
const NONCE_BYTES = 12
const TAG_BYTES = 16

const utf8 = new TextEncoder()

/** Another service has other keys: a row that is moved there does not open. */
export function sealingKeysOf({ id, secret }: { id: string; secret: Uint8Array }, { project, service }: ServiceId): SealingKeys {
  const info = utf8.encode(['skerry-sealing-v1', id, project, service].join('\n'))
  const bytes = new Uint8Array(hkdfSync('sha256', secret, new Uint8Array(), info, 2 * KEY_BYTES))
  return { id, mac: bytes.subarray(0, KEY_BYTES), box: bytes.subarray(KEY_BYTES) }
}

/** How a row is sealed. */
export interface SealMark {
  /** Id of the sealing key. */
  key: string
  /** Keyed digest of row id and object: equal for equal objects, base64url. */
  mac: string
}

const MARKED = /^\{"\$sealed":\{"k":"([0-9a-f]{8})","m":"([A-Za-z0-9_-]{22})","v":1,"z":"/
const PREFIX = '{"$sealed":'

export const isSealed = (doc: string): boolean => doc.startsWith(PREFIX)

/** Null means that the document is not sealed, or is sealed in a form that this version does not know. */
export function sealMarkOf(doc: string): SealMark | null {
  if (!isSealed(doc)) return null
  const [, key, mac] = MARKED.exec(doc) ?? []
  return key === undefined || mac === undefined ? null : { key, mac }
}

/** Opens exactly one object: another plaintext has another mac, and so another key. */
export const objectKeyOf = ({ box }: SealingKeys, mac: string): Uint8Array =>
  createHmac('sha512', box).update(`object key\n${mac}`).digest().subarray(0, KEY_BYTES)

/** Keyed digest for texts that stand for the content of an object, such as a generated name. */
export const keyedDigest = ({ mac }: SealingKeys, text: string): string => createHmac('sha256', mac).update(text).digest('hex')

/** `doc`: canonical JSON of `object`. Equal objects of one row become equal bytes under one sealing key. */
export function sealObject(keys: SealingKeys, id: string, object: K8sObject, doc: string): string {
  const digest = createHmac('sha256', keys.mac).update(`object\n${id}\n${doc}`).digest().subarray(0, MAC_BYTES)
  const m = digest.toString('base64url')
  const { shell, rest } = split(object)
  const cipher = createCipheriv('aes-256-gcm', objectKeyOf(keys, m), digest.subarray(0, NONCE_BYTES)).setAAD(aadOf(id, keys.id, m, shell))
  const sealed = Buffer.concat([cipher.update(canonicalJson(rest), 'utf8'), cipher.final(), cipher.getAuthTag()])
  return canonicalJson({ [SEALED]: { k: keys.id, m, v: 1, z: sealed.toString('base64url') }, ...shell })
}

/** Canonical JSON of the object. Null means that the key is wrong, or that the row was changed or is the row of another
 *  object. */
export function openObject(objectKey: Uint8Array, id: string, doc: string): string | null {
  const mark = sealMarkOf(doc)
  if (mark === null || objectKey.length !== KEY_BYTES) return null
  try {
    const { [SEALED]: sealed, ...shell } = JSON.parse(doc) as K8sObject & { [SEALED]: { z: string } }
    const bytes = Buffer.from(sealed.z, 'base64url')
    const nonce = Buffer.from(mark.mac, 'base64url').subarray(0, NONCE_BYTES)
    const decipher = createDecipheriv('aes-256-gcm', objectKey, nonce, { authTagLength: TAG_BYTES })
    decipher.setAAD(aadOf(id, mark.key, mark.mac, shell as K8sObject)).setAuthTag(bytes.subarray(-TAG_BYTES))
    const text = Buffer.concat([decipher.update(bytes.subarray(0, -TAG_BYTES)), decipher.final()]).toString()
    const object = joined(shell as K8sObject, JSON.parse(text) as Rest)
    return isK8sObject(object) ? canonicalJson(object) : null
  } catch {
    return null
  }
}

/** With the keys of the server. */
export const openWith = (keys: SealingKeys, id: string, doc: string): string | null => {
  const mark = sealMarkOf(doc)
  return mark === null || mark.key !== keys.id ? null : openObject(objectKeyOf(keys, mark.mac), id, doc)
}

/** Whether an object row id is one of a service's Secrets: those are sealed whatever the render read. */
export const isSecretRow = (service: ServiceId, id: string): boolean => id.startsWith(`${objectRowPrefix(service)}/Secret/`)

const aadOf = (id: string, key: string, mac: string, shell: K8sObject): Uint8Array =>
  utf8.encode(canonicalJson(['skerry-sealed-v1', id, key, mac, shell]))

type Metadata = K8sObject['metadata']
interface Rest extends Record<string, unknown> {
  metadata?: Record<string, unknown>
}

/** Annotations that say how an object is applied, ordered, kept and deleted: server and agent read them before an
 *  object is opened. */
const CLEAR_ANNOTATIONS = [
  'skerry.dev/',
  'argocd.argoproj.io/',
  'deployment.plural.sh/',
  'deployments.plural.sh/',
  'helm.sh/',
  'kustomize.toolkit.fluxcd.io/',
  'config.kubernetes.io/',
  'cli-utils.sigs.k8s.io/',
  'client.lifecycle.config.k8s.io/',
]
const CLEAR_LABELS = ['skerry.dev/']
/** True for an annotation or label whose value stays readable in a sealed row. */
export const isClearMark = (key: string): boolean => CLEAR_ANNOTATIONS.some((prefix) => key.startsWith(prefix))
const CLEAR_METADATA = ['name', 'generateName', 'namespace'] as const

function split(object: K8sObject): { shell: K8sObject; rest: Rest } {
  const { apiVersion, kind, metadata, ...others } = object
  const clear: Metadata = {}
  const hidden: Record<string, unknown> = { ...metadata }
  for (const field of CLEAR_METADATA) {
    if (metadata[field] === undefined) continue
    clear[field] = metadata[field]
    delete hidden[field]
  }
  for (const [field, prefixes] of [
    ['annotations', CLEAR_ANNOTATIONS],
    ['labels', CLEAR_LABELS],
  ] as const) {
    const entries = Object.entries(metadata[field] ?? {})
    const isClear = ([key]: [string, string]) => prefixes.some((prefix) => key.startsWith(prefix))
    const open = entries.filter(isClear)
    if (open.length === 0) continue
    clear[field] = Object.fromEntries(open)
    const left = entries.filter((entry) => !isClear(entry))
    if (left.length === 0) delete hidden[field]
    else hidden[field] = Object.fromEntries(left)
  }
  return { shell: { apiVersion, kind, metadata: clear }, rest: Object.keys(hidden).length === 0 ? others : { ...others, metadata: hidden } }
}

function joined(shell: K8sObject, { metadata: hidden = {}, ...others }: Rest): unknown {
  const metadata: Record<string, unknown> = { ...hidden, ...shell.metadata }
  for (const field of ['annotations', 'labels'] as const) {
    const [mine, theirs] = [shell.metadata[field], hidden[field]]
    if (mine !== undefined && theirs !== undefined) metadata[field] = { ...(theirs as object), ...mine }
  }
  return { ...others, apiVersion: shell.apiVersion, kind: shell.kind, metadata }
}
