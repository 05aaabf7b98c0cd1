// Field paths in messages of the API server, in both forms: `spec.containers[0].env[1].name` in a validation and
// `.spec.containers[name="c"].env` in a merge. Pure.
import { HOLE } from './marks.ts'
import { type FieldPath, isKey } from './shown-fields.ts'

/** Keys of lists in the Kubernetes API. They hold names, numbers and addresses; other keys may hold anything. */
const IDENTITIES: ReadonlySet<string> = new Set(
  'name namespace kind apiVersion uid ip port protocol containerPort hostPort mountPath devicePath topologyKey whenUnsatisfiable type key resourceName claimName'.split(
    ' ',
  ),
)
const IDENTITY = /^(?:-?\d{1,10}|"[-A-Za-z0-9._:/]{0,253}")$/
const NAME_CHARS_MAX = 317

/** Whether the key of an item in a list, such as `name` or `containerPort`, may be shown with its value. */
export const isShownIdentity = (key: string, value: unknown): boolean => IDENTITIES.has(key) && IDENTITY.test(JSON.stringify(value) ?? '')

interface Segment {
  /** The part of the path that may be shown. */
  text: string
  /** Null for an index. */
  name: string | null
}

export interface ReadPath {
  text: string
  names: FieldPath
  end: number
}

/** The path at the start of `text`, with holes. Null when there is none. */
export function pathAt(text: string): ReadPath | null {
  const segments: Segment[] = []
  let at = 0
  for (;;) {
    const segment = segmentAt(text, at, segments.length === 0)
    if (segment === null) break
    segments.push(segment)
    at = segment.end
  }
  if (segments.length === 0) return null
  return { text: segments.map((segment) => segment.text).join(''), names: segments.flatMap(({ name }) => name ?? []), end: at }
}

function segmentAt(text: string, at: number, isFirst: boolean): (Segment & { end: number }) | null {
  if (text[at] === '[') return indexAt(text, at)
  const dot = text[at] === '.' ? '.' : ''
  if (dot === '' && !isFirst) return null
  const name = new RegExp(`[A-Za-z_$][-A-Za-z0-9_$/]{0,${NAME_CHARS_MAX}}|${HOLE}`, 'y')
  name.lastIndex = at + dot.length
  const found = name.exec(text)?.[0]
  return found === undefined ? null : { text: dot + found, name: found, end: at + dot.length + found.length }
}

function indexAt(text: string, at: number): (Segment & { end: number }) | null {
  const merge =
    /\[(?:([A-Za-z]\w*)=(?:"(?:[^"\\]|\\.)*"|[^\],"]*)(?:,[A-Za-z]\w*=(?:"(?:[^"\\]|\\.)*"|[^\],"]*))*|=(?:"(?:[^"\\]|\\.)*"|[^\]]*))\]/y
  merge.lastIndex = at
  const keyed = merge.exec(text)?.[0]
  if (keyed !== undefined) return { text: identityText(keyed), name: null, end: at + keyed.length }
  const close = text.indexOf(']', at)
  if (close < 0) return null
  const inner = text.slice(at + 1, close)
  if (/^\d{1,6}$/.test(inner) || inner === '*') return { text: `[${inner}]`, name: null, end: close + 1 }
  return { text: `[${isKey(inner) ? inner : HOLE}]`, name: inner, end: close + 1 }
}

/** `[name="c"]` and `[port=80,protocol="TCP"]` are names. A member of a set, `[="x"]`, is a value. */
function identityText(keyed: string): string {
  const pairs = [...keyed.slice(1, -1).matchAll(/([A-Za-z]\w*)?=("(?:[^"\\]|\\.)*"|[^\],"]*)/g)]
  const shown = pairs.map(([, key = '', value = '']) =>
    IDENTITIES.has(key) && IDENTITY.test(value) ? `${key}=${value}` : `${key}=${HOLE}`,
  )
  return `[${shown.join(',')}]`
}
