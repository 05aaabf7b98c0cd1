// Decides which services need a reconciliation. It stores *which*, never *what happened*: a reconciliation evaluates
// the whole present state of its service.
import type { Clock } from '../../shared/runtime/clock.ts'
import { createPace, type Pace } from '../../shared/runtime/pace.ts'
import type { Watch } from '../../shared/runtime/watchdog.ts'

/** RC30: how long a turn keeps its place while one that heals waits for it, or another one. */
export const TURN_BUDGET_MS = { heal: 500, other: 2_000 } as const
/** RC32: so many turns begin before others on this thread have theirs. */
export const TURNS_IN_A_ROW = 8
/** `heal`: something that was in force is not any more. */
export type Urgency = keyof typeof TURN_BUDGET_MS

export interface WorkQueueOptions {
  clock: Clock
  /** Services that have their turn at the same time. */
  concurrency: number
  /**
   * Reconciliations beside those, for services that heal; and as many of the others continue when healing services take
   * all places.
   */
  reserved: number
  signal: AbortSignal
  /** Told of each turn. Undefined means that nobody watches. */
  watch?: Watch | undefined
  /** Must not throw: its failures are its own to report. */
  turn(key: string): Promise<void>
  /** Called when the reconciliation of this service has to end. */
  mustYield(key: string): void
}

interface Turn {
  urgency: Urgency
  /** On the monotonic clock. */
  beganMs: number
  /** It has given up its place: it begins nothing more, and ends when its requests are answered. */
  yields: boolean
  done: Promise<void>
}

/** RC10: one reconciliation for each service at a time; events during it cause exactly one more. */
export class WorkQueue {
  readonly #options: WorkQueueOptions
  readonly #ready: Record<Urgency, Set<string>> = { heal: new Set(), other: new Set() }
  /** In the order in which they began. */
  readonly #running = new Map<string, Turn>()
  /** On the monotonic clock. */
  readonly #deadlines = new Map<string, { dueMs: number; cancel: AbortController }>()
  readonly #pace: Pace
  #open = false
  #begun = 0
  /** The next check of budgets, on the monotonic clock. */
  #lookAtMs = Number.POSITIVE_INFINITY
  #endSleep = new AbortController()

