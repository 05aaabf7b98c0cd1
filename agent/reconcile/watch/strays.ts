// Live objects that carry the mark of a service and are in no inventory: it was lost with the disk, or a crash came between an apply and its record. Looked for once
// for all services, when there may be new ones.
import { type ServiceId, serviceKey } from '../../../shared/model/ids.ts'
import type { LiveObject } from './live-object.ts'

interface Stray {
  key: string
  apiVersion: string
  live: LiveObject
}
const NONE: readonly Stray[] = []

/** Who owns what, by refKey; says when something became nobody's. */
export class Owners extends Map<string, ServiceId> {
  /** Grows with each that leaves. */
  left = 0

  override delete(key: string): boolean {
    this.left += 1
    return super.delete(key)
  }
}

export interface StraysDeps {
  owners: Owners
  clusterId: string
  all(): Iterable<Stray>
}

export class Strays {
  readonly #deps: StraysDeps
  #found: Map<string, Stray[]> | null = null
  #left = 0

  constructor(deps: StraysDeps) {
    this.#deps = deps
  }

  /** The picture of a kind became whole, or an object of nobody's came. */
  maybeNew(): void {
    this.#found = null
  }

  /** IV3: of one service; those that were taken in since are among them. */
  of(service: string): readonly Stray[] {
    return this.#all().get(service) ?? NONE
  }

  services(): Iterable<string> {
    return this.#all().keys()
  }

  #all(): ReadonlyMap<string, readonly Stray[]> {
    const { owners, clusterId, all } = this.#deps
    if (this.#found !== null && this.#left === owners.left) return this.#found
    const found = new Map<string, Stray[]>()
    for (const stray of all()) {
      const { owner } = stray.live
      if (owner.kind !== 'service' || owner.clusterId !== clusterId || owners.has(stray.key)) continue
      const key = serviceKey(owner)
      const list = found.get(key)
      if (list === undefined) found.set(key, [stray])
      else list.push(stray)
    }
    this.#found = found
    this.#left = owners.left
    return found
  }
}
