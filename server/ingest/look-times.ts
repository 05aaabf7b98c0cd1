// SO52: when each repository was read last, and when it will be read next. In memory only: a read without a change
// writes nothing.
export interface RepositoryLook {
  /** When the last look ended, well or not. Null: there was none since the start. */
  lookedAtMs: number | null
  /** In the past: it is being read, or waits for its turn. */
  nextLookAtMs: number
}

export class LookTimes<K extends string> {
  readonly #looks = new Map<K, RepositoryLook>()

  of(key: K): RepositoryLook | null {
    return this.#looks.get(key) ?? null
  }

  ended(key: K, lookedAtMs: number, nextLookAtMs: number): void {
    this.#looks.set(key, { lookedAtMs, nextLookAtMs: Math.ceil(nextLookAtMs) }) // chance makes parts of milliseconds
  }

  due(key: K, nextLookAtMs: number): void {
    this.#looks.set(key, { lookedAtMs: this.#looks.get(key)?.lookedAtMs ?? null, nextLookAtMs: Math.ceil(nextLookAtMs) })
  }

  delete(key: K): void {
    this.#looks.delete(key)
  }
}
