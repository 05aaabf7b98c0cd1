// The order inside a revision: finds the position, runs the due hooks, admits the objects of the present wave, and
// evaluates again, until an event is needed. It does nothing for a service without waves and hooks. A removal order has
// its own hooks, before and after its prune.
import { refKey } from '../../../shared/kube/object.ts'
import { compareApply } from '../../../shared/kube/order.ts'
import type { Phase } from '../../../shared/kube/waves.ts'
import { isWell } from '../../../shared/model/status.ts'
import { isKeptAsMade } from '../plan/left-alone.ts'
import { runIdOf } from '../plan/order/hook-run.ts'
import { finishedPosition, type HookState, hookWave, positionOf, type WaveState, waitText } from '../plan/order/phases.ts'
import { type PlanView, viewIn } from '../plan/plan-view.ts'
import { describeProblem } from '../plan/problem-text.ts'
import { planView } from '../plan/turn-view.ts'
import type { Reports, Requests, Services, Site, Storage, Turns } from '../ports.ts'
import type { HookSpec, Position, Wait } from '../snapshot/hook-spec.ts'
import { isHealthOverdue } from '../snapshot/overdue.ts'
import type { ServiceModel } from '../snapshot/service-model.ts'
import { isOrderReason, isRefusedForGood } from '../snapshot/situation.ts'
import type { Wanted } from '../snapshot/wanted.ts'
import { beginRevision, removalWait } from './begin.ts'
import { type HookWork, runHooks, save, tidyHooks } from './hook-rounds.ts'
import { lastObject } from './remember.ts'
import { applyRounds, healRound, isInterrupted } from './rounds.ts'

/** OR3, HK2: instead of the plain rounds. */
export async function phaseRounds(model: ServiceModel, deps: Site & Requests & Storage & Services & Turns & Reports): Promise<void> {
  const { hooks, row } = model
  save({ model, deps })
  hooks.heldBack = []
  if (row === null || row.removal !== undefined || !hooks.isOrdered() || beginRevision(model, deps) !== null) {
    move(model, null)
    await applyRounds(model, deps)
    return
  }
  const work: HookWork = { model, deps, digest: row.digest }
  for (;;) {
    const position = findPosition(work)
    move(model, position)
    const healing = position.hooks.length + position.failHooks.length > 0 ? healRound(model, deps) : null
    if (healing !== null) await healing
    let changed = await runHooks(work, position.hooks, phaseOf(position))
    changed = (await runHooks(work, position.failHooks, 'sync-fail')) || changed
    changed = (await applyRounds(model, deps)) || changed
    if (isInterrupted(model, deps)) return
    const next = findPosition(work)
    if (!changed && isSame(position, next)) break
  }
  // Before any prune: objects that left the inventory are not pruned.
  await tidyHooks(work, (phase) => isOver(model.hooks.position, phase))
}

const phaseOf = ({ phase }: Position): Phase => (phase === 'done' ? 'post-sync' : phase)
const isSame = (a: Position, b: Position): boolean =>
  a.phase === b.phase && a.wave === b.wave && a.applied === b.applied && waitText(a) === waitText(b)

const STANDS: readonly string[] = ['pre-sync', 'sync', 'post-sync', 'done']
/** A phase ends when the next one begins, or with its failure. */
function isOver(position: Position | null, phase: Phase): boolean {
  if (position === null) return false
  if (phase === 'sync-fail') return position.failHooks.length === 0
  return STANDS.indexOf(position.phase) > STANDS.indexOf(phase) || (position.phase === phase && position.hookFailed)
}

/** Objects that waited for the former position are planned again, and report what they wait for now. */
function move(model: ServiceModel, position: Position | null): void {
  const { hooks } = model
  const before = hooks.position
  hooks.position = position
  if (before === position || (before !== null && position !== null && isSame(before, position))) return
  for (const [key, problem] of model.problems)
    if (problem.kind === 'contested' || (problem.kind === 'gated' && isOrderReason(problem.reason))) model.queue.mark(key)
}

