// The live objects of one resource: from its labelled watch, and from GETs of objects that it does not show.
import type { Health } from '../../../../shared/kube/health.ts'
import { SERVICE_LABEL } from '../../../../shared/kube/marks.ts'
import { type K8sObject, type ObjectRef, parseRefKey, refKey, refOf } from '../../../../shared/kube/object.ts'
import { exhaustive } from '../../../../shared/runtime/assert.ts'
import { backoffMs } from '../../../../shared/runtime/backoff.ts'
import type { Clock } from '../../../../shared/runtime/clock.ts'
import type { Logger } from '../../../../shared/runtime/logger.ts'
import { describeError } from '../../../../shared/runtime/loop.ts'
import type { Random } from '../../../../shared/runtime/random.ts'
import type { ApiFailure, ApiResource, Cluster, GetResult, WatchEvent } from '../../../cluster/cluster.ts'
import { listOnce } from '../../../cluster/list-once.ts'
import { isNewer } from '../../../cluster/resource-version.ts'
import { watchLoop } from '../../../cluster/watch-loop.ts'
import { objectPart, objectStatus } from '../../../messages/object-messages.ts'
import { sameOthers } from '../fields/other-fields.ts'
import { Doubts } from './doubts.ts'
import type { FollowUps } from './follow-ups.ts'
import { isRelevantChange, type LiveObject, type LiveView } from './live-object.ts'
import type { Version } from './resync.ts'

export const UNKNOWN: LiveView = { kind: 'unknown' }
const ABSENT: LiveView = { kind: 'absent' }

/** Receives the findings of the watches. Called between turns of the event loop, never while a decision is made. */
export interface OwnedLookup {
  /** Objects of this kind that are in an inventory and have existed, in whatever version they were applied. */
  expected(resource: ApiResource): ObjectRef[]
  /** Is the object one of those? */
  expects(key: string): boolean
  /** Does its service say that it is missing? */
  misses(key: string): boolean
  /** Do other owners of this object's fields matter now? */
  minds(key: string, live: LiveObject): boolean
}

export interface WatchSink {
  /** An object of an incomplete first list; `object` is valid during the call only. Nothing is decided yet. */
  met(key: string, live: LiveObject, object: K8sObject): void
  /** A relevant change. `live`: null if a GET confirmed the end. `object`: lent; null if only health changed. */
  changed(key: string, live: LiveObject | null, object: K8sObject | null): void
  /** The state of this one object became uncertain, or certain again. */
  doubted(key: string): void
  /** The list of this resource became complete, or the watch failed. */
  turned(resource: ApiResource): void
  /** The API server says that it serves no such resource: the known kinds are outdated. */
  unserved(resource: ApiResource): void
}

export interface KindWatchDeps {
  /** Its GETs confirm events. */
  cluster: Pick<Cluster, 'get' | 'watch'>
  clock: Clock
  random: Random
  log: Logger
  owned: OwnedLookup
  sink: WatchSink
  signal: AbortSignal
  followUps: Pick<FollowUps, 'get' | 'begin' | 'end'>
  /** The stored form of `object`. */
  judge(resource: ApiResource, object: K8sObject): LiveObject
  /** Undefined if it is not known, or not any more. */
  noted(resource: ApiResource, key: string, before: LiveObject | undefined, now: LiveObject | undefined): void
}

/** Each is a name and a number. */
const GONE_MAX = 1_000
const JUDGED_ANEW: Health = { word: 'Progressing', ...objectStatus('JudgedAnew') }
/** Objects that are read one by one when their kind is judged again; more are listed. */
const GETS_MAX = 20
const GET_BACKOFF = { baseMs: 1_000, capMs: 60_000 }
/** After this long without another contradiction the next one is a first one. */
const CALM_MS = 600_000
const STALE_BACKOFF = { baseMs: 15_000, capMs: 300_000 }
const STALE_CACHE: ApiFailure = {
  kind: 'server_error',
  status: 0,
  reason: 'StaleWatchCache',
  message: objectPart('stale_watch_cache'),
}

