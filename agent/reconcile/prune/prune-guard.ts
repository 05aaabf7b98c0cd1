// Whether what a revision no longer names may be deleted. A wrong render, an empty folder or a lost generator input looks just like a wish to
// delete everything; so whatever is large, or holds what cannot be made again, waits for a person.
import { type ObjectRef, refKey, refText } from '../../../shared/kube/object.ts'
import { comparePrune } from '../../../shared/kube/order.ts'
import type { PruneRefusal } from '../../../shared/model/status.ts'

/** Up to this many objects are never too many by their share alone. */
export const PRUNE_COUNT_SMALL = 5
const NAMES_MAX = 200

/** Deleting one of these deletes what is in it, or data. */
const PRECIOUS: ReadonlySet<string> = new Set([
  '/Namespace',
  '/PersistentVolume',
  '/PersistentVolumeClaim',
  'apiextensions.k8s.io/CustomResourceDefinition',
  'storage.k8s.io/StorageClass',
])
export const isPrecious = ({ group, kind }: ObjectRef): boolean => PRECIOUS.has(`${group}/${kind}`)

export interface PruneCounts {
  /** What would be deleted. */
  prune: readonly ObjectRef[]
  /** Objects that the revision names. */
  desiredCount: number
  /** Objects of the service that exist, those of `prune` among them. */
  ownedCount: number
  digest: string
  /** The digest that a person confirmed. */
  pruneConfirmed: string | undefined
  protect: boolean
  maxPrunePercent: number
  /** PR3: keys of precious ones that an annotation allows. */
  allowed?: ReadonlySet<string>
  /** RP2: the server was set back to a backup, and this revision is what the backup says. */
  restored: boolean
  /** RL5: what the cluster itself serves changed, and may be why something is lacking. */
  factsOnly: boolean
}

/** PR1–PR4, RP2, RL5: null, or why nothing of this revision is pruned until a person confirms that very revision. Counted for one service. */
export function guardPrune(counts: PruneCounts): PruneRefusal | null {
  const { prune, digest, ownedCount } = counts
  if (prune.length === 0 || counts.pruneConfirmed === digest) return null
  const why = refusalReason(counts)
  if (why === null) return null
  const names = [...prune].sort(comparePrune).map(refText)
  return { digest, names: names.slice(0, NAMES_MAX), count: prune.length, ownedCount, why }
}

function refusalReason({
  prune,
  desiredCount,
  ownedCount,
  protect,
  maxPrunePercent,
  restored,
  factsOnly,
  allowed,
}: PruneCounts): string | null {
  if (restored)
    return 'the server was restored from a backup, and this revision is older than what the cluster had: commit the wanted state again, or confirm this prune'
  if (factsOnly)
    return 'the version or the API kinds that this cluster serves changed, which may be all that takes these away: make them independent of it, or confirm this prune'
  if (protect) return 'the service is protected: nothing of it is pruned without a person'
  if (desiredCount === 0) return `the revision names no object at all, so all ${prune.length} would be deleted`
  const precious = prune.filter((ref) => isPrecious(ref) && allowed?.has(refKey(ref)) !== true)
  if (precious.length > 0) {
    const kinds = [...new Set(precious.map(({ kind }) => kind))].sort().join(', ')
    return `${precious.length} of ${prune.length} hold other objects or data (${kinds}); the annotation skerry.dev/prune: allowed lets one go without asking`
  }
  if (prune.length > PRUNE_COUNT_SMALL && prune.length * 100 > ownedCount * maxPrunePercent) {
    return `${prune.length} of ${ownedCount} objects are more than ${maxPrunePercent} % (sync.maxPrunePercent)`
  }
  return null
}
