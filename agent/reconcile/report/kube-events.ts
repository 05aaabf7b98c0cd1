// Writes Kubernetes Events on users' objects, beside everything else: with a budget of its own, one request at a time,
// and without a retry. No part of reconciling waits for it or depends on it.
import { type K8sObject, refKey } from '../../../shared/kube/object.ts'
import type { EventStatus } from '../../../shared/model/status.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import { describeError } from '../../../shared/runtime/loop.ts'
import type { ApiFailure, ApiResource, Cluster } from '../../cluster/cluster.ts'
import type { ServiceRegistry } from '../snapshot/watch/service-registry.ts'
import { countIn, type EventCount, eventName, eventNamespace, isWritten, type KubeEvents, kubeEvent, type Subject } from './kube-event.ts'

const EVENTS: ApiResource = { group: '', version: 'v1', kind: 'Event', plural: 'events', namespaced: true, verbs: [] }
/** As client-go's recorder has it for one object; here for a whole agent. */
const BURST = 25
const EVERY_MS = 5_000
/** Events of which the count is remembered, so that a repetition costs one request and not two. */
const REMEMBERED_MAX = 500

export interface KubeEventsDeps {
  mode: KubeEvents
  cluster: Pick<Cluster, 'get' | 'apply'>
  clock: Clock
  log: Logger
  signal: AbortSignal
  /** The name of this agent, as `reportingInstance`. */
  agent: string
  /** True: the API server has enough to do without us. */
  isStrained(): boolean
}

export class KubeEventWriter {
  readonly #deps: KubeEventsDeps
  readonly #bucket: TokenBucket
  readonly #counts = new Map<string, EventCount>()
  #last: Promise<void> = Promise.resolve()
  #off: boolean
  #dropped = 0

  constructor(deps: KubeEventsDeps) {
    this.#deps = deps
    this.#bucket = new TokenBucket({ burst: BURST, everyMs: EVERY_MS, nowMs: deps.clock.monotonicMs() })
    this.#off = deps.mode === 'none'
  }

  wants(event: Pick<EventStatus, 'type' | 'reason'>, subject: Subject): boolean {
    return !this.#off && isWritten(this.#deps.mode, event, subject)
  }

  /** How many were not written, for want of budget or because of a failure. */
  dropped(): number {
    return this.#dropped
  }

  /** KE1: writes events one at a time, at a bounded rate. */
  write(
    event: Pick<EventStatus, 'type' | 'reason' | 'message'>,
    subject: Subject,
    { service, commit }: { service: string; commit: string },
  ): void {
    const { clock, isStrained, log } = this.#deps
    if (!this.wants(event, subject)) return
    const nowMs = clock.nowMs()
    if (isStrained() || !this.#bucket.take(clock.monotonicMs())) {
      // One line for a burst: the next one is logged when an Event could be written in between.
      if (this.#dropped === 0) log.info('kubernetes events are dropped', { budget: `${BURST}, then one in ${EVERY_MS / 1000} s` })
      this.#dropped += 1
      return
    }
    this.#last = this.#last.then(() => this.#send(event, subject, { service, commit, nowMs }))
  }

  /** The running write has ended. */
  idle(): Promise<void> {
    return this.#last
  }

  async #send(
    event: Pick<EventStatus, 'type' | 'reason' | 'message'>,
    subject: Subject,
    { service, commit, nowMs }: { service: string; commit: string; nowMs: number },
  ): Promise<void> {
    const { cluster, agent, signal } = this.#deps
    if (this.#off || signal.aborted) return
    try {
      const name = eventName(subject, event)
      const ref = { group: '', kind: 'Event', namespace: eventNamespace(subject.ref), name }
      const before = await this.#countOf(ref)
      if (this.#off || before === 'failed') return
      const times = { count: (before?.count ?? 0) + 1, firstMs: before?.firstMs ?? nowMs, lastMs: Math.max(nowMs, before?.lastMs ?? nowMs) }
      const object: K8sObject = kubeEvent(subject, event, { service, commit, agent, times })
      const answer = await cluster.apply(EVENTS, object, { force: true })
      if (answer.kind === 'failed') this.#failed(answer.failure)
      else this.#remember(refKey(ref), times)
    } catch (error) {
      this.#deps.log.error('kubernetes event', { error: describeError(error) })
    }
  }

  /** A restarted agent continues the count. */
  async #countOf(ref: { group: string; kind: string; namespace: string; name: string }): Promise<EventCount | null | 'failed'> {
    const known = this.#counts.get(refKey(ref))
    if (known !== undefined) return known
    const found = await this.#deps.cluster.get(EVENTS, ref)
    if (found.kind === 'failed') {
      this.#failed(found.failure)
      return 'failed'
    }
    return found.kind === 'found' ? countIn(found.object) : null
  }

  #remember(key: string, times: EventCount): void {
    this.#counts.delete(key)
    this.#counts.set(key, times)
    const [oldest] = this.#counts.keys()
    if (this.#counts.size > REMEMBERED_MAX && oldest !== undefined) this.#counts.delete(oldest)
  }

  /** Nothing is retried: old Events are of no use. */
  #failed(failure: ApiFailure): void {
    this.#dropped += 1
    if (failure.kind !== 'forbidden') return
    this.#off = true
    this.#deps.log.warn('kubernetes events are off until the next start', {
      why: failure.message,
      next: 'allow the agent to get, create and patch events, or run it with --kube-events none',
    })
  }
}

/** One of our own events, on the object that it names. */
export function tellKubernetes(event: Omit<EventStatus, 'atMs'>, registry: Pick<ServiceRegistry, 'known'>, writer: KubeEventWriter): void {
  if (event.object === undefined || event.service === undefined) return
  const model = registry.known(event.service)
  const entry = model?.inventory.get(event.object) ?? model?.wanted.get(event.object)
  if (model === null || entry === undefined) return
  const subject = { ref: entry.ref, apiVersion: entry.apiVersion, uid: 'uid' in entry ? entry.uid : null }
  writer.write(event, subject, { service: model.key, commit: model.row?.commit ?? '' })
}

// A budget: a burst, then one for each interval. It holds no timer: the balance is computed on request.

export class TokenBucket {
  readonly #burst: number
  readonly #everyMs: number
  #tokens: number
  #atMs: number

  constructor({ burst, everyMs, nowMs }: { burst: number; everyMs: number; nowMs: number }) {
    this.#burst = burst
    this.#everyMs = everyMs
    this.#tokens = burst
    this.#atMs = nowMs
  }

  /** `nowMs`: of the monotonic clock. */
  take(nowMs: number): boolean {
    this.#tokens = Math.min(this.#burst, this.#tokens + (nowMs - this.#atMs) / this.#everyMs)
    this.#atMs = nowMs
    if (this.#tokens < 1) return false
    this.#tokens -= 1
    return true
  }
}