function findPosition({ model, deps, digest }: HookWork): Position {
  const { hooks } = model
  if (hooks.finished === digest) return finishedPosition(digest)
  const position = positionOf({
    digest,
    specs: [...hooks.specs.values(), ...hooks.unread],
    stateOf: (phase, spec) => stateOf(model, deps, digest, phase, spec),
    waves: waveStates(model, deps),
    waitForHealth: model.sync().waitForHealth ?? true,
  })
  if (position.phase === 'done') hooks.finished = digest
  return position
}

function stateOf(
  { key, hooks, problems, received }: ServiceModel,
  { clock, explainer }: Site & Reports,
  digest: string,
  phase: Phase,
  spec: HookSpec,
): HookState {
  const run = hooks.run(phase, spec.key)
  if (run === null || run.run !== runIdOf(digest, spec.hash, phase)) {
    const problem = problems.get(spec.key)
    return {
      outcome: 'none',
      message: problem === undefined ? '' : describeProblem(problem).message,
      sinceMs: received?.atMs ?? clock.nowMs(),
    }
  }
  const problem = run.outcome === 'running' ? problems.get(spec.key) : undefined
  // HE8: one that hangs says why.
  const said = run.outcome === 'running' ? explainer.explanation(key, refKey(run.ref)) : run.message
  return { outcome: run.outcome, message: problem === undefined ? said : describeProblem(problem).message, sinceMs: run.atMs }
}

type Untimed = Omit<Wait, 'sinceMs'>

/**
 * One iteration over the objects, whatever the number of waves. The start time is read for those that give a message,
 * and not for all that wait.
 */
function waveStates(model: ServiceModel, deps: Site & Storage & Services & Turns & Reports): Map<number, WaveState> {
  const waves = new Map<number, Record<keyof WaveState, Untimed | null>>()
  const view = planView(model, deps)
  const add = (wave: number, wait: Untimed | null) => {
    const state = waves.get(wave) ?? { unapplied: null, unhealthy: null, failed: null }
    waves.set(wave, state)
    if (wait === null) return
    const place = wait.lacks === 'applied' ? 'unapplied' : 'unhealthy'
    state[place] = firstOf(state[place], wait)
    if (wait.failed !== null) state.failed = firstOf(state.failed, wait)
  }
  for (const { ref, problem, wave, hook } of model.unread.values()) {
    if (hook !== undefined) continue
    add(wave, { ref, lacks: 'applied', failed: null, detail: describeProblem(problem).message })
  }
  for (const wanted of model.wanted.values()) {
    if (wanted.onlyIfAbsent) continue
    const unapplied = unappliedOf(model, wanted)
    if (isKeptAsMade(wanted)) add(wanted.wave ?? 0, isTried(model, wanted) ? null : unapplied)
    else add(wanted.wave ?? 0, unapplied ?? unhealthyOf(model, deps, view, wanted))
  }
  const timed = (wait: Untimed | null) => (wait === null ? null : { ...wait, sinceMs: sinceOf(model, deps, refKey(wait.ref)) })
  const timedState = ({ unapplied, unhealthy, failed }: Record<keyof WaveState, Untimed | null>): WaveState => ({
    unapplied: timed(unapplied),
    unhealthy: timed(unhealthy),
    failed: timed(failed),
  })
  return new Map([...waves].map(([wave, state]) => [wave, timedState(state)]))
}

const firstOf = (a: Untimed | null, b: Untimed): Untimed => (a === null || compareApply(b.ref, a.ref) < 0 ? b : a)

const BEFORE_A_TRY: readonly unknown[] = [undefined, 'gated', 'unknown', 'waiting']
/** AO6: its result delays nothing. */
const isTried = ({ problems }: ServiceModel, { key }: Wanted): boolean => !BEFORE_A_TRY.includes(problems.get(key)?.kind)

