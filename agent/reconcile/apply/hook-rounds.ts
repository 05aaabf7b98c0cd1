// Carries out what hooks need: looks at each run, deletes what a former one left, sends its object, and writes down
// what came of it before anything relies on that.

import { worksToAnEnd } from '../../../shared/kube/health-working.ts'
import { type ObjectRef, refKey, refText, versionOf } from '../../../shared/kube/object.ts'
import { applyStage } from '../../../shared/kube/order.ts'
import type { Phase } from '../../../shared/kube/waves.ts'
import { backoffMs } from '../../../shared/runtime/backoff.ts'
import { serviceKey, serviceText } from '../../../shared/runtime/ids.ts'
import type { ApiFailure } from '../../cluster/cluster.ts'
import { news, warning } from '../../messages/event-messages.ts'
import { orderText } from '../../messages/service-messages.ts'
import { goesAfter, isOfHook, judgeRun, type RunStep, runDocument, runIdOf, runRef } from '../plan/order/hook-run.ts'
import { isAdoptable, isOurs, namespaceGate } from '../plan/plan.ts'
import type { PlanView } from '../plan/plan-view.ts'
import { permitHook } from '../plan/prune/deletion.ts'
import type { Step, StepResult } from '../plan/step.ts'
import { planView } from '../plan/turn-view.ts'
import type { Reports, Requests, Services, Site, Storage, Turns } from '../ports.ts'
import { type HookEnd, type HookRun, type HookSpec, runsToAnEnd } from '../snapshot/hook-spec.ts'
import { isHealthOverdue } from '../snapshot/overdue.ts'
import type { ServiceModel } from '../snapshot/service-model.ts'
import { isRefusedForGood, isRefusedStill, isStillToCome } from '../snapshot/situation.ts'
import { type LiveObject, type LiveView, type Owner, ownerText } from '../snapshot/watch/live-object.ts'
import { readJobEnd } from './gone-jobs.ts'
import type { Recorder } from './record.ts'
import { dropDeleted, letGo, remember, takeIn } from './remember.ts'
import { RETRY_BACKOFF } from './revision.ts'
import { carryOut, isInterrupted } from './rounds.ts'

/** The work of one turn on hooks, for one revision or for one removal order. */
export interface HookWork {
  model: ServiceModel
  deps: Site & Requests & Storage & Services & Turns & Reports
  digest: string
}

/** One hook: its state, and its next step. */
interface Look {
  spec: HookSpec
  phase: Phase
  runId: string
  ref: ObjectRef
  step: RunStep
}

const viewOfHook = (view: PlanView, { apiVersion }: Pick<HookSpec, 'apiVersion'>, ref: ObjectRef): LiveView => {
  const lookup = view.findAny(ref.group, versionOf(apiVersion), ref.kind)
  if (lookup.kind === 'served') return view.view(lookup.resource, refKey(ref))
  return { kind: 'unknown' }
}

function look({ model, deps, digest }: HookWork, view: PlanView, spec: HookSpec, phase: Phase): Look {
  const runId = runIdOf(digest, spec.hash, phase)
  const ref = runRef(spec, runId)
  const record = model.hooks.run(phase, spec.key)
  const other = record !== null && refKey(record.ref) !== refKey(ref)
  const ofHook = (found: LiveObject, at: ObjectRef) => {
    const entry = model.inventory.get(refKey(at))
    // An ordinary Job that became a hook; anything else is applied over.
    const applied = runsToAnEnd(at) && entry?.appliedDoc != null ? entry.uid : null
    return view.takenBy(refKey(at)) === null && isOfHook(found, isOurs(view, found), [record?.uid, applied])
  }
  const hasDeadline = !runsToAnEnd(ref) && !worksToAnEnd(ref.group, ref.kind)
  const step = judgeRun({
    spec,
    runId,
    record,
    live: viewOfHook(view, spec, ref),
    former: other ? viewOfHook(view, spec, record.ref) : null,
    seen: model.hooks.seen(record?.uid ?? null),
    wasAsked: model.hooks.wasAsked(record?.uid ?? null),
    isOverdue: hasDeadline && record?.run === runId && record.outcome === 'running' && isHealthOverdue(model, deps, runId, record.atMs),
    isOfHook: ofHook,
  })
  return { spec, phase, runId, ref, step }
}

