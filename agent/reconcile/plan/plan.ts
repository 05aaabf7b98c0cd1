// The main file of the room `plan`: the next actions for some objects of one service. Pure: all inputs come by lookups,
// so that one healed object costs one object and not four thousand. Waiting objects get no step: an event wakes the
// service when that may have changed, and nothing here polls. The room must never ask the cluster, change a service or
// write to the disk; it returns what to send and store.
import type { Origin } from '../../../shared/kube/clean.ts'
import { versionOf } from '../../../shared/kube/object.ts'
import { compareApply } from '../../../shared/kube/order.ts'
import { serviceKey, serviceText } from '../../../shared/runtime/ids.ts'
import type { ApiResource } from '../../cluster/cluster.ts'
import { objectText } from '../../messages/object-messages.ts'
import type { InventoryEntry } from '../../state/agent-state.ts'
import type { Take } from '../snapshot/fields/client-side.ts'
import { type Contest, judgeContest, NO_CONTEST } from '../snapshot/fields/contest.ts'
import { driftText, NO_NOTE } from '../snapshot/fields/drift.ts'
import type { Leave } from '../snapshot/fields/ignore.ts'
import type { OtherFields } from '../snapshot/fields/other-fields.ts'
import { isAllLeft, isInForce, othersIn, shapedDoc, takeFor } from '../snapshot/fields/shaping.ts'
import { isRefusedStill, isStillToCome, ownNamespaceKey, type Problem } from '../snapshot/situation.ts'
import { unservedText, type Wanted } from '../snapshot/wanted.ts'
import type { LiveView } from '../snapshot/watch/live-object.ts'
import { isOfThisCluster, type LiveObject, type Owner, ownerText } from '../snapshot/watch/live-object.ts'
import { judgeAgain, refusedAgain } from './plan-again.ts'
import { type PlanView, problem, type Verdict, viewIn } from './plan-view.ts'
import type { ApplyReason, Step } from './step.ts'

export interface ApplyPlan {
  /** Steps that heal (OR6), then steps of one stage; first contacts come before any other apply. */
  steps: Step[]
  /** Keys that have a step in a later stage, or depend on one of `steps`: planned again after these. */
  later: string[]
  /** The new problem of each evaluated key. Null means none. */
  problems: Map<string, Problem | null>
  contests: Map<string, Contest>
}

const FINE: Verdict = { kind: 'fine' }

/** RC7: objects that are as they should be have no step, and cost no request. */
export function planApply(view: PlanView, keys: Iterable<string>): ApplyPlan {
  const problems = new Map<string, Problem | null>()
  const contests = new Map<string, Contest>()
  const steps: Step[] = []
  for (const key of keys) {
    const wanted = view.wanted.get(key)
    if (wanted === undefined) continue
    const verdict = judge(view, wanted)
    note(view, problems, key, verdict)
    if (verdict.kind !== 'fine' && verdict.contest !== undefined) contests.set(key, verdict.contest)
    if (verdict.kind === 'step') steps.push(verdict.step)
  }
  return { ...firstStage(view, steps), problems, contests }
}

/** A failure whose time has come stays until its next attempt is answered: otherwise no wait would ever grow. */
function note(view: PlanView, problems: Map<string, Problem | null>, key: string, verdict: Verdict): void {
  if (verdict.kind === 'step' && view.problems.get(key)?.kind === 'failed') return
  problems.set(key, verdict.kind === 'problem' ? verdict.problem : null)
}

function firstStage(view: PlanView, all: Step[]): Pick<ApplyPlan, 'steps' | 'later'> {
  const heals = all.filter(isHealing).sort((a, b) => compareApply(a.ref, b.ref))
  const others = all.filter((step) => !isHealing(step))
  const inspections = others.filter((step) => step.kind === 'inspect')
  if (inspections.length > 0) return { steps: [...heals, ...batched(inspections)], later: others.map(({ key }) => key) }
  const stageOf = ({ key }: Step) => view.wanted.get(key)?.stage ?? 0
  const first = Math.min(...others.map(stageOf))
  const steps = others.filter((step) => stageOf(step) === first).sort((a, b) => compareApply(a.ref, b.ref))
  return { steps: [...heals, ...steps], later: others.filter((step) => stageOf(step) !== first).map(({ key }) => key) }
}

