// A strict Kubernetes API server in memory: the Cluster port for simulation and unit tests, held to the real one by the
// contract suite. It owns fields, fills in defaults of some kinds (fake-defaults.ts), merges, refuses, finalizes,
// collects garbage and watches as Kubernetes does. Not there: CRD schemas, admission but by `admit`, the foreground
// order of a cascading deletion, conversion between versions (only apiVersion is rewritten); fake-field-sets.ts says
// how lists differ.
import { failureOf, warningsOf } from '../../agent/cluster/api-failure.ts'
import type {
  About,
  Acting,
  ApiFailure,
  ApiResource,
  ApplyResult,
  Cluster,
  ClusterInfo,
  DeleteResult,
  Discovery,
  Extent,
  GetResult,
  WatchEvent,
  WatchScope,
} from '../../agent/cluster/cluster.ts'
import { MARKS_MANAGER } from '../../agent/cluster/rest-cluster.ts'
import { FIELD_MANAGER } from '../../shared/kube/marks.ts'
import { groupOf, type K8sObject, type ObjectRef, refKey, refOf } from '../../shared/kube/object.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { Random } from '../../shared/runtime/random.ts'
import { notServed, Refusal } from './fake-kube-kinds.ts'
import { FakeObjects, type ObjectsSnapshot } from './fake-objects.ts'
import { warningHeader, warningsAbout } from './fake-warnings.ts'
import { FakeWatchLog, matcher, watchEventOf } from './fake-watch-log.ts'

export interface FakeRequest {
  verb: 'info' | 'discover' | 'apply' | 'get' | 'delete' | 'patch' | 'watch'
  /** Absent for info, discover and watch. */
  ref?: ObjectRef
  kind?: string
  /** Of a watch. */
  fieldSelector?: string
  /** Of a get or a watch that asks for metadata alone. */
  metadataOnly?: true
  /** Whom it was made as, where not as the agent. */
  as?: string
}

const WATCH_RETRY_MS = 1000
const CUT_OFF: ApiFailure = { kind: 'unreachable', status: 0, reason: 'ECONNRESET', message: 'the API server was stopped' }
const VERSION = 'v1.36.3'

