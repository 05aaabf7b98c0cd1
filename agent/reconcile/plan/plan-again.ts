// The part of a plan about an object that cannot be changed, only recreated. Pure.
import { APPLY_PLAINLY } from '../../../shared/kube/apply-options.ts'
import type { ApiResource } from '../../cluster/cluster.ts'
import { isStillToCome, type NotAgain, type Problem } from '../snapshot/situation.ts'
import type { Wanted } from '../snapshot/wanted.ts'
import type { LiveObject, LiveView } from '../snapshot/watch/live-object.ts'
import { type PlanView, type Verdict, viewIn } from './plan-view.ts'
import type { Permit } from './prune/deletion.ts'
import { isPermit, permitAgain } from './recreate.ts'

type Failed = Extract<Problem, { kind: 'failed' }>
type IsOurs = (view: PlanView, live: LiveObject) => boolean

const isImmutable = (problem: Problem | undefined, sent: string): problem is Failed =>
  problem?.kind === 'failed' && problem.failure.kind === 'immutable' && problem.sent === sent

function permitOf(view: PlanView, wanted: Wanted, live: LiveView, isOurs: IsOurs): Permit | NotAgain | null {
  const { key, ref, sent, options = APPLY_PLAINLY } = wanted
  const there = live.kind === 'present' ? live.live : null
  const before = view.recreates?.get(key)
  return permitAgain({
    ref,
    recreate: options.recreate,
    sent,
    live: there,
    isOurs: there !== null && isOurs(view, there),
    protect: view.protect === true,
    hold: view.deletionHold,
    confirmed: view.confirmed,
    before,
  })
}

/** AO4. Null means no recreation. A recreation waits for a gate like the change that it is. */
export function judgeAgain(view: PlanView, wanted: Wanted, live: LiveView, resource: ApiResource, isOurs: IsOurs): Verdict | null {
  const { key, ref, sent } = wanted
  const refused = view.problems.get(key)
  if (!isImmutable(refused, sent) || live.kind !== 'present') return null
  if (refused.retryAtMs !== null && isStillToCome(refused.retryAtMs, view.nowMs)) return { kind: 'problem', problem: refused }
  const permit = permitOf(view, wanted, live, isOurs)
  if (!isPermit(permit)) return null
  const shut = view.gate(wanted, 'change')
  if (shut !== null) return { kind: 'problem', problem: shut }
  const { uid, resourceVersion } = live.live
  return { kind: 'step', step: { kind: 'recreate', key, ref, resource, uid, resourceVersion, permit } }
}

/** AO5: the refusal, with the reason why the object is not recreated although that was requested. */
export function refusedAgain(view: PlanView, wanted: Wanted, refused: Problem, isOurs: IsOurs): Problem {
  const { sent, options = APPLY_PLAINLY } = wanted
  if (options.recreate === 'never' || !isImmutable(refused, sent)) return refused
  const live = viewIn(view, wanted)
  // An unknown state counts as unchanged.
  if (live.kind === 'unknown') return refused
  const { again: _, ...bare } = refused
  const verdict = permitOf(view, wanted, live, isOurs)
  return verdict === null || isPermit(verdict) ? bare : { ...bare, again: verdict }
}
