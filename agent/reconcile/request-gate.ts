// How many requests may be on their way to the API server at once: as many as it takes gladly. One gate for all services.

export const REQUESTS_MAX = 20
const REQUESTS_MIN = 1

/** RC9: halved when the server is throttling or out of reach, one more after each full round of good answers. */
export class RequestGate {
  readonly #max: number
  #limit: number
  #running = 0
  readonly #waiting: Array<() => void> = []

  constructor(max = REQUESTS_MAX) {
    this.#max = max
    this.#limit = max
  }

  limit(): number {
    return Math.floor(this.#limit)
  }

  /** `isOverload` looks at the answer and says whether the server had too much. */
  async run<T>(request: () => Promise<T>, isOverload: (answer: T) => boolean): Promise<T> {
    if (this.#running >= this.limit()) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#running += 1
    try {
      const answer = await request()
      this.#limit = isOverload(answer) ? Math.max(REQUESTS_MIN, this.#limit / 2) : Math.min(this.#max, this.#limit + 1 / this.#limit)
      return answer
    } finally {
      this.#leave()
    }
  }

  /** A finished request hands its place to the next one, unless the limit has sunk below. */
  #leave(): void {
    const next = this.#running <= this.limit() ? this.#waiting.shift() : undefined
    if (next !== undefined) next()
    else this.#running -= 1
    while (this.#running < this.limit()) {
      const further = this.#waiting.shift()
      if (further === undefined) return
      this.#running += 1
      further()
    }
  }
}