/** OR6: it puts back a document that is in force, and waits for no stage. */
export const isHealing = (step: Step): boolean => step.kind === 'apply' && step.why === 'drift'

function batched(inspections: ReadonlyArray<Extract<Step, { kind: 'inspect' }>>): Step[] {
  const batches = new Map<string, Extract<Step, { kind: 'inspect' }>>()
  for (const step of inspections) {
    const batchKey = `${step.resource.version}/${step.ref.group}/${step.ref.kind}/${step.ref.namespace}`
    const batch = batches.get(batchKey)
    if (batch === undefined) batches.set(batchKey, step)
    else batch.refs.push(step.ref)
  }
  return [...batches.values()].sort((a, b) => compareApply(a.ref, b.ref))
}

function judge(view: PlanView, wanted: Wanted): Verdict {
  const { key, ref, apiVersion } = wanted
  const touch = wanted.options?.touch
  if (touch === 'never') return FINE
  const entry = view.inventory.get(key)
  const taken = view.takenBy(key)
  if (taken !== null) {
    // The namespace of a service may well be another service's.
    if (wanted.onlyIfAbsent || touch === 'ifAbsent') return FINE
    return problem({ ...again(view, key, 'owned'), kind: 'owned', owner: serviceText(serviceKey(taken)) })
  }
  const lookup = view.find(ref.group, versionOf(apiVersion), ref.kind)
  if (lookup.kind !== 'served') {
    return problem({ ...again(view, key, 'unserved'), kind: 'unserved', message: unservedText(apiVersion, ref.kind, lookup) })
  }
  const { resource } = lookup
  const live = view.view(resource, key)
  if (live.kind === 'unknown') return problem(live)
  if (entry === undefined) return problem({ kind: 'unknown' })
  if (live.kind === 'present' && live.live.deleting !== null) {
    return problem({ kind: 'waiting', on: key, message: objectText('Waiting.ownDeletion', { deleting: live.live.deleting }) })
  }
  if (live.kind === 'present' && touch === 'ifAbsent') return FINE
  // JB1: a Job that has ended is not created again.
  if (hasEnded(live) && isInForce(wanted, view.leave(wanted), null, entry.appliedDoc)) return FINE
  const gate = namespaceGate(view, wanted)
  if (gate !== null) return problem(gate)
  return judgeAgain(view, wanted, live, resource, isOurs) ?? judgeServed(view, wanted, entry, live, resource)
}

const hasEnded = (live: LiveView): boolean => live.kind === 'absent' && live.ended !== undefined

