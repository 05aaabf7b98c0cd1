// RL6: the published revision of a service, by all that its render read. A program with random values (randAlphaNum,
// genCA, a clock) would have another result each time that it runs again, for a lost cache or another build of the
// server: then the first result stays.
import { setDigest } from '../../../shared/kube/canonical.ts'
import { k8sObjectSchema } from '../../../shared/kube/object.ts'
import { orderOf } from '../../../shared/kube/waves.ts'
import { isSealed, isSecretRow, openWith, sealMarkOf, sealObject } from '../../../shared/model/sealed-object.ts'
import type { ServiceId } from '../../../shared/runtime/ids.ts'
import { isProven } from '../../access/placement-proofs.ts'
import type { Sealing } from '../../access/sealing.ts'
import { decodeRenderedSet } from '../../desired/rendered-set.ts'
import type { RenderedObjects } from '../../render/object-rows.ts'
import type { ContentStore } from '../../store/content/content-store.ts'
import type { Store } from '../../store/store.ts'

export type SetInForce = Pick<RenderedObjects, 'objects' | 'digest' | 'count' | 'hooks'>

/** By `renderedFrom`. Null means that nothing such is published, or its content is gone. `secret`: the render read a
 *  secret. */
export type InForce = (renderedFrom: string, secret: boolean) => Promise<SetInForce | null>

export interface InForceDeps {
  store: Pick<Store, 'desiredOfService'>
  content: Pick<ContentStore, 'get'>
  /** Absent means that rows stay in clear. */
  sealing?: Pick<Sealing, 'keysFor' | 'keysOf' | 'proofKey'> | undefined
}

interface Published {
  setSha: string
  digest: string
  proven: boolean
}

/** Reads what is published when it is asked first. */
export function inForceOf({ store, content, sealing }: InForceDeps, id: ServiceId): InForce {
  let published: Promise<ReadonlyMap<string, Published>> | null = null
  const read = async () => {
    const found = new Map<string, Published>()
    for (const row of await store.desiredOfService(id)) {
      const { renderedFrom, doc, setSha } = row
      if (renderedFrom === undefined || doc === null || doc.removal !== undefined || setSha === null) continue
      if (found.get(renderedFrom)?.proven === true) continue
      const proven = sealing === undefined || isProven(sealing, row)
      if (proven || !found.has(renderedFrom)) found.set(renderedFrom, { setSha, digest: doc.digest, proven })
    }
    return found
  }
  return async (renderedFrom, secret) => {
    published ??= read()
    const known = (await published).get(renderedFrom)
    const bytes = known === undefined ? null : await content.get(known.setSha)
    if (known === undefined || bytes === null) return null
    const rows = decodeRenderedSet(bytes)
    if (setDigest(rows) !== known.digest) return null
    // SL16: whoever writes the store could name the set of another cluster as that of these inputs.
    if (!known.proven && rows.values().some(isSealed)) return null
    const objects = sealing === undefined ? rows : sealedSet(sealing, id, rows, secret)
    if (objects === null) return null
    const digest = objects === rows ? known.digest : setDigest(objects)
    return { objects, digest, count: objects.size, hooks: [...objects.values()].filter(isHook).length }
  }
}

/** SL6: the same objects under the key that seals now, so that values which a program drew by chance stay. Null means
 *  that a row does not open. */
function sealedSet(
  sealing: NonNullable<InForceDeps['sealing']>,
  id: ServiceId,
  published: ReadonlyMap<string, string>,
  secret: boolean,
): ReadonlyMap<string, string> | null {
  const keys = sealing.keysFor(id)
  if (keys === null) return published
  let changed = false
  const objects = new Map<string, string>()
  for (const [row, doc] of published) {
    const mark = sealMarkOf(doc)
    const isDue = mark === null ? secret || isSecretRow(id, row) : mark.key !== keys.id
    const held = mark === null ? null : sealing.keysOf(mark.key, id)
    const plain = !isDue || mark === null ? doc : held === null ? null : openWith(held, row, doc)
    if (plain === null) return null
    objects.set(row, isDue ? sealObject(keys, row, k8sObjectSchema.parse(JSON.parse(plain)), plain) : doc)
    changed ||= isDue
  }
  return changed ? objects : published
}

const isHook = (doc: string): boolean =>
  ['hook', 'skipped'].includes(orderOf(k8sObjectSchema.parse(JSON.parse(doc)).metadata.annotations).kind)
