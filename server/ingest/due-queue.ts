// When what is due: one time for each key, and a bell for what cannot wait. Holds no timer while nothing is due.
import type { Clock } from '../../shared/runtime/clock.ts'

export class DueQueue<K extends string> {
  private readonly dueMs = new Map<K, number>()
  private readonly clock: Clock
  private bell = new AbortController()
  private lastMs: number

  constructor(clock: Clock) {
    this.clock = clock
    this.lastMs = clock.nowMs()
  }

  /** An earlier time for the key stays. Returns the one that counts. */
  soonest(key: K, atMs: number): number {
    this.readClock()
    const held = this.dueMs.get(key)
    if (held !== undefined && held <= atMs) return held
    this.dueMs.set(key, atMs)
    this.bell.abort()
    return atMs
  }

  set(key: K, atMs: number): void {
    this.readClock()
    this.dueMs.set(key, atMs)
    this.bell.abort()
  }

  drop(key: K): void {
    this.dueMs.delete(key)
  }

  /** Takes what is due out of the queue. */
  takeDue(): K[] {
    const nowMs = this.readClock()
    const due = [...this.dueMs].filter(([, atMs]) => atMs <= nowMs).map(([key]) => key)
    for (const key of due) this.dueMs.delete(key)
    return due
  }

  /** Resolves when something is due, something new was entered, or on abort. */
  async wait(signal: AbortSignal): Promise<void> {
    this.bell = new AbortController()
    this.readClock()
    const next = Math.min(...this.dueMs.values())
    const waitMs = Number.isFinite(next) ? next - this.lastMs : LONGEST_WAIT_MS
    if (waitMs > 0) await this.clock.sleep(Math.min(waitMs, LONGEST_WAIT_MS), AbortSignal.any([signal, this.bell.signal]))
  }

  /**
   * The present time. If the clock was set back, all entries are set back with it: otherwise nothing would be due for
   * as long.
   */
  private readClock(): number {
    const nowMs = this.clock.nowMs()
    if (nowMs < this.lastMs) for (const [key, atMs] of this.dueMs) this.dueMs.set(key, atMs - (this.lastMs - nowMs))
    this.lastMs = nowMs
    return nowMs
  }
}

const LONGEST_WAIT_MS = 60 * 60 * 1000
