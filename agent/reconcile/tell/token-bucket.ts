// How much of something may be done in a time: a burst, then one for each interval. It holds no timer: what has come back is counted when it is asked.
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

  /** A clock that was set back gives nothing and takes nothing. */
  take(nowMs: number): boolean {
    const grown = (nowMs - this.#atMs) / this.#everyMs
    this.#tokens = Math.min(this.#burst, this.#tokens + Math.max(0, grown))
    this.#atMs = nowMs
    if (this.#tokens < 1) return false
    this.#tokens -= 1
    return true
  }
}
