// Decides whether a service may begin the revision that its row names: a person has allowed it (sync.mode), and its
// dependencies are ready. Checked until it may; a revision that has begun is completed. Also names the services that
// must be gone before a service is removed. manual-gate.ts and dependencies.ts decide, this file reads the facts for
// them.
import type { ServiceRow } from '../../../../shared/model/desired.ts'
import { servicePart } from '../../../messages/service-messages.ts'
import type { Services } from '../../ports.ts'
import { leaveOf } from '../../snapshot/fields/ignore.ts'
import { isInForce } from '../../snapshot/fields/shaping.ts'
import type { ServiceSnapshot } from '../../snapshot/service-model.ts'
import type { Closed } from '../../snapshot/situation.ts'
import type { Wanted } from '../../snapshot/wanted.ts'
import { isApart, isKeptAsMade } from '../left-alone.ts'
import { blockedBy, type DependencyState, type DependencyView, goneFirst } from './dependencies.ts'
import { type Gate, manualGate } from './gates.ts'

type OtherServices = Pick<Services, 'dependents' | 'modelOf'>

export interface RevisionJudgement {
  /** DE3, SM1: null if it may begin, or it has begun already. */
  shut: Closed | null
  /** Services that it waits for. Null means that there was nothing to check. */
  on: readonly string[] | null
  /** Another revision had begun before this start. */
  isAnother: boolean
  /** It has not begun yet, and may. */
  mayBegin: boolean
}
const BEGUN: RevisionJudgement = { shut: null, on: null, isAnother: false, mayBegin: false }

export function judgeRevision(model: ServiceSnapshot, services: OtherServices): RevisionJudgement {
  const { row, key, gating, progress } = model
  if (row === null || row.removal !== undefined) return BEGUN
  if (gating.begun === row.digest || progress.reached.applied?.digest === row.digest) return BEGUN
  const found = blockedBy(key, dependencyView(services))
  const isAsked = found !== null && gating.begun === null
  const hadBegun = isAsked && gating.begunBefore === row.digest
  const blocked = hadBegun ? null : found
  const shut = manualGate(model.id, row) ?? blocked?.gate ?? null
  return { shut, on: blocked?.on ?? [], isAnother: isAsked && !hadBegun, mayBegin: shut === null }
}

const FACT = 'gate/begun'
export const recallBegun = (facts: ReadonlyMap<string, unknown>): string | null => {
  const digest = facts.get(FACT)
  return typeof digest === 'string' ? digest : null
}

/** DE3: a restart does not check again. Null means that there is nothing to store, or it is stored already. */
export const begunFacts = ({ gating }: ServiceSnapshot, { digest, dependsOn = [] }: ServiceRow): ReadonlyMap<string, unknown> | null =>
  dependsOn.length === 0 || gating.begunBefore === digest ? null : new Map([[FACT, digest]])

/**
 * RC15: objects that an interim revision has undone no longer count as applied. `isFirst`: the first revision that is
 * read since the start, when the applied documents alone show which one had begun. True: they are undone.
 */
export function isUndone({ row, gating, progress, wanted, inventory }: ServiceSnapshot, isFirst: boolean): boolean {
  if (row === null || row.removal !== undefined || progress.reached.applied?.digest !== row.digest) return false
  if (isFirst) return [...wanted.values()].some((one) => isReplaced(one, inventory.get(one.key)?.appliedDoc ?? null))
  return gating.begun !== null && gating.begun !== '' && gating.begun !== row.digest
}

/** Every field that an autoscaler may have counts as left to it. */
function isReplaced(wanted: Wanted, applied: string | null): boolean {
  if (isApart(wanted, applied) || isKeptAsMade(wanted)) return false
  return !isInForce(wanted, leaveOf(wanted.leave, wanted.leave?.scaled ?? []), null, applied)
}

/**
 * For new documents only: applied documents are healed in any case. The answer is computed once, and only on demand.
 */
export function changeGate(model: ServiceSnapshot, services: OtherServices): { gate: Gate; asked(): RevisionJudgement | null } {
  let answer: RevisionJudgement | null = null
  const gate: Gate = (_, deed) => {
    if (deed !== 'change') return null
    answer ??= judgeRevision(model, services)
    return answer.shut
  }
  return { gate, asked: () => answer }
}

/** DE4: those that have to go before a service that is being removed. */
export function goFirst(model: ServiceSnapshot, { dependents, modelOf }: OtherServices): readonly string[] {
  const isLeavingKey = (key: string) => {
    const other = modelOf(key)
    return other !== null && isLeaving(other)
  }
  return goneFirst(model.key, dependents.dependentsOf(model.key), isLeavingKey, dependents.dependenciesOf)
}

/** The state that dependents of a service get. */
export function saidToDependents(model: ServiceSnapshot): { ready: boolean; leaving: boolean; text: string } {
  const state = stateOf(model)
  return { ready: state.kind === 'ready', leaving: isLeaving(model), text: state.kind === 'unready' ? state.words : state.kind }
}

const dependencyView = (services: OtherServices): DependencyView => ({
  stateOf: (key) => {
    const model = services.modelOf(key)
    return model === null ? { kind: 'absent' } : stateOf(model)
  },
  dependenciesOf: services.dependents.dependenciesOf,
})

function stateOf(model: ServiceSnapshot): DependencyState {
  const { reading, row } = model
  const progress = model.progress.reached
  if (reading.kind === 'absent' && !model.revisionPending) return { kind: 'absent' }
  const words = wordsOf(model)
  if (reading.kind !== 'complete' || row === null || model.revisionPending) return { kind: 'unready', words: words.text }
  if (row.removal !== undefined) return { kind: 'removing' }
  const isHealthy = progress.applied?.digest === row.digest && progress.healthy?.digest === row.digest
  return isHealthy && words.isWell ? { kind: 'ready' } : { kind: 'unready', words: words.text }
}

/** As last reported, also before this start. */
function wordsOf({ told: { last } }: ServiceSnapshot): { text: string; isWell: boolean } {
  if (last === null) return { text: servicePart('not_evaluated'), isWell: true }
  const why = last.reason === '' || last.reason === last.sync || last.reason === last.health ? '' : ` (${last.reason})`
  return { text: `${last.sync}, ${last.health}${why}`, isWell: last.health !== 'Degraded' && last.health !== 'Missing' }
}

/** It has a removal order that is not carried out yet. */
function isLeaving({ reading, row, removal }: ServiceSnapshot): boolean {
  return reading.kind === 'complete' && row?.removal !== undefined && !removal.isCarriedOut(row.removal)
}