function judgeServed(view: PlanView, wanted: Wanted, entry: InventoryEntry, live: LiveView, resource: ApiResource): Verdict {
  const { key } = wanted
  const { appliedDoc } = entry
  const leave = view.leave(wanted)
  const others = othersIn(live)
  const take = takeFor(wanted, leave, others, appliedDoc === null ? 'adopt' : 'keep', view.sync)
  const isGone = live.kind === 'absent'
  const sent = shapedDoc(wanted, leave, others, isGone ? null : appliedDoc)
  const isWanted = isInForce(wanted, leave, others, appliedDoc)
  const step = (doc: string, why: ApplyReason, of = wanted.sent): Verdict => {
    // RC24: commit and revision are new ones only where the document is.
    const { commit, revision } = isWanted || why === 'drift' ? entry : view
    return applyVerdict(view, wanted, resource, { doc, commit, revision, why, of, take })
  }
  const drifted = appliedDoc !== null && !hasEnded(live) && (live.kind !== 'present' || live.live.ownedHash !== entry.ownedHash)
  const refused = refusedBefore(view, wanted, isGone)
  if (isWanted) {
    // Otherwise fields that others have by now are released, by one apply.
    const isShaped = appliedDoc === sent || isGone
    if (!drifted && isShaped && take === null) return FINE
    const shut = refused ?? view.gate(wanted, isGone ? 'restore' : 'correct')
    if (shut !== null) return drifted || refused !== null ? problem(shut) : FINE
    if (!drifted && isShaped) return view.sync.drift === 'correct' ? judgeDrift(view, key, isGone, step(sent, 'takeover')) : FINE
    const isGivenUp = !isShaped && (!drifted || view.sync.drift === 'correct' || isAllLeft(view.notes.get(key), wanted, leave, others))
    return isGivenUp ? step(sent, 'changed') : judgeDrift(view, key, isGone, step(sent, 'drift'))
  }
  const shut = refused ?? view.gate(wanted, 'change')
  if (shut !== null) {
    // DR6: the applied document stays in force meanwhile.
    if (!drifted || view.gate(wanted, isGone ? 'restore' : 'correct') !== null) return problem(shut)
    const healed = shapedDoc({ sent: appliedDoc }, leave, others, isGone ? null : appliedDoc)
    const heal = judgeDrift(view, key, isGone, step(healed, 'drift', healed))
    // A fight has a schedule of its own: the reason of the closed gate would not show that its time has come.
    return heal.kind === 'problem' && heal.problem.kind !== 'contested' ? problem(shut) : heal
  }
  if (appliedDoc !== null)
    return drifted && view.sync.drift === 'pause' && !view.recreates?.has(key)
      ? judgeDrift(view, key, isGone, FINE)
      : judgeChange(view, key, leave, step(sent, 'changed'))
  return judgeFirstContact(view, wanted, live, resource)
}

/** DR9: a manager that takes and releases a field again and again does not cause endless work (DR4). */
function judgeChange(view: PlanView, key: string, leave: Leave | null, step: Verdict): Verdict {
  return leave === null || leave.managers.length === 0 ? step : judgePatience(view, key, false, step)
}

function applyVerdict(
  view: PlanView,
  wanted: Wanted,
  resource: ApiResource,
  { doc, commit, revision, why, of, take }: { doc: string; why: ApplyReason; of: string; take: Take | null } & Origin,
): Verdict {
  const { key, ref, options } = wanted
  const step = {
    kind: 'apply',
    key,
    ref,
    resource,
    doc,
    commit,
    revision,
    why,
    force: view.sync.force,
    ...(options?.replace === true ? { replace: { leave: view.leave(wanted), wanted: wanted.sent } } : {}),
  } as const
  return { kind: 'step', step: doc === of && take === null ? step : { ...step, shaped: { of, take } } }
}

/** RC8: a refused document is sent again when its time has come, or when it changed. */
function refusedBefore(view: PlanView, wanted: Wanted, isGone: boolean): Problem | null {
  const { key, sent } = wanted
  const before = view.problems.get(key)
  // An object that could not be changed can be created.
  if (isGone && before?.kind === 'failed' && before.failure.kind === 'immutable') return null
  return isRefusedStill(before, view.nowMs) && before.sent === sent ? refusedAgain(view, wanted, before, isOurs) : null
}

const unseenIf = (listed: boolean, verdict: Verdict): Verdict =>
  listed && verdict.kind === 'step' && verdict.step.kind === 'apply' ? { ...verdict, step: { ...verdict.step, unseen: true } } : verdict

