// Recent reads, limited by their size and not by their number: one folder may hold four thousand entries.
export class SizedCache<Value> {
  readonly #held = new Map<string, Value>()
  readonly #max: number
  readonly #sizeOf: (value: Value) => number
  #size = 0

  constructor(max: number, sizeOf: (value: Value) => number) {
    this.#max = max
    this.#sizeOf = sizeOf
  }

  get(key: string): Value | undefined {
    return this.#held.get(key)
  }

  /** Also marks it as used lately; the oldest go. What is larger than all of the cache is not kept. */
  set(key: string, value: Value): void {
    const before = this.#held.get(key)
    if (before !== undefined) this.#size -= this.#sizeOf(before)
    this.#held.delete(key)
    this.#held.set(key, value)
    this.#size += this.#sizeOf(value)
    for (const [oldest, held] of this.#held) {
      if (this.#size <= this.#max) return
      this.#held.delete(oldest)
      this.#size -= this.#sizeOf(held)
    }
  }
}
