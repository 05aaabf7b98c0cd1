// In which order the services of one commit are published. An object that moves from one service to another must reach its new one first: were its old one to lose
// it before, the agent would prune it and make it anew.
import type { ServiceId } from '../../shared/model/ids.ts'
import type { ServiceSpec } from '../../shared/model/resources.ts'
import { decodeRenderedSet } from '../desired/rendered-set.ts'
import type { ContentStore } from '../store/content/content-store.ts'
import type { Store } from '../store/store.ts'
import type { ServiceRenderer } from './service-render.ts'

/** Lower goes first; equal ones may go together. */
export type PublishRank = 0 | 1 | 2

/** Only gains; gains and loses; only loses. */
export function publishRank(held: ReadonlySet<string>, wanted: ReadonlyMap<string, string>): PublishRank {
  if ([...held].every((id) => wanted.has(id))) return 0
  return [...wanted.keys()].some((id) => !held.has(id)) ? 1 : 2
}

export interface PublishOrderDeps {
  store: Pick<Store, 'desiredOfService'>
  content: Pick<ContentStore, 'get'>
  renderer: Pick<ServiceRenderer, 'render'>
}

/** Of a service at the commit that was read last. What it renders to is kept for the pass that follows. */
export async function rankService({ store, content, renderer }: PublishOrderDeps, id: ServiceId, spec: ServiceSpec): Promise<PublishRank> {
  const rendering = await renderer.render(id, spec)
  if (rendering.kind !== 'good') return 0 // nothing of it changes
  const held = new Set<string>()
  for (const setSha of new Set((await store.desiredOfService(id)).map((row) => row.setSha))) {
    const bytes = setSha === null ? null : await content.get(setSha)
    if (bytes !== null) for (const rowId of decodeRenderedSet(bytes).keys()) held.add(rowId)
  }
  return publishRank(held, rendering.objects)
}
