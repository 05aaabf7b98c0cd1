// The port to one Kubernetes API server: what the reconciler asks, not what Kubernetes can. Two adapters answer it, rest-cluster.ts and the
// fake in tests/support; one contract suite holds both to the same behaviour.
import type { K8sObject, ObjectRef } from '../../shared/kube/object.ts'

/** One served resource, from aggregated discovery; the plural is never guessed. */
export interface ApiResource {
  group: string
  version: string
  kind: string
  /** As in URLs: "deployments". */
  plural: string
  namespaced: boolean
  verbs: readonly string[]
}

export interface Discovery {
  /** One entry a (group, kind): the version that the server prefers, plus every other served version. */
  resources: readonly ApiResource[]
  /** Groups whose backend did not answer (`freshness: Stale`): their kinds are unknown, never gone. */
  staleGroups: readonly string[]
}

/** Why a request did not do what was asked, in the server's own words. */
export interface ApiFailure {
  kind:
    | 'unreachable' // no answer at all: connection refused, cut, timed out
    | 'throttled' // 429
    | 'server_error' // 5xx but for the terminal typed-patch error
    | 'unauthorized' // 401: credentials are re-read and it is retried
    | 'forbidden' // 403: RBAC, quota or an admission webhook
    | 'not_found' // 404 of the object, its namespace, or its kind: `detail` of the message says which
    | 'namespace_missing' // 404 naming the namespace
    | 'namespace_terminating' // 403 with cause NamespaceTerminating
    | 'conflict' // 409: field manager conflict, resourceVersion or uid precondition
    | 'immutable' // 422 whose cause says immutable
    | 'taken' // 422: another Service has the port or the address
    | 'invalid' // 400, 422, and 500 "failed to create typed patch": waits for a new revision
    | 'webhook' // 500 "failed calling webhook": its backend is not ready
  status: number
  reason: string
  message: string
  retryAfterMs?: number
}

/** Failures that may end by themselves are retried for ever with backoff; the others wait for a new revision or a changed cause. */
export const TERMINAL_FAILURES: ReadonlySet<ApiFailure['kind']> = new Set(['immutable', 'invalid'])

export type ApplyResult = { kind: 'applied'; object: K8sObject; created: boolean } | { kind: 'failed'; failure: ApiFailure }
export type GetResult = { kind: 'found'; object: K8sObject } | { kind: 'absent' } | { kind: 'failed'; failure: ApiFailure }
/** `deleting`: accepted, but finalizers hold the object; the watch tells when it is gone. `replaced`: another uid lives under this name. `changed`: it is not as it was seen. */
export type DeleteResult =
  | { kind: 'gone' }
  | { kind: 'deleting'; finalizers: readonly string[] }
  | { kind: 'replaced' }
  | { kind: 'changed' }
  | { kind: 'failed'; failure: ApiFailure }

/** What a watch yields. A start (and every restart after 410 or an outage longer than the server remembers) is `reset`, then `present` for each
 *  object, then `synced`: whatever was known before and was not `present` in between is gone or lost its label. A `reset` may come again
 *  before any `synced` (the start was cut), and `synced` without `reset` follows a `failed` after which nothing was missed. */
export type WatchEvent =
  | { kind: 'reset' }
  | { kind: 'present'; object: K8sObject }
  | { kind: 'changed'; object: K8sObject }
  | { kind: 'removed'; object: K8sObject } // deleted, or no longer matching the selector: GET before judging
  | { kind: 'synced' }
  | { kind: 'failed'; failure: ApiFailure } // this kind is Unknown until the next `synced`; the adapter retries by itself

export interface ClusterInfo {
  /** UID of the kube-system namespace: the cluster's identity when the agent's key is lost (RP6). */
  uid: string
  /** As /version says: "v1.36.3". */
  version: string
}

/** Whom a request is made as: `system:serviceaccount:<namespace>:<name>`; absent: the agent itself. The API server adds a ServiceAccount's groups by itself. */
export interface Acting {
  as?: string
}

export interface Cluster {
  info(): Promise<ClusterInfo>
  /** Throws AppError `kube_unreachable` when the server gives no answer. */
  discover(): Promise<Discovery>
  /** Server-side apply with field manager `skerry`. `object` goes out as it is: cleaning is the caller's. */
  apply(resource: ApiResource, object: K8sObject, options: { force: boolean; dryRun?: boolean } & Acting): Promise<ApplyResult>
  get(resource: ApiResource, ref: ObjectRef): Promise<GetResult>
  /** With `preconditions.uid`: never deletes an object that only shares the name. `resourceVersion`: nor one that somebody has changed since. What it owns goes after it;
   *  `foreground`: before it. */
  delete(
    resource: ApiResource,
    ref: ObjectRef,
    uid: string,
    options?: { foreground?: boolean; resourceVersion?: string } & Acting,
  ): Promise<DeleteResult>
  /** A merge patch by field manager `skerry-marks`; `resourceVersion` in the body guards it. Used for managedFields and marks only. */
  mergePatch(resource: ApiResource, ref: ObjectRef, body: Record<string, unknown>, acting?: Acting): Promise<ApplyResult>
  /** Runs until the signal aborts; resumes from the last bookmark by itself and never relists without need. One consumer. */
  watch(
    resource: ApiResource,
    options: { labelSelector?: string; fieldSelector?: string; namespace?: string; signal: AbortSignal },
  ): AsyncIterable<WatchEvent>
}
