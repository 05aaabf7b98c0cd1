// What to do with objects that the revision no longer names. Pure; the guard looks at all of it before any step is carried out.
import { otherOwner } from '../../../shared/kube/foreign-owners.ts'
import { allowsPrune, isKeptByOthers, keepMark, keepsFrom } from '../../../shared/kube/keep-marks.ts'
import { groupOf, type K8sObject, type ObjectRef, refKey, versionOf } from '../../../shared/kube/object.ts'
import { comparePrune, PRUNE_STAGE_WAITED, pruneStage } from '../../../shared/kube/order.ts'
import { waveOfDocument } from '../../../shared/kube/waves.ts'
import type { InventoryEntry } from '../../state/agent-state.ts'
import { again, isOurs, note } from '../plan.ts'
import { type PlanView, problem, type Verdict } from '../plan-view.ts'
import { isRefusedStill, type Problem } from '../situation.ts'
import type { Step } from '../step.ts'
import type { LiveObject } from '../watch/live-object.ts'

export interface PruneOptions {
  /** Another service has it in its revision, or in force. */
  wantedElsewhere(key: string): boolean
  /** UIDs of what is applied under the names that revisions give: an API server may serve one object in two groups. */
  uidsInForce(): ReadonlySet<string>
  /** Why it waits for the service that is to take it over, or null. */
  handover(key: string): string | null
  /** NS2: the key of the namespace that goes with the service, or null. */
  namespaceGoes?: string | null
  /** The whole service goes. */
  removal: boolean
  orphan: boolean
}

export interface PrunePlan {
  /** What would be deleted in all: what the guard counts. */
  doomed: ObjectRef[]
  /** Keys of those that an annotation allows to be deleted, whatever they hold. */
  allowed: ReadonlySet<string>
  /** Only of the first prune stage that has anything to do. */
  steps: Step[]
  problems: Map<string, Problem | null>
  /** Something waits for another service's revision. */
  awaitsTaker: boolean
}

/** PR6, OR2: what to do with objects that the revision no longer names. The guard looks at `doomed` before any of `steps` is carried out. */
export function planPrune(view: PlanView, leaving: Iterable<string>, options: PruneOptions): PrunePlan {
  const problems = new Map<string, Problem | null>()
  const allowed = new Set<string>()
  const quiet: Step[] = []
  const doomed: Step[] = []
  const pending: ObjectRef[] = []
  const handedOver: ObjectRef[] = []
  const uids = lazily(() => options.uidsInForce())
  for (const key of leaving) {
    const entry = view.inventory.get(key)
    if (entry === undefined) continue
    const waits = options.wantedElsewhere(key) ? null : options.handover(key)
    if (waits !== null) {
      const now = judgeLeaving(view, key, entry, options, uids, new Set())
      if (now.kind === 'step' && now.step.kind === 'forget') {
        // It is not there or not ours any more: nobody needs to be waited for, and a removal comes to its end.
        note(view, problems, key, now)
        quiet.push(now.step)
        continue
      }
      problems.set(key, { kind: 'waiting', on: key, message: waits })
      handedOver.push(entry.ref)
      continue
    }
    const verdict = judgeLeaving(view, key, entry, options, uids, allowed)
    note(view, problems, key, verdict)
    if (verdict.kind === 'step') (verdict.step.kind === 'delete' ? doomed : quiet).push(verdict.step)
    else pending.push(entry.ref)
  }
  const open = [...doomed.map(({ ref }) => ref), ...pending]
  const isInWave = lastWave(view, open)
  const steps = nextToGo(
    quiet,
    doomed.filter(({ ref }) => isInWave(ref)),
    [...pending.filter(isInWave), ...handedOver],
  )
  return { doomed: open.sort(comparePrune), allowed, steps, problems, awaitsTaker: handedOver.length > 0 }
}

const PRUNE_STAGE_LAST = pruneStage({ group: 'apiextensions.k8s.io', kind: 'CustomResourceDefinition' })

/** OR5: waves go backwards, each when the one after it is gone. Objects without one are all of one wave; what takes others along (a CRD, a Namespace) goes after all of them, whatever
 *  its wave (OR2). */
function lastWave(view: PlanView, open: readonly ObjectRef[]): (ref: ObjectRef) => boolean {
  const waveOf = (ref: ObjectRef) =>
    pruneStage(ref) >= PRUNE_STAGE_LAST ? Number.NEGATIVE_INFINITY : waveOfDocument(view.inventory.get(refKey(ref))?.appliedDoc ?? null)
  let last = Number.NEGATIVE_INFINITY
  for (const ref of open) last = Math.max(last, waveOf(ref))
  return (ref) => waveOf(ref) === last
}

