// The requests by which fields of other tools become ours: which ones is decided in client-side.ts.
import type { ManagedFieldsEntry, ObjectRef } from '../../../shared/kube/object.ts'
import type { ApiFailure, ApiResource, Cluster } from '../../cluster/cluster.ts'
import { type Managed, type Take, takenManagedFields } from '../snapshot/fields/client-side.ts'

/** Others may write between the read and the patch, which changes the resourceVersion. */
const ATTEMPTS_MAX = 3

/** One read and one patch, guarded by the resourceVersion. Null means done, the object does not exist, or `next`
 *  returned null means that there is nothing to do. */
export async function patchManagedFields(
  cluster: Pick<Cluster, 'get' | 'mergePatch'>,
  resource: ApiResource,
  ref: ObjectRef,
  next: (live: Managed) => ManagedFieldsEntry[] | null,
): Promise<ApiFailure | null> {
  for (let attempt = 1; ; attempt += 1) {
    const found = await cluster.get(resource, ref, { metadataOnly: true })
    if (found.kind === 'failed') return found.failure
    if (found.kind === 'absent') return null
    const managedFields = next(found.object)
    if (managedFields === null) return null
    const { resourceVersion } = found.object.metadata
    const answer = await cluster.mergePatch(resource, ref, { metadata: { resourceVersion, managedFields } })
    if (answer.kind === 'applied') return null
    if (answer.failure.kind !== 'conflict' || attempt === ATTEMPTS_MAX) return answer.failure
  }
}

/** TK2: takes over fields of other managers by one patch of managedFields. */
export const takeOver = (
  cluster: Pick<Cluster, 'get' | 'mergePatch'>,
  resource: ApiResource,
  ref: ObjectRef,
  take: Take,
): Promise<ApiFailure | null> => patchManagedFields(cluster, resource, ref, (live) => takenManagedFields(live, take))
