// Health that changes at a time, without an event (HE17): an object whose controller has reported nothing, or a run
// that did not start. One sleep for all such objects, until the earliest of them is due. The sleep of this process
// counts and not the date, which a site without power loses.
import type { Clock } from '../../../../shared/runtime/clock.ts'

/** A timer of the runtime is no longer than 24 days. */
const SLEEP_MS_MAX = 86_400_000

interface SettlingDeps {
  clock: Clock
  signal: AbortSignal
  /** The health of this object is due. */
  due(id: string): void
}

export class Settling {
  readonly #deps: SettlingDeps
  /** By the monotonic clock. */
  readonly #dueMs = new Map<string, number>()
  #sleep: { untilMs: number; cancel: AbortController } | null = null

  constructor(deps: SettlingDeps) {
    this.#deps = deps
  }

  isBusy(): boolean {
    return this.#dueMs.size > 0
  }

  /** Undefined if it does not settle, or not any more. */
  note(id: string, atMs: number | undefined): void {
    if (atMs === undefined) {
      this.#dueMs.delete(id)
      return
    }
    const { clock } = this.#deps
    const dueMs = clock.monotonicMs() + Math.max(atMs - clock.nowMs(), 0)
    this.#dueMs.set(id, dueMs)
    if (this.#sleep === null || dueMs < this.#sleep.untilMs) this.#sleepUntil(dueMs)
  }

  #sleepUntil(untilMs: number): void {
    this.#sleep?.cancel.abort()
    const cancel = new AbortController()
    const sleep = { untilMs, cancel }
    this.#sleep = sleep
    const { clock, signal } = this.#deps
    const ms = Math.min(Math.max(untilMs - clock.monotonicMs(), 0), SLEEP_MS_MAX)
    void clock.sleep(ms, AbortSignal.any([cancel.signal, signal])).then(() => {
      if (this.#sleep === sleep && !signal.aborted) this.#wake()
    })
  }

  #wake(): void {
    this.#sleep = null
    const nowMs = this.#deps.clock.monotonicMs()
    const due = [...this.#dueMs].filter(([, atMs]) => atMs <= nowMs).map(([id]) => id)
    for (const id of due) this.#dueMs.delete(id)
    let nextMs = Number.POSITIVE_INFINITY
    for (const atMs of this.#dueMs.values()) nextMs = Math.min(nextMs, atMs)
    if (Number.isFinite(nextMs)) this.#sleepUntil(nextMs)
    for (const id of due) this.#deps.due(id)
  }
}
