// The main file of the room `apply`: it plans and carries out until no work is left, records the result of each step
// (record.ts) and stores what outlives the process (remember.ts). It may send the steps of a plan, and must never
// decide by itself to send or delete.
import { refText } from '../../../shared/kube/object.ts'
import { backoffMs } from '../../../shared/runtime/backoff.ts'
import { warning } from '../../messages/event-messages.ts'
import { changeGate } from '../plan/gates/revision-gate.ts'
import { isHealing, planApply } from '../plan/plan.ts'
import { noteRecreates } from '../plan/recreate.ts'
import type { Step, StepResult } from '../plan/step.ts'
import { liveIn, planView } from '../plan/turn-view.ts'
import type { Reports, Requests, Services, Site, Storage, Turns } from '../ports.ts'
import { mayName } from '../snapshot/objects.ts'
import type { ServiceModel } from '../snapshot/service-model.ts'
import { namespaceKey, type Problem } from '../snapshot/situation.ts'
import { heldWanted, type Wanted } from '../snapshot/wanted.ts'
import { serviceCluster } from './acting.ts'
import { takeJudgement } from './begin.ts'
import { execute } from './execute.ts'
import { Recorder } from './record.ts'
import { keepRecreates } from './remember.ts'
import { RETRY_BACKOFF } from './revision.ts'

/** True: something was sent, so that others may have their turn. */
export async function applyRounds(model: ServiceModel, deps: Site & Requests & Storage & Services & Turns & Reports): Promise<boolean> {
  let sent = false
  while (model.queue.dirty.size > 0 && !isInterrupted(model, deps)) {
    const keys = model.queue.takePlanned()
    const change = changeGate(model, deps)
    const plan = planApply(planView(model, deps, change.gate), keys)
    takeJudgement(model, deps, change.asked(), true)
    absorb(model, deps, plan.problems)
    model.objects.contested(plan.contests, deps.clock.nowMs())
    for (const key of plan.later) model.queue.plan(key)
    sent ||= plan.steps.length > 0
    await carryOut(model, deps, plan.steps)
    if (model.unread.size > 0) await healUnread(model, deps, keys)
  }
  return sent
}

/** OR6: before hooks are sent. Other work stays to be planned. Null means that there is nothing to heal. */
export function healRound(model: ServiceModel, deps: Site & Requests & Storage & Services & Turns & Reports): Promise<void> | null {
  if (model.queue.dirty.size === 0 || isInterrupted(model, deps)) return null
  const plan = planApply(planView(model, deps), model.queue.dirty)
  const steps = plan.steps.filter(isHealing)
  const keys = new Set(steps.map(({ key }) => key))
  const ofHeals = <T>(all: ReadonlyMap<string, T>) => new Map([...all].filter(([key]) => keys.has(key)))
  absorb(model, deps, ofHeals(plan.problems))
  model.objects.contested(ofHeals(plan.contests), deps.clock.nowMs())
  return steps.length === 0 ? null : carryOut(model, deps, steps)
}

/** DR6: an unreadable newer row leaves the applied document in force. The problem of the row stays the object's
 *  problem. */
async function healUnread(
  model: ServiceModel,
  deps: Site & Requests & Storage & Services & Turns & Reports,
  keys: readonly string[],
): Promise<void> {
  const wanted = new Map<string, Wanted>()
  for (const key of keys) {
    const entry = model.inventory.get(key)
    const isHook = model.hooks.isUnread(key)
    const held = entry === undefined || isHook || model.wanted.has(key) || !mayName(model, key) ? null : heldWanted(entry)
    if (held !== null) wanted.set(key, held)
  }
  if (wanted.size === 0 || isInterrupted(model, deps)) return
  const plan = planApply({ ...planView(model, deps), wanted }, wanted.keys())
  absorb(model, deps, new Map([...plan.problems].filter(([, problem]) => problem?.kind === 'contested')))
  model.objects.contested(plan.contests, deps.clock.nowMs())
  const steps = plan.steps.filter(isHealing)
  const open = new Set(steps.map(({ key }) => key))
  await carryOut(model, deps, steps, undefined, (recorder, result) => {
    const { key } = result.step
    open.delete(key)
    recorder.take(result)
    if (result.kind === 'applied') model.objects.setProblem(key, model.unread.get(key)?.problem ?? null)
  })
  for (const key of open) model.queue.mark(key)
}

