// SO52: when each repository was read last, and when it will be read next. In memory only: a read without a change
// writes nothing.
export interface RepositoryReadTimes {
  /** When the last look ended, well or not. Null means that there was none since the start. */
  lastReadMs: number | null
  /** In the past: it is being read, or waits for its turn. */
  nextReadMs: number
}

export class ReadTimes<K extends string> {
  readonly #times = new Map<K, RepositoryReadTimes>()

  of(key: K): RepositoryReadTimes | null {
    return this.#times.get(key) ?? null
  }

  ended(key: K, lastReadMs: number, nextReadMs: number): void {
    this.#times.set(key, { lastReadMs, nextReadMs: Math.ceil(nextReadMs) }) // chance makes parts of milliseconds
  }

  due(key: K, nextReadMs: number): void {
    this.#times.set(key, { lastReadMs: this.#times.get(key)?.lastReadMs ?? null, nextReadMs: Math.ceil(nextReadMs) })
  }

  delete(key: K): void {
    this.#times.delete(key)
  }
}
