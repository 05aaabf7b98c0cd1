// How many requests may be on their way to the API server at once: as many as it takes gladly, and none before the time that it asked for. One gate for all
// services.
import type { Clock } from '../../../shared/runtime/clock.ts'

export const REQUESTS_MAX = 20
const REQUESTS_MIN = 1
/** Whoever says more than this (a proxy's "come back tomorrow") is asked again earlier. */
export const PAUSE_MAX_MS = 60_000

/** What an answer says about the server. */
export interface Load {
  overload: boolean
  /** Retry-After of a 429: nobody asks before. */
  pauseMs?: number | undefined
}
export const CALM: Load = { overload: false }

/** RC9: halved when the server is throttling or out of reach, once for all that was on its way then; one more after each full round of good answers. */
export class RequestGate {
  readonly #clock: Clock
  readonly #signal: AbortSignal
  readonly #max: number
  #limit: number
  #running = 0
  /** Requests begun, and how many of them there were at the last cut: what was on its way then says nothing about the smaller limit. */
  #begun = 0
  #begunAtCut = 0
  #pausedUntilMs = Number.NEGATIVE_INFINITY
  readonly #waiting: Array<() => void> = []

  constructor({ clock, signal, max = REQUESTS_MAX }: { clock: Clock; signal: AbortSignal; max?: number }) {
    this.#clock = clock
    this.#signal = signal
    this.#max = max
    this.#limit = max
  }

  limit(): number {
    return Math.floor(this.#limit)
  }

  /** `loadOf` looks at the answer and says whether the server had too much. */
  async run<T>(request: () => Promise<T>, loadOf: (answer: T) => Load): Promise<T> {
    if (this.#running >= this.limit() || this.#isPaused()) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#running += 1
    this.#begun += 1
    const turn = this.#begun
    try {
      const answer = await request()
      this.#learn(turn, loadOf(answer))
      return answer
    } finally {
      this.#running -= 1
      this.#admit()
    }
  }

  #learn(turn: number, { overload, pauseMs = 0 }: Load): void {
    if (!overload) this.#limit = Math.min(this.#max, this.#limit + 1 / this.#limit)
    else if (turn > this.#begunAtCut) {
      this.#limit = Math.max(REQUESTS_MIN, this.#limit / 2)
      this.#begunAtCut = this.#begun
    }
    if (pauseMs > 0) this.#pause(Math.min(pauseMs, PAUSE_MAX_MS))
  }

  #pause(forMs: number): void {
    const untilMs = this.#clock.nowMs() + forMs
    if (untilMs <= this.#pausedUntilMs && this.#isPaused()) return
    this.#pausedUntilMs = untilMs
    void this.#clock.sleep(forMs, this.#signal).then(() => {
      // The clock may have been set meanwhile: the time that was slept is what counts.
      if (this.#pausedUntilMs === untilMs) this.#pausedUntilMs = Number.NEGATIVE_INFINITY
      this.#admit()
    })
  }

  #isPaused = (): boolean => this.#pausedUntilMs !== Number.NEGATIVE_INFINITY && !this.#signal.aborted

  #admit(): void {
    while (!this.#isPaused() && this.#running < this.limit()) {
      const next = this.#waiting.shift()
      if (next === undefined) return
      this.#running += 1
      next()
    }
  }
}
