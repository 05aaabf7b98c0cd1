// What the cluster holds of ours, kept up to date by one watch for each resource that we own something of. It says that something changed and
// never judges; a pass reads from here and fetches nothing.

import type { Health, HealthOptions } from '../../../shared/kube/health.ts'
import { SERVICE_LABEL } from '../../../shared/kube/marks.ts'
import { type K8sObject, type ObjectRef, refKey, refOf } from '../../../shared/kube/object.ts'
import { exhaustive } from '../../../shared/runtime/assert.ts'
import { backoffMs } from '../../../shared/runtime/backoff.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import { describeError } from '../../../shared/runtime/loop.ts'
import type { Random } from '../../../shared/runtime/random.ts'
import type { ApiFailure, ApiResource, Cluster, WatchEvent } from '../../cluster/cluster.ts'
import { sameOthers } from '../fields/other-fields.ts'
import { isNewer, isRelevantChange, type LiveObject, liveObjectOf, type Owner } from './live-object.ts'

/** `unknown`: its watch has no full picture (not started, not synced, failed): nothing may be concluded. */
export type LiveView =
  | { kind: 'unknown' /** What its watch was answered. */; failure?: ApiFailure }
  | { kind: 'absent' }
  | { kind: 'present'; live: LiveObject }
const UNKNOWN: LiveView = { kind: 'unknown' }
const ABSENT: LiveView = { kind: 'absent' }

/** Who is told. Called between turns of the event loop, never while a decision is made. */
export interface WatchSink {
  /** Objects of this resource that the inventory says were applied. */
  expected(resource: ApiResource): ObjectRef[]
  /** A relevant change; `object` is lent for the call and not kept. Null: it is gone, confirmed by a GET. */
  changed(key: string, live: LiveObject | null, object: K8sObject | null): void
  /** Does it matter what others own of this object now? */
  minds(key: string, live: LiveObject): boolean
  /** The picture of this resource became whole, or was lost. */
  turned(resource: ApiResource): void
  /** The API server says that it serves no such resource: what is known of its kinds is old. */
  unserved(resource: ApiResource): void
}

export interface WatchesDeps {
  cluster: Cluster
  clock: Clock
  random: Random
  log: Logger
  sink: WatchSink
  signal: AbortSignal
  /** How the owner of an object wants its health told. */
  healthOptions?(owner: Owner): HealthOptions | undefined
}

interface Watch {
  resource: ApiResource
  objects: Map<string, LiveObject>
  synced: boolean
  /** Why it is not; null: it is, or was not answered yet. */
  failure: ApiFailure | null
  stop: AbortController
  /** Keys met since the last `reset`; null outside a list. */
  listed: Set<string> | null
  /** Of objects that went, as far back as an answer may come late: the version at which they did. */
  readonly gone: Map<string, string>
}
/** Each is a name and a number. */
const GONE_MAX = 1_000

const JUDGED_ANEW: Health = {
  word: 'Progressing',
  reason: 'JudgedAnew',
  message: 'its health is looked at again by the new choice of its service',
}
/** One that broke on a bug is not repeated in a hurry. */
const BROKEN_WATCH_WAIT_MS = 30_000
const GET_BACKOFF = { baseMs: 1_000, capMs: 60_000 }

export const resourceKey = ({ group, version, kind }: { group: string; version: string; kind: string }): string =>
  `${group}/${version}/${kind}`

export class Watches {
  readonly #deps: WatchesDeps
  readonly #watches = new Map<string, Watch>()

  constructor(deps: WatchesDeps) {
    this.#deps = deps
  }

