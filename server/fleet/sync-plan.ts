// The changes of a sync by hand: from the revision that was last allowed in a cluster to the one that its row names
// now. Pure.
import { refText } from '../../shared/kube/object.ts'
import { parseRowId, type ServiceRow } from '../../shared/model/desired.ts'
import type { ServiceStatus } from '../../shared/model/status.ts'
import { SYNC_NAMES_MAX, type SyncChange, type SyncNames } from '../../shared/model/sync.ts'

/** Row ids and documents of a revision. */
export type RevisionObjects = ReadonlyMap<string, string>

/** SM1, as its agent sees it. */
export const waitsForSync = ({ sync, synced, digest, removal }: ServiceRow): boolean =>
  removal === undefined && sync.mode === 'manual' && synced !== digest

/** TG16: what the cluster had: what a person allowed, else what it says it applied. */
export const fromDigest = (row: ServiceRow, status: ServiceStatus | null): string | null => row.synced ?? status?.applied?.digest ?? null

/** The digest that was last allowed in a cluster, as its row says (TG17). Undefined if none was. */
export function lastAllowed(before: ServiceRow | null): string | undefined {
  if (before === null || before.removal !== undefined) return undefined
  return before.sync.mode === 'manual' ? before.synced : before.digest
}

/** `from` null: nothing is there yet, or nothing is known of what is. */
export function compareObjects(
  from: RevisionObjects | null,
  to: RevisionObjects,
): Pick<SyncChange, 'create' | 'change' | 'prune' | 'same'> {
  const create: string[] = []
  const change: string[] = []
  let same = 0
  for (const [id, doc] of to) {
    const before = from?.get(id)
    if (before === undefined) create.push(id)
    else if (before === doc) same += 1
    else change.push(id)
  }
  const prune = [...(from?.keys() ?? [])].filter((id) => !to.has(id))
  return { create: namesOf(create), change: namesOf(change), prune: namesOf(prune), same }
}

export const NOTHING: SyncNames = { count: 0, names: [] }

function namesOf(ids: readonly string[]): SyncNames {
  const names = ids.map((id) => {
    const row = parseRowId(id)
    return row.kind === 'object' ? refText(row.ref) : id
  })
  return { count: ids.length, names: names.sort().slice(0, SYNC_NAMES_MAX) }
}
