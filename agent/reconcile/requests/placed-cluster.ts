// The cluster port of the reconciler: every request has its place (request-scheduler.ts). Watches, the lists that begin
// them, discovery and the claim have none: nothing is enforced without them.

import type { K8sObject } from '../../../shared/kube/object.ts'
import type { ApiFailure, ApiResource, Cluster, Extent, WatchScope } from '../../cluster/cluster.ts'
import { listOnce } from '../../cluster/list-once.ts'
import type { Target } from './blame.ts'
import type { Ticket } from './fair-queue.ts'
import type { Place, RequestScheduler } from './request-scheduler.ts'

export type List = (
  resource: ApiResource,
  options: WatchScope & Extent,
  onObject: (object: K8sObject, isThere: boolean) => void,
) => Promise<ApiFailure | null>

export const targetOf = (access: Target['access'], { group, kind }: { group: string; kind: string }, namespace: string): Target => ({
  access,
  kind: `${group}/${kind}`,
  namespace,
})

type Answer = { kind: string } | { kind: 'failed'; failure: ApiFailure }
const failureIn = (answer: Answer): ApiFailure | null => ('failure' in answer ? answer.failure : null)

/** For a job that has a place. */
export function placedCluster(cluster: Cluster, place: Place): Cluster {
  return {
    info: () => cluster.info(),
    discover: () => cluster.discover(),
    watch: (resource, options) => cluster.watch(resource, options),
    get: (resource, ref, options) =>
      place.send(targetOf('read', resource, ref.namespace), () => cluster.get(resource, ref, options), failureIn),
    apply: (resource, object, options) =>
      place.send(targetOf('write', resource, object.metadata.namespace ?? ''), () => cluster.apply(resource, object, options), failureIn),
    delete: (resource, ref, uid, options) =>
      place.send(targetOf('write', resource, ref.namespace), () => cluster.delete(resource, ref, uid, options), failureIn),
    mergePatch: (resource, ref, body, acting) =>
      place.send(targetOf('write', resource, ref.namespace), () => cluster.mergePatch(resource, ref, body, acting), failureIn),
  }
}

export const placedList =
  (cluster: Pick<Cluster, 'watch'>, place: Place): List =>
  (resource, options, onObject) =>
    place.send(
      targetOf('read', resource, options.namespace ?? ''),
      () => listOnce(cluster, resource, options, onObject),
      (failure) => failure,
    )

/** Requests that belong to no plan. */
export interface Asking extends Pick<Cluster, 'get' | 'apply'> {
  list: List
  /** Any other request about `target`. */
  ask<T>(target: Target, request: () => Promise<T>, failureOf: (answer: T) => ApiFailure | null): Promise<T>
}

/** Each request waits for a place of its own. */
export function asking(
  cluster: Cluster,
  requests: Pick<RequestScheduler, 'run'>,
  { service, purpose = 'other' }: { service: string; purpose?: Ticket['purpose'] },
): Asking {
  const ticket = (target: Target): Ticket => ({ ...target, service, purpose })
  return {
    get: (resource, ref, options) =>
      requests.run(ticket(targetOf('read', resource, ref.namespace)), (place) => placedCluster(cluster, place).get(resource, ref, options)),
    apply: (resource, object, options) =>
      requests.run(ticket(targetOf('write', resource, object.metadata.namespace ?? '')), (place) =>
        placedCluster(cluster, place).apply(resource, object, options),
      ),
    list: (resource, options, onObject) =>
      requests.run(ticket(targetOf('read', resource, options.namespace ?? '')), (place) =>
        placedList(cluster, place)(resource, options, onObject),
      ),
    ask: (target, request, failureOf) => requests.run(ticket(target), (place) => place.send(target, request, failureOf)),
  }
}
