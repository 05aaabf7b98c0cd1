// The amount of waiting work for the store, and the return time of refused callers (PU9). A store that is slow for a
// while (a disk that stalls, a distant database) must cost neither memory nor more time of waiting callers; later
// callers keep their rows and return at different times.
import type { Clock } from '../../../shared/runtime/clock.ts'
import type { Random } from '../../../shared/runtime/random.ts'
import { RecentMap } from '../recent-map.ts'

/** The number of rows that may wait… */
export const BACKLOG_ROWS_MAX = 100_000
/** …and none of it longer than this before newcomers are sent away. */
export const BACKLOG_AGE_MAX_MS = 2_000
/** A caller that returns at its time is refused only beyond this. */
const BACKLOG_ROWS_OF_TURNS_MAX = 2 * BACKLOG_ROWS_MAX
/** Clocks of two machines. */
const EARLY_MS = 250
const TURNS_MAX = 40_000
/** How late it may return: agents add jitter to the given time. */
const TURN_KEPT_MS = 900_000
const RETRY_MIN_MS = 1_000
const RETRY_MAX_MS = 60_000
/** A write takes so long as far as one knows before the first was done. */
const WRITE_MS = 1

interface Entry {
  rows: number
  sinceMs: number
}

export class Backlog {
  readonly #clock: Clock
  readonly #random: Random
  /** In the order in which they came. */
  readonly #entries = new Set<Entry>()
  #rows = 0
  /** Since when something waits, and what was done since. */
  #busySinceMs = 0
  #done = 0
  #writeMs = WRITE_MS
  /** The return time of each refused caller. Null means that it was here since. */
  readonly #turns = new RecentMap<number | null>(TURNS_MAX)
  /** The latest promised return time. */
  #promisedMs = 0

  constructor(clock: Clock, random: Random) {
    this.#clock = clock
    this.#random = random
  }

  /** Returns what ends its waiting. */
  enter(rows: number, who = ''): () => void {
    const nowMs = this.#clock.nowMs()
    if (this.#turns.get(who) !== undefined) this.#turns.set(who, null)
    if (this.#entries.size === 0) [this.#busySinceMs, this.#done] = [nowMs, 0]
    const entry = { rows, sinceMs: nowMs }
    this.#entries.add(entry)
    this.#rows += rows
    return () => {
      if (!this.#entries.delete(entry)) return
      this.#rows -= rows
      this.#done += 1
      this.#writeMs = Math.max(0, this.#clock.nowMs() - this.#busySinceMs) / this.#done
    }
  }

  /**
   * Null means that there is room. Otherwise the return time: behind the waiting work and all callers refused before. A
   * caller that returns by then has its turn, and one that returns earlier has none: otherwise callers that do not wait
   * would take every place of those that do.
   */
  retryAfterMs(who = ''): number | null {
    const nowMs = this.#clock.nowMs()
    const leftMs = (this.#turns.get(who) ?? Number.NEGATIVE_INFINITY) - nowMs
    if (leftMs > EARLY_MS && leftMs <= RETRY_MAX_MS) return leftMs
    const isTurn = leftMs > -TURN_KEPT_MS && leftMs <= EARLY_MS
    const [oldest] = this.#entries
    const ageMs = oldest === undefined ? 0 : nowMs - oldest.sinceMs
    if (isTurn ? this.#rows < BACKLOG_ROWS_OF_TURNS_MAX : this.#rows < BACKLOG_ROWS_MAX && ageMs < BACKLOG_AGE_MAX_MS) return null
    const firstMs = Math.min(RETRY_MAX_MS / 2, Math.max(RETRY_MIN_MS, ageMs, this.#entries.size * this.#writeMs))
    this.#promisedMs = Math.min(nowMs + RETRY_MAX_MS, Math.max(this.#promisedMs + this.#writeMs, nowMs + firstMs))
    // Somewhere between the first place and the last one.
    const retryMs = Math.round(firstMs + (this.#promisedMs - nowMs - firstMs) * this.#random())
    if (who !== '') this.#turns.set(who, nowMs + retryMs)
    return retryMs
  }
}
