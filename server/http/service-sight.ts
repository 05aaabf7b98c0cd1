// AZ11: services that exist for a caller who may read them in some clusters only: those that are placed in one of these
// clusters, or that are meant for one.
import type { ServiceId } from '../../shared/runtime/ids.ts'
import type { ClusterRecord, Page, StoredResource } from '../fleet/records.ts'
import { isLimited, type Scope, serviceInScope } from '../fleet/rights.ts'
import { isTarget, withDestinations } from '../fleet/targeting.ts'
import { parseServiceSpec } from '../ingest/known-specs.ts'
import { readProject } from '../ingest/projects.ts'
import type { Store } from '../store/store.ts'

export interface ServiceSight {
  /** `held`: the service, where it was read already. A service that does not exist is not shown. */
  shows(id: ServiceId, held?: Pick<StoredResource, 'spec'>): Promise<boolean>
}

export type SightStore = Pick<Store, 'listClusters' | 'getResource' | 'desiredOf'>

/** For one answer: clusters and Projects are read once, and only for a scope that is limited to clusters. */
export function createServiceSight(store: SightStore, scope: Scope): ServiceSight {
  let clusters: Promise<ClusterRecord[]> | null = null
  const projects = new Map<string, ReturnType<typeof readProject>>()
  const projectOf = (name: string) => {
    const read = projects.get(name) ?? readProject(store, name)
    projects.set(name, read)
    return read
  }
  return {
    async shows(id, held) {
      if (!isLimited(scope, id)) return true
      const resource = held ?? (await store.getResource({ kind: 'Service', project: id.project, name: id.service }))
      if (resource === null) return false
      clusters ??= store.listClusters()
      const seen = (await clusters).filter(({ labels }) => serviceInScope(scope, id, labels))
      if (seen.length === 0) return false
      const targets = withDestinations(parseServiceSpec(resource.spec).targets, await projectOf(id.project))
      if (seen.some(({ labels }) => isTarget(labels, targets))) return true
      const rows = await store.desiredOf(
        id,
        seen.map(({ clusterId }) => clusterId),
      )
      return rows.some(({ doc }) => doc !== null)
    },
  }
}

type ServicePage = (after: string | undefined, limit: number) => Promise<Page<StoredResource>>

/** A page of services that the caller may read. `read`: a page of those that are in the projects of the scope. */
export async function seenServices(
  store: SightStore,
  scope: Scope,
  { after, limit, read }: { after: string | undefined; limit: number; read: ServicePage },
): Promise<Page<StoredResource>> {
  if (scope.every(({ clusters }) => clusters === null)) return read(after, limit)
  const sight = createServiceSight(store, scope)
  const items: StoredResource[] = []
  for (let from = after; ; ) {
    const page = await read(from, limit)
    for (const item of page.items) {
      if (!(await sight.shows({ project: item.project, service: item.name }, item))) continue
      const last = items.at(-1)
      if (items.length === limit && last !== undefined) return { items, next: `${last.project}/${last.name}` }
      items.push(item)
    }
    if (page.next === null) return { items, next: null }
    from = page.next
  }
}