/** HK2–HK6. True: something was done, so that everything is evaluated again. */
export async function runHooks(work: HookWork, specs: readonly HookSpec[], phase: Phase): Promise<boolean> {
  const { model, deps } = work
  const { unread } = model.hooks
  const known = unread.length === 0 ? specs : specs.filter((spec) => !unread.includes(spec))
  if (known.length === 0) return false
  const view = planView(model, deps)
  const looks = known.map((spec) => look(work, view, spec, phase))
  let changed = false
  for (const { step, ref } of looks) {
    if (step.kind !== 'ask') continue
    model.hooks.noteAsked(step.uid, await readJobEnd(deps, model.key, ref, step.uid))
    changed = true
  }
  for (const at of looks) if (at.step.kind === 'end' || at.step.kind === 'meet') changed = settle(work, at) || changed
  // HO1, WI1: nothing is begun; what runs is seen to its end.
  const isShut = isTimeShut(work)
  const held = isShut ? [] : looks.filter(({ step }) => step.kind === 'clear' && view.deletionHold !== null)
  for (const at of held) changed = holdBack(work, view, at) || changed
  const begin = looks
    .filter((at) => !held.includes(at))
    .filter(({ step }) => !isShut && (step.kind === 'begin' || step.kind === 'clear'))
    .filter((at) => isDue(work, view, at))
  for (const at of begin) if (at.step.kind === 'begin') begun(work, at)
  save(work)
  if (begin.length === 0 || isInterrupted(model, deps)) return changed
  // If a watch has no object with Skerry's marks, another owner may have one.
  const first = begin.filter(({ step }) => step.kind === 'begin')
  await carryOutHooks(
    work,
    first.flatMap((at) => inspection(work, view, at)),
  )
  await carryOutHooks(work, [...begin.flatMap((at) => clearing(view, at)), ...first.flatMap((at) => application(work, view, at))])
  return true
}

/** PR14: the object of a former run is in the way, and may not be deleted yet. True: that is news. */
function holdBack({ model }: HookWork, { deletionHold }: PlanView, { ref, step }: Look): boolean {
  if (step.kind !== 'clear' || deletionHold === null) return false
  const { why, asks } = deletionHold
  const { heldBack } = model.hooks
  if (asks && !heldBack.some((held) => refKey(held.ref) === refKey(step.ref)))
    model.hooks.heldBack = [...heldBack, { ref: step.ref, what: why }]
  const key = refKey(ref)
  const before = model.problems.get(key)
  const message = orderText('previous_held', { object: refText(step.ref), why })
  model.objects.setProblem(key, { kind: 'waiting', on: key, message })
  return before?.kind !== 'waiting' || before.message !== message
}

const isTimeShut = ({ model, deps }: HookWork): boolean => deps.times.shut(model.id, deps.clock.nowMs()) !== null

/** A failure or refusal of before keeps its time; a namespace of ours comes first. */
function isDue({ model, deps }: HookWork, view: PlanView, { spec, ref, step }: Look): boolean {
  const key = refKey(ref)
  const problem = model.problems.get(step.kind === 'clear' ? refKey(step.ref) : key)
  const retryAtMs = problem?.kind === 'failed' || problem?.kind === 'owned' ? problem.retryAtMs : null
  if (retryAtMs !== null && isStillToCome(retryAtMs, deps.clock.nowMs())) return false
  const shut = namespaceGate(view, { key, ref, apiVersion: spec.apiVersion, stage: applyStage(ref), sent: spec.doc, onlyIfAbsent: false })
  if (shut === null) {
    if (problem?.kind === 'waiting') model.objects.setProblem(key, null)
    return true
  }
  model.objects.setProblem(key, shut)
  return false
}

/** IV1: in the inventory, and begun on paper, before any request about it. */
function begun({ model, deps }: HookWork, { spec, phase, runId, ref }: Look): void {
  const key = refKey(ref)
  const nowMs = deps.clock.nowMs()
  const record = model.hooks.run(phase, spec.key)
  if (record?.run !== runId)
    model.hooks.setRun(phase, spec.key, { run: runId, ref, uid: null, outcome: 'running', message: '', atMs: nowMs })
  if (model.inventory.has(key)) return
  if (takeIn(model, deps, [{ ref, apiVersion: spec.apiVersion }]).length === 0) return
  deps.state.settle()
  deps.followKinds(model)
}

/** Null if its kind is not served at the moment. */
function resourceOf(view: PlanView, { apiVersion }: HookSpec, ref: ObjectRef) {
  const lookup = view.findAny(ref.group, versionOf(apiVersion), ref.kind)
  return lookup.kind === 'served' ? lookup.resource : null
}

function inspection({ model }: HookWork, view: PlanView, { spec, ref }: Look): Step[] {
  const resource = resourceOf(view, spec, ref)
  const key = refKey(ref)
  model.objects.forgetContact(key)
  if (resource === null || viewOfHook(view, spec, ref).kind === 'present') return []
  return [{ kind: 'inspect', key, ref, resource, refs: [ref] }]
}

function clearing(view: PlanView, { spec, step }: Look): Step[] {
  if (step.kind !== 'clear') return []
  const resource = resourceOf(view, spec, step.ref)
  const { ref, uid, resourceVersion, permit } = step
  return resource === null ? [] : [{ kind: 'delete', key: refKey(ref), ref, resource, uid, resourceVersion, permit }]
}

