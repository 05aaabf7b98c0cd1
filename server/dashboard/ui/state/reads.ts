// The reads that several pages share: what is asked, and which changes make it old.
import type { CountsView } from '../../../../shared/model/counts.ts'
import type { RevisionView } from '../../../../shared/model/history.ts'
import type { SessionView } from '../../../../shared/model/sign-in.ts'
import type {
  ApiTokenView,
  ClusterView,
  ConfirmationView,
  EventView,
  JoinTokenView,
  ObjectView,
  PlacementView,
  RepositoryView,
  RoleBindingView,
  RoleView,
  ServiceView,
} from '../../../../shared/model/views.ts'
import { call, type Page } from './api.ts'
import type { Change } from './live.ts'
import { part } from './place.ts'
import { useResource } from './resource.ts'

export type { ClusterView, ConfirmationView, EventView, ObjectView, PlacementView, RepositoryView, ServiceView }

const get =
  <T>(path: string, query: Record<string, string | number | undefined> = {}) =>
  (signal: AbortSignal) =>
    call<T>('GET', path, { query, signal })

const topics =
  (...of: string[]) =>
  ({ topic }: Change) =>
    of.includes(topic)

/** How many services there are; undefined: not known yet. */
export function useServiceCount(): number | undefined {
  const { value } = useResource(
    'service count',
    get<CountsView>('/counts', { by: 'service', sort: 'count', limit: 1 }),
    ({ topic, name }) => topic === 'resource' && (name?.startsWith('Service/') ?? true),
    true,
  )
  return value === null ? undefined : value.items.length + (value.rest?.keys ?? 0)
}

export const EVENTS_SHOWN = 200
export const useEvents = (limit = EVENTS_SHOWN) =>
  useResource(`events ${limit}`, get<Page<EventView>>('/events', { limit }), topics('event', 'resource', 'confirmation', 'token'))

export const useEventsOf = (of: { cluster?: string; project?: string; service?: string }, limit = 50) =>
  useResource(`events ${JSON.stringify(of)} ${limit}`, get<Page<EventView>>('/events', { ...of, limit }), topics('event'))

export const useConfirmations = (later = false) =>
  useResource('confirmations', get<Page<ConfirmationView>>('/confirmations', { limit: 500 }), topics('confirmation'), later)

export const useRepositories = (later = false) =>
  useResource('repositories', get<Page<RepositoryView>>('/repositories', { limit: 500 }), topics('repository', 'resource'), later)

export const useRepository = (project: string, name: string) =>
  useResource(
    `repository ${project}/${name}`,
    get<RepositoryView>(`/projects/${part(project)}/repositories/${part(name)}`),
    topics('repository', 'resource'),
  )

export const useServices = (later = false) =>
  useResource(
    'services',
    get<Page<ServiceView>>('/services', { limit: 500 }),
    topics('render', 'resource', 'desired', 'status', 'confirmation'),
    later,
  )

export const useService = (project: string, name: string) =>
  useResource(
    `service ${project}/${name}`,
    get<ServiceView>(`/projects/${part(project)}/services/${part(name)}`),
    concernsService(project, name),
  )

export const useRevisions = (project: string, name: string) =>
  useResource(
    `revisions ${project}/${name}`,
    get<Page<RevisionView>>(`/projects/${part(project)}/services/${part(name)}/revisions`, { limit: 30 }),
    ({ topic, name: service }) => (topic === 'desired' || topic === 'render') && (service === null || service === name),
  )

export const useCluster = (name: string) =>
  useResource(`cluster ${name}`, get<ClusterView>(`/clusters/${part(name)}`), topics('cluster', 'resource', 'status', 'desired', 'event'))

export const useClusterServices = (name: string) =>
  useResource(
    `cluster services ${name}`,
    get<Page<PlacementView>>(`/clusters/${part(name)}/services`, { limit: 500 }),
    concernsPlacements(null),
  )

export const usePlacement = (cluster: string, project: string, service: string) =>
  useResource(
    `placement ${cluster}/${project}/${service}`,
    get<Page<PlacementView>>('/placements', { cluster, project, service, limit: 1 }),
    concernsService(project, service),
  )

export const useObjects = (cluster: string, project: string, service: string) =>
  useResource(
    `objects ${cluster}/${project}/${service}`,
    get<Page<ObjectView>>('/objects', { cluster, project, service, limit: 500 }),
    concernsService(project, service),
  )

export const useJoinTokens = () =>
  useResource('join tokens', get<Page<JoinTokenView>>('/join-tokens', { limit: 500 }), topics('token', 'cluster'))
export const useApiTokens = () => useResource('api tokens', get<Page<ApiTokenView>>('/tokens', { limit: 500 }), topics('token'))
export const useSessions = () => useResource('sessions', get<Page<SessionView>>('/sessions', { limit: 500 }), topics('token'))
export const useRoles = () => useResource('roles', get<Page<RoleView>>('/roles', { limit: 500 }), topics('resource'))
export const useRoleBindings = () =>
  useResource('role bindings', get<Page<RoleBindingView>>('/role-bindings', { limit: 500 }), topics('resource'))
export const useVersion = () => useResource('version', get<Record<string, string>>('/version'), () => false)

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

/** Of a list of services in clusters; null: of all services. */
export function concernsPlacements(of: { project: string; service: string } | null): (change: Change) => boolean {
  if (of !== null) return concernsService(of.project, of.service)
  return (change) => ['status', 'desired', 'confirmation', 'resource', 'cluster'].includes(change.topic) || isOfCluster(change)
}
