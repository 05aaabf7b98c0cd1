// The clusters of a service's reconciliation: the whole fleet, or only those that joined, were relabelled or reported
// something new.
import { setImmediate } from 'node:timers/promises'
import { type ClusterId, type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import type { ClusterRecord, DesiredService, StatusEntry } from '../fleet/records.ts'
import type { Store } from '../store/store.ts'

export interface PassScope {
  clusters: readonly ClusterRecord[]
  /** Rows of the service in them, tombstones too. */
  current: readonly DesiredService[]
  /** The same of another service. */
  desiredOf(other: ServiceId): Promise<DesiredService[]>
  /** The reports of these clusters' agents about the service. */
  reports(): Promise<StatusEntry[]>
}

const LARGE_FLEET = 1_000

/** Between two pieces of work on so many clusters: where they are many, everything else on this thread has a turn. */
export async function betweenPieces(clusters: number): Promise<void> {
  if (clusters > LARGE_FLEET) await setImmediate()
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

/** Clusters that are gone are left out. */
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

/** The whole fleet, or the clusters that changed since the service's last reconciliation. */
export type PassExtent = 'fleet' | ReadonlySet<ClusterId>

/** The extent of the next reconciliation of each service. */
export class PassExtents<K> {
  readonly #fleet = new Set<K>()
  readonly #clusters = new Map<K, Set<ClusterId>>()

  addFleet(key: K): void {
    this.#fleet.add(key)
  }

  addClusters(key: K, clusterIds: Iterable<ClusterId>): void {
    const held = this.#clusters.get(key) ?? new Set()
    this.#clusters.set(key, held)
    for (const clusterId of clusterIds) held.add(clusterId)
  }

  /** An empty set: a reconciliation that just ran covered everything. */
  take(key: K): PassExtent {
    const clusters = this.#clusters.get(key) ?? new Set()
    this.#clusters.delete(key)
    return this.#fleet.delete(key) ? 'fleet' : clusters
  }
}