/** RC3: what is there under its name without our mark is not deleted for a hook, and a Job or Pod cannot be adopted. */
function application(work: HookWork, view: PlanView, at: Look): Step[] {
  const { model, deps } = work
  const { spec, ref, runId } = at
  const key = refKey(ref)
  const resource = resourceOf(view, spec, ref)
  const taken = view.takenBy(key)
  const contact = model.contacts.get(key)
  const shown = viewOfHook(view, spec, ref)
  // The object could not be read.
  if (resource === null || (contact === undefined && shown.kind !== 'present')) return []
  if (taken !== null) return owned(work, at, serviceText(serviceKey(taken)))
  if (contact?.kind === 'present') {
    const { owner } = contact
    if (contact.deleting !== null) return owned(work, at, orderText('namesake_deleting', { deleting: contact.deleting }))
    // Made by us a moment ago, or lost its label: its event or its next look tells.
    if (!isOurs(view, { owner }) && !mayTake(view, ref, owner)) return inTheWay(work, view, at, owner)
  }
  if (contact === undefined && shown.kind === 'present') {
    const { owner } = shown.live
    // HK11: a labelled object of this name that no run of this hook made.
    if (runsToAnEnd(ref) || (!isOurs(view, { owner }) && !mayTake(view, ref, owner))) return inTheWay(work, view, at, owner)
  }
  model.objects.forgetContact(key)
  const doc = runDocument(spec, runId, deps.clusterId, model.id)
  return [{ kind: 'apply', key, ref, resource, doc, commit: view.commit, revision: view.revision, why: 'new', force: view.sync.force }]
}

const mayTake = (view: PlanView, ref: ObjectRef, owner: Owner): boolean =>
  !runsToAnEnd(ref) && (isAdoptable(view, owner) || view.sync.takeover)

function inTheWay(work: HookWork, view: PlanView, at: Look, owner: Owner): Step[] {
  const text = isOurs(view, { owner }) ? null : ownerText(owner)
  return text === null ? owned(work, at, '', { isInTheWay: true }) : owned(work, at, text)
}

function owned({ model, deps }: HookWork, { ref }: Look, owner: string, more: { isInTheWay?: true } = {}): Step[] {
  const key = refKey(ref)
  const before = model.problems.get(key)
  const attempt = before?.kind === 'owned' ? before.attempt + 1 : 0
  const retryAtMs = deps.clock.nowMs() + backoffMs(attempt, RETRY_BACKOFF, deps.random)
  model.objects.setProblem(key, { kind: 'owned', owner, attempt, retryAtMs, ...more })
  model.queue.touch(key)
  return []
}

async function carryOutHooks(work: HookWork, steps: readonly Step[], isLast = false): Promise<void> {
  if (steps.length === 0) return
  await carryOut(work.model, work.deps, steps, undefined, (recorder, result) => take(work, recorder, result, isLast))
  save(work)
}

function take(work: HookWork, recorder: Recorder, result: StepResult, isLast: boolean): void {
  const { model, deps } = work
  if (result.kind === 'gone') {
    if (result.step.kind === 'delete') dropDeleted(model, deps, result.step)
    // The next run has its name.
    if (isLast || !isNamedNow(work, result.step.key)) forgetObject(work, result.step.key)
    return
  }
  recorder.take(result)
  // RC20: an object that is being deleted is not the object of this run.
  if (result.kind === 'applied' && result.object.metadata.deletionTimestamp !== undefined) return
  if (result.kind === 'applied') {
    model.objects.setProblem(result.step.key, null)
    const uid = result.object.metadata.uid ?? ''
    for (const { phase, key, run } of [...model.hooks.runs()]) {
      if (refKey(run.ref) === result.step.key && run.outcome === 'running' && run.uid === null)
        model.hooks.setRun(phase, key, { ...run, uid })
    }
  } else if (result.kind === 'failed' && result.step.kind === 'apply' && isForGood(work, result.step.key, result.failure.kind)) {
    endRunsOf(work, result.step.key, { outcome: 'failed', message: result.failure.message })
  }
}

/** Objects of a removal do not return for its last hooks. */
const isForGood = ({ model }: HookWork, key: string, kind: ApiFailure['kind']): boolean =>
  isRefusedForGood(model.problems.get(key)) ||
  (model.row?.removal !== undefined && (kind === 'namespace_missing' || kind === 'namespace_terminating'))

const isNamedNow = ({ model }: HookWork, key: string): boolean => model.hooks.specs.has(key) || model.hooks.removalSpecs.has(key)

