// The requests by which fields of other tools become ours: which ones is decided in client-side.ts.
import type { ObjectRef } from '../../../shared/kube/object.ts'
import type { ApiFailure, ApiResource, Cluster } from '../../cluster/cluster.ts'
import { type Take, takenManagedFields } from './client-side.ts'

/** Others may write between the look and the patch; by then the resourceVersion is another. */
const ATTEMPTS_MAX = 3

/** TK2: null: done, or nothing to do. One look and one patch, guarded by the resourceVersion. */
export async function takeOver(
  cluster: Pick<Cluster, 'get' | 'mergePatch'>,
  resource: ApiResource,
  ref: ObjectRef,
  take: Take,
): Promise<ApiFailure | null> {
  for (let attempt = 1; ; attempt += 1) {
    const found = await cluster.get(resource, ref)
    if (found.kind === 'failed') return found.failure
    if (found.kind === 'absent') return null
    const managedFields = takenManagedFields(found.object, take)
    if (managedFields === null) return null
    const { resourceVersion } = found.object.metadata
    const answer = await cluster.mergePatch(resource, ref, { metadata: { resourceVersion, managedFields } })
    if (answer.kind === 'applied') return null
    if (answer.failure.kind !== 'conflict' || attempt === ATTEMPTS_MAX) return answer.failure
  }
}