export class KindWatch {
  resource: ApiResource
  readonly #deps: KindWatchDeps
  readonly #objects = new Map<string, LiveObject>()
  readonly #stop = new AbortController()
  #stream = new AbortController()
  #synced = false
  /** The first list is complete. */
  #listed = false
  /** Why it is not synced. Null means that it is, or was not answered yet. */
  #failure: ApiFailure | null = null
  /** Since the last `reset`; null outside a list. `answered`: objects from requests of the agent meanwhile. */
  #list: { shown: Set<string>; answered: Set<string> } | null = null
  /** Versions of deletions, as far back as an answer may be late. */
  readonly #gone = new Map<string, string>()
  readonly #doubts = new Doubts()
  /** Deletes of the agent that are not answered yet, or whose object is not dropped yet. */
  readonly #deletes = new Map<string, { uid: string; wasRemoved: boolean }>()
  /** The last answer that was older than the state of this watch. */
  #contradiction: { atMs: number; attempt: number } | null = null

  constructor(deps: KindWatchDeps, resource: ApiResource) {
    this.#deps = deps
    this.resource = resource
    this.#open()
  }

  #open(): void {
    const { sink } = this.#deps
    this.#stream = new AbortController()
    const signal = AbortSignal.any([this.#stop.signal, this.#stream.signal, this.#deps.signal])
    const broke = () => {
      this.#synced = false
      sink.turned(this.resource)
    }
    void watchLoop(this.#deps, this.resource, { labelSelector: SERVICE_LABEL, signal }, { take: (event) => this.#take(event), broke })
  }

  /** The same kind in present discovery. True: its objects have other paths, so everything is listed again. */
  serve(resource: ApiResource): boolean {
    const { plural, namespaced } = this.resource
    this.resource = resource
    if (resource.plural === plural && resource.namespaced === namespaced) return false
    this.#synced = false
    this.relist()
    this.#deps.sink.turned(resource)
    return true
  }

  /** Everything is listed again; until then the known state stays in use. */
  relist(): void {
    this.#stream.abort()
    this.#list = null
    if (!this.#stop.signal.aborted) this.#open()
  }

  /** LS4: after a new list. If that changes nothing, the lists of this API server are those from before the restore,
   *  and no conclusion is drawn from them. */
  contradicted(key: string): void {
    const { clock, log, random, signal } = this.#deps
    if (!this.#synced) return
    const nowMs = clock.monotonicMs()
    const last = this.#contradiction
    const attempt = last !== null && nowMs - last.atMs < CALM_MS ? last.attempt + 1 : 0
    this.#contradiction = { atMs: nowMs, attempt }
    log.warn('an object was answered in an older version than its watch had shown: etcd was restored', { object: key, attempt })
    if (attempt === 0) {
      this.#synced = false
      this.relist()
      this.#deps.sink.turned(this.resource)
      return
    }
    this.#fail(STALE_CACHE)
    this.#stream.abort()
    const stopped = AbortSignal.any([this.#stop.signal, signal])
    void clock.sleep(backoffMs(attempt, STALE_BACKOFF, random), stopped).then(() => {
      if (!stopped.aborted) this.relist()
    })
  }

  stop(): void {
    this.#stop.abort()
    for (const [key, live] of this.#objects) this.#deps.noted(this.resource, key, live, undefined)
  }

  view(key: string): LiveView {
    if (!this.#synced) return this.#failure === null ? UNKNOWN : { kind: 'unknown', failure: this.#failure }
    if (this.#deps.followUps.get(this.resource, key)?.isCertain === false) return UNKNOWN
    const live = this.#objects.get(key)
    return this.#doubts.view(key) ?? (live === undefined ? ABSENT : { kind: 'present', live })
  }

  objects(): Iterable<[string, LiveObject]> {
    return this.#objects
  }

  versionOf(key: string): string | null {
    return this.#objects.get(key)?.resourceVersion ?? null
  }

  isComplete(): boolean {
    return this.#synced && this.#list === null
  }

  /** RC5: the answer to the agent's own delete decides that an object is gone. A DELETED before that answer is
   *  settled by it, and read only if the answer says something else. */
  deleting(ref: ObjectRef, uid: string): (isGone: boolean) => void {
    const key = refKey(ref)
    const request = { uid, wasRemoved: false }
    this.#deletes.set(key, request)
    return (isGone) => {
      // Until the object is dropped its DELETED may still come.
      if (isGone) return
      if (this.#deletes.get(key) === request) this.#deletes.delete(key)
      if (request.wasRemoved) void this.confirm(ref)
    }
  }

  /** LS6: of the labelled watch. Null means that its list is not complete. */
  versions(): Map<string, Version> | null {
    if (!this.isComplete()) return null
    const versions = new Map<string, Version>()
    for (const [key, { uid, resourceVersion, unlabelled }] of this.#objects)
      if (unlabelled !== true) versions.set(key, { uid, resourceVersion })
    return versions
  }

  /** LS6: reads missing objects of inventories that no service reports as missing, and tells their services. */
  recheckMissing(countMax: number): void {
    const { owned } = this.#deps
    const isUnreported = (key: string) => !this.#objects.has(key) && !this.#doubts.has(key) && !owned.misses(key)
    const refs = this.isComplete() ? owned.expected(this.resource).filter((ref) => isUnreported(refKey(ref))) : []
    for (const ref of refs.slice(0, countMax)) void this.#confirmMissing(refKey(ref), ref)
  }

  /** LS6: the keys of those that differed. */
  async readAgain(keys: readonly string[]): Promise<string[]> {
    const changed: string[] = []
    for (const key of keys) {
      const ref = parseRefKey(key)
      const before = this.versionOf(key)
      if (ref !== null && (await this.read(ref)) === null && this.versionOf(key) !== before) changed.push(key)
    }
    return changed
  }

  /** The answer to a request of the agent precedes its event, so that the event is no change. */
  accept(object: K8sObject): LiveObject {
    const live = this.#deps.judge(this.resource, object)
    const key = refKey(refOf(object))
    const known = this.#objects.get(key)
    const goneAt = this.#gone.get(key)
    const isGone = known === undefined && goneAt !== undefined && !isNewer(live.resourceVersion, goneAt)
    if (isGone || (known !== undefined && !isNewer(live.resourceVersion, known.resourceVersion))) return live
    this.#doubts.settle(key)
    this.#keep(key, live)
    this.#list?.answered.add(key)
    return live
  }

  /** A delete was accepted and finalizers hold the object; its event says the same a moment later. */
  markDeleting(key: string, text: string): void {
    const live = this.#objects.get(key)
    if (live !== undefined && live.deleting === null) this.#objects.set(key, { ...live, deleting: text })
  }

  /** HE9: until it is read again the object does not count as healthy by the old choice. False: it does not exist,
   *  and later objects are judged by the new choice. */
  judgeAgain(ref: ObjectRef): boolean {
    const key = refKey(ref)
    const live = this.#objects.get(key)
    if (live === undefined) return false
    this.#objects.set(key, { ...live, health: JUDGED_ANEW })
    void this.confirm(ref)
    return true
  }

  /** HR6: each object of the project is read once, and is not called healthy before. */
  judgeAllAgain(project: string): void {
    const refs: ObjectRef[] = []
    for (const [key, live] of this.#objects) {
      const ref = parseRefKey(key)
      if (ref === null || live.owner.kind !== 'service' || (project !== '' && live.owner.project !== project)) continue
      this.#objects.set(key, { ...live, health: JUDGED_ANEW })
      refs.push(ref)
    }
    if (refs.length <= GETS_MAX) for (const ref of refs) void this.confirm(ref)
    else void this.#listAgain(refs)
  }

  /** One list is cheaper than many reads. An object that it lacks, or shows older than known, is read by itself. */
  async #listAgain(refs: readonly ObjectRef[]): Promise<void> {
    const { cluster, judge, sink, log } = this.#deps
    const left = new Map(refs.map((ref) => [refKey(ref), ref]))
    const take = (object: K8sObject) => {
      const key = refKey(refOf(object))
      const known = this.#objects.get(key)
      if (known === undefined || !left.has(key) || isNewer(known.resourceVersion, object.metadata.resourceVersion ?? '')) return
      left.delete(key)
      const live = judge(this.resource, object)
      this.#keep(key, live)
      if (this.#synced) sink.changed(key, live, object)
    }
    const options = { labelSelector: SERVICE_LABEL, signal: AbortSignal.any([this.#stop.signal, this.#deps.signal]) }
    await listOnce(cluster, this.resource, options, (object, isThere) => void (isThere && take(object))).catch((error: unknown) =>
      log.error('a list broke', { kind: this.resource.kind, group: this.resource.group, error: describeError(error) }),
    )
    for (const [key, ref] of left) if (this.#objects.get(key)?.health === JUDGED_ANEW) void this.confirm(ref)
  }

  /** The object is unchanged, and its health is another one. */
  rejudge(key: string, healthOf: (live: LiveObject) => Health | undefined): void {
    const live = this.#objects.get(key)
    const health = live === undefined ? undefined : healthOf(live)
    if (live === undefined || health === undefined || health === live.health) return
    const judged = { ...live, health }
    this.#objects.set(key, judged)
    if (this.#synced) this.#deps.sink.changed(key, judged, null)
  }

  /** LS1: how certain the watch is of an object that it may not show. */
  standing(key: string): 'present' | 'absent' | 'settled' {
    const { owned } = this.#deps
    if (!owned.expects(key)) return 'settled'
    const live = this.#objects.get(key)
    if (live === undefined) return owned.misses(key) ? 'absent' : 'settled'
    return live.unlabelled === true ? 'present' : 'settled'
  }

  /** It left its inventory: without our label no source would report its changes. */
  release(key: string): void {
    if (this.#objects.get(key)?.unlabelled === true) this.drop(key)
    else this.#deps.followUps.end(this.resource, key)
  }

  /** The API server confirmed that it is gone. `uid`: only that one; another object may have its name. */
  drop(key: string, uid?: string): void {
    const known = this.#objects.get(key)
    if (uid !== undefined && known !== undefined && known.uid !== uid) {
      this.#deletes.delete(key)
      return
    }
    this.#deps.noted(this.resource, key, this.#objects.get(key), undefined)
    this.#objects.delete(key)
    this.#deletes.delete(key)
    this.#deps.followUps.end(this.resource, key)
  }

  #keep(key: string, live: LiveObject): void {
    const known = this.#objects.get(key)
    this.#deps.noted(this.resource, key, known, live)
    const wasThere = known === undefined ? !this.#listed : known.wasThere === true
    this.#objects.set(key, wasThere ? { ...live, wasThere } : live)
    if (live.unlabelled !== true) this.#deps.followUps.end(this.resource, key)
  }

  #take(event: WatchEvent): void {
    switch (event.kind) {
      case 'reset':
        this.#list = { shown: new Set(), answered: new Set() }
        // LS3: versions of an etcd that was restored since prove nothing about the present one.
        this.#gone.clear()
        return
      case 'present': {
        const key = refKey(refOf(event.object))
        this.#list?.shown.add(key)
        this.put(event.object, this.#list?.answered.has(key) === false)
        return
      }
      case 'changed':
        this.put(event.object, false)
        return
      case 'removed':
        this.#noteGone(event.object)
        this.#takeRemoved(event.object)
        return
      case 'synced':
        this.#finishList()
        return
      case 'failed':
        this.#fail(event.failure)
        return
      default:
        exhaustive(event)
    }
  }

  /** The adapter logs once for an outage. The person gets another message when the reason changes. */
  #fail(failure: ApiFailure): void {
    if (failure.kind === 'not_found') this.#deps.sink.unserved(this.resource)
    const isKnown = !this.#synced && this.#failure?.kind === failure.kind && this.#failure.status === failure.status
    if (isKnown) return
    this.#synced = false
    this.#failure = failure
    this.#deps.sink.turned(this.resource)
  }

  #takeRemoved(object: K8sObject): void {
    const ref = refOf(object)
    const key = refKey(ref)
    const request = this.#deletes.get(key)
    if (request !== undefined && request.uid === object.metadata.uid) {
      request.wasRemoved = true
      return
    }
    // No service asks about it any more: its delete was answered before.
    if (!this.#objects.has(key) && !this.#deps.owned.expects(key)) return
    void this.confirm(ref)
  }

  #noteGone(object: K8sObject): void {
    const key = refKey(refOf(object))
    this.#gone.delete(key)
    this.#gone.set(key, object.metadata.resourceVersion ?? '')
    if (this.#gone.size <= GONE_MAX) return
    const [oldest] = this.#gone.keys()
    if (oldest !== undefined) this.#gone.delete(oldest)
  }

  /** LS3: a list (`isListed`) shows the present state, also if it is older than the known one: etcd was restored
   *  then. */
  put(object: K8sObject, isListed: boolean): void {
    const key = refKey(refOf(object))
    const known = this.#objects.get(key)
    // An older object of the same name is old news, too: resourceVersions count all objects of a resource.
    if (!isListed && known !== undefined && !isNewer(object.metadata.resourceVersion ?? '', known.resourceVersion)) return
    const { judge, owned, sink } = this.#deps
    const live = judge(this.resource, object)
    const wasDoubted = this.#doubts.settle(key)
    this.#keep(key, live)
    if (!this.#synced) {
      sink.met(key, live, object)
      return
    }
    const isOthers = () => !sameOthers(known?.others, live.others) && owned.minds(key, live)
    if (wasDoubted || isRelevantChange(known, live) || isOthers()) sink.changed(key, live, object)
  }

  /** RC5: an expected object that the list did not show is unknown by itself until a read tells whether it is gone. */
  #finishList(): void {
    const { owned, sink } = this.#deps
    const list = this.#list
    this.#list = null
    this.#failure = null
    // Without a list before it, `synced` ends an outage in which no event was missed.
    if (list !== null) {
      const missing = new Map(owned.expected(this.resource).map((ref) => [refKey(ref), ref]))
      for (const key of [...list.shown, ...list.answered]) missing.delete(key)
      for (const key of [...this.#objects.keys()]) if (!list.shown.has(key) && !list.answered.has(key) && !missing.has(key)) this.drop(key)
      for (const [key, ref] of missing) void this.#confirmMissing(key, ref)
    }
    this.#synced = true
    this.#listed = true
    sink.turned(this.resource)
  }

  async #confirmMissing(key: string, ref: ObjectRef): Promise<void> {
    const { sink } = this.#deps
    const isSettled = await this.#doubts.ask(
      key,
      (onFailure) => this.confirm(ref, onFailure),
      () => this.#synced && sink.doubted(key),
    )
    if (!isSettled || !this.#synced) return
    // Until now the state of the object was unknown.
    if (this.#objects.has(key)) sink.doubted(key)
    else sink.changed(key, null, null)
  }

  /** RC5: DELETED may only mean that the label was removed. Asked until the API server answers. */
  async confirm(ref: ObjectRef, onFailure: (failure: ApiFailure) => void = () => {}): Promise<void> {
    const { clock, random } = this.#deps
    const { signal } = this.#stop
    for (let attempt = 0; !signal.aborted && !this.#deps.signal.aborted; attempt += 1) {
      const failure = await this.read(ref)
      if (failure === null) return
      onFailure(failure)
      await clock.sleep(backoffMs(attempt, GET_BACKOFF, random, failure.retryAfterMs), signal)
    }
  }

  /** Null if the answer is taken in. */
  async read(ref: ObjectRef): Promise<ApiFailure | null> {
    const key = refKey(ref)
    const before = this.#objects.get(key)
    // RC4: an object of the kind cannot exist there; its path would be that of another resource, or of none.
    const isElsewhere = this.resource.namespaced !== (ref.namespace !== '')
    const answer: GetResult = isElsewhere ? { kind: 'absent' } : await this.#deps.cluster.get(this.resource, ref)
    if (answer.kind === 'failed') return answer.failure
    // A newer state arrived meanwhile: that is the answer. A state that the agent noted itself has the same version.
    if (this.#stop.signal.aborted || this.#objects.get(key)?.resourceVersion !== before?.resourceVersion) return null
    if (answer.kind === 'found') this.#found(ref, before, answer.object)
    else this.#missing(key, before)
    return null
  }

  #found(ref: ObjectRef, before: LiveObject | undefined, object: K8sObject): void {
    const { followUps, judge, owned, sink } = this.#deps
    const key = refKey(ref)
    const live = judge(this.resource, object)
    if (live.unlabelled === true && !owned.expects(key)) {
      this.#missing(key, before)
      return
    }
    this.#keep(key, live)
    if (live.unlabelled === true) followUps.begin(this.resource, ref)
    if (!this.#synced) sink.met(key, live, object)
    else if (before?.resourceVersion !== live.resourceVersion || isRelevantChange(before, live)) sink.changed(key, live, object)
  }

  #missing(key: string, before: LiveObject | undefined): void {
    if (before === undefined) return
    this.drop(key)
    if (this.#synced) this.#deps.sink.changed(key, null, null)
  }
}
