// The port to one Kubernetes API server. It offers what the reconciler needs, not all that Kubernetes can do. It has
// two adapters, rest-cluster.ts and the fake in tests/support, and one contract suite for both.
import type { K8sObject, ObjectRef } from '../../shared/kube/object.ts'

/** One served resource, from aggregated discovery. The plural is never guessed. */
export interface ApiResource {
  group: string
  version: string
  kind: string
  /** As in URLs: `deployments`. */
  plural: string
  namespaced: boolean
  verbs: readonly string[]
  /** It has a status subresource, which a controller writes. Absent means not known. */
  hasStatus?: boolean
}

export interface Discovery {
  /** One entry for each served version of a kind; the version that the server prefers comes first. */
  resources: readonly ApiResource[]
  /** Groups whose backend did not answer (`freshness: Stale`). Their kinds are unknown, not gone. */
  staleGroups: readonly string[]
  /** `group/version` of each that is listed, also of those that serve subresources alone. Absent means those of
   *  `resources`. */
  versions?: readonly string[]
}

/** Why a request failed. */
export interface ApiFailure {
  kind:
    | 'unreachable' // no answer: connection refused, cut or timed out
    | 'throttled' // 429
    | 'server_error' // 5xx, except for objects that the server can never decode
    | 'unauthorized' // 401: the credentials are read again and the request is retried
    | 'forbidden' // 403: RBAC, quota or an admission webhook
    | 'not_found' // 404: the object or its kind
    | 'namespace_missing' // 404 that names the namespace
    | 'namespace_terminating' // 403 with cause NamespaceTerminating
    | 'conflict' // 409: field manager conflict, resourceVersion or uid precondition
    | 'immutable' // 422: a field cannot be changed
    | 'taken' // 422: another Service holds the port or the address
    | 'invalid' // 400, 422, and 500 for an object that cannot be decoded: waits for a new revision
    | 'webhook' // 500: a webhook cannot be called
  status: number
  /** CamelCase; '' if the server names none. */
  reason: string
  /** For people. It has passed the boundary (KA31). */
  message: string
  retryAfterMs?: number
}

/** Failures that wait for a new revision. All others may end without one and are retried with backoff. */
export const TERMINAL_FAILURES: ReadonlySet<ApiFailure['kind']> = new Set(['immutable', 'invalid'])

/** `warnings`: those of the API server, for people (KA55). Absent if there are none. */
export type ApplyResult =
  | { kind: 'applied'; object: K8sObject; created: boolean; warnings?: readonly string[] }
  | { kind: 'failed'; failure: ApiFailure; warnings?: readonly string[] }
export type GetResult = { kind: 'found'; object: K8sObject } | { kind: 'absent' } | { kind: 'failed'; failure: ApiFailure }
/** `deleting`: accepted, but finalizers hold the object; the watch reports its end. `replaced`: another object has the
 *  name. `changed`: the object has another resourceVersion than the given one. */
export type DeleteResult =
  | { kind: 'gone' }
  | { kind: 'deleting'; finalizers: readonly string[] }
  | { kind: 'replaced' }
  | { kind: 'changed' }
  | { kind: 'failed'; failure: ApiFailure }

/** Events of a watch. A start, also after 410, is `reset`, then `present` for each object, then `synced`: an object
 *  that was known before and was not `present` is gone or lost its label. If the start is cut, `reset` comes again
 *  before `synced`. A `synced` without `reset` follows a `failed` after which no event was missed. */
export type WatchEvent =
  | { kind: 'reset' }
  | { kind: 'present'; object: K8sObject }
  | { kind: 'changed'; object: K8sObject }
  | { kind: 'removed'; object: K8sObject } // deleted, or no longer selected: a GET tells
  | { kind: 'synced' }
  | { kind: 'failed'; failure: ApiFailure } // the kind is unknown until the next `synced`; the adapter retries

export interface ClusterInfo {
  /** UID of the Namespace kube-system. It identifies the cluster when the key of the agent is lost (RP6). */
  uid: string
  /** From /version: `v1.36.3`. */
  version: string
}

/** The impersonated user: `system:serviceaccount:<namespace>:<name>`. Absent means the agent itself. The API server
 *  adds the groups of a ServiceAccount. */
export interface Acting {
  as?: string
}

/** KA51: of a request that carries no object: the documents of the object, which a refusal may quote. */
export interface About {
  about?: (() => readonly unknown[]) | undefined
}

/** `metadataOnly`: apiVersion, kind and metadata alone, so that a CRD or a Secret costs a few hundred bytes. */
export interface Extent {
  metadataOnly?: boolean
}

export interface WatchScope {
  labelSelector?: string
  fieldSelector?: string
  namespace?: string
  /** A first list that is some moments old is good enough: a server that does not stream lists serves it from its watch
   *  cache. */
  fromCache?: boolean
  /** It ends with the first list. */
  isList?: boolean
  signal: AbortSignal
}

export interface Cluster {
  info(): Promise<ClusterInfo>
  /** Throws AppError `kube_unreachable` when the server gives no answer. */
  discover(): Promise<Discovery>
  /** Server-side apply with field manager `skerry`. The caller cleans the object. */
  apply(resource: ApiResource, object: K8sObject, options: { force: boolean; dryRun?: boolean } & Acting): Promise<ApplyResult>
  get(resource: ApiResource, ref: ObjectRef, options?: Extent): Promise<GetResult>
  /** Deletes the object with this uid, never another one of the name; with `resourceVersion`, only if it is unchanged.
   *  Dependents are deleted after it, with `foreground` before it. */
  delete(
    resource: ApiResource,
    ref: ObjectRef,
    uid: string,
    options?: { foreground?: boolean; resourceVersion?: string } & Acting & About,
  ): Promise<DeleteResult>
  /** A merge patch with field manager `skerry-marks`, for managedFields and marks. `resourceVersion` in the body guards
   *  it. */
  mergePatch(resource: ApiResource, ref: ObjectRef, body: Record<string, unknown>, options?: Acting & About): Promise<ApplyResult>
  /** Runs until the signal aborts, for one consumer. It resumes from the last bookmark and lists again only if it
   *  must. */
  watch(resource: ApiResource, options: WatchScope & Extent): AsyncIterable<WatchEvent>
}
