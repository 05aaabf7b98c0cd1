// Specs of services as they were parsed last: a commit asks for those of all services, of which hardly one has changed.

import { type ServiceSpec, serviceSpecSchema } from '../../shared/model/resources.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import type { StoredResource } from '../fleet/records.ts'
import { RecentMap } from '../store/recent-map.ts'

export interface KnownService {
  id: ServiceId
  /** The same object for as long as its text is the same. */
  spec: ServiceSpec
}

const PARSED_MAX = 4_000
const parsed = new RecentMap<ServiceSpec>(PARSED_MAX)

/** From its stored text. The same object for the same text, as long as it was requested lately; it is never changed. */
export function parseServiceSpec(text: string): ServiceSpec {
  const spec = parsed.get(text) ?? serviceSpecSchema.parse(JSON.parse(text))
  parsed.set(text, spec)
  return spec
}

export class KnownSpecs {
  private readonly projects = new Map<string, Map<string, KnownService & { text: string }>>()

  /** All services that a project has now; of others nothing is kept. */
  of(project: string, services: readonly Pick<StoredResource, 'name' | 'spec'>[]): KnownService[] {
    const before = this.projects.get(project)
    const known = services.map(({ name, spec: text }) => {
      const held = before?.get(name)
      return held?.text === text ? held : { id: { project, service: name }, text, spec: parseServiceSpec(text) }
    })
    if (known.length === 0) this.projects.delete(project)
    else this.projects.set(project, new Map(known.map((one) => [one.id.service, one])))
    return known
  }
}