  constructor(options: WorkQueueOptions) {
    this.#options = options
    this.#pace = createPace(options.clock)
    options.signal.addEventListener('abort', () => this.#stop(), { once: true })
  }

  /** Until it is opened, wakes are only collected: nothing is enforced before the claim is held. */
  setOpen(open: boolean): void {
    this.#open = open
    this.#start()
  }

  isOpen(): boolean {
    return this.#open
  }

  wake(key: string, urgency: Urgency = 'other'): void {
    if (urgency === 'heal') this.#ready.other.delete(key)
    else if (this.#ready.heal.has(key)) return
    this.#ready[urgency].add(key)
    this.#start()
  }

  /** The earliest deadline counts; a turn that still wants one asks for it again. */
  wakeAt(key: string, atMs: number): void {
    const { clock } = this.#options
    const waitMs = Math.max(0, atMs - clock.nowMs())
    const dueMs = clock.monotonicMs() + waitMs
    const known = this.#deadlines.get(key)
    if (known !== undefined && known.dueMs <= dueMs) return
    known?.cancel.abort()
    const cancel = new AbortController()
    this.#deadlines.set(key, { dueMs, cancel })
    void clock.sleep(waitMs, cancel.signal).then(() => {
      if (cancel.signal.aborted) return
      this.#deadlines.delete(key)
      this.wake(key)
    })
  }

  /** RC30: tells a long reconciliation to let a waiting service begin. */
  mustYield(key: string): boolean {
    return this.#running.get(key)?.yields === true
  }

  /** RC30: the duration of this service's reconciliation, in milliseconds. Null means none runs. */
  lastedMs(key: string): number | null {
    const turn = this.#running.get(key)
    return turn === undefined ? null : this.#options.clock.monotonicMs() - turn.beganMs
  }

  /** Resolves when no turn is running any more. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all([...this.#running.values()].map(({ done }) => done))
  }

  #start(): void {
    if (!this.#open || this.#options.signal.aborted) return
    for (const urgency of ['heal', 'other'] as const) {
      for (const key of this.#ready[urgency]) {
        if (!this.#hasPlace(urgency)) break
        if (!this.#running.has(key)) this.#begin(key, urgency)
      }
    }
    this.#lookAtBudgets()
  }

  #hasPlace(urgency: Urgency): boolean {
    const { concurrency, reserved } = this.#options
    let [all, others] = [0, 0]
    for (const turn of this.#running.values()) {
      if (turn.yields) continue
      all += 1
      if (turn.urgency === 'other') others += 1
    }
    return urgency === 'heal' ? all < concurrency + reserved : all < concurrency || others < reserved
  }

  #begin(key: string, urgency: Urgency): void {
    const { clock, turn, watch } = this.#options
    this.#ready[urgency].delete(key)
    // Begun a moment later: a turn that wakes its own service must find itself running.
    this.#begun += 1
    const isLastInARow = this.#begun % TURNS_IN_A_ROW === 0
    let ended: (() => void) | undefined
    const done = Promise.resolve()
      .then(() => this.#pace(isLastInARow))
      .then(() => {
        ended = watch?.(`reconciliation of ${key}`)
        return turn(key)
      })
      .finally(() => {
        ended?.()
        const isCutShort = this.mustYield(key)
        this.#running.delete(key)
        // RC30: the rest is still to be healed.
        if (isCutShort && urgency === 'heal' && this.#ready.other.has(key)) this.wake(key, 'heal')
        else this.#start()
      })
    this.#running.set(key, { urgency, beganMs: clock.monotonicMs(), yields: false, done })
  }

  /** RC30: for each service that waits, the turn that has lasted longest gives up its place; for one that is to heal
   *  and has its turn, this very turn. */
  #lookAtBudgets(): void {
    const nowMs = this.#options.clock.monotonicMs()
    let nextMs = Number.POSITIVE_INFINITY
    for (const urgency of ['heal', 'other'] as const) {
      for (const key of this.#ready[urgency]) {
        const own = this.#running.get(key)
        if (own !== undefined && urgency === 'other') continue
        const turn = own === undefined ? this.#oldest() : ([key, own] as const)
        if (turn === null) break
        const [who, oldest] = turn
        if (oldest.yields) continue
        // Its own reconciliation may heal it soon; and changes by the reconciliation itself look like that for a
        // moment.
        const dueMs = oldest.beganMs + TURN_BUDGET_MS[own === undefined ? urgency : 'other']
        if (dueMs > nowMs) {
          nextMs = Math.min(nextMs, dueMs)
          if (own === undefined) break
        } else this.#yield(who)
      }
    }
    this.#wakeAt(nextMs, nowMs)
  }

  #oldest(): readonly [string, Turn] | null {
    for (const entry of this.#running) if (!entry[1].yields) return entry
    return null
  }

  #yield(key: string): void {
    const turn = this.#running.get(key)
    if (turn === undefined) return
    turn.yields = true
    // Deferred: the function that wakes a service is not called back while it runs.
    queueMicrotask(() => {
      this.#options.mustYield(key)
      this.#start()
    })
  }

  #wakeAt(atMs: number, nowMs: number): void {
    if (atMs >= this.#lookAtMs || atMs === Number.POSITIVE_INFINITY) return
    this.#endSleep.abort()
    const cancel = new AbortController()
    this.#endSleep = cancel
    this.#lookAtMs = atMs
    void this.#options.clock.sleep(atMs - nowMs, cancel.signal).then(() => {
      if (cancel.signal.aborted) return
      this.#lookAtMs = Number.POSITIVE_INFINITY
      this.#start()
    })
  }

  #stop(): void {
    for (const { cancel } of this.#deadlines.values()) cancel.abort()
    this.#endSleep.abort()
    this.#deadlines.clear()
    for (const keys of Object.values(this.#ready)) keys.clear()
  }
}
