// Decides when an object may be deleted in order to recreate it, because the API server refuses to change a field of
// it. Pure, except for the stored note: written before the delete, so that no restart recreates it twice, and removed
// when the new object exists.
import type { ApplyOptions } from '../../../shared/kube/apply-options.ts'
import { sha256Hex } from '../../../shared/kube/canonical.ts'
import { allowsPrune } from '../../../shared/kube/keep-marks.ts'
import type { K8sObject, ObjectRef } from '../../../shared/kube/object.ts'
import { deletionText } from '../../messages/deletion-messages.ts'
import type { Recreate } from '../snapshot/kept-notes.ts'
import type { NotAgain } from '../snapshot/situation.ts'
import type { LiveObject } from '../snapshot/watch/live-object.ts'
import { type ConfirmedNames, type Permit, permitRecreate } from './prune/deletion.ts'
import type { DeletionHold } from './prune/prune-guard.ts'

/** More deletions do not help against a program that always creates the object first. */
export const RECREATES_MAX = 3
const REFUSED_CHARS_MAX = 300

export const documentId = (sent: string): string => sha256Hex(sent).slice(0, 16)

export interface RecreateCase {
  ref: ObjectRef
  recreate: ApplyOptions['recreate']
  sent: string
  /** Null if the present object is not watched, so not ours. */
  live: LiveObject | null
  isOurs: boolean
  protect: boolean
  hold: DeletionHold | null
  /** The confirmed names of this revision. */
  confirmed: ConfirmedNames
  before: Recreate | undefined
}

/** AO4, AO5, PR14: a permit: delete it. Otherwise the reason; null if nobody asked for it. */
export function permitAgain(request: RecreateCase): Permit | NotAgain | null {
  const { ref, recreate, sent, live, isOurs, protect, hold, confirmed, before } = request
  if (recreate === 'never') return null
  const no = (why: string): NotAgain => ({ why })
  if (live === null || !isOurs) return no(deletionText('not_managed'))
  if (protect) return no(deletionText('not_of_protected'))
  if (live.keep !== null) return no(deletionText('not_marked', { mark: live.keep }))
  if (before?.sent === documentId(sent)) {
    if (before.refused !== undefined) return no(deletionText('refused_again', { failure: before.refused }))
    if (before.count >= RECREATES_MAX && before.uid !== live.uid) return no(deletionText('raced', { count: before.count }))
  }
  const allowed = live.pruneAllowed === true || allowsPrune((JSON.parse(sent) as K8sObject).metadata.annotations)
  return permitRecreate({ ref, live, ownWord: recreate === 'own', allowed, hold, confirmed })
}

export const isPermit = (verdict: Permit | NotAgain | null): verdict is Permit => verdict !== null && 'cause' in verdict

/** The note of one more delete. */
export function nextRecreate(before: Recreate | undefined, sent: string, uid: string): Recreate {
  const same = before?.sent === documentId(sent) ? before : undefined
  return { sent: documentId(sent), uid, count: same === undefined ? 1 : same.count + (same.uid === uid ? 0 : 1) }
}

/** Kinds whose Pods must be gone before the next one: they hold host ports, volumes and names. */
const OWN_PODS: ReadonlySet<string> = new Set(['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'Job', 'ReplicationController'])
export const takesPodsAlong = ({ group, kind }: ObjectRef): boolean => ['', 'apps', 'batch'].includes(group) && OWN_PODS.has(kind)

interface Noted {
  readonly recreates: ReadonlyMap<string, Recreate>
  readonly wanted: ReadonlyMap<string, { sent: string }>
}

/** To be stored before the first of these deletes is sent. */
export function noteRecreates(
  { recreates, wanted }: Noted,
  steps: ReadonlyArray<{ kind: string; key: string; uid?: string }>,
): ReadonlyMap<string, Recreate> {
  const notes = new Map<string, Recreate>()
  for (const { kind, key, uid = '' } of steps) {
    const sent = kind === 'recreate' ? wanted.get(key)?.sent : undefined
    if (sent !== undefined) notes.set(key, nextRecreate(recreates.get(key), sent, uid))
  }
  return notes
}

/** The API server can never take the successor: no further object is deleted for it. Null means that this is known
 *  already. */
export function refusedRecreate({ recreates }: Pick<Noted, 'recreates'>, key: string, message: string): Recreate | null {
  const before = recreates.get(key)
  return before === undefined || before.refused !== undefined ? null : { ...before, refused: message.slice(0, REFUSED_CHARS_MAX) }
}
