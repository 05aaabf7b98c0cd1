// A bounded map that keeps what was asked for lately. Two generations instead of an order of use: to move each entry at
// each look would cost more than the look.
export class RecentMap<V> {
  readonly #max: number
  #young = new Map<string | number, V>()
  #old = new Map<string | number, V>()

  /** Holds at most `max` entries, and the last half of that in any case. */
  constructor(max: number) {
    this.#max = max
  }

  get(key: string | number): V | undefined {
    const young = this.#young.get(key)
    if (young !== undefined) return young
    const old = this.#old.get(key)
    if (old !== undefined) this.set(key, old)
    return old
  }

  set(key: string | number, value: V): void {
    this.#young.set(key, value)
    if (this.#young.size * 2 < this.#max) return
    this.#old = this.#young
    this.#young = new Map()
  }

  get size(): number {
    return this.#young.size + this.#old.size
  }

  clear(): void {
    this.#young = new Map()
    this.#old = new Map()
  }
}
