// Unrecorded objects: live objects that carry the mark of a service and are in no inventory, because the disk was lost
// or a crash came between an apply and its record. One search finds those of all services; it runs again only when
// there may be new ones.
import { serviceKey } from '../../../../shared/runtime/ids.ts'
import { isOfThisCluster, type LiveObject, type Registrations } from './live-object.ts'
import type { Owners } from './object-index.ts'

interface Unrecorded {
  key: string
  apiVersion: string
  live: LiveObject
}
const NONE: readonly Unrecorded[] = []

export interface UnrecordedObjectsDeps extends Registrations {
  owners: Owners
  all(): Iterable<Unrecorded>
}

export class UnrecordedObjects {
  readonly #deps: UnrecordedObjectsDeps
  #found: Map<string, Unrecorded[]> | null = null
  #left = 0

  constructor(deps: UnrecordedObjectsDeps) {
    this.#deps = deps
  }

  /** A list of a kind is complete, or an object without an owner appeared. */
  maybeNew(): void {
    this.#found = null
  }

  /** IV3: those of one service, including those that entered its inventory since the search. */
  of(service: string): readonly Unrecorded[] {
    return this.#all().get(service) ?? NONE
  }

  services(): Iterable<string> {
    return this.#all().keys()
  }

  #all(): ReadonlyMap<string, readonly Unrecorded[]> {
    const { owners, all } = this.#deps
    if (this.#found !== null && this.#left === owners.left) return this.#found
    const found = new Map<string, Unrecorded[]>()
    for (const object of all()) {
      const { owner } = object.live
      if (!isOfThisCluster(owner, this.#deps) || owners.has(object.key)) continue
      const key = serviceKey(owner)
      const list = found.get(key)
      if (list === undefined) found.set(key, [object])
      else list.push(object)
    }
    this.#found = found
    this.#left = owners.left
    return found
  }
}
