// Services by the labels that their targets ask for: the services of a cluster with certain labels, without reading all
// others. Pure.

import type { Labels } from '../../shared/model/labels.ts'
import { type ServiceSpec, serviceSpecSchema } from '../../shared/model/resources.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import type { StoredResource } from './records.ts'
import { isTarget, type TargetTest } from './targeting.ts'

export interface IndexedService {
  id: ServiceId
  spec: ServiceSpec
}

interface Entry extends IndexedService {
  /** As it was parsed. */
  text: string
  places: readonly string[]
}

type Service = Pick<StoredResource, 'project' | 'name' | 'spec' | 'deletingMs'>

/** A place is a label (`env=prod`) or its key (`env`): a cluster without it is no target of the services there. This
 *  one is for services whose selector demands none. */
const ANYWHERE = ''
const hasValue = (key: string, value: string): string => `${key}=${value}`

export class TargetIndex {
  readonly #takes: TargetTest
  #entries = new Map<string, Entry>()
  readonly #byPlace = new Map<string, Set<Entry>>()

  constructor(takes: TargetTest = isTarget) {
    this.#takes = takes
  }

  /** All existing services. Only new or changed ones are parsed; one that is being deleted has no targets. */
  update(services: readonly Service[]): void {
    const before = this.#entries
    this.#entries = new Map()
    for (const { project, name, spec: text, deletingMs } of services) {
      if (deletingMs !== null) continue
      const key = `${project}/${name}`
      const held = before.get(key)
      if (held?.text === text) {
        this.#entries.set(key, held)
        before.delete(key)
      } else this.#entries.set(key, this.#enter({ project, service: name }, text))
    }
    for (const gone of before.values()) for (const place of gone.places) this.#leave(place, gone)
  }

  /** Services whose targets take these labels. */
  matching(labels: Labels): IndexedService[] {
    const places = [ANYWHERE, ...Object.entries(labels).flatMap(([key, value]) => [key, hasValue(key, value)])]
    const found: IndexedService[] = []
    for (const place of places)
      for (const entry of this.#byPlace.get(place) ?? []) if (this.#takes(labels, entry.spec.targets)) found.push(entry)
    return found
  }

  #enter(id: ServiceId, text: string): Entry {
    const spec = serviceSpecSchema.parse(JSON.parse(text))
    const entry = { id, spec, text, places: this.#placesOf(spec.targets.selector) }
    for (const place of entry.places) {
      const held = this.#byPlace.get(place) ?? new Set()
      this.#byPlace.set(place, held.add(entry))
    }
    return entry
  }

  #leave(place: string, entry: Entry): void {
    const held = this.#byPlace.get(place)
    held?.delete(entry)
    if (held?.size === 0) this.#byPlace.delete(place)
  }

  /** One demand of the selector, the one that fewest services share: a cluster fulfils it in at most one of its places.
   */
  #placesOf({ matchLabels = {}, matchExpressions = [] }: ServiceSpec['targets']['selector']): readonly string[] {
    const demands: string[][] = Object.entries(matchLabels).map(([key, value]) => [hasValue(key, value)])
    for (const rule of matchExpressions) {
      if (rule.operator === 'In') demands.push([...new Set(rule.values)].map((value) => hasValue(rule.key, value)))
      if (rule.operator === 'Exists') demands.push([rule.key])
    }
    const crowd = (places: readonly string[]) => places.reduce((sum, place) => sum + (this.#byPlace.get(place)?.size ?? 0), 0)
    return demands.reduce<string[] | null>((best, one) => (best === null || crowd(one) < crowd(best) ? one : best), null) ?? [ANYWHERE]
  }
}
