// Plan, execute, record, until nothing is left to do now. A round is one stage; what waits for an event is left to that event.
import { refText } from '../../shared/kube/object.ts'
import { backoffMs } from '../../shared/runtime/backoff.ts'
import { rememberRecreates } from './apply/recreate.ts'
import { execute } from './execute.ts'
import { noteContests } from './fields/contest.ts'
import { planApply } from './plan.ts'
import { Recorder } from './record.ts'
import { RETRY_BACKOFF } from './revision.ts'
import type { ServiceModel } from './service-model.ts'
import { namespaceKey, type Problem } from './situation.ts'
import type { Step } from './step.ts'
import { serviceCluster, type TurnDeps } from './turn-deps.ts'
import { planView } from './turn-view.ts'

/** True: something was sent, so that others may have their turn. */
export async function applyRounds(model: ServiceModel, deps: TurnDeps): Promise<boolean> {
  let sent = false
  while (model.dirty.size > 0 && !isInterrupted(model, deps)) {
    const keys = [...model.dirty]
    model.dirty.clear()
    const plan = planApply(planView(model, deps), keys)
    absorb(model, deps, plan.problems)
    noteContests(model.contests, plan.contests, deps.clock.nowMs())
    for (const key of plan.later) model.dirty.add(key)
    sent ||= plan.steps.length > 0
    await carryOut(model, deps, plan.steps)
  }
  return sent
}

/** RC14: a newer revision pre-empts at the next object. */
export const isInterrupted = (model: ServiceModel, deps: TurnDeps): boolean => model.revisionPending || deps.isHalted()

/** Steps that were not begun stay to be planned again. */
export async function carryOut(
  model: ServiceModel,
  deps: TurnDeps,
  steps: readonly Step[],
  isPreempted = () => isInterrupted(model, deps),
): Promise<void> {
  if (steps.length === 0) return
  const recorder = new Recorder(model, deps)
  const open = new Set(steps)
  rememberRecreates(model, deps.state, steps)
  await execute(steps, {
    cluster: serviceCluster(model, deps),
    own: { id: model.id, clusterId: deps.clusterId },
    gate: deps.gate,
    firstContacts: deps.firstContacts,
    signal: deps.signal,
    isPreempted,
    onResult: (result) => {
      open.delete(result.step)
      recorder.take(result)
    },
  })
  recorder.flush()
  for (const { key } of open) if (model.wanted.has(key)) model.dirty.add(key)
}

/** New problems get their time; a namespace that is as it should be lets in what waited for it. */
export function absorb(model: ServiceModel, deps: TurnDeps, problems: ReadonlyMap<string, Problem | null>): void {
  const nowMs = deps.clock.nowMs()
  for (const [key, found] of problems) {
    const before = model.problems.get(key)
    const problem =
      found !== null && (found.kind === 'owned' || found.kind === 'unserved') && found.retryAtMs === 0
        ? { ...found, retryAtMs: nowMs + backoffMs(found.attempt, RETRY_BACKOFF, deps.random) }
        : found
    model.setProblem(key, problem)
    if (before?.kind !== problem?.kind || problem !== null) model.touched.add(key)
    if (problem === null && key.startsWith(namespaceKey(''))) model.markWaiting(key)
    if ((problem?.kind === 'contested' || problem?.kind === 'drifted') && before?.kind !== problem.kind)
      reportRival(model, deps, key, problem)
  }
}

function reportRival(model: ServiceModel, deps: TurnDeps, key: string, problem: Extract<Problem, { kind: 'contested' | 'drifted' }>): void {
  const wanted = model.wanted.get(key)
  if (wanted === undefined) return
  new Recorder(model, deps).drift(key, problem.kind === 'contested' ? 'contested' : 'reported')
  const text = problem.kind === 'contested' ? 'is changed again after every correction' : 'was changed and is not corrected (sync.drift)'
  deps.emit({
    type: 'Warning',
    reason: problem.kind === 'contested' ? 'Contested' : 'Drifted',
    message: `${refText(wanted.ref)} ${text}, by ${problem.rival || 'somebody'}`,
    service: model.key,
    object: key,
  })
}
