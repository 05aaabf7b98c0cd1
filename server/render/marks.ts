// Marks in place of secrets: what people see of a render is rendered with them, so that nothing that a filter makes of
// a secret can be shown. Pure.
import { parseYamlDocuments } from '../../shared/adapters/yaml.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { withoutSopsMark } from '../../shared/sops/object.ts'
import { hasSopsMember, isSopsValue, SOPS } from '../../shared/sops/parcel.ts'
import type { ConfigLayer } from './config-merge.ts'
import { isMap, type JsonMap } from './patch/merge.ts'

/** Equal texts have equal marks, of a comparison only at the same place (DF3); nobody else can compute them. */
export type Mark = (text: string, place?: string) => string

/** Without a key there is nothing to compare by. */
export const PLAIN_MARK: Mark = () => 'secret'

/** kubectl's copy of the whole object. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

/** A text that became a mark before stays that mark, such as the value of a variable in a Secret. */
export function onceMarked(mark: Mark): Mark {
  const made = new Set<string>()
  return (text, place) => {
    const shown = made.has(text) ? text : mark(text, place)
    made.add(shown)
    return shown
  }
}

/** The same names with marks as values. */
export function withMarks<Layer extends Pick<ConfigLayer, 'values' | 'secrets'>>(layer: Layer, mark: Mark): Layer {
  const { values, secrets } = layer
  if (secrets === undefined || secrets.size === 0) return layer
  const marked = Object.entries(values).map(([name, value]) => [name, secrets.has(name) ? markedValue(value, mark) : value] as const)
  return { ...layer, values: Object.fromEntries(marked) }
}

/** Helm values in a text: their names stay. Null means that it holds no mapping. */
export function markedMapping(text: string, mark: Mark): JsonMap | null {
  const [document] = parseYamlDocuments(text, { file: '' }).documents
  const { value } = document ?? {}
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (markedValue(value, mark) as JsonMap) : null
}

/** Names of a mapping stay. */
export function markedValue(value: unknown, mark: Mark): unknown {
  if (value === null) return null
  if (typeof value !== 'object') return mark(String(value))
  if (Array.isArray(value)) return value.map((item) => markedValue(item, mark))
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, markedValue(member, mark)]))
}

/** A rendered object for people: marks in place of the data of a Secret, and of values that SOPS encrypted. */
export function markedObject(object: K8sObject, mark: Mark): K8sObject {
  const { [SOPS]: _, ...rest } = object as K8sObject & JsonMap
  const shown = hasSopsMember(object) ? withoutSopsMark(encryptedMarked(rest, mark) as K8sObject) : object
  return object.kind === 'Secret' ? markedSecret(shown, mark) : shown
}

function encryptedMarked(value: unknown, mark: Mark): unknown {
  if (isSopsValue(value)) return `sops:${mark(value)}`
  if (Array.isArray(value)) return value.map((item) => encryptedMarked(item, mark))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, encryptedMarked(member, mark)]))
}

function markedSecret(secret: K8sObject, mark: Mark): K8sObject {
  const masked: JsonMap & K8sObject = { ...(secret as JsonMap & K8sObject) }
  const { namespace = '', name = '' } = secret.metadata
  for (const field of ['data', 'stringData']) {
    const held = masked[field]
    if (!isMap(held)) continue
    masked[field] = Object.fromEntries(
      // The same value in `data` and `stringData` has the same mark.
      Object.entries(held).map(([key, value]) => [
        key,
        mark(field === 'data' ? Buffer.from(String(value), 'base64').toString() : String(value), `Secret/${namespace}/${name}/${key}`),
      ]),
    )
  }
  const { metadata } = masked
  const { annotations } = metadata
  if (annotations?.[LAST_APPLIED] !== undefined)
    masked.metadata = { ...metadata, annotations: { ...annotations, [LAST_APPLIED]: mark(annotations[LAST_APPLIED]) } }
  return masked
}
