// An object that moves from one service to another with one commit: the server saw both revisions and wrote it into the
// giver's row. Until the taker's revision is read, the object has no other owner, and it must not be deleted in
// between. Pure.
import { keyOutsideNamespaces, namesObject } from '../../../../shared/kube/object.ts'
import { type ServiceId, serviceKey, serviceText } from '../../../../shared/runtime/ids.ts'
import { deletionText } from '../../../messages/deletion-messages.ts'
import type { Handover, Taker } from '../../snapshot/watch/service-registry.ts'

/** The keys that the objects of handovers may have in this cluster (`namesObject`). */
export const handedOver = (handovers: readonly Handover[]): ReadonlySet<string> =>
  new Set(handovers.flatMap(({ object }) => [object, keyOutsideNamespaces(object)]))

/** PR8: why an object is kept for those that are to have it, or null. A taker may have handed it on before it had it.
 */
export function waitsForTakers(object: string, handovers: readonly Handover[], takerOf: (id: ServiceId) => Taker): string | null {
  const asked = new Set<string>()
  const isOfIt = (handover: Handover) => namesObject(handover.object, object)
  const open = handovers.filter(isOfIt)
  for (let handover = open.pop(); handover !== undefined; handover = open.pop()) {
    const taker = takerOf(handover)
    const waits = judgeHandover(handover, taker)
    if (waits !== null) return waits
    if (taker.kind !== 'read' || asked.has(serviceKey(handover))) continue
    asked.add(serviceKey(handover))
    open.push(...taker.handover.filter(isOfIt))
  }
  return null
}

/**
 * Returns the reason to keep the object. Null means that the taker does not want the object, so that the usual rules
 * decide. An object that the taker wants is released to it before this check.
 */
export function judgeHandover({ project, service, after }: Handover, taker: Taker): string | null {
  const name = serviceText(serviceKey({ project, service }))
  if (taker.kind === 'unread') return deletionText('moving', { service: name })
  // `after`: the taker's revision when the giver lost the object; the one that names it comes later.
  if (taker.kind === 'read' && taker.digest === after) return deletionText('moving_next', { service: name })
  return null
}
