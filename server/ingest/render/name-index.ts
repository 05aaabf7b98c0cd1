// Finds the services that name an object, when a service loses objects: so that a removal of many reads the services
// that may gain something and not all of them each time. It is built on the first request, and services that changed
// since are added with the next one: commits that move nothing cost nothing.

export interface KnownNames {
  names: ReadonlySet<string>
  /** False: there may be more, which cannot be known now. */
  isComplete: boolean
}

export class NameIndex {
  readonly #namesOf: (service: string) => KnownNames
  readonly #services = new Map<string, Set<string>>()
  readonly #names = new Map<string, ReadonlySet<string>>()
  readonly #changed = new Set<string>()

  constructor(namesOf: (service: string) => KnownNames) {
    this.#namesOf = namesOf
  }

  /** It has other names now, or none. */
  changed(service: string): void {
    this.#changed.add(service)
  }

  /** Services that have at least one of these names. */
  having(names: Iterable<string>): Set<string> {
    for (const service of this.#changed) this.#takeIn(service)
    const found = new Set<string>()
    for (const name of names) for (const service of this.#services.get(name) ?? []) found.add(service)
    return found
  }

  #takeIn(service: string): void {
    for (const name of this.#names.get(service) ?? []) {
      const having = this.#services.get(name)
      having?.delete(service)
      if (having?.size === 0) this.#services.delete(name)
    }
    this.#names.delete(service)
    const { names, isComplete } = this.#namesOf(service)
    if (isComplete) this.#changed.delete(service) // else it is asked again with the next question
    if (names.size === 0) return
    this.#names.set(service, names)
    for (const name of names) {
      const having = this.#services.get(name)
      if (having === undefined) this.#services.set(name, new Set([service]))
      else having.add(service)
    }
  }
}
