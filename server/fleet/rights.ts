// Pure: what a list of grants allows. A grant is one rule of a role in the place where a binding gives it.
import type { AccessRule } from '../../shared/model/access.ts'
import type { AccessKind, AccessVerb } from '../../shared/model/access-words.ts'
import { type LabelSelector, type Labels, matchesSelector } from '../../shared/model/labels.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'

/** Where a role is given. Null means everywhere. */
export interface Place {
  readonly projects: readonly string[] | null
  readonly services: readonly string[] | null
  readonly clusters: LabelSelector | null
}

/** By which role, and by which binding. Null means that the role that the token itself has. */
export interface GrantSource {
  readonly role: string
  readonly binding: { project: string; name: string } | null
}

export interface Grant extends Place {
  readonly rule: AccessRule
  readonly by: GrantSource
}

export interface Ask {
  verb: AccessVerb
  kind: AccessKind
  /** Absent means that the object belongs to no project. Of a Project its name. */
  project?: string | undefined
  /** Name of the object. Absent means some object of the kind, which every restriction to services refuses. */
  name?: string | undefined
  /** One cluster that the act is confined to, or the Cluster itself. */
  cluster?: { name: string; labels: Labels } | undefined
}

/** Whether a grant gives the right in some cluster, for an act that says later in which. */
export const isGrantedInSomeCluster = (grants: readonly Grant[], ask: Ask): boolean =>
  grants.some(
    (grant) =>
      concerns(grant, ask.verb, ask.kind) && (grant.clusters !== null || inPlace(grant, ask)) && inPlace({ ...grant, clusters: null }, ask),
  )

/** Objects of a kind that may be acted on: those of any of the places. Empty: none. */
export type Scope = readonly Place[]

const everywhere = (place: Place): boolean => place.projects === null && place.services === null && place.clusters === null
export const isEverywhere = (scope: Scope): boolean => scope.some(everywhere)

/** Verbs that a grant for some clusters gives: they stay within a cluster. A write of a service reaches all of its
 *  clusters. */
const WITHIN_CLUSTER: ReadonlySet<AccessVerb> = new Set(['read', 'sync', 'confirm', 'suspend', 'live:read', 'logs:read', 'restart'])

const has = <T>(list: ReadonlyArray<T | '*'>, one: T): boolean => list.includes(one) || list.includes('*')

export const matchesName = (patterns: readonly string[], name: string): boolean =>
  patterns.some((pattern) => (pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern))

/** Whether the rule may give the right at all in that place. */
function concerns({ rule, projects, clusters, services }: Grant, verb: AccessVerb, kind: AccessKind): boolean {
  if (!has(rule.verbs, verb) || !has(rule.kinds, kind)) return false
  // A Cluster holds services of every project, and an administrator of one project may bind `clusters` to any selector.
  if (kind === 'Cluster' && projects !== null) return false
  if (services !== null && kind !== 'Service') return false
  return clusters === null || ((kind === 'Service' || kind === 'Cluster') && WITHIN_CLUSTER.has(verb))
}

function inPlace(grant: Grant, { verb, kind, project, name, cluster }: Ask): boolean {
  const { projects, services, clusters } = grant
  if (services !== null && (name === undefined || !matchesName(services, name))) return false
  if (kind === 'Cluster') {
    if (clusters === null) return true
    return cluster !== undefined && matchesSelector(cluster.labels, clusters)
  }
  if (projects !== null && (project === undefined || !projects.includes(project))) return false
  if (clusters === null) return true
  return cluster === undefined ? verb === 'read' : matchesSelector(cluster.labels, clusters)
}

/** The first grant that gives the right. Null means none does. */
export const grantFor = (grants: readonly Grant[], ask: Ask): Grant | null =>
  grants.find((grant) => concerns(grant, ask.verb, ask.kind) && inPlace(grant, ask)) ?? null

/** Where the right holds, for lists: a place that another one contains is left out. */
export function scopeOf(grants: readonly Grant[], verb: AccessVerb, kind: AccessKind): Scope {
  const places = grants.filter((grant) => concerns(grant, verb, kind)).filter(({ projects }) => projects === null || projects.length > 0)
  const whole = places.find(everywhere)
  if (whole !== undefined) return [{ projects: null, services: null, clusters: null }]
  const projects = new Set<string>()
  const parts: Place[] = []
  for (const { projects: named, services, clusters } of places) {
    if (named !== null && services === null && clusters === null) for (const project of named) projects.add(project)
    else parts.push({ projects: named, services, clusters })
  }
  return projects.size === 0 ? parts : [{ projects: [...projects].sort(), services: null, clusters: null }, ...parts]
}

/** Whether a service is in scope; `labels`: in a cluster with these. Without them a place that is limited to clusters
 *  counts, too. */
export const serviceInScope = (scope: Scope, { project, service }: ServiceId, labels?: Labels): boolean =>
  scope.some(
    ({ projects, services, clusters }) =>
      (projects === null || projects.includes(project)) &&
      (services === null || matchesName(services, service)) &&
      (clusters === null || labels === undefined || matchesSelector(labels, clusters)),
  )

/** Places that are not limited to clusters, for what belongs to no single cluster. */
export const withoutClusters = (scope: Scope): Scope => scope.filter(({ clusters }) => clusters === null)

/** Whether a service is in scope in some clusters only. */
export const isLimited = (scope: Scope | undefined, id: ServiceId): boolean =>
  scope !== undefined && !serviceInScope(withoutClusters(scope), id)

/** Whether a Cluster is in scope: a place in some projects holds none. */
export const clusterInScope = (scope: Scope, labels: Labels): boolean =>
  scope.some(({ projects, clusters }) => projects === null && (clusters === null || matchesSelector(labels, clusters)))

/** Whether something of a project that is no service is in scope. */
export const projectInScope = (scope: Scope, project: string): boolean =>
  scope.some(({ projects, services }) => services === null && (projects === null || projects.includes(project)))

/** The rights of `rule` that these grants lack in `place`: a grantor needs each right in all of that place. */
export function missingToGrant(grants: readonly Grant[], rule: AccessRule, place: Place): { verb: string; kind: string } | null {
  for (const verb of rule.verbs)
    for (const kind of rule.kinds) {
      const holds = (project: string | null) =>
        grants.some(
          (grant) =>
            covers(grant.rule.verbs, verb) &&
            covers(grant.rule.kinds, kind) &&
            (grant.projects === null || (project !== null && grant.projects.includes(project))) &&
            (grant.services === null || (place.services?.every((pattern) => isWithin(pattern, grant.services ?? [])) ?? false)) &&
            (grant.clusters === null || Bun.deepEquals(grant.clusters, place.clusters)),
        )
      if (!(place.projects ?? [null]).every(holds)) return { verb, kind }
    }
  return null
}

const covers = (held: readonly string[], wanted: string): boolean => held.includes('*') || held.includes(wanted)

/** Each name that `pattern` means, one of `patterns` means too. */
const isWithin = (pattern: string, patterns: readonly string[]): boolean =>
  pattern.endsWith('*')
    ? patterns.some((one) => one.endsWith('*') && pattern.slice(0, -1).startsWith(one.slice(0, -1)))
    : matchesName(patterns, pattern)
