// The dependencies between services of this cluster, and which service waits for which now: they decide which services
// a change wakes. A change of a service without dependents costs no search.

/** `ready`: for it to be Healthy at its revision. `gone`: for its removal. */
export type WaitKind = 'ready' | 'gone'

interface Wait {
  kind: WaitKind
  on: ReadonlySet<string>
}

const NONE: readonly string[] = []

export class Dependents {
  readonly #dependencies = new Map<string, readonly string[]>()
  readonly #dependents = new Map<string, Set<string>>()
  readonly #waits = new Map<string, Wait>()
  /** The last reported state of each service with dependents. */
  readonly #told = new Map<string, string>()

  /**
   * Sets the dependencies of `key`. Returns the services that waited for its removal and no longer relate to it;
   * nothing else would wake them.
   */
  set(key: string, dependencies: readonly string[]): string[] {
    this.#waits.delete(key) // it looks again
    const free: string[] = []
    for (const dependency of this.dependenciesOf(key)) {
      const wait = this.#waits.get(dependency)
      if (wait?.kind === 'gone' && wait.on.has(key) && !dependencies.includes(dependency)) free.push(dependency)
      const dependents = this.#dependents.get(dependency)
      dependents?.delete(key)
      if (dependents?.size !== 0) continue
      this.#dependents.delete(dependency)
      this.#told.delete(dependency)
    }
    if (dependencies.length === 0) this.#dependencies.delete(key)
    else this.#dependencies.set(key, dependencies)
    for (const dependency of dependencies) {
      const dependents = this.#dependents.get(dependency)
      if (dependents === undefined) this.#dependents.set(dependency, new Set([key]))
      else dependents.add(key)
    }
    return free
  }

  readonly dependenciesOf = (key: string): readonly string[] => this.#dependencies.get(key) ?? NONE

  dependentsOf(key: string): string[] {
    return [...(this.#dependents.get(key) ?? NONE)]
  }

  /** It depends on none, and none on it. */
  isAlone(key: string): boolean {
    return !this.#dependents.has(key) && !this.#dependencies.has(key)
  }

  waits(key: string, kind: WaitKind, on: readonly string[]): void {
    this.#waits.set(key, { kind, on: new Set(on) })
  }

  waitsNoMore(key: string): void {
    this.#waits.delete(key)
  }

  /** The services to reconcile now that `key` is in this state. */
  toWake(key: string, { ready, leaving, text }: { ready: boolean; leaving: boolean; text: string }): string[] {
    const wake: string[] = []
    const isWaiting = (other: string, kind: WaitKind): boolean => {
      const wait = this.#waits.get(other)
      return wait?.kind === kind && wait.on.has(key)
    }
    const dependents = this.#dependents.get(key)
    if (dependents !== undefined) {
      const changed = this.#told.get(key) !== text
      if (changed) this.#told.set(key, text)
      if (ready || changed) for (const other of dependents) if (isWaiting(other, 'ready')) wake.push(other)
    }
    if (!leaving) for (const other of this.dependenciesOf(key)) if (isWaiting(other, 'gone')) wake.push(other)
    return wake
  }
}
