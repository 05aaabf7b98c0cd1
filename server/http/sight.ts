// The part that a caller sees of things that belong to services and clusters: events, confirmations, suspensions, changes. AZ4: what it may not read is not named.
import type { AccessKind } from '../../shared/model/access.ts'
import type { ClusterId, ServiceId } from '../../shared/model/ids.ts'
import type { SuspendedScope } from '../../shared/model/suspension.ts'
import type { Authorizer } from '../access/authorizer.ts'
import type { Principal } from '../access/principal.ts'
import type { Confirmation } from '../fleet/records.ts'
import { clusterInScope, isEverywhere, projectInScope, type Scope, serviceInScope, withoutClusters } from '../fleet/rights.ts'
import type { Change } from '../store/feed/change-feed.ts'
import type { Store } from '../store/store.ts'

type Clusters = Pick<Store, 'findClusters'>

/** Whether the caller may see a confirmation, or confirm it: of one cluster, by the labels of that. */
export async function confirmationInScope(scope: Scope, { project, service, cluster }: Confirmation, store: Clusters): Promise<boolean> {
  const id = { project, service }
  if (serviceInScope(withoutClusters(scope), id)) return true
  if (cluster === null || !serviceInScope(scope, id)) return false
  const [found] = await store.findClusters({ names: [cluster] })
  return found !== undefined && serviceInScope(scope, id, found.labels)
}

/** AZ4: the clusters, by id and name, in which the caller may see the service. */
export async function clustersWithService(
  scope: Scope,
  id: ServiceId,
  store: Pick<Store, 'listClusters'>,
): Promise<Map<ClusterId, string>> {
  const shown = (await store.listClusters()).filter(({ labels }) => serviceInScope(scope, id, labels))
  return new Map(shown.map(({ clusterId, name }) => [clusterId, name]))
}

/** Suspensions of services that the caller may read, of clusters that it may read, and of the whole fleet, which concern everybody. */
export async function seenSuspensions<T extends SuspendedScope>(
  all: readonly T[],
  { services, clusters }: { services: Scope; clusters: Scope },
  store: Clusters,
): Promise<T[]> {
  if (isEverywhere(services) && isEverywhere(clusters)) return [...all]
  const names = [...new Set(all.flatMap(({ cluster }) => cluster ?? []))]
  const found = names.length === 0 ? [] : await store.findClusters({ names })
  const labelsOf = new Map(found.map(({ name, labels }) => [name, labels]))
  return all.filter(({ service, cluster }) => {
    const labels = cluster === null ? undefined : (labelsOf.get(cluster) ?? {})
    if (service !== null) return serviceInScope(labels === undefined ? withoutClusters(services) : services, service, labels)
    return labels === undefined || clusterInScope(clusters, labels)
  })
}

/** The visible part of a change, or null. Evaluated for each batch, so that a stream follows changed bindings. */
export function changeSight(authorizer: Authorizer, principal: Principal): (change: Change) => Change | null {
  const scopeOf = (kind: Parameters<Authorizer['scope']>[2]) => authorizer.scope(principal, 'read', kind)
  const services = scopeOf('Service')
  const clusters = scopeOf('Cluster')
  const mayTokens = authorizer.allows(principal, { verb: 'token:read', kind: 'ApiToken' })
  const mayJoinTokens = authorizer.allows(principal, { verb: 'read', kind: 'JoinToken' })
  const isService = (project: string | null, name: string | null) =>
    project !== null && name !== null && serviceInScope(services, { project, service: name })
  return (change) => {
    const { topic, project, name, cluster } = change
    switch (topic) {
      case 'token':
        return (name?.startsWith('ApiToken/') === true ? mayTokens : mayJoinTokens) ? change : null
      case 'resource':
        return seenResource(change)
      case 'repository':
        return project !== null && projectInScope(scopeOf('Repository'), project) ? change : null
      case 'render':
      case 'desired':
      case 'confirmation':
        return isService(project, name) ? change : null
      case 'status':
        return isEverywhere(services) ? change : statusKeys(change)
      case 'event':
        // It says that there is one; the events that may be read are listed.
        return isEverywhere(services) ? change : { ...change, cluster: null, keys: null }
      case 'cluster':
        return isEverywhere(clusters) ? change : null
      case 'restore':
      case 'notification':
        return isEverywhere(services) ? change : null
      default:
        return isEverywhere(services) && (cluster === null || isEverywhere(clusters)) ? change : null
    }
  }

  function seenResource(change: Change): Change | null {
    const [kind = '', ...rest] = (change.name ?? '').split('/')
    const project = change.project ?? ''
    switch (kind) {
      case 'Service':
        return isService(project, rest.join('/')) ? change : null
      case 'Cluster':
        return isEverywhere(clusters) ? change : null
      case 'Suspension':
        return isEverywhere(services) ? change : { ...change, name: 'Suspension/*', project: null }
      case 'Project':
        return projectInScope(scopeOf('Project'), rest.join('/')) ? change : null
      case 'Repository':
      case 'Config':
      case 'HealthRule':
      case 'NotificationSink':
      case 'NotificationRoute':
      case 'RoleBinding':
        return project === '' ? wholeOf(change, kind) : projectInScope(scopeOf(kind), project) ? change : null
      case 'Role':
        return wholeOf(change, kind)
      default:
        return isEverywhere(services) ? change : null
    }
  }
  function wholeOf(change: Change, kind: AccessKind): Change | null {
    return isEverywhere(scopeOf(kind)) ? change : null
  }
  /** `kind/project/service…`. Without keys too much changed to name it: that it did is all that is said. */
  function statusKeys(change: Change): Change | null {
    if (services.length === 0) return null
    if (change.keys === null) return change
    const keys = change.keys.filter((key) => {
      const [, project = '', service = ''] = key.split('/')
      return serviceInScope(services, { project, service })
    })
    return keys.length === 0 ? null : { ...change, keys }
  }
}
