// An object and the SOPS documents that it is built from. A renderer may have changed what is readable (a namespace,
// labels); encrypted values stay where the file has them. Pure.
import { isK8sObject, type K8sObject } from '../kube/object.ts'
import { emitSops } from './emit.ts'
import { type OpenSops, placeText, type SopsScalar } from './open.ts'
import { isSopsValue, SOPS, SOPS_ANNOTATION, type SopsMember, type SopsNode, type SopsParcel } from './parcel.ts'

type Path = ReadonlyArray<string | number>
interface Place {
  doc: number
  path: string
}

/** The problem with the places of encrypted values. Null if the agent can open the object. */
export function misplacedSops(object: K8sObject, { object: parcel }: SopsMember): string | null {
  if (parcel === undefined) return null
  const places = placesOf(parcel)
  const docs = new Set<number>()
  for (const { text, path } of encryptedIn(object)) {
    const place = places.get(text)
    if (place?.path !== placeText(path))
      return `${path.join('.')} has an encrypted value that its SOPS file does not have there; encrypted values cannot be moved or copied`
    docs.add(place.doc)
  }
  if (docs.size > 1) return 'its encrypted values are of several documents of one SOPS file'
  for (const doc of docs) {
    const { apiVersion, kind } = identityOf(parcel.docs[doc])
    if (apiVersion !== object.apiVersion || kind !== object.kind)
      return `it is ${object.kind} of ${object.apiVersion}, and ${kind ?? 'no object'} of ${apiVersion ?? 'no version'} in its SOPS file`
  }
  return null
}

/** The object with the values of its documents. Null means that a value is not among them. */
export function withSopsValues(object: K8sObject, member: SopsMember, opened: (parcel: SopsParcel) => OpenSops | null): K8sObject | null {
  if (misplacedSops(object, member) !== null) return null
  const { [SOPS]: _, ...rest } = object as K8sObject & Record<string, unknown>
  const sops = member.object === undefined ? null : opened(member.object)
  if (member.object !== undefined && sops === null) return null
  const plain = sops === null ? rest : replaced(rest, sops)
  if (plain === null) return null
  const built = { ...(plain as Record<string, unknown>) }
  for (const [place, parcel] of Object.entries(member.entries ?? {})) {
    const [field = '', ...names] = place.split('/')
    const file = opened(parcel)
    const bytes = file === null ? null : emitSops(parcel, file)
    if (bytes === null || (field !== 'data' && field !== 'stringData')) return null
    // A value in `data` may hold any bytes, and stringData only text.
    const { stringData = {}, data = {}, ...others } = built as { stringData?: object; data?: object }
    const name = names.join('/')
    const left = Object.fromEntries(Object.entries(stringData).filter(([key]) => key !== name))
    const moved = { ...others, data: { ...data, [name]: bytes.toString('base64') } }
    Object.assign(built, moved)
    if (Object.keys(left).length > 0) built['stringData'] = left
    else delete built['stringData']
  }
  return isK8sObject(built) ? marked(built) : null
}

/** Secrets are never shown anyway. */
function marked(object: K8sObject): K8sObject {
  const plain = withoutSopsMark(object)
  if (object.kind === 'Secret') return plain
  const { metadata } = plain
  return { ...plain, metadata: { ...metadata, annotations: { ...metadata.annotations, [SOPS_ANNOTATION]: 'decrypted' } } }
}

export function withoutSopsMark(object: K8sObject): K8sObject {
  const { annotations, ...metadata } = object.metadata
  if (annotations === undefined) return object
  const { [SOPS_ANNOTATION]: _, ...others } = annotations
  return { ...object, metadata: Object.keys(others).length === 0 ? metadata : { ...metadata, annotations: others } }
}

/** As a row has it: the server and earlier agents learn from it that the object has to be opened. */
export function withSopsMember(object: K8sObject, member: SopsMember): K8sObject {
  const { metadata } = object
  return {
    ...object,
    [SOPS]: member,
    metadata: { ...metadata, annotations: { ...metadata.annotations, [SOPS_ANNOTATION]: 'encrypted' } },
  } as K8sObject
}

function* encryptedIn(value: unknown, path: Path = []): Generator<{ text: string; path: Path }> {
  if (isSopsValue(value)) yield { text: value, path }
  else if (Array.isArray(value)) for (const [index, item] of value.entries()) yield* encryptedIn(item, [...path, index])
  else if (typeof value === 'object' && value !== null)
    for (const [key, member] of Object.entries(value)) if (path.length > 0 || key !== SOPS) yield* encryptedIn(member, [...path, key])
}

function replaced(value: unknown, { values }: OpenSops): unknown {
  const visit = (part: unknown): unknown => {
    if (isSopsValue(part)) {
      const found = values.get(part)
      if (found === undefined) throw new Lacking()
      return found.value satisfies SopsScalar
    }
    if (Array.isArray(part)) return part.map(visit)
    if (typeof part !== 'object' || part === null) return part
    return Object.fromEntries(Object.entries(part).map(([key, member]) => [key, visit(member)]))
  }
  try {
    return visit(value)
  } catch (error) {
    if (error instanceof Lacking) return null
    throw error
  }
}
class Lacking extends Error {}

function placesOf({ docs }: SopsParcel): Map<string, Place> {
  const places = new Map<string, Place>()
  const walk = (node: SopsNode, doc: number, path: Path): void => {
    if (typeof node === 'string') {
      if (isSopsValue(node)) places.set(node, { doc, path: placeText(path) })
    } else if (node !== null && 'l' in node) for (const [index, item] of node.l.entries()) walk(item, doc, [...path, index])
    else if (node !== null && 'm' in node)
      for (let at = 0; at + 1 < node.m.length; at += 2) walk(node.m[at + 1] ?? null, doc, [...path, String(node.m[at])])
  }
  for (const [doc, node] of docs.entries()) walk(node, doc, [])
  return places
}

function identityOf(node: SopsNode | undefined): { apiVersion?: string; kind?: string } {
  if (node === undefined || node === null || typeof node === 'string' || !('m' in node)) return {}
  const found: { apiVersion?: string; kind?: string } = {}
  for (let at = 0; at + 1 < node.m.length; at += 2) {
    const [name, value] = [node.m[at], node.m[at + 1]]
    if ((name === 'apiVersion' || name === 'kind') && typeof value === 'string') found[name] = value
  }
  return found
}
