// Which clusters a pass of a service looks at: the whole fleet, or only those that joined, were relabelled or said something new.
import { type ClusterId, type ServiceId, serviceKey } from '../../shared/model/ids.ts'
import type { ClusterRecord, DesiredService, StatusEntry } from '../store/records.ts'
import type { Store } from '../store/store.ts'

export interface PassScope {
  clusters: readonly ClusterRecord[]
  /** Rows of the service in them, tombstones too. */
  current: readonly DesiredService[]
  /** The same of another service. */
  desiredOf(other: ServiceId): Promise<DesiredService[]>
  /** What the agents of these clusters report of the service. */
  reports(): Promise<StatusEntry[]>
}

type ScopeStore = Pick<Store, 'listClusters' | 'desiredOfService' | 'findClusters' | 'desiredOf' | 'listStatus'>

export async function wholeFleet(store: ScopeStore, id: ServiceId): Promise<PassScope> {
  return {
    clusters: await store.listClusters(),
    current: await store.desiredOfService(id),
    desiredOf: (other) => store.desiredOfService(other),
    reports: () => store.listStatus({ kind: 'service', key: serviceKey(id) }),
  }
}

/** Of clusters that are gone there is nothing. */
export async function someClusters(store: ScopeStore, id: ServiceId, clusterIds: readonly ClusterId[]): Promise<PassScope> {
  return {
    clusters: await store.findClusters({ ids: clusterIds }),
    current: await store.desiredOf(id, clusterIds),
    desiredOf: (other) => store.desiredOf(other, clusterIds),
    async reports() {
      const found: StatusEntry[] = []
      for (const clusterId of clusterIds) found.push(...(await store.listStatus({ clusterId, kind: 'service', key: serviceKey(id) })))
      return found
    },
  }
}
