// `Replace`: takes ownership of the fields of others in an object, so that the following apply removes all that the
// document does not name. A PUT would do that too, but would lose fields of the API server itself (a Job's selector, a
// claim's volume) and all ownership that shows drift.
import type { ManagedFieldsEntry, ObjectRef } from '../../../shared/kube/object.ts'
import type { ApiFailure, ApiResource, Cluster } from '../../cluster/cluster.ts'
import { type Managed, type Spared, splitRuled, union, withTaken } from '../snapshot/fields/client-side.ts'
import type { Split } from '../snapshot/fields/common-fields.ts'
import type { Leave } from '../snapshot/fields/ignore.ts'
import { childNode, type FieldsNode } from '../snapshot/fields/owned-fields.ts'
import { patchManagedFields } from './take-over.ts'

/** AO3: of other writers: removing another's finalizer or owner would leave remnants, or delete the object. */
const OTHERS_METADATA = ['f:finalizers', 'f:ownerReferences'] as const

/** Null means nothing to take. Status, finalizers, owner references, changes by a subresource (an autoscaler's
 *  replicas) and fields that a rule leaves to others keep their owners. */
function allOurs(live: Managed, { leave, wanted }: Spared): ManagedFieldsEntry[] | null {
  const paths = leave?.paths ?? []
  const object: unknown = paths.length === 0 ? undefined : JSON.parse(wanted)
  return withTaken(live, ({ subresource, manager, apiVersion, fieldsV1 = {} }) => {
    // Paths of another version of the kind may mean something else.
    const isSpared = (subresource ?? '') !== '' || leave?.managers.includes(manager ?? '') === true || apiVersion !== live.apiVersion
    return isSpared ? null : sparing(split(fieldsV1), paths, object)
  })
}

function sparing({ taken, left }: Split, paths: Leave['paths'], object: unknown): Split {
  if (taken === null) return { taken, left }
  const ruled = splitRuled(taken, paths, object)
  return ruled.left === null ? { taken, left } : { taken: ruled.taken, left: left === null ? ruled.left : union(left, ruled.left) }
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

/** AO3: null means that all of it is ours, or it is not there. */
export const takeAll = (
  cluster: Pick<Cluster, 'get' | 'mergePatch'>,
  resource: ApiResource,
  ref: ObjectRef,
  spared: Spared,
): Promise<ApiFailure | null> => patchManagedFields(cluster, resource, ref, (live) => allOurs(live, spared))
