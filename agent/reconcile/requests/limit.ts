// How many requests may be on their way at once: additive increase, multiplicative decrease. One for the API server,
// and one for each cause that makes requests fail.

/** RC9: halved by an overload, once for all that was on its way together; one more after each full round of good
 *  answers. */
export class Limit {
  readonly #max: number
  #value: number
  /** The last request that had begun at the last cut: requests of that time prove nothing about the smaller limit. */
  #begunAtCut = 0

  constructor(max: number) {
    this.#max = max
    this.#value = max
  }

  /** At least one: without an answer nothing would ever grow. */
  value(): number {
    return Math.floor(this.#value)
  }

  isWhole(): boolean {
    return this.#value >= this.#max
  }

  grow(): void {
    this.#value = Math.min(this.#max, this.#value + 1 / this.#value)
  }

  /** Requests are numbered from 1 in the order in which they begin. `begun`: the last one by now. */
  cut(request: number, begun: number): void {
    if (request <= this.#begunAtCut) return
    this.#value = Math.max(1, this.#value / 2)
    this.#begunAtCut = begun
  }
}