  /** RC5: starts a watch for what entered and stops those whose resource left. */
  follow(resources: ReadonlyMap<string, ApiResource>): void {
    for (const [key, watch] of this.#watches) {
      if (resources.has(key)) continue
      watch.stop.abort()
      this.#watches.delete(key)
    }
    for (const [key, resource] of resources) if (!this.#watches.has(key)) this.#start(key, resource)
  }

  view(resource: ApiResource, key: string): LiveView {
    const watch = this.#watches.get(resourceKey(resource))
    if (watch === undefined) return UNKNOWN
    if (!watch.synced) return watch.failure === null ? UNKNOWN : { kind: 'unknown', failure: watch.failure }
    const live = watch.objects.get(key)
    return live === undefined ? ABSENT : { kind: 'present', live }
  }

  *all(): Generator<{ key: string; apiVersion: string; live: LiveObject }> {
    for (const { resource, objects } of this.#watches.values()) {
      const apiVersion = resource.group === '' ? resource.version : `${resource.group}/${resource.version}`
      for (const [key, live] of objects) yield { key, apiVersion, live }
    }
  }

  /** What we were answered ourselves is known before its event comes, so that the event is no news. */
  accept(resource: ApiResource, object: K8sObject): LiveObject {
    const watch = this.#watches.get(resourceKey(resource))
    const live = this.#liveOf(object)
    const key = refKey(refOf(object))
    const known = watch?.objects.get(key)
    const goneAt = watch?.gone.get(key)
    const isGone = known === undefined && goneAt !== undefined && !isNewer(live.resourceVersion, goneAt)
    if (!isGone && (known === undefined || isNewer(live.resourceVersion, known.resourceVersion))) watch?.objects.set(key, live)
    return live
  }

  /** A delete was accepted and finalizers hold the object; its event says the same a moment later. */
  markDeleting(resource: ApiResource, key: string, text: string): void {
    const objects = this.#watches.get(resourceKey(resource))?.objects
    const live = objects?.get(key)
    if (live !== undefined && live.deleting === null) objects?.set(key, { ...live, deleting: text })
  }

  /** HE9: nobody may call it healthy by the old choice; the answer says what it is by the new one. False: it is not there, and what comes later is judged by the new choice. */
  judgeAgain(resource: ApiResource, key: string, ref: ObjectRef): boolean {
    const watch = this.#watches.get(resourceKey(resource))
    const live = watch?.objects.get(key)
    if (watch === undefined || live === undefined) return false
    watch.objects.set(key, { ...live, health: JUDGED_ANEW })
    void this.#confirmGone(watch, ref)
    return true
  }

  #liveOf(object: K8sObject): LiveObject {
    const { clock, healthOptions } = this.#deps
    return liveObjectOf(object, clock.nowMs(), healthOptions)
  }

  /** The API server confirmed that it is gone. */
  drop(resource: ApiResource, key: string): void {
    this.#watches.get(resourceKey(resource))?.objects.delete(key)
  }

