// The object that a prune waits for, and the message when it has waited for longer than the new objects may take.
import { type ObjectRef, refKey, refText } from '../../../../shared/kube/object.ts'
import { durationMs } from '../../../../shared/model/resources.ts'
import { isWell } from '../../../../shared/model/status.ts'
import { deletionText } from '../../../messages/deletion-messages.ts'
import type { Services, Site, Turns } from '../../ports.ts'
import { isInForce, othersIn } from '../../snapshot/fields/shaping.ts'
import type { ServiceSnapshot } from '../../snapshot/service-model.ts'
import { isApart, isKeptAsMade } from '../left-alone.ts'
import { viewIn } from '../plan-view.ts'
import { describeProblem } from '../problem-text.ts'
import { planView } from '../turn-view.ts'
import { isHeldByLeaving } from './held-by-leaving.ts'

export interface PruneWait {
  /** The object that the prune waits for. */
  ref: ObjectRef
  until: 'applied' | 'healthy'
  /** Its problem, in words. */
  why: string
}

/** The first object, in order, that keeps a prune waiting. */
export function firstNotReady(model: ServiceSnapshot, deps: Site & Services & Turns, doomed: readonly ObjectRef[]): PruneWait | null {
  const { pruneWhen } = model.sync()
  for (const { ref, problem, hook } of model.unread.values())
    if (hook === undefined) return { ref, until: 'applied', why: describeProblem(problem).message }
  const view = planView(model, deps)
  for (const wanted of model.wanted.values()) {
    const { key, ref } = wanted
    const applied = model.inventory.get(key)?.appliedDoc ?? null
    if (isApart(wanted, applied) || isKeptAsMade(wanted)) continue
    const live = viewIn(view, wanted)
    const problem = model.problems.get(key)
    if (pruneWhen === 'applied' && problem !== undefined && isHeldByLeaving(problem, docsOf(model, doomed))) continue
    if (problem !== undefined || !isInForce(wanted, view.leave(wanted), othersIn(live), applied))
      return { ref, until: 'applied', why: problem === undefined ? deletionText('not_sent') : describeProblem(problem).message }
    if (pruneWhen === 'applied') continue
    if (live.kind === 'absent' && live.ended?.outcome === 'succeeded') continue
    if (live.kind === 'absent' && live.ended !== undefined) return { ref, until: 'healthy', why: live.ended.message }
    if (live.kind !== 'present') return { ref, until: 'healthy', why: deletionText('not_seen') }
    const { word, reason, message } = live.live.health
    if (!isWell(word)) return { ref, until: 'healthy', why: message || reason }
  }
  return null
}

const docsOf = ({ inventory }: ServiceSnapshot, refs: readonly ObjectRef[]): string[] =>
  refs.flatMap((ref) => inventory.get(refKey(ref))?.appliedDoc ?? [])

/** PR11: `names`: of the kept objects. */
export function waitText({ ref, until, why }: PruneWait, names: string, pruneWhen: string, overdueAfter: string | null): string {
  const object = refText(ref)
  if (overdueAfter === null) return deletionText('when_ready', { object, until, pruneWhen, names })
  const overdue = { object, deadline: overdueAfter, why, names }
  return until === 'healthy' ? deletionText('overdue_healthy', overdue) : deletionText('overdue_applied', overdue)
}

/** When waiting becomes news. Null means that the time has passed. */
export function overdueAtMs({ received }: ServiceSnapshot, healthDeadline: string, nowMs: number): number | null {
  const atMs = (received?.atMs ?? nowMs) + durationMs(healthDeadline)
  return atMs > nowMs ? atMs : null
}