function lazily<T>(make: () => T): () => T {
  let made: { value: T } | null = null
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

/** Objects that are merely let go never wait. Deletes go stage by stage; custom resources must be gone before the next stage begins, and
 *  CRDs and Namespaces begin when all else is gone. */
function nextToGo(quiet: Step[], doomed: Step[], pending: readonly ObjectRef[]): Step[] {
  const stage = Math.min(...doomed.map(({ ref }) => pruneStage(ref)))
  const blocked = pending.some((ref) => pruneStage(ref) < stage && (pruneStage(ref) === PRUNE_STAGE_WAITED || stage >= PRUNE_STAGE_LAST))
  const steps = blocked ? [] : doomed.filter(({ ref }) => pruneStage(ref) === stage)
  return [...quiet, ...steps].sort((a, b) => comparePrune(a.ref, b.ref))
}

function judgeLeaving(
  view: PlanView,
  key: string,
  entry: InventoryEntry,
  { wantedElsewhere, orphan, removal, namespaceGoes }: PruneOptions,
  uidsInForce: () => ReadonlySet<string>,
  allowed: Set<string>,
): Verdict {
  const { ref, apiVersion, uid, appliedDoc } = entry
  const forget: Verdict = { kind: 'step', step: { kind: 'forget', key, ref } }
  if (wantedElsewhere(key)) return forget
  const lookup = view.findAny(groupOf(apiVersion), versionOf(apiVersion), ref.kind)
  // Complete discovery does not know the kind: no object of it can exist.
  if (lookup.kind === 'unserved') return forget
  // No event would tell that it answers again: it may not be watched.
  if (lookup.kind === 'stale') return problem({ ...again(view, key, 'unserved'), kind: 'unserved', message: silentText(apiVersion) })
  const { resource } = lookup
  const found = view.view(resource, key)
  if (found.kind === 'unknown') return problem(found)
  if (found.kind === 'absent') return forget
  const { live } = found
  // PR10: the very object that a revision names in another group or version of its kind.
  if (live.uid !== '' && uidsInForce().has(live.uid)) return forget
  const appliedByUs = appliedDoc !== null && uid === live.uid
  if (live.owner.kind === 'service' ? !isOurs(view, live) : !appliedByUs || wasLetGo(live)) return forget
  // Also what is on its way out already: nobody is asked about the rest because of it.
  if (live.pruneAllowed === true) allowed.add(refKey(ref))
  if (live.deleting !== null) return problem({ kind: 'waiting', on: key, message: live.deleting })
  const before = view.problems.get(key)
  if (isRefusedStill(before, view.nowMs)) return problem(before)
  const applied = appliedByUs ? marksOf(appliedDoc) : null
  const kept = key === namespaceGoes ? isKeptByOthers(live.keep) || hasOtherMark(live, applied, ref) : isKept(live, applied, ref, removal)
  if (orphan || kept) return { kind: 'step', step: { kind: 'orphan', key, ref, resource } }
  if (allowsPrune(applied?.annotations)) allowed.add(refKey(ref))
  return { kind: 'step', step: { kind: 'delete', key, ref, resource, uid: live.uid, resourceVersion: live.resourceVersion } }
}

const silentText = (apiVersion: string): string =>
  `the API of ${apiVersion} does not answer; start its server, or delete its APIService; what is to become of this object is decided as soon as it answers`

/** RC12: neither mark nor field of ours is left: the answer to that was lost with a crash or on the way. What kept it then may be off it by now. */
const wasLetGo = ({ ownedHash }: LiveObject): boolean => ownedHash === ''

type Marks = Pick<K8sObject['metadata'], 'labels' | 'annotations'>

const marksOf = (doc: string): Marks => (JSON.parse(doc) as K8sObject).metadata

/** IV4: by what it says itself, by what the manifest said that was applied last, or because another tool has put its mark on it. */
function isKept(live: LiveObject, applied: Marks | null, ref: ObjectRef, removal: boolean): boolean {
  const deed = removal ? 'removal' : 'prune'
  return keepsFrom(deed, live.keep) || keepsFrom(deed, keepMark(applied?.annotations)) || hasOtherMark(live, applied, ref)
}

const hasOtherMark = ({ otherMark }: LiveObject, applied: Marks | null, ref: ObjectRef): boolean =>
  otherMark !== undefined && (applied === null || otherOwner(applied, ref) !== otherMark)
