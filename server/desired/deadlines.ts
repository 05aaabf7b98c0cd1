// Many deadlines on one timer: ten thousand polls wait at once, and a timer of its own would be most of what each of
// them costs.
import type { Clock } from '../../shared/runtime/clock.ts'

export abstract class Deadline {
  /** The time of its entry in the queue, set by the queue. */
  atMs = 0
  /** Place in the heap; -1: none. */
  place = -1
  abstract due(): void
}

/** One sleep is never longer, so that a clock that was set is noticed. */
const SLEEP_MS_MAX = 3_600_000

export class Deadlines {
  readonly #clock: Clock
  /** A binary heap: each is due no later than the two after it. */
  readonly #heap: Deadline[] = []
  #sleeping: { untilMs: number; stop: AbortController } | null = null
  #wallMs: number
  #addedMs = 0

  constructor(clock: Clock) {
    this.#clock = clock
    this.#wallMs = clock.nowMs()
  }

  get size(): number {
    return this.#heap.length
  }

  add(deadline: Deadline, afterMs: number): void {
    deadline.atMs = this.#nowMs() + Math.max(0, afterMs)
    this.#heap.push(deadline)
    this.#rise(deadline, this.#heap.length - 1)
    this.#arm()
  }

  cancel(deadline: Deadline): void {
    const { place } = deadline
    if (place < 0) return
    deadline.place = -1
    const last = this.#heap.pop()
    if (last !== undefined && last !== deadline) {
      this.#rise(last, place)
      this.#sink(last, last.place)
    }
    if (this.#heap.length === 0) this.close()
  }

  /** Nothing is due any more. */
  close(): void {
    for (const deadline of this.#heap.splice(0)) deadline.place = -1
    this.#sleeping?.stop.abort()
    this.#sleeping = null
  }

  /** Never goes back, whatever the wall clock does. */
  #nowMs(): number {
    const wallMs = this.#clock.nowMs()
    if (wallMs < this.#wallMs) this.#addedMs += this.#wallMs - wallMs
    this.#wallMs = wallMs
    return wallMs + this.#addedMs
  }

  #arm(): void {
    const first = this.#heap[0]
    if (first === undefined || (this.#sleeping !== null && this.#sleeping.untilMs <= first.atMs)) return
    this.#sleeping?.stop.abort()
    const nowMs = this.#nowMs()
    const sleepMs = Math.min(Math.max(0, first.atMs - nowMs), SLEEP_MS_MAX)
    const mine = { untilMs: nowMs + sleepMs, stop: new AbortController() }
    this.#sleeping = mine
    void this.#clock.sleep(sleepMs, mine.stop.signal).then(() => {
      if (this.#sleeping !== mine) return
      this.#sleeping = null
      const woken = this.#nowMs()
      if (woken < mine.untilMs) this.#addedMs += mine.untilMs - woken // it was slept, whatever the wall clock says
      this.#fire(Math.max(woken, mine.untilMs))
    })
  }

  #fire(nowMs: number): void {
    for (let first = this.#heap[0]; first !== undefined && first.atMs <= nowMs; first = this.#heap[0]) {
      this.cancel(first)
      first.due()
    }
    this.#arm()
  }

  #put(deadline: Deadline, place: number): void {
    this.#heap[place] = deadline
    deadline.place = place
  }

  #rise(deadline: Deadline, from: number): void {
    let place = from
    while (place > 0) {
      const above = (place - 1) >> 1
      const parent = this.#heap[above]
      if (parent === undefined || parent.atMs <= deadline.atMs) break
      this.#put(parent, place)
      place = above
    }
    this.#put(deadline, place)
  }

  #sink(deadline: Deadline, from: number): void {
    let place = from
    for (;;) {
      const [left, right] = [this.#heap[2 * place + 1], this.#heap[2 * place + 2]]
      const sooner = right !== undefined && left !== undefined && right.atMs < left.atMs ? right : left
      if (sooner === undefined || sooner.atMs >= deadline.atMs) break
      const below = sooner.place
      this.#put(sooner, place)
      place = below
    }
    this.#put(deadline, place)
  }
}
