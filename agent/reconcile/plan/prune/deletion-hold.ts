// What holds every deletion of a service, whatever it is for: a prune, an object that is made again, the object of a hook. Pure.
import type { ServiceSnapshot } from '../../snapshot/service-model.ts'
import { confirmationOf, isConfirmedHere } from '../gates/confirmation.ts'
import { doubtOf } from './prune-guard.ts'

export interface DeletionHold {
  why: string
  /** A person may confirm the deletions. Else something else ends the hold. */
  asks: boolean
}

/** PR7: a disk can come back older, by a power cut or a snapshot; its revisions never heard of what came later, whose objects are in the cluster. */
export const MAYBE_OLDER = 'at the first contact with the server since this agent started: until then an older disk could have come back'

/** PR7: null: the replica is not older than the cluster, or a person has seen at the site what this agent would delete. */
export const olderHold = (model: ServiceSnapshot, { isCurrent }: { isCurrent(): boolean }): string | null =>
  isCurrent() || isConfirmedHere(model) ? null : MAYBE_OLDER

/** PR14 */
export function deletionHold(model: ServiceSnapshot, deps: { isCurrent(): boolean }): DeletionHold | null {
  const { row } = model
  if (row === null) return { why: 'waits for a complete revision of the service', asks: false }
  const older = olderHold(model, deps)
  if (older !== null) return { why: `deleted and made again ${older}`, asks: false }
  const doubt = confirmationOf(model, row).isConfirmed
    ? null
    : doubtOf({ restored: row.restored === true, factsOnly: row.factsOnly === true })
  return doubt === null ? null : { why: doubt, asks: true }
}