/** An object without a problem that is no longer evaluated is in its wanted state. */
function unappliedOf(model: ServiceModel, { key, ref, sent }: Wanted): Untimed | null {
  if (model.inventory.get(key)?.appliedDoc === sent) return null
  const problem = model.problems.get(key)
  if (problem === undefined && !model.queue.dirty.has(key)) return null
  const said = problem === undefined || problem.kind === 'gated' ? '' : describeProblem(problem).message
  const failed = isRefusedForGood(problem) ? said : null
  return { ref, lacks: 'applied', failed, detail: failed === null ? said : '' }
}

function unhealthyOf(model: ServiceModel, deps: Site & Turns & Reports, view: PlanView, wanted: Wanted): Untimed | null {
  const { key, ref } = wanted
  const live = viewIn(view, wanted)
  const wait = (failed: string | null, detail: string): Untimed => ({ ref, lacks: 'healthy', failed, detail })
  if (live.kind === 'absent' && live.ended !== undefined) return live.ended.outcome === 'failed' ? wait(live.ended.message, '') : null
  if (live.kind !== 'present') {
    // Left alone on purpose (an annotation), or not known at the moment.
    return live.kind === 'absent' && (model.inventory.get(key)?.appliedDoc ?? null) === null ? null : wait(null, '')
  }
  const { word, message, reason } = live.live.health
  if (isWell(word)) return null
  const sinceMs = model.progressingSinceMs.get(key)
  const hangs = word === 'Progressing' && live.live.isWorking !== true
  const isLate = hangs && sinceMs !== undefined && isHealthOverdue(model, deps, key, sinceMs)
  const said = message || reason
  return word === 'Degraded' || isLate ? wait(said, deps.explainer.explanation(model.key, key)) : wait(null, said)
}

/** By its own row, also from before this start. */
function sinceOf(model: ServiceModel, { state, clock }: Site & Storage, key: string): number {
  return lastObject(model, { state }, key)?.sinceMs ?? clock.nowMs()
}

/** HK10: hooks of a removal with prune. True: the prune may continue. */
export async function removalHookRounds(
  model: ServiceModel,
  deps: Site & Requests & Storage & Services & Turns & Reports,
  phase: 'pre-delete' | 'post-delete',
): Promise<boolean> {
  const { hooks, row } = model
  const order = row?.removal
  if (order === undefined || !hooks.awaitsRemovalHooks(order)) return true
  if (phase === 'post-delete' && (hooks.removalWait !== null || model.leaving().length > 0 || isInterrupted(model, deps))) return false
  hooks.removalWait = null
  // A held prune also holds its hooks.
  const mayBegin = deps.replica.verified() && deps.isCurrent() && removalWait(model, deps) === null
  if (!mayBegin || (row?.restored === true && row.pruneConfirmed !== row.digest)) return true
  const work: HookWork = { model, deps, digest: `removal-${order.atMs}` }
  deps.followKinds(model)
  for (;;) {
    const facts = {
      specs: [...hooks.removalSpecs.values()],
      stateOf: (at: Phase, spec: HookSpec) => stateOf(model, deps, work.digest, at, spec),
    }
    const stand = hookWave(facts, phase)
    const failed = stand !== null && stand.wait.failed !== null
    if (stand === null || (failed && phase === 'post-delete')) break
    hooks.removalWait = waitText({ phase, waitsFor: stand.wait, wave: stand.wave }, true)
    const changed = await runHooks(work, stand.open, phase)
    if (isInterrupted(model, deps)) return false
    if (!changed) {
      if (failed) await tidyHooks(work, (at) => at === phase)
      return false
    }
  }
  hooks.removalWait = null
  if (phase === 'pre-delete') return true
  // Everything else is gone: their objects are deleted now, whatever their result.
  hooks.endRemovalHooks(order.atMs)
  save(work)
  return true
}
