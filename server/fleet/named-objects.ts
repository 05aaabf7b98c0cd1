// Keys of objects, by which services are compared. The server does not know of every kind whether it lives in a
// namespace: the key of such an object holds the namespace of its service, and an object outside namespaces has another
// key in each service. Pure.
import { keyOutsideNamespaces, parseRefKey } from '../../shared/kube/object.ts'
import { type DeclaredScopes, scopeOf } from '../render/kind-scope.ts'

export interface ObjectNames {
  has(object: string): boolean
  /** Whether this object is among them, or one that is the same if its kind lives outside namespaces. */
  hasAnywhere(object: string): boolean
}

const NOTHING_DECLARED: DeclaredScopes = new Map()

export function isOfUnknownScope(object: string): boolean {
  const ref = parseRefKey(object)
  return ref !== null && scopeOf(ref.group, ref.kind, NOTHING_DECLARED) === 'unknown'
}

/** `prefix`: what stands before the key of each object in `keys`. */
export function objectNames(keys: ReadonlySet<string> | ReadonlyMap<string, string>, prefix = ''): ObjectNames {
  let outside: ReadonlySet<string> | null = null
  const madeOutside = () => {
    const objects = [...keys.keys()].map((key) => key.slice(prefix.length))
    return new Set(objects.filter(isOfUnknownScope).map(keyOutsideNamespaces))
  }
  const hasOutside = (object: string) => {
    if (!isOfUnknownScope(object)) return false
    outside ??= madeOutside()
    return outside.has(keyOutsideNamespaces(object))
  }
  const has = (object: string) => keys.has(prefix + object)
  return { has, hasAnywhere: (object) => has(object) || hasOutside(object) }
}
