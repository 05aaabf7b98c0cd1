// Hooks may have generateName instead of a name (HK9). Their row needs a name that is the same for the same manifest; the agent gives each run its own.
import { canonicalJson, sha256Hex } from './canonical.ts'
import { type K8sObject, type ObjectRef, refOf } from './object.ts'

const PREFIX_CHARS_MAX = 200

/** Which object a row is of. */
export function rowRefOf(object: K8sObject): ObjectRef {
  const { name, generateName } = object.metadata
  if (name !== undefined || generateName === undefined) return refOf(object)
  return { ...refOf(object), name: generateName.slice(0, PREFIX_CHARS_MAX) + sha256Hex(canonicalJson(object)).slice(0, 10) }
}
