// Deletes what left the revision, past everything that may hold it: an older disk, other services, the guard, health.
import { refText, versionOf } from '../../shared/kube/object.ts'
import { judgeHandover } from './handover.ts'
import { isApart, isKeptAsMade } from './left-alone.ts'
import { namespaceThatGoes } from './own-namespace.ts'
import { guardPrune } from './prune-guard.ts'
import { pruneHold } from './phases.ts'
import { type PruneOptions, planPrune } from './prune-plan.ts'
import { removalWait, revisionGate } from './revision-gate.ts'
import { absorb, carryOut, isInterrupted } from './rounds.ts'
import type { ServiceModel } from './service-model.ts'
import { isInForce, othersIn } from './shaping.ts'
import { accountTrouble, planView, type TurnDeps } from './turn-deps.ts'
import type { LiveView } from './watches.ts'

/** PR7: a disk can come back older, by a power cut or a snapshot; its revisions never heard of what came later, whose objects are in the cluster. */
const MAYBE_OLDER =
  'to be pruned at the first contact with the server since this agent started: until then an older disk could have come back'

/** PR1, PR6: what left the revision goes when the guard allows it and the rest is ready; a removal order passed the server's guard
 *  already, but one out of a backup may be of a service that was made again since (RP2). */
export async function pruneRounds(model: ServiceModel, deps: TurnDeps): Promise<void> {
  const { row } = model
  model.pruneWhy = null
  if (model.reading.kind !== 'complete' || row === null || !deps.replica.verified()) return
  const handovers = new Map(row.handover?.map((handover) => [handover.object, handover]))
  const options: PruneOptions = {
    wantedElsewhere: (key) => deps.othersWanting(model, key).length > 0,
    uidsInForce: deps.uidsInForce,
    handover: (key) => {
      const handover = handovers.get(key)
      return handover === undefined ? null : judgeHandover(handover, deps.taker(handover))
    },
    namespaceGoes: namespaceThatGoes({ id: model.id, row, clusterId: deps.clusterId, inventory: model.inventory, owners: deps.owners }),
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
    const plan = planPrune(planView(model, deps), leaving, options)
    if (plan.awaitsTaker) deps.wakeWhenRead(model)
    absorb(model, deps, plan.problems)
    const older = deps.isCurrent() || plan.doomed.length === 0 ? null : MAYBE_OLDER
    const held =
      older ??
      accountTrouble(model)?.message ??
      removalWait(model, deps) ??
      orderHold(model) ??
      (row.removal === undefined || row.restored === true ? holdPrune(model, deps, plan.doomed) : null)
    model.pruneWhy = held ?? whyLeaving(model, leaving)
    const steps = held === null ? plan.steps : plan.steps.filter(({ kind }) => kind === 'forget')
    if (steps.length === 0) break
    await carryOut(model, deps, steps, () => isInterrupted(model, deps) || deps.revisionsSeen() !== seen)
  }
  if (model.leaving().length === 0) {
    model.pruneWhy = model.hooks.farewellWhy
    model.refusal = null
  }
}

/** OR5, HK10. */
const orderHold = ({ hooks, row }: ServiceModel): string | null =>
  row?.removal === undefined ? pruneHold(hooks.position) : row.removal.policy === 'prune' ? hooks.farewellWhy : null

/** Null: go. Else why nothing is deleted now. */
function holdPrune(model: ServiceModel, deps: TurnDeps, doomed: Parameters<typeof guardPrune>[0]['prune']): string | null {
  const { row } = model
  if (row === null || doomed.length === 0) return null
  const { sync, digest, count, pruneConfirmed, protect, restored = false } = row
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
  const ownedCount = [...model.inventory.values()].filter(({ uid }) => uid !== null).length
  const refusal = guardPrune({
    prune: doomed,
    desiredCount: count,
    ownedCount,
    digest,
    pruneConfirmed,
    protect,
    maxPrunePercent: sync.maxPrunePercent,
    restored,
  })
  if (refusal !== null && JSON.stringify(refusal) !== JSON.stringify(model.refusal)) {
    deps.emit({ type: 'Warning', reason: 'PruneRefused', message: `${refusal.why}: ${names}`, service: model.key })
  }
  model.refusal = refusal
  if (refusal !== null) return refusal.why
  const waitsFor = firstNotReady(model, deps)
  return waitsFor === null ? null : `to be pruned when ${waitsFor} (sync.pruneWhen is ${sync.pruneWhen}): ${names}`
}

/** The first object, in order, that keeps a prune waiting. */
function firstNotReady(model: ServiceModel, deps: TurnDeps): string | null {
  const { pruneWhen } = model.sync()
  for (const { ref, problem } of model.unread.values()) if (problem !== null) return `${refText(ref)} is applied`
  const view = planView(model, deps)
  for (const wanted of model.wanted.values()) {
    const { key, ref, apiVersion } = wanted
    const applied = model.inventory.get(key)?.appliedDoc ?? null
    if (isApart(wanted, applied)) continue
    const lookup = view.find(ref.group, versionOf(apiVersion), ref.kind)
    const live: LiveView = lookup.kind === 'served' ? view.view(lookup.resource, key) : { kind: 'unknown' }
    if (model.problems.has(key) || (!isKeptAsMade(wanted) && !isInForce(wanted, view.leave(wanted), othersIn(live), applied)))
      return `${refText(ref)} is applied`
    if (pruneWhen === 'applied') continue
    if (live.kind !== 'present' || !['Healthy', 'Suspended'].includes(live.live.health.word)) return `${refText(ref)} is healthy`
  }
  return null
}

function whyLeaving(model: ServiceModel, leaving: readonly string[]): string {
  const refs = leaving
    .flatMap((key) => model.inventory.get(key)?.ref ?? [])
    .map(refText)
    .sort()
  const more = refs.length > 5 ? ` and ${refs.length - 5} more` : ''
  return `being deleted: ${refs.slice(0, 5).join(', ')}${more}`
}
