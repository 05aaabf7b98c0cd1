// Gives requests to the API server their places: as many at once as it accepts and none before the time that it asked
// for. Services take turns, some places are for healing alone, and few for slow or failing requests, so that a hanging
// webhook delays only the requests that need it. One scheduler for all services.
import type { Clock } from '../../../shared/runtime/clock.ts'
import type { ApiFailure } from '../../cluster/cluster.ts'
import { type Common, commonCause, inCommon, type Target, verdictOf } from './blame.ts'
import { FairQueue, laneKey, type Ticket } from './fair-queue.ts'
import { Limit } from './limit.ts'
import { SLOW_MS, Slowness } from './slowness.ts'

export const REQUESTS_MAX = 20
/** RC27: places beside those, for slow requests. */
export const SLOW_MAX = 8
/** RC28: this part of the places is for healing alone, and as much, but at least one place, is never used by it
 *  while others wait. */
const RESERVE_PART = 5
/** RC27: of an unknown lane. */
const FIRST_MAX = 2
/** More causes are forgotten, the oldest first: a namespace of a preview never comes back. */
const CAUSES_MAX = 1_024
/** A longer pause (a proxy that asks for a day) is shortened to this. */
export const PAUSE_MAX_MS = 60_000

/** A request, or several one after the other. */
export interface Job {
  ticket: Ticket
  work(place: Place): Promise<void>
}

/** A place among the running requests. One request at a time. */
export interface Place {
  /** Every request to the API server passes here: its answer and its time show the state of the server. */
  send<T>(target: Target, ask: () => Promise<T>, failureOf: (answer: T) => ApiFailure | null): Promise<T>
}

interface Batch {
  service: string
  /** True: begin nothing more. */
  isOver(): boolean
  /** Jobs that wait or run. */
  left: number
  error: { cause: unknown } | null
  done: PromiseWithResolvers<void>
}

interface Queued extends Job {
  batch: Batch
}

interface Running {
  ticket: Ticket
  /** Target of the request that is on its way. */
  target: Target
  sinceMs: number
  /** Its request is on its way for too long. */
  hangs: boolean
  /** It takes one of the places for slow requests. */
  aside: boolean
  cause: string | null
}

/** RC29: requests of one cause. */
interface Cause {
  limit: Limit
  running: number
}

export interface SchedulerDeps {
  clock: Clock
  signal: AbortSignal
  max?: number
}

export class RequestScheduler {
  readonly #clock: Clock
  readonly #signal: AbortSignal
  readonly #limit: Limit
  readonly #slowness = new Slowness()
  /** RC29: by cause. */
  readonly #causes = new Map<string, Cause>()
  /** The parts that the targets of failed requests have in common, since the last good answer. */
  #failing: Common | null = null
  readonly #batches = new Set<Batch>()
  readonly #running = new Set<Running>()
  /** Requests that were sent. */
  #begun = 0
  #pausedUntilMs = Number.NEGATIVE_INFINITY
  #isTimerSet = false
  readonly #heals = new FairQueue<Queued>()
  readonly #others = new FairQueue<Queued>()
  readonly #slowHeals = new FairQueue<Queued>()
  readonly #slowOthers = new FairQueue<Queued>()
  /** RC28: the last started purpose, among the slow ones and among the rest. */
  readonly #last: Record<'aside' | 'ordinary', Ticket['purpose']> = { aside: 'other', ordinary: 'other' }