/** RC14, RC30: a newer revision pre-empts at the next object, and so does the end of the turn's time. */
export const isInterrupted = (model: ServiceModel, deps: Turns): boolean =>
  model.revisionPending || deps.isHalted() || deps.mustYield(model.key)

/** `take` is called with each result as it arrives. Steps that were not begun are planned again. */
export async function carryOut(
  model: ServiceModel,
  deps: Site & Requests & Storage & Services & Turns & Reports,
  steps: readonly Step[],
  isPreempted = () => isInterrupted(model, deps),
  take = (recorder: Recorder, result: StepResult) => recorder.take(result),
): Promise<void> {
  if (steps.length === 0) return
  const recorder = new Recorder(model, deps)
  const open = new Set(steps)
  keepRecreates(model, deps, noteRecreates(model, steps))
  await execute(steps, {
    cluster: serviceCluster(model, deps),
    own: { id: model.id, clusterId: deps.clusterId, former: deps.former },
    scheduler: deps.scheduler,
    firstContacts: deps.firstContacts,
    signal: deps.signal,
    wasRefused: (key) => {
      const problem = model.problems.get(key)
      return problem?.kind === 'failed' && problem.failure.kind === 'namespace_terminating'
    },
    isPreempted,
    onResult: (result) => {
      open.delete(result.step)
      take(recorder, result)
    },
  })
  recorder.flush()
  for (const { key } of open) if (model.wanted.has(key)) model.queue.putBack(key)
}

/** RM3: objects of others in a Namespace are deleted by others, or not at all; services that are being removed with
 *  this one are gone in a moment. */
const LOOK_BACKOFF = { baseMs: 60_000, capMs: 900_000 }
const LEAVING_BACKOFF = { baseMs: 2_000, capMs: 60_000 }

function timed(found: Problem | null, nowMs: number, { random }: Site): Problem | null {
  if (found === null || !('retryAtMs' in found) || found.retryAtMs !== 0) return found
  const backoff = found.kind !== 'kept' ? RETRY_BACKOFF : found.asks ? LOOK_BACKOFF : LEAVING_BACKOFF
  return { ...found, retryAtMs: nowMs + backoffMs(found.attempt, backoff, random) }
}

/** New problems get their time; a namespace in its wanted state admits the objects that waited for it. */
export function absorb(
  model: ServiceModel,
  deps: Site & Storage & Services & Turns & Reports,
  problems: ReadonlyMap<string, Problem | null>,
): void {
  const nowMs = deps.clock.nowMs()
  for (const [key, found] of problems) {
    const before = model.problems.get(key)
    const problem = timed(found, nowMs, deps)
    model.objects.setProblem(key, problem)
    if (before?.kind !== problem?.kind || problem !== null) model.queue.touch(key)
    if (problem === null && key.startsWith(namespaceKey(''))) model.markWaiting(key)
    if ((problem?.kind === 'contested' || problem?.kind === 'drifted') && before?.kind !== problem.kind)
      reportDrift(model, deps, key, problem)
  }
}

function reportDrift(
  model: ServiceModel,
  deps: Site & Storage & Services & Turns & Reports,
  key: string,
  problem: Extract<Problem, { kind: 'contested' | 'drifted' }>,
): void {
  const wanted = model.wanted.get(key)
  if (wanted === undefined) return
  const isContested = problem.kind === 'contested'
  const view = liveIn(deps, wanted)
  new Recorder(model, deps).drift(key, isContested ? 'contested' : 'reported', view.kind === 'absent')
  const event = warning(isContested ? 'Contested' : 'Drifted', { object: refText(wanted.ref), drift: problem.drift })
  deps.emit({ ...event, message: event.message.slice(0, 1_000), service: model.key, object: key })
}
