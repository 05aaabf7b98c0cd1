// The objects that the removal of a service deletes in one cluster, from the reports of its agent and the rows that it
// was sent. Pure. The agent has the last word: it sees what the objects hold at the moment of their deletion, and keeps
// more than this, never less (RM1, RM3).
import { CLAIMS_LOST, deletionName, lossKind, lossText, takesAlong } from '../../shared/kube/data-loss.ts'
import { allowsPrune, keepMark, keepsFrom } from '../../shared/kube/keep-marks.ts'
import { type K8sObject, type ObjectRef, refKey } from '../../shared/kube/object.ts'
import { comparePrune } from '../../shared/kube/order.ts'
import type { ServiceRow } from '../../shared/model/desired.ts'
import type { RemovalView } from '../../shared/model/removal-views.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'

/** Names that a person confirmed with what is lost, by service key and cluster: of objects that were shown, and no
 *  others. */
export type ConfirmedData = ReadonlyMap<string, ReadonlyMap<ClusterId, readonly string[]>>

export interface HeldObjects {
  row: Pick<ServiceRow, 'namespace' | 'sync' | 'count'>
  policy: 'prune' | 'orphan'
  /** By refKey. Null means not stored any more. */
  sent: ReadonlyMap<string, { ref: ObjectRef; object: K8sObject }> | null
  /** The last report of the agent for each object; empty if it reported nothing of the service yet. */
  reported: ReadonlyArray<{ ref: ObjectRef; reason: string }>
  /** PR8: the service that takes over the object of that key, `project/service`. Null means none. Undefined: none for
   *  any object. */
  takenBy?: ((object: string) => string | null) | undefined
}

type Effect = Pick<RemovalView, 'holding'> & {
  /** Without names: nothing else is known than how many there are. */
  deletes: { count: number; names: string[] }
  stays: { count: number; first: Array<{ name: string; why: string }> }
  takenOver: Array<{ name: string; by: string }>
}

const IS_ORPHAN = 'deletionPolicy is orphan'

/** NS2: the namespace that the agent makes for a service is in no manifest. */
const isOwnNamespace = ({ row, sent }: HeldObjects, { group, kind, name }: ObjectRef, key: string): boolean =>
  group === '' && kind === 'Namespace' && name === row.namespace && sent?.has(key) !== true

export function removalEffect(held: HeldObjects): Effect {
  const { row, policy, sent, reported } = held
  const deletes: ObjectRef[] = []
  const holding: Effect['holding'] = []
  const stays: Effect['stays']['first'] = []
  const takenOver: Effect['takenOver'] = []
  if (reported.length === 0 && sent === null) {
    const goes = policy === 'prune' ? row.count : 0
    return { deletes: { count: goes, names: [] }, holding, stays: { count: row.count - goes, first: [] }, takenOver }
  }
  const refs = reported.length > 0 ? reported : [...(sent?.values() ?? [])].map(({ ref }) => ({ ref, reason: '' }))
  for (const { ref, reason } of [...refs].sort((a, b) => comparePrune(a.ref, b.ref))) {
    const key = refKey(ref)
    const object = sent?.get(key)?.object
    const annotations = object?.metadata.annotations
    const why =
      reason === 'OwnedByOther'
        ? 'belongs to another owner'
        : policy === 'orphan'
          ? IS_ORPHAN
          : isOwnNamespace(held, ref, key) && row.sync.deleteNamespace !== true
            ? 'sync.deleteNamespace is not set'
            : keptBy(annotations)
    const name = deletionName(ref)
    const by = reason === 'OwnedByOther' ? null : (held.takenBy?.(key) ?? null)
    if (by !== null) {
      takenOver.push({ name, by })
      continue
    }
    const loss = why === null && !allowsPrune(annotations) ? lossOf(ref, object) : null
    if (why !== null) stays.push({ name, why })
    else if (loss === null) deletes.push(ref)
    else holding.push({ name, ...loss })
  }
  const goes = { count: deletes.length, names: deletes.map(deletionName) }
  return { deletes: goes, holding, stays: { count: stays.length, first: stays }, takenOver }
}

function keptBy(annotations: K8sObject['metadata']['annotations']): string | null {
  const mark = keepMark(annotations)
  return keepsFrom('removal', mark) ? `kept by ${mark}` : null
}

/** RM1, RM3: the data that is lost with an object, or with others that go along. */
function lossOf(ref: ObjectRef, object: K8sObject | undefined): Omit<RemovalView['holding'][number], 'name'> | null {
  const takes = object === undefined ? null : takesAlong(object)
  if (takes === 'claims') return { what: CLAIMS_LOST, kind: 'data' }
  const kind = lossKind(ref)
  if (kind === null || kind === 'class' || takes === 'nothing') return null
  return { what: lossText(ref) ?? '', kind }
}
