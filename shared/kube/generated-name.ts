// Hooks may have generateName instead of a name (HK9). Their row needs a name that is the same for the same manifest;
// the agent gives each run its own.
import { canonicalJson, sha256Hex } from './canonical.ts'
import { type K8sObject, type ObjectRef, refOf } from './object.ts'

const PREFIX_CHARS_MAX = 200

/** Which object a row is of. `digest`: names the content of an object without a name; a keyed one where that may hold a
 *  secret. */
export function rowRefOf(object: K8sObject, digest: (text: string) => string = sha256Hex): ObjectRef {
  const { name, generateName } = object.metadata
  if (name !== undefined || generateName === undefined) return refOf(object)
  return { ...refOf(object), name: generateName.slice(0, PREFIX_CHARS_MAX) + digest(canonicalJson(object)).slice(0, 10) }
}
