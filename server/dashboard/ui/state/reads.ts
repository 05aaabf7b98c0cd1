// The reads that several pages share: what is asked, and which changes make it old.
import { useState } from 'preact/hooks'
import type {
  ClusterView,
  ConfirmationView,
  EventView,
  ObjectView,
  PlacementView,
  RepositoryView,
  ServiceView,
} from '../../../../shared/model/views.ts'
import { type CallOptions, call, type Route } from './api.ts'
import type { Change } from './live.ts'
import { type Paged, usePaged } from './paged-list.ts'
import { useResource } from './resource.ts'

export type { ClusterView, ConfirmationView, EventView, ObjectView, PlacementView, RepositoryView, ServiceView }

const get =
  <R extends Route>(route: R, options: Pick<CallOptions<R>, 'params' | 'query'> = {}) =>
  (signal: AbortSignal) =>
    call(route, { ...options, signal })

const topics =
  (...of: string[]) =>
  ({ topic }: Change) =>
    of.includes(topic)

/** How many services there are. Undefined means not known yet. */
export function useServiceCount(): number | undefined {
  const { value } = useResource(
    'service count',
    // Counts by service are of placements, which a new service does not have yet.
    get('GET /services', { query: { sort: 'name', limit: 1 } }),
    ({ topic, name }) => topic === 'resource' && (name?.startsWith('Service/') ?? true),
    true,
  )
  return value?.total
}

export const EVENTS_SHOWN = 200
export const useEvents = (limit = EVENTS_SHOWN) =>
  useResource(`events ${limit}`, get('GET /events', { query: { limit } }), topics('event', 'resource', 'confirmation', 'token'))

export const useEventsOf = (of: { cluster?: string; project?: string; service?: string }, limit = 50) =>
  useResource(`events ${JSON.stringify(of)} ${limit}`, get('GET /events', { query: { ...of, limit } }), topics('event'))

const EVENTS_PAGE = 200
/** Newest first, back to the first event that the server keeps. `type` '': all. */
export function useOlderEvents(filter: { cluster: string; search: string; type: string }, shown: number): Paged<EventView> {
  return usePaged<EventView>(
    `older events ${JSON.stringify(filter)}`,
    async (start, signal) => {
      const query = { ...filter, limit: EVENTS_PAGE, before: start ?? String(Number.MAX_SAFE_INTEGER) }
      const { items, continue: next } = await call('GET /events', { query, signal })
      return { items: items.toReversed(), continue: next }
    },
    { keyOf: ({ id }) => String(id), concerns: topics('event', 'resource', 'confirmation', 'token'), shown },
  )
}

/** Things that need a person; the server looks through the whole fleet. */
export const useAttention = (later = false) =>
  useResource(
    'attention',
    get('GET /attention', { query: { limit: 200 } }),
    topics('confirmation', 'render', 'repository', 'status', 'desired', 'restore', 'resource'),
    later,
  )

const LIST_PAGE = 200
export interface RepositoryQuery {
  search: string
}
export const useRepositories = (query: RepositoryQuery, shown: number): Paged<RepositoryView> =>
  usePaged<RepositoryView>(
    `repositories ${JSON.stringify(query)}`,
    (start, signal) => call('GET /repositories', { query: { ...query, limit: LIST_PAGE, continue: start }, signal }),
    { keyOf: nameOf, concerns: topics('repository', 'resource'), shown },
  )

export interface ServiceQuery {
  search?: string
  repository?: string
  project?: string
  sync?: string
  health?: string
  failing?: string
  sort?: string
}
/** How many match is in the first page. */
export function useServices(query: ServiceQuery, shown: number): Paged<ServiceView> & { total: number | null } {
  const key = `services ${JSON.stringify(query)}`
  const [total, setTotal] = useState<number | null>(null)
  const list = usePaged<ServiceView>(
    key,
    async (start, signal) => {
      const page = await call('GET /services', { query: { ...query, limit: LIST_PAGE, continue: start }, signal })
      setTotal(page.total ?? null)
      return page
    },
    { keyOf: nameOf, concerns: concernsServices, shown },
  )
  return { ...list, total }
}

const nameOf = ({ metadata: { project = '', name } }: { metadata: { project?: string | undefined; name: string } }): string =>
  `${project}/${name}`
const concernsServices = (change: Change): boolean =>
  ['render', 'resource', 'desired', 'status', 'confirmation', 'repository'].includes(change.topic) || isOfCluster(change)

export const useRepository = (project: string, name: string) =>
  useResource(
    `repository ${project}/${name}`,
    get('GET /projects/:project/repositories/:name', { params: { project, name } }),
    topics('repository', 'resource'),
  )