function endRunsOf({ model, deps }: HookWork, objectKey: string, end: HookEnd): void {
  for (const { phase, key, run } of [...model.hooks.runs()]) {
    if (refKey(run.ref) === objectKey && run.outcome === 'running')
      model.hooks.setRun(phase, key, { ...run, ...end, atMs: deps.clock.nowMs() })
  }
}

/** True: it has ended now, or its object was met. */
function settle(work: HookWork, { spec, phase, runId, ref, step }: Look): boolean {
  const { model, deps } = work
  const { hooks } = model
  const nowMs = deps.clock.nowMs()
  const known = hooks.run(phase, spec.key)
  const record: HookRun = known?.run === runId ? known : { run: runId, ref, uid: null, outcome: 'running', message: '', atMs: nowMs }
  if (step.kind === 'meet') {
    hooks.setRun(phase, spec.key, { ...record, uid: step.uid })
    return true
  }
  if (step.kind !== 'end') return false
  if (record.uid !== null) hooks.forgetSeen(record.uid)
  model.deadlines.forget(runId)
  hooks.setRun(phase, spec.key, { ...record, ...step.end, atMs: nowMs })
  model.objects.setProblem(refKey(ref), null)
  model.queue.touch(refKey(ref))
  const hook = { phase, object: refText(ref) }
  const event = step.end.outcome === 'failed' ? warning('HookFailed', { ...hook, why: step.end.message }) : news('HookSucceeded', hook)
  deps.emit({ ...event, message: event.message.slice(0, 1_000), service: model.key, object: refKey(ref).slice(0, 512) })
  return true
}

/**
 * HK6, HK8: runs that no phase waits for any more are completed. Objects that are gone leave the inventory, and those
 * with such a policy are deleted. `isOver`: the phase has ended, successfully or not.
 */
export async function tidyHooks(work: HookWork, isOver: (phase: Phase) => boolean): Promise<void> {
  const { model, deps } = work
  const { hooks } = model
  if (!hooks.isOrdered()) return
  const view = planView(model, deps)
  const steps: Step[] = []
  for (const { phase, key, run } of [...hooks.runs()]) {
    const spec = hooks.specs.get(key) ?? (phase.endsWith('delete') ? hooks.removalSpecs.get(key) : undefined)
    const objectKey = refKey(run.ref)
    const apiVersion = spec?.apiVersion ?? model.inventory.get(objectKey)?.apiVersion ?? 'v1'
    const live = viewOfHook(view, { apiVersion }, run.ref)
    const seen = hooks.seen(run.uid)
    if (spec === undefined && hooks.isUnread(key)) continue
    if (spec === undefined || !spec.phases.includes(phase)) {
      const isRunning = live.kind === 'unknown' || (live.kind === 'present' && live.live.uid === run.uid && live.live.run?.ended === 'no')
      if (!isRunning || seen !== null) hooks.setRun(phase, key, null)
      if (seen !== null && run.uid !== null) hooks.forgetSeen(run.uid)
      continue
    }
    // HK5: a run of an older revision, whose phase may not exist in this one: no phase would check it again.
    const isOlder = run.outcome === 'running' && run.run !== runIdOf(work.digest, spec.hash, phase)
    if (isOlder && live.kind === 'absent') hooks.setRun(phase, key, null)
    if ((run.outcome === 'running' && !isOlder) || !model.inventory.has(objectKey)) continue
    if (live.kind === 'absent') forgetObject(work, objectKey)
    if (live.kind !== 'present' || live.live.uid !== run.uid || live.live.deleting !== null || live.live.keep !== null) continue
    const resource = resourceOf(view, spec, run.ref)
    if (view.deletionHold !== null) continue
    if (resource === null || run.outcome === 'running' || !isOver(phase) || !goesAfter(spec, run.outcome) || !isOurs(view, live.live))
      continue
    if (view.takenBy(objectKey) !== null) continue
    if (isRefusedStill(model.problems.get(objectKey), deps.clock.nowMs())) continue
    const permit = permitHook(run.ref, live.live)
    const { uid, resourceVersion } = live.live
    if (permit !== null) steps.push({ kind: 'delete', key: objectKey, ref: run.ref, resource, uid, resourceVersion, permit })
  }
  save(work)
  if (!isTimeShut(work)) await carryOutHooks(work, steps, true)
}

/** The API server said that it is gone. */
function forgetObject({ model, deps }: HookWork, key: string): void {
  const entry = model.inventory.get(key)
  if (entry === undefined || model.wanted.has(key)) return
  letGo(model, deps, [entry.ref])
  model.forget(key)
  deps.followKinds(model)
}

export function save({ model, deps }: Pick<HookWork, 'model' | 'deps'>): void {
  const { hooks } = model
  if (hooks.changes().size === 0) return
  remember(model, deps, hooks.changes())
  hooks.saved()
}
