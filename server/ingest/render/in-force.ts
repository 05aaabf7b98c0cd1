// RL6: the published revision of a service, by all that its render read. A program with random values (randAlphaNum,
// genCA, a clock) would have another result each time that it runs again, for a lost cache or another build of the
// server: then the first result stays.
import { setDigest } from '../../../shared/kube/canonical.ts'
import { k8sObjectSchema } from '../../../shared/kube/object.ts'
import { orderOf } from '../../../shared/kube/waves.ts'
import type { ServiceId } from '../../../shared/model/ids.ts'
import { decodeRenderedSet } from '../../desired/rendered-set.ts'
import type { RenderedObjects } from '../../render/object-rows.ts'
import type { ContentStore } from '../../store/content/content-store.ts'
import type { Store } from '../../store/store.ts'

export type SetInForce = Pick<RenderedObjects, 'objects' | 'digest' | 'count' | 'hooks'>

/** By `renderedFrom`; null: nothing such is published, or its content is gone. */
export type InForce = (renderedFrom: string) => Promise<SetInForce | null>

export interface InForceDeps {
  store: Pick<Store, 'desiredOfService'>
  content: Pick<ContentStore, 'get'>
}

/** Reads what is published when it is asked first. */
export function inForceOf({ store, content }: InForceDeps, id: ServiceId): InForce {
  let published: Promise<ReadonlyMap<string, { setSha: string; digest: string }>> | null = null
  const read = async () => {
    const found = new Map<string, { setSha: string; digest: string }>()
    for (const { renderedFrom, doc, setSha } of await store.desiredOfService(id))
      if (renderedFrom !== undefined && doc !== null && doc.removal === undefined && setSha !== null && !found.has(renderedFrom))
        found.set(renderedFrom, { setSha, digest: doc.digest })
    return found
  }
  return async (renderedFrom) => {
    published ??= read()
    const known = (await published).get(renderedFrom)
    const bytes = known === undefined ? null : await content.get(known.setSha)
    if (known === undefined || bytes === null) return null
    const objects = decodeRenderedSet(bytes)
    if (setDigest(objects) !== known.digest) return null
    return { objects, digest: known.digest, count: objects.size, hooks: [...objects.values()].filter(isHook).length }
  }
}

const isHook = (doc: string): boolean =>
  ['hook', 'skipped'].includes(orderOf(k8sObjectSchema.parse(JSON.parse(doc)).metadata.annotations).kind)
