// The order in which the services of one commit are published. An object that moves from one service to another must
// reach its new one first: if its old one lost it before, the agent would prune and recreate it.

import type { ServiceSpec } from '../../shared/model/resources.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { decodeRenderedSet } from '../desired/rendered-set.ts'
import type { DesiredService } from '../fleet/records.ts'
import { renderedFor, type TargetCluster, withDestinations } from '../fleet/targeting.ts'
import { createSlots } from '../render/sandbox/slots.ts'
import type { ContentStore } from '../store/content/content-store.ts'
import type { Store } from '../store/store.ts'
import { readProject } from './projects.ts'
import { goodRenders, type Rendering } from './render/rendering.ts'
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
 * By rank, at the commit that was read last. A service that no cluster holds loses nothing, so its rank needs no
 * render: a thousand new services are looked at once, by their reconciliations. If any service has a later rank, all
 * of them are rendered here, and the renders are kept for the following reconciliations: between the ranks no slow work
 * is left. A single service is not rendered here.
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
  const fresh = services.filter((_, index) => ranks[index] === null)
  if (ranks.some((rank) => rank !== null && rank > 0))
    await Promise.all(fresh.map((one) => slots.run(() => renderFor(deps, one, clusters, []).catch(() => null))))
  return ([0, 1, 2] as const).map((rank) => services.filter((_, index) => (ranks[index] ?? 0) === rank))
}

async function renderFor(
  { store, renderer }: PublishOrderDeps,
  { id, spec }: RankedService,
  clusters: readonly TargetCluster[],
  current: readonly DesiredService[],
): Promise<Rendering> {
  const targets = withDestinations(spec.targets, await readProject(store, id.project))
  return renderer.render(id, spec, renderedFor(targets, clusters, current))
}

/** Null for a service that no cluster holds; it was not rendered. */
async function rankService(deps: PublishOrderDeps, one: RankedService, clusters: readonly TargetCluster[]): Promise<PublishRank | null> {
  const current = await deps.store.desiredOfService(one.id)
  const sets = new Set(current.flatMap(({ setSha }) => (setSha === null ? [] : [setSha])))
  if (sets.size === 0) return null
  const rendering = await renderFor(deps, one, clusters, current)
  if (rendering.kind !== 'good') return 0 // nothing of it changes
  const held = new Set<string>()
  for (const setSha of sets) {
    const bytes = await deps.content.get(setSha)
    if (bytes !== null) for (const rowId of decodeRenderedSet(bytes).keys()) held.add(rowId)
  }
  const wanted = new Set<string>() // of all its variants: an object moves in the one cluster or in the other
  for (const objects of new Set(goodRenders(rendering).map((render) => render.objects)))
    for (const rowId of objects.keys()) wanted.add(rowId)
  return publishRank(held, wanted)
}