  #start(key: string, resource: ApiResource): void {
    const watch: Watch = {
      resource,
      objects: new Map(),
      synced: false,
      failure: null,
      stop: new AbortController(),
      listed: null,
      gone: new Map(),
    }
    this.#watches.set(key, watch)
    void this.#run(watch)
  }

  /** The adapter retries what can be retried; what arrives here is a bug, in it or in what its news set off. The kind is unknown then, but not for ever. */
  async #run(watch: Watch): Promise<void> {
    const { clock, signal, log } = this.#deps
    const both = AbortSignal.any([watch.stop.signal, signal])
    while (!both.aborted) {
      try {
        await this.#follow(watch, both)
        return
      } catch (error) {
        if (both.aborted) return
        const retryInMs = BROKEN_WATCH_WAIT_MS
        log.error('watch broke', { resource: resourceKey(watch.resource), error: describeError(error), retryInMs })
        watch.synced = false
        this.#deps.sink.turned(watch.resource)
        await clock.sleep(retryInMs, both)
      }
    }
  }

  async #follow(watch: Watch, both: AbortSignal): Promise<void> {
    for await (const event of this.#deps.cluster.watch(watch.resource, { labelSelector: SERVICE_LABEL, signal: both })) {
      if (both.aborted) return
      this.#take(watch, event)
    }
  }

  #take(watch: Watch, event: WatchEvent): void {
    switch (event.kind) {
      case 'reset':
        watch.listed = new Set()
        return
      case 'present':
        watch.listed?.add(refKey(refOf(event.object)))
        this.#put(watch, event.object)
        return
      case 'changed':
        this.#put(watch, event.object)
        return
      case 'removed':
        noteGone(watch, event.object)
        void this.#confirmGone(watch, refOf(event.object))
        return
      case 'synced':
        void this.#finishList(watch)
        return
      case 'failed':
        this.#fail(watch, event.failure)
        return
      default:
        exhaustive(event)
    }
  }

  /** The adapter tells the log, once for an outage; a person is told again when the reason is another. */
  #fail(watch: Watch, failure: ApiFailure): void {
    if (failure.kind === 'not_found') this.#deps.sink.unserved(watch.resource)
    const isKnown = !watch.synced && watch.failure?.kind === failure.kind && watch.failure.status === failure.status
    if (isKnown) return
    watch.synced = false
    watch.failure = failure
    this.#deps.sink.turned(watch.resource)
  }

  #put(watch: Watch, object: K8sObject): void {
    const key = refKey(refOf(object))
    const known = watch.objects.get(key)
    // Also an older object of the same name is old news: resource versions count all objects of a resource.
    if (known !== undefined && !isNewer(object.metadata.resourceVersion ?? '', known.resourceVersion)) return
    const live = this.#liveOf(object)
    watch.objects.set(key, live)
    if (!watch.synced) return
    const { sink } = this.#deps
    const isOthers = () => !sameOthers(known?.others, live.others) && sink.minds(key, live)
    if (isRelevantChange(known, live) || isOthers()) this.#deps.sink.changed(key, live, object)
  }

  /** What the list did not bring, and should have: each is looked at before it counts as gone. */
  async #finishList(watch: Watch): Promise<void> {
    const { sink } = this.#deps
    const { listed } = watch
    watch.listed = null
    watch.failure = null
    // Without a list before it, `synced` ends an outage in which nothing was missed.
    if (listed !== null) {
      const missing = new Map(sink.expected(watch.resource).map((ref) => [refKey(ref), ref]))
      for (const key of listed) missing.delete(key)
      for (const key of [...watch.objects.keys()]) if (!listed.has(key) && !missing.has(key)) watch.objects.delete(key)
      await Promise.all([...missing.values()].map((ref) => this.#confirmGone(watch, ref)))
    }
    // It failed again meanwhile.
    if (watch.stop.signal.aborted || this.#deps.signal.aborted || watch.failure !== null) return
    watch.synced = true
    sink.turned(watch.resource)
  }

  /** RC5: DELETED may only mean that our label went. Asked until the API server answers. */
  async #confirmGone(watch: Watch, ref: ObjectRef): Promise<void> {
    const { cluster, clock, random, sink } = this.#deps
    const { signal } = watch.stop
    const key = refKey(ref)
    const before = watch.objects.get(key)
    for (let attempt = 0; !signal.aborted && !this.#deps.signal.aborted; attempt += 1) {
      const answer = await cluster.get(watch.resource, ref)
      // Something newer came while we asked: that is the answer. What we noted ourselves is none.
      if (watch.objects.get(key)?.resourceVersion !== before?.resourceVersion) return
      if (answer.kind === 'absent') {
        watch.objects.delete(key)
        if (watch.synced && before !== undefined) sink.changed(key, null, null)
        return
      }
      if (answer.kind === 'found') {
        const live = this.#liveOf(answer.object)
        watch.objects.set(key, live)
        if (watch.synced) sink.changed(key, live, answer.object)
        return
      }
      await clock.sleep(backoffMs(attempt, GET_BACKOFF, random, answer.failure.retryAfterMs), signal)
    }
  }
}

function noteGone({ gone }: Watch, object: K8sObject): void {
  const key = refKey(refOf(object))
  gone.delete(key)
  gone.set(key, object.metadata.resourceVersion ?? '')
  if (gone.size <= GONE_MAX) return
  const [oldest] = gone.keys()
  if (oldest !== undefined) gone.delete(oldest)
}
