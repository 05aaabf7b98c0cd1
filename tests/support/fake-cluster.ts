// A strict Kubernetes API server in memory: the Cluster port for simulation and unit tests, held to the real one by the contract suite. It
// owns fields, merges, refuses, finalizes and watches as Kubernetes does. Not there: defaulting, CRD schemas, admission but by `admit`, cascading deletion
// by owner references, conversion between versions (only apiVersion is rewritten); fake-field-sets.ts says how lists differ.
import { failureOf } from '../../agent/cluster/api-failure.ts'
import type {
  Acting,
  ApiFailure,
  ApiResource,
  ApplyResult,
  Cluster,
  ClusterInfo,
  DeleteResult,
  Discovery,
  GetResult,
  WatchEvent,
} from '../../agent/cluster/cluster.ts'
import { MARKS_MANAGER } from '../../agent/cluster/rest-cluster.ts'
import { FIELD_MANAGER } from '../../shared/kube/marks.ts'
import { groupOf, type K8sObject, type ObjectRef, refKey, refOf } from '../../shared/kube/object.ts'
import { AppError } from '../../shared/protocol/error.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Random } from '../../shared/runtime/random.ts'
import { notServed, Refusal } from './fake-kube-kinds.ts'
import { FakeObjects } from './fake-objects.ts'
import { FakeWatchLog, matcher, type Selectors, watchEventOf } from './fake-watch-log.ts'

export interface FakeRequest {
  verb: 'info' | 'discover' | 'apply' | 'get' | 'delete' | 'patch' | 'watch'
  /** Absent for info, discover and watch. */
  ref?: ObjectRef
  kind?: string
  /** Whom it was made as, where not as the agent. */
  as?: string
}

const WATCH_RETRY_MS = 1000
const VERSION = 'v1.36.3'

export class FakeCluster implements Cluster {
  /** Every request that arrived, those that failed too. */
  readonly requests: FakeRequest[] = []
  readonly #clock: Clock
  readonly #log = new FakeWatchLog()
  readonly #objects: FakeObjects
  #decideFailure: (request: FakeRequest) => ApiFailure | null = () => null
  #mayAct: (user: string, request: FakeRequest) => boolean = () => false
  #watchEpoch = 0
  #watchLagMs: () => number = () => 0
  #answerLagMs: (request: FakeRequest) => number = () => 0
  #hurry = new AbortController()

  constructor({ clock, uid }: { clock: Clock; uid?: string }) {
    this.#clock = clock
    this.#objects = new FakeObjects(clock, this.#log, uid)
  }

  // The port.

