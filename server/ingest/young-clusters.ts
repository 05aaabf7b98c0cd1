// FA6: what is made for a cluster of which nothing is known would be changed by its first word, and what that drops
// would wait for a person.
import type { ClusterId } from '../../shared/runtime/ids.ts'
import type { ClusterRecord, DesiredService } from '../fleet/records.ts'
import { type Rendering, renderOf } from './render/rendering.ts'

/** A cluster that just joined says what it serves within seconds. */
export const FACTS_AWAITED_MS = 60_000

/** FA6: the clusters that joined just now and have reported no facts. */
export interface YoungClusters {
  clusters: ReadonlySet<ClusterId>
  /** When the first of them gets it also without a word. Null means that there are none. */
  untilMs: number | null
}

export const NOBODY_YOUNG: YoungClusters = { clusters: new Set(), untilMs: null }

/** Those that must not have it yet. */
export async function clustersWithoutFacts(
  factsOf: ((clusters: readonly ClusterId[]) => Promise<ReadonlyMap<ClusterId, unknown>>) | undefined,
  rendering: Rendering,
  clusters: readonly ClusterRecord[],
  current: readonly DesiredService[],
  nowMs: number,
): Promise<YoungClusters> {
  const held = new Set(current.flatMap(({ clusterId, doc }) => (doc === null ? [] : [clusterId])))
  const young = clusters.filter(({ clusterId, joinedMs }) => joinedMs > nowMs - FACTS_AWAITED_MS && !held.has(clusterId))
  const asking = young.filter(({ clusterId }) => renderOf(rendering, clusterId)?.factsKey !== undefined)
  if (asking.length === 0 || factsOf === undefined) return NOBODY_YOUNG
  const known = await factsOf(asking.map(({ clusterId }) => clusterId))
  const without = asking.filter(({ clusterId }) => !known.has(clusterId))
  if (without.length === 0) return NOBODY_YOUNG
  const untilMs = Math.min(...without.map(({ joinedMs }) => joinedMs)) + FACTS_AWAITED_MS
  return { clusters: new Set(without.map(({ clusterId }) => clusterId)), untilMs }
}

/** The rendering without the given clusters. */
export const withoutClusters = (rendering: Rendering, some: ReadonlySet<ClusterId>): Rendering =>
  rendering.kind !== 'good' || some.size === 0
    ? rendering
    : { ...rendering, clusters: new Map([...rendering.clusters].filter(([clusterId]) => !some.has(clusterId))) }
