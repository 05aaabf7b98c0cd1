// The newest changes in memory, read once for all watchers. A wake-up is a hint: it reports a commit, whose content is
// in the store. Without watchers nothing is read.
import type { Clock } from '../../../shared/runtime/clock.ts'
import type { Change, FeedChanges, FeedGone } from './change-feed.ts'

/** Changes in memory, at most; older ones are read from the store… */
export const TAIL_CHANGES_MAX = 4_096
/** …and about so many bytes of them. */
const TAIL_BYTES_MAX = 4 * 1_024 * 1_024
/** Without the keys. */
const CHANGE_BYTES = 200
/** Read at once. */
export const READ_MAX = 500
/** How often it is asked whose wait is over. */
const TICK_MS = 1_000
/** It looks by itself: a lost wake-up costs this much time and no change. */
export const LOOK_MS = 30_000

/** Up to this many watchers are notified of each commit separately. */
const FEW = 100
/** Before it looks again, for each one more: what comes meanwhile reaches them together, so that a thousand of them at
 *  a thousand commits a second cost what they cost at twenty. */
const PAUSE_MS_EACH = 0.05

interface Waiter {
  dueMs: number
  wake(): void
}

export interface TailDeps {
  read(after: number, limit: number): Promise<FeedChanges | FeedGone>
  position(): Promise<number>
  clock: Clock
}

export class ChangeTail {
  readonly #deps: TailDeps
  readonly #closing: AbortController
  readonly #waiters = new Set<Waiter>()
  /** Without gaps: the first is `#base` + 1. */
  #changes: Change[] = []
  #bytes = 0
  #base = 0
  #followers = 0
  /** Null if there are no watchers, or nothing was read yet. */
  #last: number | null = null
  #reading = false
  #woken = false
  /** It looks again no sooner. */
  #dueMs = 0
  #pausing = false
  #ticking = false

  constructor(deps: TailDeps, closing: AbortController) {
    this.#deps = deps
    this.#closing = closing
    closing.signal.addEventListener('abort', () => this.#wakeAll(), { once: true })
  }

  /** Returns what ends it. */
  enter(): () => void {
    this.#followers += 1
    this.wake()
    let inside = true
    return () => {
      if (!inside) return
      inside = false
      this.#followers -= 1
      if (this.#followers === 0) this.#forget()
    }
  }

  get followers(): number {
    return this.#followers
  }

  /** Something was committed, perhaps. */
  wake(): void {
    if (this.#followers === 0 || this.#closing.signal.aborted) return
    this.#woken = true
    if (this.#reading) return
    // By the clock and not by a timer alone: while many commits follow each other, timers are late.
    const pauseMs = this.#dueMs - this.#deps.clock.nowMs()
    if (pauseMs <= 0 || pauseMs > TICK_MS) void this.#read()
    else if (!this.#pausing) void this.#pause(pauseMs)
  }

  /**
   * The changes after that number, if they are in memory: null if the number is older than those, or newer. Empty if
   * nothing came after it yet.
   */
  after(position: number): readonly Change[] | null {
    if (this.#last === null || position < this.#base || position > this.#last) return null
    const start = position - this.#base
    return this.#changes.slice(start, start + READ_MAX)
  }

  /** Until something comes after that number, `dueMs`, or the signal aborts. May be early. */
  async wait(position: number, dueMs: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#closing.signal.aborted || (this.#last ?? position) > position) return
    void this.#tick()
    await new Promise<void>((resolve) => {
      const waiter: Waiter = {
        dueMs,
        wake: () => {
          this.#waiters.delete(waiter)
          signal.removeEventListener('abort', waiter.wake)
          resolve()
        },
      }
      this.#waiters.add(waiter)
      signal.addEventListener('abort', waiter.wake, { once: true })
    })
  }

  async #read(): Promise<void> {
    this.#reading = true
    this.#woken = false
    let pauseMs = Math.min(TICK_MS, Math.floor(Math.max(0, this.#followers - FEW) * PAUSE_MS_EACH))
    try {
      await this.#readNews()
    } catch {
      // The store cannot be read at present: a watcher that reads it itself gets the reason.
      this.#woken = true
      pauseMs = TICK_MS
    }
    this.#dueMs = this.#deps.clock.nowMs() + pauseMs
    this.#reading = false
    if (this.#woken) this.wake()
  }

  async #pause(ms: number): Promise<void> {
    this.#pausing = true
    await this.#deps.clock.sleep(ms, this.#closing.signal)
    this.#pausing = false
    if (this.#woken) this.wake()
  }

  async #readNews(): Promise<void> {
    if (this.#last === null) {
      this.#last = this.#base = await this.#deps.position()
      this.#wakeAll()
    }
    for (;;) {
      const read = await this.#deps.read(this.#last, READ_MAX)
      if (this.#followers === 0) return this.#forget()
      if (read.kind === 'gone') {
        this.#forget()
        this.#last = this.#base = read.newest
        return this.#wakeAll()
      }
      if (read.items.length > 0) this.#append(read.items)
      this.#last = read.next
      if (read.items.length > 0) this.#wakeAll()
      if (read.items.length < READ_MAX) return
    }
  }

  #append(items: readonly Change[]): void {
    this.#changes.push(...items)
    for (const change of items) this.#bytes += bytesOf(change)
    // Half of it goes at once, so that it is moved seldom.
    if (this.#changes.length <= TAIL_CHANGES_MAX && this.#bytes <= TAIL_BYTES_MAX) return
    let dropped = 0
    while (this.#changes.length - dropped > TAIL_CHANGES_MAX / 2 || this.#bytes > TAIL_BYTES_MAX / 2) {
      const change = this.#changes[dropped]
      if (change === undefined) break
      this.#bytes -= bytesOf(change)
      dropped += 1
    }
    this.#changes = this.#changes.slice(dropped)
    this.#base += dropped
  }

  #forget(): void {
    this.#changes = []
    this.#bytes = 0
    this.#base = this.#last ?? this.#base // a read that is under way goes on there
    this.#last = null
  }

  #wakeAll(): void {
    for (const waiter of [...this.#waiters]) waiter.wake()
  }

  /** One timer for all waiting watchers. */
  async #tick(): Promise<void> {
    if (this.#ticking) return
    this.#ticking = true
    const { clock } = this.#deps
    let lookMs = clock.nowMs() + LOOK_MS
    while (this.#followers > 0 && !this.#closing.signal.aborted) {
      await clock.sleep(TICK_MS, this.#closing.signal)
      const nowMs = clock.nowMs()
      for (const waiter of [...this.#waiters]) if (waiter.dueMs <= nowMs) waiter.wake()
      if (nowMs < lookMs) continue
      lookMs = nowMs + LOOK_MS
      this.wake()
    }
    this.#ticking = false
  }
}

function bytesOf({ keys }: Change): number {
  return (keys ?? []).reduce((sum, key) => sum + key.length, CHANGE_BYTES)
}
