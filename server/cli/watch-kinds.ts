// Which of the things that are shown a change is about. Pure: a change names less than it touches, so in doubt it is
// all of them.

import { ANY_SERVICE, type ChangeTopic, type ChangeView } from '../../shared/model/change.ts'
import { FLEET, sourcesOf } from '../../shared/model/resources.ts'
import type { ClusterView, ServiceView } from '../../shared/model/views.ts'
import type { Kind } from './kinds.ts'

/** One row as shown. */
export interface Shown {
  /** Undefined for all projects. */
  project?: string | undefined
  service?: string | undefined
  /** With the id that changes have. */
  cluster?: { name: string; id: string } | undefined
  items: ReadonlyMap<string, unknown>
}

/** The keys of those that may have changed. Null if none did. */
export type About = readonly string[] | 'all' | null

export type WatchedKind = Exclude<Kind, 'events'>

interface Watching {
  topics: readonly ChangeTopic[]
  about(change: ChangeView, shown: Shown): About
}

export const WATCHING: Record<WatchedKind, Watching> = {
  clusters: { topics: ['resource', 'cluster', 'desired', 'status', 'restore'], about: aboutClusters },
  services: { topics: ['resource', 'repository', 'render', 'desired', 'status', 'confirmation', 'cluster'], about: aboutServices },
  repositories: {
    topics: ['resource', 'repository'],
    about: ({ topic, project, name }, shown) =>
      inProject(project, shown) ? some(topic === 'repository' ? name : named(name, 'Repository'), project) : null,
  },
  configs: {
    topics: ['resource'],
    about: ({ project, name }, shown) => (inProject(project, shown) ? some(named(name, 'Config'), project) : null),
  },
  projects: { topics: ['resource'], about: aboutProjects },
  'health-rules': {
    topics: ['resource'],
    about: ({ project, name }, shown) => (inProject(project ?? FLEET, shown) ? some(named(name, 'HealthRule'), project ?? FLEET) : null),
  },
  'notification-sinks': { topics: ['resource'], about: ({ name }) => (named(name, 'NotificationSink') === null ? null : 'all') },
  'notification-routes': { topics: ['resource'], about: ({ name }) => (named(name, 'NotificationRoute') === null ? null : 'all') },
  notifications: { topics: ['notification'], about: () => 'all' },
  roles: { topics: ['resource'], about: ({ name }) => (named(name, 'Role') === null ? null : 'all') },
  'role-bindings': { topics: ['resource'], about: ({ name }) => (named(name, 'RoleBinding') === null ? null : 'all') },
  'saved-queries': { topics: ['resource'], about: ({ name }) => (named(name, 'SavedQuery') === null ? null : 'all') },
  placements: { topics: ['resource', 'cluster', 'desired', 'status', 'confirmation', 'render'], about: aboutPlacements },
  objects: { topics: ['cluster', 'status'], about: aboutObjects },
  confirmations: { topics: ['confirmation'], about: () => 'all' },
  'join-tokens': { topics: ['token'], about: () => 'all' },
  suspensions: { topics: ['resource'], about: ({ name }) => (isSuspension(name) ? 'all' : null) },
  tokens: { topics: ['token'], about: () => 'all' },
}

function aboutClusters({ topic, cluster, name, keys }: ChangeView, { items }: Shown): About {
  const nameOf = (id: string) => [...items.values()].map((item) => (item as ClusterView).metadata).find(({ uid }) => uid === id)?.name
  if (topic === 'restore' || isSuspension(name)) return 'all'
  if (topic === 'desired') return keys?.flatMap((id) => nameOf(id) ?? []) ?? 'all'
  if (cluster === null) return null
  const known = nameOf(cluster) ?? named(name, 'Cluster')
  return known === null ? 'all' : [known]
}

function aboutServices({ topic, cluster, project, name, keys }: ChangeView, shown: Shown): About {
  switch (topic) {
    case 'status': {
      if (keys === null) return 'all'
      const services = keys.flatMap((key) => (key.startsWith('service/') ? [key.slice('service/'.length)] : []))
      return services.filter((key) => inProject(key.split('/')[0] ?? null, shown))
    }
    case 'cluster':
      return cluster === null ? null : 'all'
    case 'repository': {
      const services = [...shown.items].filter(([, item]) => {
        const { metadata, spec } = item as ServiceView
        return metadata.project === project && sourcesOf(spec).some(({ repository }) => repository === name)
      })
      return services.map(([key]) => key)
    }
    case 'resource':
      if (isSuspension(name) || name === ANY_SERVICE) return 'all'
      return inProject(project, shown) ? some(named(name, 'Service'), project) : null
    default:
      return inProject(project, shown) ? some(name, project) : null
  }
}

function aboutPlacements({ topic, cluster, project, name, keys }: ChangeView, shown: Shown): About {
  if (isSuspension(name)) return 'all'
  if (topic === 'resource' || topic === 'cluster') return cluster === null ? null : ofCluster(cluster, shown)
  if (topic === 'status') return ofCluster(cluster, shown) && ofKeys(keys, ['service'], shown)
  if (shown.service !== undefined) return project === shown.project && name === shown.service ? 'all' : null
  if (topic === 'render') return inProject(project, shown) ? 'all' : null
  const id = shown.cluster?.id
  return topic === 'confirmation' || keys === null || id === undefined || keys.includes(id) ? 'all' : null
}

function aboutObjects({ topic, cluster, keys }: ChangeView, shown: Shown): About {
  if (topic === 'cluster') return cluster === null ? null : ofCluster(cluster, shown)
  return ofCluster(cluster, shown) && ofKeys(keys, ['object', 'drift'], shown)
}

const ofCluster = (cluster: string | null, shown: Shown): 'all' | null =>
  shown.cluster === undefined || shown.cluster.id === cluster ? 'all' : null

/** The services named by keys of statuses: `kind/project/service…`. */
function ofKeys(keys: readonly string[] | null, kinds: readonly string[], { project, service }: Shown): 'all' | null {
  if (keys === null) return 'all'
  const isShown = (key: string) => {
    const [kind = '', inProject = '', inService = ''] = key.split('/')
    return kinds.includes(kind) && (project === undefined || project === inProject) && (service === undefined || service === inService)
  }
  return keys.some(isShown) ? 'all' : null
}

const inProject = (project: string | null, shown: Shown): boolean => shown.project === undefined || shown.project === project

const some = (name: string | null, project: string | null): About => (name === null ? null : [`${project}/${name}`])

/** A resource of a project counts for its project, too. */
function aboutProjects({ project, name }: ChangeView): About {
  if (project !== null && project !== FLEET) return [project]
  const own = named(name, 'Project')
  return own === null ? null : [own]
}

/** SU8: it may concern any service and any cluster. */
const isSuspension = (name: string | null): boolean => named(name, 'Suspension') !== null

/** `Service/web`. */
const named = (name: string | null, kind: string): string | null => (name?.startsWith(`${kind}/`) ? name.slice(kind.length + 1) : null)