/** RC3: an existing object is adopted only without a mark of another owner, or if the service may take over. */
function judgeFirstContact(view: PlanView, wanted: Wanted, live: LiveView, resource: ApiResource): Verdict {
  const { key, ref, onlyIfAbsent } = wanted
  const apply = (others: readonly OtherFields[] | null): Verdict => {
    const leave = view.leave(wanted, others)
    const take = takeFor(wanted, leave, others, 'adopt', view.sync)
    const doc = shapedDoc(wanted, leave, others, null)
    return applyVerdict(view, wanted, resource, { doc, commit: view.commit, revision: view.revision, why: 'new', of: wanted.sent, take })
  }
  if (live.kind === 'present' && isAdoptable(view, live.live.owner)) return apply(othersIn(live))
  const contact = view.contacts.get(key)
  if (contact === undefined) return { kind: 'step', step: { kind: 'inspect', key, ref, resource, refs: [ref] } }
  if (contact.kind === 'absent') return unseenIf(contact.listed === true, apply(null))
  if (contact.deleting !== null) {
    return problem({ ...again(view, key, 'owned'), kind: 'owned', owner: ownerText(contact.owner) ?? 'nobody', going: contact.deleting })
  }
  if (onlyIfAbsent || wanted.options?.touch === 'ifAbsent') return FINE
  if (isAdoptable(view, contact.owner) || view.sync.takeover) return apply(contact.others ?? null)
  return problem({ ...again(view, key, 'owned'), kind: 'owned', owner: ownerText(contact.owner) ?? 'somebody' })
}

/**
 * Within this cluster the inventory names the owner of an object, and it was asked before: a mark of another Skerry
 * service is a remnant.
 */
export const isAdoptable = (view: PlanView, owner: Owner): boolean => owner.kind === 'none' || isOfThisCluster(owner, view)

export const isOurs = (own: Pick<PlanView, 'id' | 'clusterId' | 'former'>, { owner }: Pick<LiveObject, 'owner'>): boolean =>
  isOfThisCluster(owner, own) && owner.project === own.id.project && owner.service === own.id.service

/** DR5: the policy, and then the patience. */
function judgeDrift(view: PlanView, key: string, isGone: boolean, correct: Verdict): Verdict {
  if (view.sync.drift === 'correct') return judgePatience(view, key, isGone, correct)
  return problem({ kind: 'drifted', drift: driftText(view.notes.get(key) ?? NO_NOTE, isGone), ...(isGone ? { deleted: true } : {}) })
}

/** DR4: delays a correction that others undo again and again. */
function judgePatience(view: PlanView, key: string, isGone: boolean, correct: Verdict): Verdict {
  // A failed correction was none: its own backoff holds it.
  if (view.problems.get(key)?.kind === 'failed') return correct
  const { kind, contest } = judgeContest(view.contests.get(key) ?? NO_CONTEST, view.nowMs)
  if (kind === 'correct') return correct.kind === 'step' ? { ...correct, contest } : correct
  const drift = driftText(view.notes.get(key) ?? NO_NOTE, isGone)
  return { kind: 'problem', problem: { kind: 'contested', drift, untilMs: contest.untilMs }, contest }
}

/** RC11: nothing is sent into an owned namespace that is not Active; its event ends the wait. Namespaces of others
 *  are tried. */
export function namespaceGate(view: PlanView, { ref }: Wanted): Problem | null {
  if (ref.namespace === '') return null
  const key = ownNamespaceKey(ref)
  const namespace = view.wanted.get(key)
  if (namespace === undefined) return null
  const live = viewIn(view, namespace)
  if (live.kind === 'present' && live.live.deleting === null && live.live.health.word === 'Healthy') return null
  if (namespace.onlyIfAbsent && (view.takenBy(key) !== null || view.contacts.get(key)?.kind === 'present')) return null
  return { kind: 'waiting', on: key, message: namespaceText(ref.namespace, live) }
}

const namespaceText = (name: string, live: LiveView): string =>
  live.kind === 'present' && live.live.deleting !== null
    ? objectText('Waiting.namespaceDeletion', { namespace: name, deleting: live.live.deleting })
    : objectText('Waiting.namespace', { namespace: name })

/** The attempt that follows the same problem of the object; the loop chooses the time (it has the random). A problem
 *  whose time has not come keeps its time. */
export function again(view: PlanView, key: string, kind: 'owned' | 'unserved'): { attempt: number; retryAtMs: number } {
  const before = view.problems.get(key)
  if (before?.kind !== kind) return { attempt: 0, retryAtMs: 0 }
  if (isStillToCome(before.retryAtMs, view.nowMs)) return { attempt: before.attempt, retryAtMs: before.retryAtMs }
  return { attempt: before.attempt + 1, retryAtMs: 0 }
}