export const useService = (project: string, name: string) =>
  useResource(
    `service ${project}/${name}`,
    get('GET /projects/:project/services/:name', { params: { project, name } }),
    concernsService(project, name),
  )

export const useRevisions = (project: string, name: string) =>
  useResource(
    `revisions ${project}/${name}`,
    get('GET /projects/:project/services/:name/revisions', { params: { project, name }, query: { limit: 30 } }),
    ({ topic, name: service }) => (topic === 'desired' || topic === 'render') && (service === null || service === name),
  )

export const useCluster = (name: string) =>
  useResource(
    `cluster ${name}`,
    get('GET /clusters/:name', { params: { name } }),
    topics('cluster', 'resource', 'status', 'desired', 'event'),
  )

/** Worst first, so that what is wrong is among the first however many there are. */
export const useClusterServices = (name: string) =>
  useResource(
    `cluster services ${name}`,
    get('GET /placements', { query: { cluster: name, sort: 'health', limit: 500 } }),
    concernsPlacements(null),
  )

export const usePlacement = (cluster: string, project: string, service: string) =>
  useResource(
    `placement ${cluster}/${project}/${service}`,
    get('GET /placements', { query: { cluster, project, service, limit: 1 } }),
    concernsService(project, service),
  )

const OBJECTS_PAGE = 500
/** Worst first, so that what is wrong is among the first however many there are. */
export const useObjects = (at: { cluster: string; project: string; service: string }, search: string, shown: number): Paged<ObjectView> =>
  usePaged<ObjectView>(
    `objects ${JSON.stringify(at)} ${search}`,
    (start, signal) =>
      call('GET /objects', {
        query: { ...at, search, sort: 'health', limit: OBJECTS_PAGE, continue: start },
        signal,
      }),
    {
      keyOf: ({ group, kind, namespace, name }) => `${group}/${kind}/${namespace}/${name}`,
      concerns: concernsService(at.project, at.service),
      shown,
    },
  )

/** Waves and hooks; of a server that cannot say, none. */
export const useObjectOrder = ({ cluster, project, service }: { cluster: string; project: string; service: string }) =>
  useResource(
    `order ${cluster}/${project}/${service}`,
    get('GET /projects/:project/services/:name/order', { params: { project, name: service }, query: { cluster } }),
    ({ topic, name }) => topic === 'desired' && (name === null || name === service),
  )

export const useDependencies = (project: string, service: string) =>
  useResource(
    `dependencies ${project}/${service}`,
    get('GET /projects/:project/services/:name/dependencies', { params: { project, name: service } }),
    topics('resource', 'desired', 'status'),
    true,
  )

export const useJoinTokens = () =>
  useResource('join tokens', get('GET /join-tokens', { query: { limit: 500 } }), topics('token', 'cluster'))
export const useApiTokens = () => useResource('api tokens', get('GET /tokens', { query: { limit: 500 } }), topics('token'))
export const useSessions = () => useResource('sessions', get('GET /sessions', { query: { limit: 500 } }), topics('token'))
export const useRoles = () => useResource('roles', get('GET /roles', { query: { limit: 500 } }), topics('resource'))
export const useRoleBindings = () => useResource('role bindings', get('GET /role-bindings', { query: { limit: 500 } }), topics('resource'))
export const useVersion = () => useResource('version', get('GET /version'), () => false)

/** An outage writes an event of the cluster and nothing else: its agent is silent. */
const isOfCluster = ({ topic, cluster }: Change): boolean => topic === 'event' && cluster !== null

/** Reports name their keys; one without keys may be about everything. */
export function concernsService(project: string, service: string): (change: Change) => boolean {
  const key = `${project}/${service}`
  return (change) => {
    const { topic, project: ofProject, name, keys } = change
    if (topic === 'status') return keys === null || keys.some((one) => isOfKey(one, key))
    if (topic === 'desired' || topic === 'render')
      return (name === null || name === service) && (ofProject === null || ofProject === project)
    return topic === 'resource' || topic === 'confirmation' || topic === 'cluster' || isOfCluster(change)
  }
}

/** Keys of a report are `KIND/PROJECT/SERVICE`, with the object behind it. */
const isOfKey = (one: string, key: string): boolean => `${one}/`.includes(`/${key}/`)

/** Changes that concern a list of services in clusters. Null means a list of all services. */
export function concernsPlacements(of: { project: string; service: string } | null): (change: Change) => boolean {
  if (of !== null) return concernsService(of.project, of.service)
  return (change) => ['status', 'desired', 'confirmation', 'resource', 'cluster'].includes(change.topic) || isOfCluster(change)
}
