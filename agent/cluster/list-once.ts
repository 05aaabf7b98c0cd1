// One list of a resource, left as soon as it is whole. The start of a watch is such a list, and costs an API server less than a list by pages.
import type { K8sObject } from '../../shared/kube/object.ts'
import type { ApiFailure, ApiResource, Cluster } from './cluster.ts'

/** Null: everything was shown to `onObject`. */
export async function listOnce(
  cluster: Cluster,
  resource: ApiResource,
  options: { namespace?: string; labelSelector?: string; signal: AbortSignal },
  onObject: (object: K8sObject, isThere: boolean) => void,
): Promise<ApiFailure | null> {
  const stop = new AbortController()
  try {
    for await (const event of cluster.watch(resource, { ...options, signal: AbortSignal.any([options.signal, stop.signal]) })) {
      if (event.kind === 'failed') return event.failure
      if (event.kind === 'synced') return null
      if (event.kind !== 'reset') onObject(event.object, event.kind !== 'removed')
    }
    return { kind: 'unreachable', status: 0, reason: 'Stopped', message: 'the list was cut' }
  } finally {
    stop.abort()
  }
}
