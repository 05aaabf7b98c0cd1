// In which order the services of one commit are published. An object that moves from one service to another must reach its new one first: were its old one to lose
// it before, the agent would prune it and make it anew.
import type { ServiceId } from '../../shared/model/ids.ts'
import type { ServiceSpec } from '../../shared/model/resources.ts'
import { decodeRenderedSet } from '../desired/rendered-set.ts'
import { isTarget, type TargetCluster } from '../fleet/targeting.ts'
import type { ContentStore } from '../store/content/content-store.ts'
import type { DesiredService } from '../store/records.ts'
import type { Store } from '../store/store.ts'
import { goodRenders } from './rendering.ts'
import type { ServiceRenderer } from './service-render.ts'

/** Lower goes first; equal ones may go together. */
export type PublishRank = 0 | 1 | 2

/** Only gains; gains and loses; only loses. */
export function publishRank(held: ReadonlySet<string>, wanted: { has(id: string): boolean; keys(): Iterable<string> }): PublishRank {
  if ([...held].every((id) => wanted.has(id))) return 0
  return [...wanted.keys()].some((id) => !held.has(id)) ? 1 : 2
}

export interface PublishOrderDeps {
  store: Pick<Store, 'desiredOfService'>
  content: Pick<ContentStore, 'get'>
  renderer: Pick<ServiceRenderer, 'render'>
}

/** Of a service at the commit that was read last. What it renders to is kept for the pass that follows. */
export async function rankService(
  { store, content, renderer }: PublishOrderDeps,
  id: ServiceId,
  spec: ServiceSpec,
  clusters: readonly TargetCluster[],
): Promise<PublishRank> {
  const current = await store.desiredOfService(id)
  const rendering = await renderer.render(id, spec, clustersOf(spec, clusters, current))
  if (rendering.kind !== 'good') return 0 // nothing of it changes
  const held = new Set<string>()
  for (const setSha of new Set(current.map((row) => row.setSha))) {
    const bytes = setSha === null ? null : await content.get(setSha)
    if (bytes !== null) for (const rowId of decodeRenderedSet(bytes).keys()) held.add(rowId)
  }
  const wanted = new Set<string>() // of all its variants: an object moves in the one cluster or in the other
  for (const objects of new Set(goodRenders(rendering).map((render) => render.objects)))
    for (const rowId of objects.keys()) wanted.add(rowId)
  return publishRank(held, wanted)
}

/** Whom a service is rendered for: whoever shall have it, and whoever has it still. */
export function clustersOf(
  { targets }: ServiceSpec,
  clusters: readonly TargetCluster[],
  current: readonly DesiredService[],
): TargetCluster[] {
  const holding = new Set(current.flatMap(({ clusterId, doc }) => (doc === null || doc.removal !== undefined ? [] : [clusterId])))
  return clusters.filter(({ clusterId, labels }) => isTarget(labels, targets) || holding.has(clusterId))
}
