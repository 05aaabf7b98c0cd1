// The rows that a caller may read, as conditions of SQL. The scopes are those of the API (AZ4): a view never shows a
// row that a list would not.
import { matchesSelector } from '../../../shared/model/labels.ts'
import { quoteText } from '../../../shared/sql/dialect.ts'
import { isEverywhere, type Place, type Scope, withoutClusters } from '../../fleet/rights.ts'
import { statusPart } from '../../messages/status-messages.ts'

/** Where the caller may read each kind. */
export interface SqlScopes {
  services: Scope
  clusters: Scope
  repositories: Scope
}

export interface ClusterLabels {
  no: number
  labels: Record<string, string>
}

/** Each answers a condition. `1 = 1`: every row. */
export interface Sight {
  /** A service in the cluster of this number. */
  services(columns: { project: string; service: string; cluster: string }): string
  /** A service as a whole: a place that is limited to clusters counts where the service is placed in one of them. */
  wholeServices(columns: { project: string; service: string }): string
  /** The same without places that are limited to clusters: what is said of all its clusters. */
  unlimitedServices(columns: { project: string; service: string }): string
  clusters(no: string): string
  repositories(project: string): string
  /** AZ4: a message may name a service of another row. */
  message(column: string): string
  /** Every row of every view: nothing is hidden from the caller. */
  isWhole: boolean
}

const ALL = '1 = 1'
const HIDDEN_MESSAGE = statusPart('hidden')
const NONE = '1 = 0'

/** `clusters`: all of the fleet, where a scope has a selector. */
export function sightOf({ services, clusters, repositories }: SqlScopes, fleet: readonly ClusterLabels[]): Sight {
  const numbers = new Map<Place, string>()
  const inPlace = (place: Place, column: string): string => {
    if (place.clusters === null) return ALL
    let found = numbers.get(place)
    if (found === undefined) {
      const selector = place.clusters
      found = fleet
        .filter(({ labels }) => matchesSelector(labels, selector))
        .map(({ no }) => no)
        .join(', ')
      numbers.set(place, found)
    }
    return found === '' ? NONE : `${column} in (${found})`
  }
  const ofNames = ({ projects, services: some }: Place, { project, service }: { project: string; service: string }): string[] => [
    projects === null ? ALL : textIn(project, projects),
    some === null ? ALL : anyIs(some.map((pattern) => named(service, pattern))),
  ]
  const isPlacedIn = (place: Place, { project, service }: { project: string; service: string }): string => {
    const inClusters = inPlace(place, 'c1.no')
    if (inClusters === ALL || inClusters === NONE) return inClusters
    return (
      'exists (select 1 from desired d1 join clusters c1 on c1.cluster_id = d1.cluster_id ' +
      `where d1.project = ${project} and d1.service = ${service} and d1.sync is not null and ${inClusters})`
    )
  }
  return {
    isWhole: isEverywhere(services) && isEverywhere(clusters) && isEverywhere(repositories),
    services: ({ project, service, cluster }) =>
      anyOf(services, (place) => [...ofNames(place, { project, service }), inPlace(place, cluster)]),
    wholeServices: (columns) => anyOf(services, (place) => [...ofNames(place, columns), isPlacedIn(place, columns)]),
    unlimitedServices: (columns) => anyOf(withoutClusters(services), (place) => ofNames(place, columns)),
    message: (column) =>
      isEverywhere(services)
        ? column
        : `case when ${column} like '%service %/%' or ${column} like '%waiting for %/%' then ${quoteText(HIDDEN_MESSAGE)} else ${column} end`,
    clusters: (no) => anyOf(clusters, (place) => [place.projects === null ? ALL : NONE, inPlace(place, no)]),
    repositories: (project) =>
      anyOf(repositories, (place) => [
        place.services === null ? ALL : NONE,
        place.projects === null ? ALL : textIn(project, place.projects),
      ]),
  }
}

/** Whether the labels of clusters decide. */
export const asksLabels = ({ services, clusters }: SqlScopes): boolean =>
  [...services, ...clusters].some((place) => place.clusters !== null)

const anyOf = (scope: Scope, conditions: (place: Place) => string[]): string => anyIs(scope.map((place) => allAre(conditions(place))))

function anyIs(conditions: readonly string[]): string {
  if (conditions.includes(ALL)) return ALL
  const some = conditions.filter((one) => one !== NONE)
  return some.length === 0 ? NONE : some.length === 1 ? (some[0] ?? NONE) : `(${some.join(' or ')})`
}

function allAre(conditions: readonly string[]): string {
  if (conditions.includes(NONE)) return NONE
  const some = conditions.filter((one) => one !== ALL)
  return some.length === 0 ? ALL : some.length === 1 ? (some[0] ?? ALL) : `(${some.join(' and ')})`
}

const textIn = (column: string, values: readonly string[]): string =>
  values.length === 0 ? NONE : `${column} in (${values.map(quoteText).join(', ')})`

const named = (column: string, pattern: string): string =>
  pattern.endsWith('*')
    ? `substr(${column}, 1, ${pattern.length - 1}) = ${quoteText(pattern.slice(0, -1))}`
    : `${column} = ${quoteText(pattern)}`
