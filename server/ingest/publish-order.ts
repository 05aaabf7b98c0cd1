// The order in which the services of one commit are published. An object that moves from one service to another must
// reach its new one first: if its old one lost it before, the agent would prune and recreate it.
import type { ServiceId } from '../../shared/model/ids.ts'
import type { ServiceSpec } from '../../shared/model/resources.ts'
import { decodeRenderedSet } from '../desired/rendered-set.ts'
import { renderedFor, type TargetCluster, withDestinations } from '../fleet/targeting.ts'
import { createSlots } from '../render/sandbox/slots.ts'
import type { ContentStore } from '../store/content/content-store.ts'
import type { Store } from '../store/store.ts'
import { readProject } from './projects.ts'
import { goodRenders } from './render/rendering.ts'
import type { ServiceRenderer } from './render/service-render.ts'

/** Lower goes first; equal ones may go together. */
export type PublishRank = 0 | 1 | 2

/** Only gains; gains and loses; only loses. */
export function publishRank(held: ReadonlySet<string>, wanted: { has(id: string): boolean; keys(): Iterable<string> }): PublishRank {
  if ([...held].every((id) => wanted.has(id))) return 0
  return [...wanted.keys()].some((id) => !held.has(id)) ? 1 : 2
}

export interface PublishOrderDeps {
  store: Pick<Store, 'desiredOfService' | 'getResource'>
  content: Pick<ContentStore, 'get'>
  renderer: Pick<ServiceRenderer, 'render'>
}

export interface RankedService {
  id: ServiceId
  spec: ServiceSpec
}

/**
 * By rank, at the commit that was read last. All of them are rendered by then, and the renders are kept for the
 * following reconciliations: between the ranks no slow work is left. A single one is not rendered: its reconciliation
 * does that.
 */
export async function rankServices<One extends RankedService>(
  deps: PublishOrderDeps,
  services: readonly One[],
  clusters: readonly TargetCluster[],
  atOnce: number,
): Promise<One[][]> {
  if (services.length < 2) return [[...services]] // there is nobody to go before or after
  const slots = createSlots(atOnce)
  // The service's own reconciliation reports the reason of a failure.
  const rankOf = (one: One) => slots.run(() => rankService(deps, one, clusters).catch(() => 0 as const))
  const ranks = await Promise.all(services.map(rankOf))
  return ([0, 1, 2] as const).map((rank) => services.filter((_, index) => ranks[index] === rank))
}

async function rankService(
  { store, content, renderer }: PublishOrderDeps,
  { id, spec }: RankedService,
  clusters: readonly TargetCluster[],
): Promise<PublishRank> {
  const current = await store.desiredOfService(id)
  const rendering = await renderer.render(
    id,
    spec,
    renderedFor(withDestinations(spec.targets, await readProject(store, id.project)), clusters, current),
  )
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
