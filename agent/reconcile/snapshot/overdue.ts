// Deadlines after which work fails permanently. Sites have no clock that keeps time without power, so the date decides
// nothing here: a deadline ends with a sleep of this very process. Time noted before its start shortens that sleep,
// within bounds.
import { durationMs } from '../../../shared/model/resources.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import type { Site, Turns } from '../ports.ts'
import type { ServiceModel } from './service-model.ts'

/** Independent of the date: after a start, or the first evaluation, this much time is left. */
const LEAST_MS = 60_000
/** Timers of the runtime are no longer than 24 days. */
const SLEEP_MS_MAX = 86_400_000

interface Deadline {
  mark: string
  isOver: boolean
  cancel: AbortController
}

interface Ask {
  /** A newer run, or another length, starts again. */
  sinceMs: number
  deadlineMs: number
  clock: Clock
  signal: AbortSignal
  wake(): void
}

export class Deadlines {
  readonly #known = new Map<string, Deadline>()

  /** RC17: whether `deadlineMs` passed since then. The first caller starts the sleep, whose end wakes. */
  isOver(key: string, { sinceMs, deadlineMs, clock, signal, wake }: Ask): boolean {
    const mark = `${sinceMs} ${deadlineMs}`
    const known = this.#known.get(key)
    if (known?.mark === mark) return known.isOver
    known?.cancel.abort()
    const cancel = new AbortController()
    const deadline: Deadline = { mark, isOver: false, cancel }
    this.#known.set(key, deadline)
    const leftMs = Math.min(Math.max(sinceMs + deadlineMs - clock.nowMs(), LEAST_MS), deadlineMs)
    afterSleep(leftMs, clock, AbortSignal.any([cancel.signal, signal]), () => {
      deadline.isOver = true
      wake()
    })
    return false
  }

  forget(key: string): void {
    this.#known.get(key)?.cancel.abort()
    this.#known.delete(key)
  }

  /** Its service is gone. */
  clear(): void {
    for (const { cancel } of this.#known.values()) cancel.abort()
    this.#known.clear()
  }
}

function afterSleep(ms: number, clock: Clock, signal: AbortSignal, then: () => void): void {
  const part = Math.min(ms, SLEEP_MS_MAX)
  void clock.sleep(part, signal).then(() => {
    if (signal.aborted) return
    if (ms > part) afterSleep(ms - part, clock, signal, then)
    else then()
  })
}

/** RC17: has the service's health deadline passed since, in this process? */
export function isHealthOverdue(model: ServiceModel, { clock, signal, wake }: Site & Turns, key: string, sinceMs: number): boolean {
  const deadlineMs = durationMs(model.sync().healthDeadline)
  return model.deadlines.isOver(key, { sinceMs, deadlineMs, clock, signal, wake: () => wake(model.key) })
}
