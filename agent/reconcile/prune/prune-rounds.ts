// Deletes what left the revision, past everything that may hold it: an older disk, other services, the guard, health.
import { type ObjectRef, refKey, refText } from '../../../shared/kube/object.ts'
import type { ServiceRow } from '../../../shared/model/desired.ts'
import { type PruneRefusal, serviceStatusSchema } from '../../../shared/model/status.ts'
import { keepsNamespace, namespaceThatGoes, noteKept } from '../apply/own-namespace.ts'
import { confirmedAtSite } from '../gates/edge-orders.ts'
import { forgetHealing, healLeaving } from '../gates/heal-leaving.ts'
import { removalWait, revisionGate } from '../gates/revision-gate.ts'
import { pruneHold } from '../order/phases.ts'
import { absorb, carryOut, isInterrupted } from '../rounds.ts'
import type { ServiceModel } from '../service-model.ts'
import { accountTrouble, type TurnDeps } from '../turn-deps.ts'
import { planView } from '../turn-view.ts'
import { waitsForTakers } from './handover.ts'
import { guardPrune } from './prune-guard.ts'
import { type PruneOptions, type PrunePlan, planPrune } from './prune-plan.ts'
import { firstNotReady, overdueAtMs, waitText } from './prune-wait.ts'

/** PR7: a disk can come back older, by a power cut or a snapshot; its revisions never heard of what came later, whose objects are in the cluster. */
const MAYBE_OLDER =
  'to be pruned at the first contact with the server since this agent started: until then an older disk could have come back'

/** PR1, PR6: what left the revision goes when the guard allows it and the rest is ready; a removal order passed the server's guard
 *  already, but one out of a backup may be of a service that was made again since (RP2). */
export async function pruneRounds(model: ServiceModel, deps: TurnDeps): Promise<void> {
  const { row } = model
  model.pruneWhy = null
  model.pruneOverdue = false
  if (model.reading.kind !== 'complete' || row === null || !deps.replica.verified()) return
  const handovers = new Set((row.handover ?? []).map(({ object }) => object))
  const options: PruneOptions = {
    wantedElsewhere: (key) => deps.othersWanting(model, key).length > 0,
    uidsInForce: deps.uidsInForce,
    handover: (key) => (handovers.has(key) ? waitsForTakers(key, row.handover ?? [], deps.taker) : null),
    namespaceGoes: namespaceOf(model, row, deps),
    removal: row.removal !== undefined,
    orphan: row.removal?.policy === 'orphan',
  }
  while (!isInterrupted(model, deps)) {
    const leaving = model.leaving()
    if (leaving.length === 0) break
    // RC3: it may have moved to a service that has not had its turn.
    if (deps.waitsForOthers(model)) {
      model.pruneWhy = 'to be pruned when what has just come for other services is read'
      break
    }
    const seen = deps.revisionsSeen()
    // DE3: what waits is not in force yet.
    const waits = revisionGate(model, deps, false)
    const isOthers = (key: string) => options.wantedElsewhere(key) || handovers.has(key)
    const open = waits === null ? leaving : await healLeaving(model, deps, leaving, isOthers)
    if (waits === null) forgetHealing(model, leaving)
    const plan = planPrune(planView(model, deps), open, options)
    if (plan.awaitsTaker) deps.wakeWhenRead(model)
    absorb(model, deps, plan.problems)
    const held = whyHeld(model, deps, plan)
    model.pruneWhy = waits?.message ?? held ?? whyLeaving(model, leaving)
    const steps = held === null ? plan.steps : plan.steps.filter(({ kind }) => kind === 'forget')
    if (steps.length === 0) break
    if (noteKept(model.id, row, deps.state, steps)) options.namespaceGoes = null
    await carryOut(model, deps, steps, () => isInterrupted(model, deps) || deps.revisionsSeen() !== seen)
  }
  if (model.leaving().length === 0) {
    model.pruneWhy = model.hooks.farewellWhy
    model.refusal = null
  }
}

function namespaceOf({ id, inventory }: ServiceModel, row: ServiceRow, { clusterId, owners, state }: TurnDeps): string | null {
  const key = namespaceThatGoes({ id, row, clusterId, inventory, owners })
  return key !== null && keepsNamespace(id, state) ? null : key
}

