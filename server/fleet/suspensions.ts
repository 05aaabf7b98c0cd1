// Suspensions as they are stored and shown: resources that no file names, so that applying a service again lifts none.
// Pure.
import { FLEET } from '../../shared/model/resources.ts'
import { type SuspendedScope, type Suspension, type SuspensionView, suspensionSchema } from '../../shared/model/suspension.ts'
import type { ResourceKey, StoredResource } from './records.ts'

export interface OrderedSuspension extends SuspendedScope, Suspension {}

/** `web`, `web@ship-7`, `@ship-7`, `@`: names of services and clusters hold no `@`. */
export const suspensionKey = ({ service, cluster }: SuspendedScope): ResourceKey => ({
  kind: 'Suspension',
  project: service?.project ?? FLEET,
  name: `${service?.service ?? ''}${service === null || cluster !== null ? '@' : ''}${cluster ?? ''}`,
})

export function readSuspension({ project, name, spec }: Pick<StoredResource, 'project' | 'name' | 'spec'>): OrderedSuspension {
  const [service = '', cluster = ''] = name.split('@')
  return {
    ...suspensionSchema.parse(JSON.parse(spec)),
    service: service === '' ? null : { project, service },
    cluster: cluster === '' ? null : cluster,
  }
}

export const suspensionView = ({ service, cluster, by, why, sinceMs }: OrderedSuspension): SuspensionView => ({
  ...{ project: service?.project ?? null, service: service?.service ?? null, cluster },
  ...{ by, reason: why, sinceMs },
})

/** One that concerns a part of the other one, or all of it. */
export const overlaps = (a: SuspendedScope, b: SuspendedScope): boolean =>
  (a.cluster === null || b.cluster === null || a.cluster === b.cluster) &&
  (a.service === null || b.service === null || (a.service.project === b.service.project && a.service.service === b.service.service))
