// LS4: an answer about an object is never older than the state that was known when the request began, unless etcd was
// restored in between. Such an answer is reported to the watch of its kind.
import { type K8sObject, type ObjectRef, refKey, refOf } from '../../../../shared/kube/object.ts'
import type { ApiResource, Cluster } from '../../../cluster/cluster.ts'
import { isNewer } from '../../../cluster/resource-version.ts'

export interface AnswerCheck {
  /** The resourceVersion that is known of an object. Null means that it is not known. */
  versionOf(resource: ApiResource, key: string): string | null
  /**
   * Called before a delete is sent. The returned function takes whether the API server answered that the object is
   * gone.
   */
  deleting(resource: ApiResource, ref: ObjectRef, uid: string): (isGone: boolean) => void
  /** The object was answered in an older version than that. */
  contradicted(resource: ApiResource, key: string): void
}

type Answer = { kind: 'applied' | 'found'; object: K8sObject } | { kind: 'absent' | 'failed' }

/** `cluster` with its reads and writes of single objects checked. */
export function checkedCluster(cluster: Cluster, check: () => AnswerCheck): Cluster {
  async function checked<T extends Answer>(resource: ApiResource, ref: ObjectRef, request: () => Promise<T>): Promise<T> {
    const key = refKey(ref)
    const before = check().versionOf(resource, key)
    const answer: Answer & T = await request()
    const version = 'object' in answer ? answer.object.metadata.resourceVersion : undefined
    if (before !== null && version !== undefined && isNewer(before, version)) check().contradicted(resource, key)
    return answer
  }
  return {
    info: () => cluster.info(),
    discover: () => cluster.discover(),
    apply: (resource, object, options) => checked(resource, refOf(object), () => cluster.apply(resource, object, options)),
    get: (resource, ref, options) => checked(resource, ref, () => cluster.get(resource, ref, options)),
    delete: async (resource, ref, uid, options) => {
      const answered = check().deleting(resource, ref, uid)
      let isGone = false
      try {
        const answer = await cluster.delete(resource, ref, uid, options)
        isGone = answer.kind === 'gone'
        return answer
      } finally {
        answered(isGone)
      }
    },
    mergePatch: (resource, ref, body, acting) => checked(resource, ref, () => cluster.mergePatch(resource, ref, body, acting)),
    watch: (resource, options) => cluster.watch(resource, options),
  }
}