/** OR5, HK10. */
const orderHold = ({ hooks, row }: ServiceModel): string | null =>
  row?.removal === undefined ? pruneHold(hooks.position) : row.removal.policy === 'prune' ? hooks.farewellWhy : null

/** Null: go. Else why nothing is deleted now; what needs no delete goes on. */
function whyHeld(model: ServiceModel, deps: TurnDeps, { doomed, allowed }: PrunePlan): string | null {
  const { row } = model
  const shut = deps.times.shut(model.id, deps.clock.nowMs())
  if (shut !== null) return shut.message
  const wait = accountTrouble(model)?.message ?? removalWait(model, deps) ?? orderHold(model)
  if (wait !== null) return wait
  const held = row !== null && (row.removal === undefined || row.restored === true) ? holdPrune(model, deps, doomed, allowed) : null
  if (held !== null) return held
  // Who confirmed it here has looked at the list of what this agent holds now.
  return deps.isCurrent() || doomed.length === 0 || model.confirmedHere === row?.digest ? null : MAYBE_OLDER
}

function holdPrune(model: ServiceModel, deps: TurnDeps, doomed: readonly ObjectRef[], allowed: ReadonlySet<string>): string | null {
  const { row } = model
  if (row === null || doomed.length === 0) return null
  const { sync, digest, count, protect, restored = false, factsOnly = false } = row
  const names = doomed.slice(0, 5).map(refText).join(', ') + (doomed.length > 5 ? ` and ${doomed.length - 5} more` : '')
  if (!sync.prune && row.removal === undefined) {
    model.refusal = null
    return `kept, because sync.prune is false: ${names}; delete them by hand, or set it`
  }
  // What has not begun prunes nothing either.
  const shut = revisionGate(model, deps)
  if (shut !== null) {
    model.refusal = null
    return shut.message
  }
  // A hook that is left says nothing of what was meant by the rest.
  const hooks = model.hooks.held()
  const ownedCount = [...model.inventory].filter(([key, { uid }]) => uid !== null && !hooks.has(key)).length
  const refusal = guardPrune({
    prune: doomed,
    desiredCount: count - model.hooks.count(),
    ownedCount,
    digest,
    pruneConfirmed: row.pruneConfirmed === digest ? digest : (confirmedAtSite(model, deps) ?? undefined),
    allowed,
    protect,
    maxPrunePercent: sync.maxPrunePercent,
    restored,
    factsOnly,
  })
  if (refusal !== null && !isSaid(refusal, model.refusal ?? lastSaid(model, deps))) {
    const [first] = doomed
    const object = first === undefined ? {} : { object: refKey(first) }
    deps.emit({ type: 'Warning', reason: 'PruneRefused', message: `${refusal.why}: ${names}`, service: model.key, ...object })
  }
  model.refusal = refusal
  if (refusal !== null) return refusal.why
  const waitsFor = firstNotReady(model, deps, doomed)
  if (waitsFor === null) return null
  const overdueMs = overdueAtMs(model, sync.healthDeadline, deps.clock.nowMs())
  model.pruneOverdue = overdueMs === null
  if (overdueMs !== null) deps.wakeAt(model.key, overdueMs)
  return waitText(waitsFor, names, sync.pruneWhen, overdueMs === null ? sync.healthDeadline : null)
}

/** Also before this start: a restart asks nobody anew. */
const lastSaid = ({ key }: ServiceModel, { state }: TurnDeps): PruneRefusal | null =>
  serviceStatusSchema.safeParse(state.lastReported('service', key)).data?.refusal ?? null

const isSaid = (refusal: PruneRefusal, said: PruneRefusal | null): boolean =>
  said !== null && refusal.digest === said.digest && refusal.why === said.why && refusal.names.join() === said.names.join()

function whyLeaving(model: ServiceModel, leaving: readonly string[]): string {
  const refs = leaving
    .flatMap((key) => model.inventory.get(key)?.ref ?? [])
    .map(refText)
    .sort()
  const more = refs.length > 5 ? ` and ${refs.length - 5} more` : ''
  return `being deleted: ${refs.slice(0, 5).join(', ')}${more}`
}
