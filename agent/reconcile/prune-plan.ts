// What to do with objects that the revision no longer names. Pure; the guard looks at all of it before any step is carried out.
import { groupOf, type ObjectRef, versionOf } from '../../shared/kube/object.ts'
import { comparePrune, PRUNE_STAGE_WAITED, pruneStage } from '../../shared/kube/order.ts'
import type { InventoryEntry } from '../state/agent-state.ts'
import { isOurs, note, type PlanView, problem, type Step, type Verdict } from './plan.ts'
import { isStillToCome, type Problem } from './situation.ts'

export interface PrunePlan {
  /** What would be deleted in all: what the guard counts. */
  doomed: ObjectRef[]
  /** Only of the first prune stage that has anything to do. */
  steps: Step[]
  problems: Map<string, Problem | null>
}

/** PR6, OR2: what to do with objects that the revision no longer names. The guard looks at `doomed` before any of `steps` is carried out. */
export function planPrune(
  view: PlanView,
  leaving: Iterable<string>,
  options: { wantedElsewhere(key: string): boolean; orphan: boolean },
): PrunePlan {
  const problems = new Map<string, Problem | null>()
  const quiet: Step[] = []
  const doomed: Step[] = []
  const pending: ObjectRef[] = []
  for (const key of leaving) {
    const entry = view.inventory.get(key)
    if (entry === undefined) continue
    const verdict = judgeLeaving(view, key, entry, options)
    note(view, problems, key, verdict)
    if (verdict.kind === 'step') (verdict.step.kind === 'delete' ? doomed : quiet).push(verdict.step)
    else pending.push(entry.ref)
  }
  const open = [...doomed.map(({ ref }) => ref), ...pending]
  return { doomed: open.sort(comparePrune), steps: nextToGo(quiet, doomed, pending), problems }
}

/** Objects that are merely let go never wait. Deletes go stage by stage; custom resources must be gone before the next stage begins, and
 *  CRDs and Namespaces begin when all else is gone. */
function nextToGo(quiet: Step[], doomed: Step[], pending: readonly ObjectRef[]): Step[] {
  const stage = Math.min(...doomed.map(({ ref }) => pruneStage(ref)))
  const lastWaited = pruneStage({ group: 'apiextensions.k8s.io', kind: 'CustomResourceDefinition' })
  const blocked = pending.some((ref) => pruneStage(ref) < stage && (pruneStage(ref) === PRUNE_STAGE_WAITED || stage >= lastWaited))
  const steps = blocked ? [] : doomed.filter(({ ref }) => pruneStage(ref) === stage)
  return [...quiet, ...steps].sort((a, b) => comparePrune(a.ref, b.ref))
}

function judgeLeaving(
  view: PlanView,
  key: string,
  { ref, apiVersion, uid, appliedDoc }: InventoryEntry,
  { wantedElsewhere, orphan }: { wantedElsewhere(key: string): boolean; orphan: boolean },
): Verdict {
  const forget: Verdict = { kind: 'step', step: { kind: 'forget', key, ref } }
  if (wantedElsewhere(key)) return forget
  const lookup = view.findAny(groupOf(apiVersion), versionOf(apiVersion), ref.kind)
  // Complete discovery does not know the kind: no object of it can exist.
  if (lookup.kind === 'unserved') return forget
  if (lookup.kind === 'stale') return problem({ kind: 'unknown' })
  const { resource } = lookup
  const found = view.view(resource, key)
  if (found.kind === 'unknown') return problem({ kind: 'unknown' })
  if (found.kind === 'absent') return forget
  const { live } = found
  const appliedByUs = appliedDoc !== null && uid === live.uid
  if (live.owner.kind === 'none' ? !appliedByUs : !isOurs(view, live) && !(live.owner.kind === 'other' && appliedByUs)) return forget
  if (live.deleting !== null) return problem({ kind: 'waiting', on: key, message: live.deleting })
  const before = view.problems.get(key)
  if (before?.kind === 'failed' && (before.retryAtMs === null || isStillToCome(before.retryAtMs, view.nowMs))) return problem(before)
  if (orphan || live.keep !== null) return { kind: 'step', step: { kind: 'orphan', key, ref, resource } }
  return { kind: 'step', step: { kind: 'delete', key, ref, resource, uid: live.uid } }
}