  constructor({ clock, signal, max = REQUESTS_MAX }: SchedulerDeps) {
    this.#clock = clock
    this.#signal = signal
    this.#limit = new Limit(max)
    signal.addEventListener('abort', () => this.#stop(), { once: true })
  }

  /** For tests: causes with a limit of their own. */
  causes(): ReadonlyMap<string, number> {
    return new Map([...this.#causes].map(([cause, { limit }]) => [cause, limit.value()]))
  }

  /** RC9: of the API server itself. */
  limit(): number {
    return this.#limit.value()
  }

  /** RC30: for how long the API server asked to be left alone, in milliseconds from now. Null means that it did not. */
  pausedForMs(): number | null {
    return this.#isPaused() ? Math.max(0, this.#pausedUntilMs - this.#clock.monotonicMs()) : null
  }

  async run<T>(ticket: Ticket, work: (place: Place) => Promise<T>): Promise<T> {
    const answers: T[] = []
    await this.all(ticket.service, [{ ticket, work: async (place) => void answers.push(await work(place)) }], () => false)
    return answers[0] as T
  }

  /** Each job begins as soon as there is a place for it. Resolves when all are done, or those that had begun when
   *  `isOver`. Rejects, after these too, with the first error of a job. */
  async all(service: string, jobs: readonly Job[], isOver: () => boolean): Promise<void> {
    if (jobs.length === 0) return
    const batch: Batch = { service, isOver, left: jobs.length, error: null, done: Promise.withResolvers() }
    this.#batches.add(batch)
    for (const job of jobs) this.#enqueue({ ...job, batch })
    this.#admit()
    await batch.done.promise
  }

  /** An input of `isOver` of its batches has changed. */
  reconsider(service: string): void {
    for (const batch of this.#batches) if (batch.service === service && batch.isOver()) this.#withdraw(batch)
  }

  #enqueue(queued: Queued): void {
    const { ticket } = queued
    const slow = this.#slowness.isSlow(ticket, laneKey(ticket), this.#clock.monotonicMs())
    if (ticket.purpose === 'heal') (slow ? this.#slowHeals : this.#heals).push(queued)
    else (slow ? this.#slowOthers : this.#others).push(queued)
  }

  #withdraw(batch: Batch): void {
    for (const queue of [this.#heals, this.#others, this.#slowHeals, this.#slowOthers])
      batch.left -= queue.remove(batch.service, (queued) => queued.batch === batch)
    this.#settle(batch)
  }

  #settle(batch: Batch): void {
    if (batch.left > 0) return
    this.#batches.delete(batch)
    if (batch.error === null) batch.done.resolve()
    else batch.done.reject(batch.error.cause)
  }

  #admit(): void {
    this.#noteHanging()
    while (!this.#isPaused()) {
      const next = this.#next()
      if (next === null) break
      if (next.queued.batch.isOver()) {
        next.queued.batch.left -= 1
        this.#withdraw(next.queued.batch)
      } else void this.#carry(next.queued, next.aside)
    }
    this.#wakeForHanging()
  }

  /** RC27, RC28: services get places in turn, and healing keeps a reserve. */
  #next(): { queued: Queued; aside: boolean } | null {
    const { places, heals, others, aside, slowHeals } = this.#count()
    const reserve = Math.floor(places / RESERVE_PART)
    if (heals + others < places) {
      const mayHeal = heals < healPlaces(places) || this.#others.isEmpty()
      const queued = this.#take(
        mayHeal ? this.#heals : null,
        others < places - reserve ? this.#others : null,
        places === 1 && this.#last.ordinary === 'heal',
      )
      if (queued !== null) return { queued, aside: false }
    }
    const slow = slowPlaces(places)
    if (aside >= slow) return null
    const mayHeal = slowHeals < healPlaces(slow) || this.#slowOthers.isEmpty()
    const queued = this.#take(mayHeal ? this.#slowHeals : null, this.#slowOthers, slow === 1 && this.#last.aside === 'heal')
    return queued === null ? null : { queued, aside: true }
  }

  #take(heals: FairQueue<Queued> | null, others: FairQueue<Queued> | null, othersFirst: boolean): Queued | null {
    const mayBegin = (ticket: Ticket, lane: string) => this.#mayBegin(ticket, lane)
    const [first, second] = othersFirst ? [others, heals] : [heals, others]
    return first?.take(mayBegin) ?? second?.take(mayBegin) ?? null
  }

  #count() {
    const counts = { places: this.limit(), heals: 0, others: 0, aside: 0, slowHeals: 0 }
    for (const { aside, ticket } of this.#running) {
      counts[aside ? 'aside' : ticket.purpose === 'heal' ? 'heals' : 'others'] += 1
      if (aside && ticket.purpose === 'heal') counts.slowHeals += 1
    }
    return counts
  }

