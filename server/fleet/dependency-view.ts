// How far the services are that a service depends on, in the clusters in which it is. From what agents reported last;
// pure.
import type { DependencyView } from '../../shared/model/dependency-views.ts'
import type { ServiceStatus } from '../../shared/model/status.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import type { DesiredService } from './records.ts'

export interface DependencyInput {
  project: string
  service: string
  exists: boolean
  /** The clusters of the service that depends on it, by id, with their names. */
  clusters: ReadonlyMap<ClusterId, string>
  desired: readonly DesiredService[]
  reports: ReadonlyMap<ClusterId, ServiceStatus>
}

const NAMES_MAX = 20

/** DE1, as the agents will judge it: by their own rows, which may be a moment newer or older. */
export function dependencyView({ project, service, exists, clusters, desired, reports }: DependencyInput): DependencyView {
  const rows = new Map(desired.map(({ clusterId, doc }) => [clusterId, doc]))
  const absent: string[] = []
  const unready: string[] = []
  for (const [clusterId, name] of clusters) {
    const row = rows.get(clusterId) ?? null
    const report = reports.get(clusterId)
    if (row === null || row.removal !== undefined) absent.push(name)
    else if (report?.healthy?.digest !== row.digest || report.health === 'Degraded' || report.health === 'Missing') unready.push(name)
  }
  const named = (names: string[]) => ({ count: names.length, names: names.sort().slice(0, NAMES_MAX) })
  return { project, service, exists, ready: clusters.size - absent.length - unready.length, unready: named(unready), absent: named(absent) }
}
