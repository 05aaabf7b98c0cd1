// `Replace`: what others wrote into an object becomes ours first, so that the apply that follows takes away all that the document does not name. A PUT would do it
// too, and would lose what the API server itself filled in (a Job's selector, a claim's volume) and all ownership by which drift is seen.
import { FIELD_MANAGER } from '../../../shared/kube/marks.ts'
import type { K8sObject, ManagedFieldsEntry, ObjectRef } from '../../../shared/kube/object.ts'
import type { ApiFailure, ApiResource, Cluster } from '../../cluster/cluster.ts'
import { splitRuled, type Take } from '../fields/client-side.ts'
import type { Split } from '../fields/common-fields.ts'
import type { Leave } from '../fields/ignore.ts'
import { childNode, type FieldsNode, isOwnEntry } from '../fields/owned-fields.ts'

/** AO3: of whoever writes them: taking out another's finalizer or owner would leave rubbish behind, or delete the object. */
const OTHERS_METADATA = ['f:finalizers', 'f:ownerReferences'] as const

/** What a rule leaves to others, and the manifest whose indices it counts by (canonical JSON). */
export type Spared = Pick<Take, 'leave' | 'wanted'>

/** Null: there is nothing of others to take. Status, finalizers, owner references, what came by a subresource (an autoscaler's replicas) and what a rule leaves to others
 *  stay whose they are. */
function allOurs(live: K8sObject, { leave, wanted }: Spared): ManagedFieldsEntry[] | null {
  const paths = leave?.paths ?? []
  const object: unknown = paths.length === 0 ? undefined : JSON.parse(wanted)
  const entries = live.metadata.managedFields ?? []
  const own = entries.find(isOwnEntry)
  const stay: ManagedFieldsEntry[] = []
  let fields: FieldsNode = own?.fieldsV1 ?? {}
  let isChanged = false
  for (const entry of entries) {
    if (entry === own) continue
    // Paths of another version of the kind may mean something else.
    const isSpared = (entry.subresource ?? '') !== '' || leave?.managers.includes(entry.manager ?? '') === true
    const mayTake = !isSpared && entry.apiVersion === live.apiVersion && entry.fieldsV1 !== undefined
    const { taken, left } = mayTake ? sparing(split(entry.fieldsV1 ?? {}), paths, object) : { taken: null, left: entry.fieldsV1 ?? null }
    if (taken === null) {
      stay.push(entry)
      continue
    }
    isChanged = true
    fields = united(fields, taken)
    if (left !== null) stay.push({ ...entry, fieldsV1: left })
  }
  if (!isChanged) return null
  const time =
    entries
      .map((entry) => entry.time ?? '')
      .sort()
      .at(-1) ?? ''
  const ours = own ?? { manager: FIELD_MANAGER, operation: 'Apply', apiVersion: live.apiVersion, time, fieldsType: 'FieldsV1' }
  return [{ ...ours, fieldsV1: fields }, ...stay]
}

function sparing({ taken, left }: Split, paths: Leave['paths'], object: unknown): Split {
  if (taken === null) return { taken, left }
  const ruled = splitRuled(taken, paths, object)
  return ruled.left === null ? { taken, left } : { taken: ruled.taken, left: left === null ? ruled.left : united(left, ruled.left) }
}

function split(fields: FieldsNode): Split {
  const { 'f:status': status, 'f:metadata': _metadata, ...taken } = fields
  const left: FieldsNode = status === undefined ? {} : { 'f:status': status }
  const metadata = { ...childNode(fields, 'f:metadata') }
  const othersMetadata: FieldsNode = {}
  for (const name of OTHERS_METADATA) {
    if (metadata[name] !== undefined) othersMetadata[name] = metadata[name]
    delete metadata[name]
  }
  if (Object.keys(metadata).length > 0) taken['f:metadata'] = metadata
  if (Object.keys(othersMetadata).length > 0) left['f:metadata'] = othersMetadata
  return { taken: Object.keys(taken).length === 0 ? null : taken, left: Object.keys(left).length === 0 ? null : left }
}

/** An empty node owns its whole value, with all that is under it. */
function united(a: FieldsNode, b: FieldsNode): FieldsNode {
  const result: FieldsNode = { ...a }
  for (const key of Object.keys(b)) {
    const theirs = childNode(b, key)
    const known = childNode(a, key)
    if (theirs === undefined) continue
    if (known === undefined || Object.keys(theirs).length === 0) result[key] = theirs
    else if (Object.keys(known).length > 0) result[key] = united(known, theirs)
  }
  return result
}

/** Others may write between the look and the patch; by then the resourceVersion is another. */
const ATTEMPTS_MAX = 3

/** AO3: null: all of it is ours, or it is not there. */
export async function takeAll(
  cluster: Pick<Cluster, 'get' | 'mergePatch'>,
  resource: ApiResource,
  ref: ObjectRef,
  spared: Spared,
): Promise<ApiFailure | null> {
  for (let attempt = 1; ; attempt += 1) {
    const found = await cluster.get(resource, ref)
    if (found.kind === 'failed') return found.failure
    const managedFields = found.kind === 'found' ? allOurs(found.object, spared) : null
    if (found.kind === 'absent' || managedFields === null) return null
    const { resourceVersion } = found.object.metadata
    const answer = await cluster.mergePatch(resource, ref, { metadata: { resourceVersion, managedFields } })
    if (answer.kind === 'applied') return null
    if (answer.failure.kind !== 'conflict' || attempt === ATTEMPTS_MAX) return answer.failure
  }
}
