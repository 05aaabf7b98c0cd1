// Lists a resource once, by the start of a watch, which costs the API server less than a list by pages.
import type { K8sObject } from '../../shared/kube/object.ts'
import { failureSays } from '../messages/object-messages.ts'
import type { ApiFailure, ApiResource, Cluster, Extent, WatchScope } from './cluster.ts'

/** Null when `onObject` got all objects. */
export async function listOnce(
  cluster: Pick<Cluster, 'watch'>,
  resource: ApiResource,
  options: WatchScope & Extent,
  onObject: (object: K8sObject, isThere: boolean) => void,
): Promise<ApiFailure | null> {
  const stop = new AbortController()
  try {
    for await (const event of cluster.watch(resource, {
      ...options,
      isList: true,
      signal: AbortSignal.any([options.signal, stop.signal]),
    })) {
      if (event.kind === 'failed') return event.failure
      if (event.kind === 'synced') return null
      if (event.kind !== 'reset') onObject(event.object, event.kind !== 'removed')
    }
    return { kind: 'unreachable', status: 0, ...failureSays('Stopped') }
  } finally {
    stop.abort()
  }
}
