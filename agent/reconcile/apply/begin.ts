// Asks the gates of a service as a whole, and stores their answers: which service waits for which, and which revision
// has begun. revision-gate.ts judges the answers. Only this file changes `Gating`.

import type { ServiceRow } from '../../../shared/model/desired.ts'
import { serviceText } from '../../../shared/runtime/ids.ts'
import { deletionText } from '../../messages/deletion-messages.ts'
import { begunFacts, goFirst, judgeRevision, type RevisionJudgement, saidToDependents } from '../plan/gates/revision-gate.ts'
import type { Services, Storage, Turns } from '../ports.ts'
import type { ServiceModel } from '../snapshot/service-model.ts'
import type { Closed } from '../snapshot/situation.ts'
import { remember } from './remember.ts'

type Beginning = Pick<Storage, 'state'> & Pick<Services, 'dependents' | 'modelOf'>

/** DE3, SM1: null if it may, or it has begun already. */
export function revisionGate(model: ServiceModel, deps: Beginning): Closed | null {
  return takeJudgement(model, deps, judgeRevision(model, deps), false)
}

/** As `revisionGate`; the report says it. */
export function heldBack(model: ServiceModel, deps: Beginning): Closed | null {
  model.gating.waits(revisionGate(model, deps))
  return model.gating.held
}

/** HO1: a hold may have been ordered, lifted, or have ended. */
export function takeHold(model: ServiceModel, { times }: Pick<Turns, 'times'>, nowMs: number): void {
  model.gating.heldBy(times.hold(model.id, nowMs))
}

/** A hold or window shuts corrections, too, of which some have no problem: what other tools wrote beside ours. */
export function noteShut(model: ServiceModel, isShut: boolean): void {
  if (model.gating.opens(isShut)) for (const key of model.wanted.keys()) model.queue.plan(key)
}

/** All of the revision is applied: nothing holds it back any more. */
export const isInForce = ({ gating }: ServiceModel, { digest }: Pick<ServiceRow, 'digest'>): void => gating.begin(digest)

/** The file forgot the service. */
export const nothingBegun = ({ gating }: ServiceModel): void => gating.kept(null)

/** As `revisionGate`; the call begins the revision, if it may. */
export function beginRevision(model: ServiceModel, deps: Beginning): Closed | null {
  return takeJudgement(model, deps, judgeRevision(model, deps), true)
}

/** Null if no plan asked. */
export function takeJudgement(model: ServiceModel, deps: Beginning, judgement: RevisionJudgement | null, begins: boolean): Closed | null {
  if (judgement === null) return null
  const { shut, on, isAnother, mayBegin } = judgement
  if (isAnother) model.gating.nothingBegan()
  if (on?.length === 0) deps.dependents.waitsNoMore(model.key)
  else if (on !== null) deps.dependents.waits(model.key, 'ready', on)
  if (begins && mayBegin && model.row !== null) {
    const facts = begunFacts(model, model.row)
    remember(model, deps, facts)
    if (facts !== null) model.gating.kept(model.row.digest)
    model.gating.begin(model.row.digest)
  }
  return shut
}

/** DE4: the reason to delay the removal of a service. Null means that it may be removed. */
export function removalWait(model: ServiceModel, deps: Pick<Services, 'dependents' | 'modelOf'>): string | null {
  if (model.row?.removal === undefined) return null
  const on = goFirst(model, deps)
  const [first] = on
  if (first === undefined) {
    deps.dependents.waitsNoMore(model.key)
    return null
  }
  deps.dependents.waits(model.key, 'gone', on)
  return deletionText('dependents_first', { first: serviceText(first), count: on.length })
}

/** After each reconciliation: wakes the services that waited for the present state of this one. */
export function wakeDependents(model: ServiceModel, { dependents, wake }: Pick<Services, 'dependents'> & Pick<Turns, 'wake'>): void {
  if (dependents.isAlone(model.key)) return
  for (const key of dependents.toWake(model.key, saidToDependents(model))) wake(key)
}
