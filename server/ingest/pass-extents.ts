// What the next pass of each service looks at: the whole fleet, or the clusters that changed since its last pass.
import type { ClusterId } from '../../shared/model/ids.ts'

export type PassExtent = 'fleet' | ReadonlySet<ClusterId>

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

  /** Empty: a pass that just ran took all there was. */
  take(key: K): PassExtent {
    const clusters = this.#clusters.get(key) ?? new Set()
    this.#clusters.delete(key)
    return this.#fleet.delete(key) ? 'fleet' : clusters
  }
}