  async info(): Promise<ClusterInfo> {
    await this.#arriveOrThrow({ verb: 'info' })
    return { uid: this.#objects.identity(), version: VERSION }
  }

  async discover(): Promise<Discovery> {
    await this.#arriveOrThrow({ verb: 'discover' })
    return this.#objects.discovery()
  }

  apply(
    resource: ApiResource,
    object: K8sObject,
    { force, dryRun = false, as }: { force: boolean; dryRun?: boolean } & Acting,
  ): Promise<ApplyResult> {
    return this.#answer<ApplyResult>({ verb: 'apply', ref: refOf(object), ...acting(as) }, resource, () => {
      const { object: result, created } = this.#objects.apply(resource, structuredClone(object), { manager: FIELD_MANAGER, force, dryRun })
      return { kind: 'applied', object: result, created }
    })
  }

  get(resource: ApiResource, ref: ObjectRef): Promise<GetResult> {
    return this.#answer<GetResult>({ verb: 'get', ref }, resource, () => {
      const object = this.#objects.read(resource, ref)
      return object === null ? { kind: 'absent' } : { kind: 'found', object }
    })
  }

  delete(
    resource: ApiResource,
    ref: ObjectRef,
    uid: string,
    { foreground = false, resourceVersion, as }: { foreground?: boolean; resourceVersion?: string } & Acting = {},
  ): Promise<DeleteResult> {
    return this.#answer<DeleteResult>({ verb: 'delete', ref, ...acting(as) }, resource, () => {
      const live = this.#objects.read(resource, ref)
      if (live === null) return { kind: 'gone' }
      if (live.metadata.uid !== uid) return { kind: 'replaced' }
      if (resourceVersion !== undefined && live.metadata.resourceVersion !== resourceVersion) return { kind: 'changed' }
      const finalizers = this.#objects.delete(ref, foreground)
      return finalizers === null ? { kind: 'gone' } : { kind: 'deleting', finalizers }
    })
  }

  mergePatch(resource: ApiResource, ref: ObjectRef, body: Record<string, unknown>, { as }: Acting = {}): Promise<ApplyResult> {
    return this.#answer<ApplyResult>({ verb: 'patch', ref, ...acting(as) }, resource, () => {
      const object = this.#objects.mergePatch(resource, ref, structuredClone(body), MARKS_MANAGER)
      return { kind: 'applied', object, created: false }
    })
  }

  async *watch(resource: ApiResource, options: Selectors & { signal: AbortSignal }): AsyncGenerator<WatchEvent> {
    const { signal } = options
    const matches = matcher(resource, options)
    let position: number | null = null
    let unknown = false
    while (!signal.aborted) {
      const epoch = this.#watchEpoch
      const failure = (await this.#arrive({ verb: 'watch', kind: resource.kind })) ?? this.#notServed(resource)
      if (failure !== null) {
        unknown = true
        yield { kind: 'failed', failure }
        await this.#clock.sleep(WATCH_RETRY_MS, signal)
        continue
      }
      if (position === null || !this.#log.remembers(position)) {
        position = this.#objects.revision
        const present = this.#objects.all().filter(matches)
        yield { kind: 'reset' }
        for (const object of present) yield { kind: 'present', object: versioned(object, resource) }
        yield { kind: 'synced' }
      } else if (unknown) yield { kind: 'synced' }
      unknown = false
      while (!signal.aborted && epoch === this.#watchEpoch) {
        for (const change of this.#log.after(position)) {
          position = change.revision
          const event = watchEventOf(change, matches)
          const lagMs = this.#watchLagMs()
          if (lagMs > 0) await this.#clock.sleep(lagMs, signal)
          if (event !== null && 'object' in event) yield { ...event, object: versioned(event.object, resource) }
          if (epoch !== this.#watchEpoch) break
        }
        if (!this.#objects.serves(resource)) break
        if (this.#log.after(position).length === 0 && epoch === this.#watchEpoch) await this.#log.next(signal)
      }
    }
  }

  // Faults.

  /** Asked before every request, watches included; an answer other than null is what the caller gets. */
  fail(decide: (request: FakeRequest) => ApiFailure | null): void {
    this.#decideFailure = decide
  }

  /** What RBAC lets others do than the agent, which may do everything. Nobody may do anything until this is called. */
  permit(mayAct: (user: string, request: FakeRequest) => boolean): void {
    this.#mayAct = mayAct
  }

  /** A policy of the cluster: its answer other than null is why a write that would leave this object is refused. */
  admit(decide: (object: K8sObject) => string | null): void {
    this.#objects.admission = decide
  }

  /** Ends every stream. They resume where they were, or start over if the server is told to `forget` (410). */
  cutWatches({ forget = false }: { forget?: boolean } = {}): void {
    if (forget) this.#log.forget(this.#objects.touch())
    this.#watchEpoch += 1
    this.#log.wake()
  }

  /** Each event comes this much later: after the answer to the write that it is of, as it often does in a real cluster. */
  lagWatches(lagMs: () => number): void {
    this.#watchLagMs = lagMs
  }

  /** Each answer to a read or write comes this much after it was carried out: also after events of that very write, and of later ones. What is on its way comes at once. */
  lagAnswers(lagMs: (request: FakeRequest) => number): void {
    this.#answerLagMs = lagMs
    this.#hurry.abort()
    this.#hurry = new AbortController()
  }

  // Others at work. These never fail by injection; a mistake in a test throws.

  /** An update by somebody else: what it changes leaves our entry and enters theirs. A new object where there is none yet. */
  editAs(manager: string, ref: ObjectRef, mutate: (object: K8sObject) => void, options: { subresource?: string } = {}): K8sObject {
    return this.#objects.edit(manager, ref, mutate, options.subresource)
  }

  /** The same, said as a merge patch. */
  patchAs(manager: string, ref: ObjectRef, body: Record<string, unknown>): K8sObject {
    return structuredClone(this.#objects.mergePatch(this.#objects.resourceOf(ref), ref, structuredClone(body), manager))
  }

  /** A server-side apply by another manager. */
  applyAs(manager: string, object: K8sObject, { force = false }: { force?: boolean } = {}): K8sObject {
    return this.#objects.apply(this.#objects.resourceOf(refOf(object)), structuredClone(object), { manager, force, dryRun: false }).object
  }

  deleteAs(_manager: string, ref: ObjectRef): void {
    if (this.#objects.find(ref) === null) throw new Error(`no ${refKey(ref)} to delete`)
    this.#objects.delete(ref)
  }

  setStatus(ref: ObjectRef, status: Record<string, unknown>, manager = 'controller'): K8sObject {
    return this.#objects.edit(manager, ref, (object) => Object.assign(object, { status }), 'status')
  }

  object = (ref: ObjectRef): K8sObject | null => structuredClone(this.#objects.find(ref))
  /** In the order of their keys. */
  objects = (): K8sObject[] => structuredClone(this.#objects.all())

  async #arrive(request: FakeRequest): Promise<ApiFailure | null> {
    this.requests.push(request)
    // Nothing is answered before its caller could do something else, as over a network.
    await Promise.resolve()
    return this.#decideFailure(request)
  }

  async #arriveOrThrow(request: FakeRequest): Promise<void> {
    const failure = await this.#arrive(request)
    if (failure === null) return
    const refused = failure.kind === 'unauthorized' || failure.kind === 'forbidden'
    throw new AppError(refused ? 'kube_refused' : 'kube_unreachable', { doing: request.verb, detail: failure.message })
  }

  async #answer<T>(request: FakeRequest, resource: ApiResource, work: () => T): Promise<T | { kind: 'failed'; failure: ApiFailure }> {
    const failure = (await this.#arrive(request)) ?? this.#forbidden(request, resource) ?? this.#notServed(resource)
    if (failure !== null) return { kind: 'failed', failure }
    const answer = this.#carryOut(resource, work)
    const lagMs = this.#answerLagMs(request)
    if (lagMs > 0) await this.#clock.sleep(lagMs, this.#hurry.signal)
    return answer
  }

  #carryOut<T>(resource: ApiResource, work: () => T): T | { kind: 'failed'; failure: ApiFailure } {
    try {
      return structuredClone(work())
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      return { kind: 'failed', failure: failureFrom(error, resource) }
    }
  }

  #forbidden(request: FakeRequest, { plural, group }: ApiResource): ApiFailure | null {
    const { as: user, verb, ref } = request
    if (user === undefined || this.#mayAct(user, request)) return null
    const where = ref?.namespace ? `in the namespace "${ref.namespace}"` : 'at the cluster scope'
    const asked = verb === 'apply' ? 'patch' : verb
    const subject = `${group === '' ? plural : `${plural}.${group}`} "${ref?.name}"`
    const message = `${subject} is forbidden: User "${user}" cannot ${asked} resource "${plural}" in API group "${group}" ${where}`
    return { kind: 'forbidden', status: 403, reason: 'Forbidden', message }
  }

  #notServed = (resource: ApiResource): ApiFailure | null => (this.#objects.serves(resource) ? null : failureFrom(notServed(), resource))
}

export const createFakeCluster = (deps: { clock: Clock; uid?: string }): FakeCluster => new FakeCluster(deps)

const acting = (as: string | undefined): { as?: string } => (as === undefined ? {} : { as })

const failureFrom = ({ status, body, message }: Refusal, { plural }: ApiResource): ApiFailure =>
  failureOf({ status, body, text: message, retryAfter: null, plural })

function versioned(object: K8sObject, { group, version }: ApiResource): K8sObject {
  const clone = structuredClone(object)
  if (groupOf(clone.apiVersion) === group) clone.apiVersion = group === '' ? version : `${group}/${version}`
  return clone
}

/** Half the time none, else up to two seconds, each event its own. */
export function lagWatches(random: Random, cluster: FakeCluster): void {
  const maxMs = random() < 0.5 ? 0 : random() * 2_000
  cluster.lagWatches(() => (maxMs === 0 ? 0 : random() * maxMs))
}

/** The same of answers: half the time they come at once. */
export function lagAnswers(random: Random, cluster: FakeCluster): void {
  const maxMs = random() < 0.5 ? 0 : random() * 2_000
  cluster.lagAnswers(() => (maxMs === 0 ? 0 : random() * maxMs))
}
