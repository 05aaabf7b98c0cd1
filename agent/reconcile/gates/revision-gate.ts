// Whether a service may begin the revision that its row names: a person was asked for (sync.mode), what it depends on is ready. Asked until the answer is yes; what has
// begun goes to its end. Also who has to be gone before a service goes. The deciding is manual-gate's and dependencies', this looks things up for them.
import type { ServiceRow } from '../../../shared/model/desired.ts'
import { serviceStatusSchema } from '../../../shared/model/status.ts'
import { isApart, isKeptAsMade } from '../apply/left-alone.ts'
import { leaveOf } from '../fields/ignore.ts'
import { isInForce } from '../fields/shaping.ts'
import type { ServiceModel } from '../service-model.ts'
import type { TurnDeps } from '../turn-deps.ts'
import type { Wanted } from '../wanted.ts'
import { blockedBy, type DependencyState, type DependencyView, goneFirst } from './dependencies.ts'
import type { Closed, Gate } from './gates.ts'
import { manualGate } from './manual-gate.ts'

/** DE3, SM1. Null: it may, or it has begun already. `begins`: who asks begins it, if it may. */
export function revisionGate(model: ServiceModel, deps: TurnDeps, begins = true): Closed | null {
  const { row, progress, key } = model
  if (row === null || row.removal !== undefined) return null
  if (model.begunDigest === row.digest || progress.applied?.digest === row.digest) return null
  const found = blockedBy(key, dependencyView(deps))
  const blocked = found !== null && hadBegun(model, row.digest, deps) ? null : found
  if (blocked === null) deps.dependents.waitsNoMore(key)
  else deps.dependents.waits(key, 'ready', blocked.on)
  const shut = manualGate(model.id, row) ?? blocked?.gate ?? null
  if (shut === null && begins) begin(model, row, deps)
  return shut
}

const BEGUN_FACT = 'gate/begun'

/** DE3: a restart does not ask again. Written only where somebody could be asked. */
function begin(model: ServiceModel, { digest, dependsOn = [] }: ServiceRow, { state }: TurnDeps): void {
  if (dependsOn.length > 0 && state.facts(model.id, BEGUN_FACT).get(BEGUN_FACT) !== digest)
    state.setFacts(model.id, new Map([[BEGUN_FACT, digest]]))
  model.begunDigest = digest
}

function hadBegun(model: ServiceModel, digest: string, { state }: TurnDeps): boolean {
  if (model.begunDigest !== null) return false
  const before = state.facts(model.id, BEGUN_FACT).get(BEGUN_FACT)
  if (before !== digest) model.begunDigest = '' // nothing had
  return before === digest
}

/** RC15: what a revision that began in between has undone is not applied any more. `isFirst`: the first that is read since the start, when nobody remembers which one had
 *  begun, and the documents in force tell. True: it is so. */
export function isUndone({ row, begunDigest, progress, wanted, inventory }: ServiceModel, isFirst: boolean): boolean {
  if (row === null || row.removal !== undefined || progress.applied?.digest !== row.digest) return false
  if (isFirst) return [...wanted.values()].some((one) => isReplaced(one, inventory.get(one.key)?.appliedDoc ?? null))
  return begunDigest !== null && begunDigest !== '' && begunDigest !== row.digest
}

/** Whatever an autoscaler may have is taken to be left to it. */
function isReplaced(wanted: Wanted, applied: string | null): boolean {
  if (isApart(wanted, applied) || isKeptAsMade(wanted)) return false
  return !isInForce(wanted, leaveOf(wanted.leave, wanted.leave?.scaled ?? []), null, applied)
}

/** For new documents only: what is applied is healed whatever this says. The answer is looked for once. */
export function changeGate(model: ServiceModel, deps: TurnDeps): Gate {
  let answer: { shut: Closed | null } | null = null
  return (_, deed) => {
    if (deed !== 'change') return null
    answer ??= { shut: revisionGate(model, deps) }
    return answer.shut
  }
}

/** DE4: why a service that is being removed stays for now; null: it may go. */
export function removalWait(model: ServiceModel, deps: TurnDeps): string | null {
  if (model.row?.removal === undefined) return null
  const { dependents } = deps
  const isLeavingKey = (key: string) => {
    const other = deps.modelOf(key)
    return other !== null && isLeaving(other)
  }
  const on = goneFirst(model.key, dependents.dependentsOf(model.key), isLeavingKey, dependents.dependenciesOf)
  const [first] = on
  if (first === undefined) {
    dependents.waitsNoMore(model.key)
    return null
  }
  dependents.waits(model.key, 'gone', on)
  return `to be removed when ${first}, which depends on it, is gone${on.length === 1 ? '' : ` (and ${on.length - 1} more)`}`
}

/** After each turn: who waited for what this service is now. */
export function wakeDependents(model: ServiceModel, deps: TurnDeps): void {
  if (deps.dependents.isAlone(model.key)) return
  const state = stateOf(model, deps)
  const text = state.kind === 'unready' ? state.words : state.kind
  const said = { ready: state.kind === 'ready', leaving: isLeaving(model), text }
  for (const key of deps.dependents.toWake(model.key, said)) deps.wake(key)
}

const dependencyView = (deps: TurnDeps): DependencyView => ({
  stateOf: (key) => {
    const model = deps.modelOf(key)
    return model === null ? { kind: 'absent' } : stateOf(model, deps)
  },
  dependenciesOf: deps.dependents.dependenciesOf,
})

function stateOf(model: ServiceModel, deps: TurnDeps): DependencyState {
  const { reading, row, progress } = model
  if (reading.kind === 'absent' && !model.revisionPending) return { kind: 'absent' }
  const words = wordsOf(model, deps)
  if (reading.kind !== 'complete' || row === null || model.revisionPending) return { kind: 'unready', words: words.text }
  if (row.removal !== undefined) return { kind: 'removing' }
  const isHealthy = progress.applied?.digest === row.digest && progress.healthy?.digest === row.digest
  return isHealthy && words.isWell ? { kind: 'ready' } : { kind: 'unready', words: words.text }
}

/** As it was reported last, also before this start. */
function wordsOf({ status, key }: ServiceModel, { state }: TurnDeps): { text: string; isWell: boolean } {
  const last = status ?? serviceStatusSchema.safeParse(state.lastReported('service', key)).data
  if (last === undefined) return { text: 'not looked at yet', isWell: true }
  const why = last.reason === '' || last.reason === last.sync || last.reason === last.health ? '' : ` (${last.reason})`
  return { text: `${last.sync}, ${last.health}${why}`, isWell: last.health !== 'Degraded' && last.health !== 'Missing' }
}

/** It has a removal order that is not carried out yet. */
function isLeaving({ reading, row, removedOrderMs }: ServiceModel): boolean {
  return reading.kind === 'complete' && row?.removal !== undefined && removedOrderMs !== row.removal.atMs
}