  #mayBegin({ service }: Ticket, lane: string): boolean {
    if (!this.#slowness.isKnown(lane)) {
      let first = 0
      for (const { ticket } of this.#running) if (ticket.service === service && laneKey(ticket) === lane) first += 1
      return first < FIRST_MAX
    }
    const cause = this.#slowness.causeOf(lane)
    const known = cause === null ? undefined : this.#causes.get(cause)
    return known === undefined || known.running < known.limit.value()
  }

  async #carry({ ticket, work, batch }: Queued, aside: boolean): Promise<void> {
    const cause = this.#slowness.causeOf(laneKey(ticket))
    const running: Running = { ticket, target: ticket, sinceMs: this.#clock.monotonicMs(), hangs: false, aside, cause }
    const counted = cause === null ? undefined : this.#causes.get(cause)
    this.#last[aside ? 'aside' : 'ordinary'] = ticket.purpose
    this.#running.add(running)
    if (counted !== undefined) counted.running += 1
    try {
      await work({ send: (target, ask, failureOf) => this.#send(running, target, ask, failureOf) })
    } catch (error) {
      batch.error ??= { cause: error }
    }
    this.#answered(running)
    this.#running.delete(running)
    if (cause !== null && counted !== undefined) this.#leave(cause, counted)
    batch.left -= 1
    if (batch.error !== null || batch.isOver()) this.#withdraw(batch)
    else this.#settle(batch)
    this.#admit()
  }

  async #send<T>(running: Running, target: Target, ask: () => Promise<T>, failureOf: (answer: T) => ApiFailure | null): Promise<T> {
    this.#answered(running)
    const sentAtMs = this.#clock.monotonicMs()
    Object.assign(running, { target, sinceMs: sentAtMs })
    this.#begun += 1
    const request = this.#begun
    const answer = await ask()
    this.#learn(running, request, this.#clock.monotonicMs() - sentAtMs, failureOf(answer))
    this.#answered(running)
    return answer
  }

  #learn(running: Running, request: number, tookMs: number, failure: ApiFailure | null): void {
    const verdict = verdictOf(failure, tookMs)
    const { ticket, target } = running
    let cause: string | null = null
    switch (verdict.kind) {
      case 'good':
        this.#failing = null
        this.#limit.grow()
        if (running.cause !== null) this.#causes.get(running.cause)?.limit.grow()
        break
      case 'overload':
        this.#limit.cut(request, this.#begun)
        if (verdict.pauseMs > 0) this.#pause(Math.min(verdict.pauseMs, PAUSE_MAX_MS))
        break
      case 'webhook':
        cause = verdict.name === null ? commonCause(inCommon(null, target)) : `webhook ${verdict.name}`
        break
      case 'error':
        this.#failing = inCommon(this.#failing, target)
        cause = commonCause(this.#failing)
        if (cause === null) this.#limit.cut(request, this.#begun)
        break
    }
    if (cause !== null) this.#cut(cause, request)
    if (this.#slowness.learn({ ...target, service: ticket.service }, tookMs >= SLOW_MS, cause, this.#clock.monotonicMs())) this.#sort()
  }

  /** RC29: halves the limit of a cause whose request failed. */
  #cut(cause: string, request: number): void {
    const known = this.#causes.get(cause) ?? { limit: new Limit(REQUESTS_MAX), running: 0 }
    this.#causes.set(cause, known)
    known.limit.cut(request, this.#begun)
    const [oldest] = this.#causes.keys()
    if (this.#causes.size > CAUSES_MAX && oldest !== undefined) this.#causes.delete(oldest)
  }

  /** `counted`: where the request was counted when it began. The cause may have been forgotten then, and be known again
   *  by now. */
  #leave(cause: string, counted: Cause): void {
    counted.running -= 1
    if (counted.running > 0 || this.#causes.get(cause) !== counted) return
    // Good answers of lanes that it held up took the blame from it: nothing else would make its limit grow again.
    if (counted.limit.isWhole() || !this.#slowness.isBlamed(cause)) this.#causes.delete(cause)
  }

  /** A request that is on its way for too long leaves its place to others, if a place for slow requests is free. */
  #noteHanging(): void {
    const nowMs = this.#clock.monotonicMs()
    let room = slowPlaces(this.limit()) - this.#count().aside
    let turned = false
    for (const running of this.#running) {
      if (!running.hangs && nowMs - running.sinceMs >= SLOW_MS) {
        running.hangs = true
        turned = true
        this.#slowness.suspect(running.target, nowMs)
        this.#slowness.learn({ ...running.target, service: running.ticket.service }, true, running.cause, nowMs)
      }
      if (!running.hangs || running.aside || room <= 0) continue
      running.aside = true
      room -= 1
    }
    if (turned) this.#sort()
  }

  #answered(running: Running): void {
    if (!running.hangs) return
    running.hangs = false
    this.#slowness.suspect(running.target, this.#clock.monotonicMs())
  }

  /** Moves waiting requests to the queue where they belong now. */
  #sort(): void {
    const nowMs = this.#clock.monotonicMs()
    const isSlow = (ticket: Ticket, lane: string) => this.#slowness.isSlow(ticket, lane, nowMs)
    const moved = [this.#heals, this.#others].flatMap((queue) => queue.takeLanes(isSlow))
    for (const queue of [this.#slowHeals, this.#slowOthers]) moved.push(...queue.takeLanes((ticket, lane) => !isSlow(ticket, lane)))
    for (const queued of moved) this.#enqueue(queued)
  }

  #wakeForHanging(): void {
    const isWaiting = [this.#heals, this.#others, this.#slowHeals, this.#slowOthers].some((queue) => !queue.isEmpty())
    if (!isWaiting || this.#isTimerSet || this.#signal.aborted) return
    let sinceMs = Number.POSITIVE_INFINITY
    for (const running of this.#running) if (!running.hangs) sinceMs = Math.min(sinceMs, running.sinceMs)
    if (sinceMs === Number.POSITIVE_INFINITY) return
    this.#isTimerSet = true
    const dueMs = Math.max(0, sinceMs + SLOW_MS - this.#clock.monotonicMs())
    void this.#clock.sleep(dueMs, this.#signal).then(() => {
      this.#isTimerSet = false
      this.#admit()
    })
  }

  #pause(forMs: number): void {
    const untilMs = this.#clock.monotonicMs() + forMs
    if (this.#isPaused() && untilMs <= this.#pausedUntilMs) return
    this.#pausedUntilMs = untilMs
    for (const batch of [...this.#batches]) if (batch.isOver()) this.#withdraw(batch)
    void this.#clock.sleep(forMs, this.#signal).then(() => {
      // A longer pause may have begun meanwhile.
      if (this.#pausedUntilMs === untilMs) this.#pausedUntilMs = Number.NEGATIVE_INFINITY
      this.#admit()
    })
  }

  #isPaused = (): boolean => this.#pausedUntilMs !== Number.NEGATIVE_INFINITY && !this.#signal.aborted

  #stop(): void {
    for (const batch of [...this.#batches]) if (batch.isOver()) this.#withdraw(batch)
    this.#admit()
  }
}

/** At least one, or a slow lane would never be found quick again. */
const slowPlaces = (places: number): number => Math.max(1, Math.floor((places * SLOW_MAX) / REQUESTS_MAX))

/** RC28: while others wait. A single place is taken in turn. */
const healPlaces = (places: number): number => Math.max(1, places - Math.max(1, Math.floor(places / RESERVE_PART)))