export class FakeCluster implements Cluster {
  /** Every request that arrived, those that failed too. */
  readonly requests: FakeRequest[] = []
  readonly #clock: Clock
  readonly #log = new FakeWatchLog()
  readonly #objects: FakeObjects
  #decideFailure: (request: FakeRequest) => ApiFailure | null = () => null
  #mayAct: (user: string, request: FakeRequest) => boolean = () => false
  #warnOf: (object: K8sObject) => string[] = () => []
  #watchEpoch = 0
  #watchLagMs: () => number = () => 0
  #answerLagMs: (request: FakeRequest) => number = () => 0
  #hurry = new AbortController()
  #stale: ObjectsSnapshot | null = null
  /** What lists from the watch cache show, while another API server that lags answers them. */
  #lagging: K8sObject[] | null = null
  #lives = 0

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
    const work = (): ApplyResult => {
      const warned = this.#warned(resource, object)
      try {
        const { object: result, created } = this.#objects.apply(resource, structuredClone(object), {
          manager: FIELD_MANAGER,
          force,
          dryRun,
        })
        return { kind: 'applied', object: result, created, ...warned }
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        return { kind: 'failed', failure: failureFrom(error, resource, object), ...warned }
      }
    }
    return this.#answer({ verb: 'apply', ref: refOf(object), ...acting(as) }, resource, work)
  }

  get(resource: ApiResource, ref: ObjectRef, { metadataOnly = false }: Extent = {}): Promise<GetResult> {
    return this.#answer<GetResult>({ verb: 'get', ref, ...extent(metadataOnly) }, resource, () => {
      const object = this.#objects.read(resource, ref)
      return object === null ? { kind: 'absent' } : { kind: 'found', object: metadataOnly ? metadataOf(object) : object }
    })
  }

  delete(
    resource: ApiResource,
    ref: ObjectRef,
    uid: string,
    { foreground = false, resourceVersion, as, about }: { foreground?: boolean; resourceVersion?: string } & Acting & About = {},
  ): Promise<DeleteResult> {
    const work = (): DeleteResult => {
      const live = this.#objects.read(resource, ref)
      if (live === null) return { kind: 'gone' }
      if (live.metadata.uid !== uid) return { kind: 'replaced' }
      if (resourceVersion !== undefined && live.metadata.resourceVersion !== resourceVersion) return { kind: 'changed' }
      this.#objects.checkAdmission(resource, live, this.#objects.deleteAdmission)
      const finalizers = this.#objects.delete(ref, foreground)
      return finalizers === null ? { kind: 'gone' } : { kind: 'deleting', finalizers }
    }
    return this.#answer({ verb: 'delete', ref, ...acting(as) }, resource, work, undefined, about?.())
  }

  mergePatch(
    resource: ApiResource,
    ref: ObjectRef,
    body: Record<string, unknown>,
    { as, about }: Acting & About = {},
  ): Promise<ApplyResult> {
    const work = (): ApplyResult => {
      const object = this.#objects.mergePatch(resource, ref, structuredClone(body), MARKS_MANAGER)
      return { kind: 'applied', object, created: false }
    }
    return this.#answer({ verb: 'patch', ref, ...acting(as) }, resource, work, body, about?.())
  }

  async *watch(resource: ApiResource, options: WatchScope & Extent): AsyncGenerator<WatchEvent> {
    const { signal, fieldSelector, metadataOnly = false, fromCache = false } = options
    const shown = (object: K8sObject) => (metadataOnly ? metadataOf(versioned(object, resource)) : versioned(object, resource))
    const matches = matcher(resource, options)
    let position: number | null = null
    let unknown = false
    while (!signal.aborted) {
      const epoch = this.#watchEpoch
      // KA41: a watch of one object starts over whenever it is renewed.
      if (fieldSelector?.startsWith('metadata.name=')) position = null
      const selected = fieldSelector === undefined ? {} : { fieldSelector }
      const request = { verb: 'watch', kind: resource.kind, ...selected, ...extent(metadataOnly) } as const
      const failure = (await this.#arrive(request)) ?? this.#notServed(resource)
      if (failure !== null) {
        unknown = true
        yield { kind: 'failed', failure }
        await this.#clock.sleep(WATCH_RETRY_MS, signal)
        continue
      }
      // KA40: a server that has not reached the position.
      if (position === null || !this.#log.remembers(position) || position > this.#cacheRevision()) {
        position = this.#cacheRevision()
        const present = ((fromCache ? this.#lagging : null) ?? this.#cached()).filter(matches)
        yield { kind: 'reset' }
        for (const object of present) yield { kind: 'present', object: shown(object) }
        yield { kind: 'synced' }
      } else if (unknown) yield { kind: 'synced' }
      unknown = false
      while (!signal.aborted && epoch === this.#watchEpoch) {
        for (const change of this.#log.after(position)) {
          position = change.revision
          const event = watchEventOf(change, matches)
          const lagMs = this.#watchLagMs()
          if (lagMs > 0) await this.#clock.sleep(lagMs, signal)
          if (event !== null && 'object' in event) yield { ...event, object: shown(event.object) }
          if (epoch !== this.#watchEpoch) break
        }
        if (!this.#objects.serves(resource)) break
        if (this.#log.after(position).length === 0 && epoch === this.#watchEpoch) await this.#log.next(signal)
      }
    }
  }

  /** What lists and watches show: what etcd holds, but for an API server that ran while etcd was restored. */
  #cached(): K8sObject[] {
    if (this.#stale === null) return this.#objects.all()
    const objects = new Map(this.#stale.objects)
    for (const { before, after } of this.#log.after(this.#stale.revision)) {
      if (after !== null) objects.set(refKey(refOf(after)), after)
      else if (before !== null) objects.delete(refKey(refOf(before)))
    }
    return [...objects.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object)
  }

  #cacheRevision = (): number => Math.max(this.#objects.revision, this.#stale?.revision ?? 0)

  // Faults.

  /** What `etcdctl snapshot save` saves. */
  snapshot = (): ObjectsSnapshot => this.#objects.snapshot()

  /** etcd is restored and the API server started again; what is on its way is never answered. `bump`: with a far higher
   *  revision, so that all positions are forgotten. `isRunning`: the API server ran all the time, so that its lists and
   *  watches stay those of before. */
  restore(snapshot: ObjectsSnapshot, { bump = false, isRunning = false }: { bump?: boolean; isRunning?: boolean } = {}): void {
    this.#stale = isRunning ? this.#objects.snapshot() : null
    const revision = bump ? this.#objects.revision + 1_000_000 : snapshot.revision
    this.#objects.restore(snapshot, revision)
    this.#log.rollBack(snapshot.revision)
    this.#lives += 1
    if (!isRunning) this.cutWatches({ forget: bump })
  }

  /** Ends what `restore` left in an API server that was running. */
  restartApiServer(): void {
    this.#stale = null
    this.cutWatches()
  }

  /** From now on lists that may come from a watch cache (`fromCache`) are answered by an API server that hears of no
   *  later change. */
  lagCaches(): void {
    this.#lagging = structuredClone(this.#cached())
  }

  /** Somebody's writes that no watch ever tells, as by a bug of the API server. */
  withoutEvents<T>(work: () => T): T {
    return this.#log.withoutEvents(work)
  }

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

  /** As `admit`, of the object that a delete would end. */
  admitDeletes(decide: (object: K8sObject) => string | null): void {
    this.#objects.deleteAdmission = decide
  }

  /** What a policy of the cluster warns of when an object is written. */
  warn(decide: (object: K8sObject) => string[]): void {
    this.#warnOf = decide
  }

  /** Ends every stream. They resume where they were, or start over if the server is told to `forget` (410). */
  cutWatches({ forget = false }: { forget?: boolean } = {}): void {
    if (forget) this.#log.forget(this.#objects.touch())
    this.#watchEpoch += 1
    this.#log.wake()
  }

  serveAggregated(resource: ApiResource): void {
    this.#objects.serveAggregated(resource)
  }

  /** An API server that has just started: it does not serve these groups yet, although their CRDs and objects are
   *  there. */
  serveAllBut(groups: readonly string[]): void {
    this.#objects.gaps.clear()
    for (const group of groups) this.#objects.gaps.add(group)
    this.cutWatches()
  }

  /** Each event comes this much later: after the answer to the write that it is of, as it often does in a real cluster.
   */
  lagWatches(lagMs: () => number): void {
    this.#watchLagMs = lagMs
  }

  /** Each answer to a read or write comes this much after it was carried out: also after events of that very write, and
   *  of later ones. What is on its way comes at once. */
  lagAnswers(lagMs: (request: FakeRequest) => number): void {
    this.#answerLagMs = lagMs
    this.#hurry.abort()
    this.#hurry = new AbortController()
  }

  // Others at work. These never fail by injection; a mistake in a test throws.

  /** An update by somebody else: what it changes leaves our entry and enters theirs. A new object where there is none
   *  yet. */
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

  /** `sent`: the body of the request, which a refusal may quote. */
  async #answer<T>(
    request: FakeRequest,
    resource: ApiResource,
    work: () => T,
    sent?: unknown,
    about?: readonly unknown[],
  ): Promise<T | { kind: 'failed'; failure: ApiFailure }> {
    const failure = (await this.#arrive(request)) ?? this.#forbidden(request, resource) ?? this.#notServed(resource)
    if (failure !== null) return { kind: 'failed', failure }
    const answer = this.#carryOut(resource, work, sent, about)
    const lagMs = this.#answerLagMs(request)
    const life = this.#lives
    if (lagMs > 0) await this.#clock.sleep(lagMs, this.#hurry.signal)
    return life === this.#lives ? answer : { kind: 'failed', failure: CUT_OFF }
  }

  #carryOut<T>(
    resource: ApiResource,
    work: () => T,
    sent: unknown,
    about: readonly unknown[] = [],
  ): T | { kind: 'failed'; failure: ApiFailure } {
    try {
      return structuredClone(work())
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      return { kind: 'failed', failure: failureFrom(error, resource, sent, about) }
    }
  }

  #warned(resource: ApiResource, object: K8sObject): { warnings?: readonly string[] } {
    const { namespace } = object.metadata
    const where = namespace === undefined ? null : this.#objects.find({ group: '', kind: 'Namespace', namespace: '', name: namespace })
    const warnings = warningsOf(warningHeader([...warningsAbout(resource, object, where), ...this.#warnOf(object)]), object)
    return warnings.length === 0 ? {} : { warnings }
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

const metadataOf = ({ apiVersion, kind, metadata }: K8sObject): K8sObject => ({ apiVersion, kind, metadata })

const extent = (metadataOnly: boolean): { metadataOnly?: true } => (metadataOnly ? { metadataOnly } : {})
const acting = (as: string | undefined): { as?: string } => (as === undefined ? {} : { as })

const failureFrom = (
  { status, body, message }: Refusal,
  { plural }: ApiResource,
  sent?: unknown,
  about: readonly unknown[] = [],
): ApiFailure => failureOf({ status, body, text: message, retryAfter: null, plural, sent, about })

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
