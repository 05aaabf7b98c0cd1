// Decides whether objects that a revision no longer names may be deleted. A wrong render, an empty folder or a lost
// generator input looks like the wish to delete everything. So a prune that is large, or has objects that cannot be
// restored, waits for a person. Pure.
import { deletionName } from '../../../../shared/kube/data-loss.ts'
import type { ObjectRef } from '../../../../shared/kube/object.ts'
import { deletionText } from '../../../messages/deletion-messages.ts'
import { refusedDeletion } from '../../snapshot/permits.ts'
import type { ServiceSnapshot } from '../../snapshot/service-model.ts'
import { confirmationOf, isConfirmedHere } from '../gates/confirmation.ts'

/** Up to this many objects are never too many by their share alone. */
export const PRUNE_COUNT_SMALL = 5

export interface GuardCounts {
  /** Everything that would be deleted. */
  prune: readonly ObjectRef[]
  /** Those of them that take data or other objects along, and that no annotation allows. */
  precious: readonly ObjectRef[]
  /** Objects that the revision names. */
  desiredCount: number
  /** Objects of the service that exist, those of `prune` among them. */
  ownedCount: number
  protect: boolean
  maxPrunePercent: number
  /** RP2: the server was restored from a backup, and this revision is the one of the backup. */
  restored: boolean
  /** RL5: the served APIs of the cluster changed, and may be why an object is missing. */
  factsOnly: boolean
}

/** RP2, RL5: null, or why nothing is deleted for this revision until a person confirms that. */
export function doubtOf({ restored, factsOnly }: Pick<GuardCounts, 'restored' | 'factsOnly'>): string | null {
  if (restored) return deletionText('restored')
  return factsOnly ? deletionText('facts_only') : null
}

/** PR1–PR3, RP2, RL5: null, or why nothing of this revision is pruned until a person confirms that very revision.
 *  Counted for one service. */
export function whyGuarded({
  prune,
  precious,
  desiredCount,
  ownedCount,
  protect,
  maxPrunePercent,
  restored,
  factsOnly,
}: GuardCounts): string | null {
  if (prune.length === 0) return null
  const doubt = doubtOf({ restored, factsOnly })
  if (doubt !== null) return doubt
  if (protect) return deletionText('protected')
  if (desiredCount === 0) return deletionText('empty_revision', { count: prune.length })
  if (precious.length > 0) {
    const kinds = [...new Set(precious.map((ref) => deletionName(ref).split(' ')[0]))].sort().join(', ')
    return deletionText('precious', { precious: precious.length, count: prune.length, kinds })
  }
  if (prune.length > PRUNE_COUNT_SMALL && prune.length * 100 > ownedCount * maxPrunePercent) {
    return deletionText('too_many', { count: prune.length, owned: ownedCount, percent: maxPrunePercent })
  }
  return null
}

/** Holds every deletion of a service: a prune, a recreation, the object of a hook. */
export interface DeletionHold {
  why: string
  /** A person may confirm the deletions. Else something else ends the hold. */
  asks: boolean
}

/** PR7: a disk can return to an older state, by a power failure or a snapshot; its revisions do not know later
 *  objects of the cluster. False means that the replica is not older than the cluster, or a person has seen at the
 *  site what this agent would delete. */
export const mayBeOlder = (model: ServiceSnapshot, { isCurrent }: { isCurrent(): boolean }): boolean =>
  !isCurrent() && !isConfirmedHere(model)

/** PR14: holds deletions until the server confirmed the replica. */
export function deletionHold(model: ServiceSnapshot, deps: { isCurrent(): boolean }): DeletionHold | null {
  const { row } = model
  const refused = refusedDeletion(model, false)
  if (refused !== null) return { why: refused, asks: false }
  if (row === null) return { why: deletionText('no_revision'), asks: false }
  if (mayBeOlder(model, deps)) return { why: deletionText('recreated_when_current'), asks: false }
  const doubt = confirmationOf(model, row).isConfirmed
    ? null
    : doubtOf({ restored: row.restored === true, factsOnly: row.factsOnly === true })
  return doubt === null ? null : { why: doubt, asks: true }
}
