// The part that a caller sees of things that belong to services and clusters: events, confirmations, suspensions,
// changes. AZ4: what it may not read is not named.
import { ACCESS_KINDS, type AccessKind } from '../../shared/model/access-words.ts'
import { ANY_SERVICE } from '../../shared/model/change.ts'
import { type Labels, matchesSelector } from '../../shared/model/labels.ts'
import type { ServiceSpec } from '../../shared/model/resources.ts'
import type { SuspendedScope } from '../../shared/model/suspension.ts'
import { type ClusterId, type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import type { Authorizer } from '../access/authorizer.ts'
import type { Principal } from '../access/principal.ts'
import type { ClusterRecord, Confirmation } from '../fleet/records.ts'
import { clusterInScope, isEverywhere, isLimited, projectInScope, type Scope, serviceInScope, withoutClusters } from '../fleet/rights.ts'
import { isTarget, withDestinations } from '../fleet/targeting.ts'
import { readProject } from '../ingest/projects.ts'
import { unknownCluster } from '../ingest/render/render-now.ts'
import { noteDenial } from '../store/audit/caller.ts'
import type { Change } from '../store/feed/change-feed.ts'
import type { Store } from '../store/store.ts'
import { hidden, objectNotFound } from './auth.ts'
import type { AdminDeps } from './deps.ts'
import { createServiceSight, type SightStore } from './service-sight.ts'

type Clusters = Pick<Store, 'findClusters'>

/** Whether the caller may see a confirmation, or confirm it: of one cluster, by the labels of that. */
export async function confirmationInScope(scope: Scope, { project, service, cluster }: Confirmation, store: Clusters): Promise<boolean> {
  const id = { project, service }
  if (serviceInScope(withoutClusters(scope), id)) return true
  if (cluster === null || !serviceInScope(scope, id)) return false
  const [found] = await store.findClusters({ names: [cluster] })
  return found !== undefined && serviceInScope(scope, id, found.labels)
}

/** Places that are limited to clusters, with the names of these. */
export async function placesInClusters(
  scope: Scope,
  store: Pick<Store, 'listClusters'>,
): Promise<Array<{ place: Scope[number]; clusters: string[] }>> {
  const limited = scope.filter(({ clusters }) => clusters !== null)
  const all = limited.length === 0 ? [] : await store.listClusters()
  return limited.map((place) => ({
    place,
    clusters: all.flatMap(({ name, labels }) => (place.clusters !== null && matchesSelector(labels, place.clusters) ? [name] : [])),
  }))
}

const CONFIRMATIONS_A_TIME = 200

/** Open ones, oldest first. Those of single clusters are looked through where the caller may read in some clusters
 *  only. */
export async function seenConfirmations(
  store: Clusters & Pick<Store, 'listConfirmations'>,
  scope: Scope,
  { limit, after, refused = false }: { limit: number; after: Pick<Confirmation, 'id' | 'createdMs'> | undefined; refused?: boolean },
): Promise<Confirmation[]> {
  const from = (last: typeof after) => ({ refused, ...(last === undefined ? {} : { after: last }) })
  if (scope.every(({ clusters }) => clusters === null)) return store.listConfirmations({ limit, scope, ...from(after) })
  const wider = scope.map((place) => ({ ...place, clusters: null }))
  const found: Confirmation[] = []
  for (let last = after; ; ) {
    const items = await store.listConfirmations({ limit: CONFIRMATIONS_A_TIME, scope: wider, ...from(last) })
    for (const item of items) {
      if (await confirmationInScope(scope, item, store)) found.push(item)
      if (found.length === limit) return found
    }
    last = items.at(-1)
    if (items.length < CONFIRMATIONS_A_TIME) return found
  }
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

/**
 * AZ3: throws unless the caller may read the cluster, or the service is placed in it by `spec`. A render shows labels
 * and facts of its cluster.
 */
export async function requireCluster(
  { store, authorizer }: Pick<AdminDeps, 'store' | 'authorizer'>,
  by: Principal,
  { name, project, spec }: { name: string; project: string; spec: ServiceSpec | null },
): Promise<void> {
  const cluster = await store.clusterByName(name)
  if (cluster === null) throw unknownCluster(name)
  if (authorizer.allows(by, { verb: 'read', kind: 'Cluster', name, cluster })) return
  const isPlaced = spec !== null && isTarget(cluster.labels, withDestinations(spec.targets, await readProject(store, project)))
  if (isPlaced) return
  noteDenial({ verb: 'read', kind: 'Cluster', name })
  throw unknownCluster(name)
}

/** AZ3: the cluster, if the caller may read the service in it, and the cluster itself or what it has of the service. */
export async function requirePlace(deps: Pick<AdminDeps, 'store' | 'authorizer'>, by: Principal, id: ServiceId, name: string) {
  const cluster = await knownPlace(deps, by, id, name)
  if (cluster !== null) return cluster
  const ask = { verb: 'read', kind: 'Cluster', name } as const
  throw deps.authorizer.allows(by, ask) ? objectNotFound(ask) : hidden(ask)
}

/** Null means that the cluster does not exist for the caller. */
export async function knownPlace(
  { store, authorizer }: Pick<AdminDeps, 'store' | 'authorizer'>,
  by: Principal,
  id: ServiceId,
  name: string,
): Promise<ClusterRecord | null> {
  const cluster = await store.clusterByName(name)
  if (cluster === null || !serviceInScope(authorizer.scope(by, 'read', 'Service'), id, cluster.labels)) return null
  if (authorizer.allows(by, { verb: 'read', kind: 'Cluster', name, cluster })) return cluster
  const here: Scope = [{ projects: [id.project], services: [id.service], clusters: { matchLabels: cluster.labels } }]
  const listClusters = async () => [cluster]
  const sight = createServiceSight({ ...store, listClusters }, here)
  const isHere = (await sight.shows(id)) || (await store.statusHistory(cluster.clusterId, id, { limit: 1 })).length > 0
  return isHere ? cluster : null
}

/** Suspensions of services that the caller may read, of clusters that it may read, and of the whole fleet, which
 *  concern everybody. */
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

/** Whether there is a kind whose changes the caller may see. */
export const mayFollow = (authorizer: Authorizer, principal: Principal): boolean =>
  ACCESS_KINDS.some((kind) => authorizer.scope(principal, kind === 'ApiToken' ? 'token:read' : 'read', kind).length > 0)

/** Labels of clusters that changes name, and services that the caller may read in some clusters only. */
export interface ChangedClusters {
  byId: ReadonlyMap<string, Labels>
  byName: ReadonlyMap<string, Labels>
  /** By key. Absent means that it does not exist any more. */
  isShown: ReadonlyMap<string, boolean>
}
const NO_CLUSTERS: ChangedClusters = { byId: new Map(), byName: new Map(), isShown: new Map() }

/** Reads nothing for callers whose rights do not depend on clusters. */
export async function clustersOfChanges(
  authorizer: Authorizer,
  principal: Principal,
  changes: readonly Change[],
  store: Clusters & SightStore,
): Promise<ChangedClusters> {
  const dependsOnClusters = (['Service', 'Cluster'] as const).some((kind) =>
    authorizer.scope(principal, 'read', kind).some(({ clusters }) => clusters !== null),
  )
  if (!dependsOnClusters) return NO_CLUSTERS
  const ids = [
    ...new Set(
      changes.flatMap(({ topic, cluster, keys }) => [
        ...(cluster === null ? [] : [cluster]),
        ...(topic === 'desired' || topic === 'cluster' ? (keys ?? []) : []),
      ]),
    ),
  ] as ClusterId[]
  const names = [
    ...new Set(changes.flatMap(({ topic, name }) => (topic === 'resource' ? (/^Cluster\/(.+)$/.exec(name ?? '')?.[1] ?? []) : []))),
  ]
  const services = authorizer.scope(principal, 'read', 'Service')
  const sight = createServiceSight(store, services)
  const isShown = new Map<string, boolean>()
  for (const id of servicesIn(changes)) {
    const key = serviceKey(id)
    if (isShown.has(key) || !isLimited(services, id)) continue
    const held = await store.getResource({ kind: 'Service', project: id.project, name: id.service })
    if (held !== null) isShown.set(key, await sight.shows(id, held))
  }
  const [byId, byName] = await Promise.all([
    ids.length === 0 ? [] : store.findClusters({ ids }),
    names.length === 0 ? [] : store.findClusters({ names }),
  ])
  return {
    byId: new Map(byId.map(({ clusterId, labels }) => [clusterId, labels])),
    byName: new Map(byName.map(({ name, labels }) => [name, labels])),
    isShown,
  }
}

/** Services that changes name, without those that are named with a cluster alone. */
const servicesIn = (changes: readonly Change[]): ServiceId[] =>
  changes.flatMap(({ topic, project, name }) => {
    if (project === null || name === null) return []
    if (topic === 'resource') return name.startsWith('Service/') ? [{ project, service: name.slice('Service/'.length) }] : []
    return topic === 'render' || topic === 'confirmation' || topic === 'desired' ? [{ project, service: name }] : []
  })

/** The visible part of a change, or null. Evaluated for each batch, so that a stream follows changed bindings. */
export function changeSight(
  authorizer: Authorizer,
  principal: Principal,
  named: ChangedClusters = NO_CLUSTERS,
): (change: Change) => Change | null {
  const scopeOf = (kind: Parameters<Authorizer['scope']>[2]) => authorizer.scope(principal, 'read', kind)
  const services = scopeOf('Service')
  const clusters = scopeOf('Cluster')
  const mayTokens = authorizer.allows(principal, { verb: 'token:read', kind: 'ApiToken' })
  const mayJoinTokens = authorizer.allows(principal, { verb: 'read', kind: 'JoinToken' })
  /** A cluster that no longer exists has no labels. */
  const labelsOf = (cluster: string | null): Labels | undefined => (cluster === null ? undefined : (named.byId.get(cluster) ?? {}))
  const isService = (project: string | null, name: string | null, cluster: string | null = null) => {
    if (project === null || name === null) return false
    const id = { project, service: name }
    if (!serviceInScope(services, id, labelsOf(cluster))) return false
    return cluster !== null || !isLimited(services, id) || named.isShown.get(serviceKey(id)) === true
  }
  return (change) => {
    const { topic, project, name, cluster } = change
    switch (topic) {
      case 'token':
        return (name?.startsWith('JoinToken/') === true ? mayJoinTokens : mayTokens) ? change : null
      case 'resource':
        return seenResource(change)
      case 'repository':
        return project !== null && projectInScope(scopeOf('Repository'), project) ? change : null
      case 'desired':
        return desiredKeys(change)
      case 'render':
      case 'confirmation':
        return isService(project, name, cluster) ? change : null
      case 'status':
        return isEverywhere(services) ? change : statusKeys(change)
      case 'event':
        // It says that there is one; the events that may be read are listed.
        return isEverywhere(services) ? change : services.length === 0 ? null : { ...change, cluster: null, keys: null }
      case 'cluster':
        return seenClusters(change)
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
        return seenService(change, { project, service: rest.join('/') })
      case 'Cluster':
        return clusterInScope(clusters, named.byName.get(rest.join('/')) ?? {}) ? change : null
      case 'Suspension':
        if (isEverywhere(services)) return change
        return services.length === 0 && clusters.length === 0 ? null : { ...change, name: 'Suspension/*', project: null }
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
      case 'SavedQuery':
        return services.length > 0 ? change : null
      default:
        return isEverywhere(services) ? change : null
    }
  }
  function seenService(change: Change, id: ServiceId): Change | null {
    if (!serviceInScope(services, id)) return null
    if (!isLimited(services, id)) return change
    const isShown = named.isShown.get(serviceKey(id))
    // Where a service that was deleted had been placed is not known: that some service changed is all that is said.
    if (isShown === undefined) return { ...change, name: ANY_SERVICE, project: null }
    return isShown ? change : null
  }
  function wholeOf(change: Change, kind: AccessKind): Change | null {
    return isEverywhere(scopeOf(kind)) ? change : null
  }
  function seenClusters(change: Change): Change | null {
    if (isEverywhere(clusters)) return change
    const isSeen = (cluster: string) => clusterInScope(clusters, labelsOf(cluster) ?? {})
    if (change.cluster !== null) return isSeen(change.cluster) ? change : null
    const keys = (change.keys ?? []).filter(isSeen)
    return keys.length === 0 ? null : { ...change, keys }
  }
  /** Ids of clusters. */
  function desiredKeys(change: Change): Change | null {
    const { project, name, cluster, keys } = change
    if (keys === null || !isLimited(services, { project: project ?? '', service: name ?? '' }))
      return isService(project, name, cluster) ? change : null
    const shown = keys.filter((cluster) => isService(project, name, cluster))
    return shown.length === 0 ? null : { ...change, keys: shown }
  }
  /** `kind/project/service…`. Without keys too much changed to name it: that it did is all that is said. */
  function statusKeys(change: Change): Change | null {
    const labels = labelsOf(change.cluster)
    const here = services.filter(({ clusters: where }) => where === null || labels === undefined || matchesSelector(labels, where))
    if (here.length === 0) return null
    if (change.keys === null) return change
    const keys = change.keys.filter((key) => {
      const [, project = '', service = ''] = key.split('/')
      return serviceInScope(here, { project, service })
    })
    return keys.length === 0 ? null : { ...change, keys }
  }
}
