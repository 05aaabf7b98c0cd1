// Deletes objects that left the revision, after all checks: an older disk, other services, the guard, health.
import { type ObjectRef, refKey, refText, versionOf } from '../../../shared/kube/object.ts'
import { confirmationToken, deletes, type ServiceRow } from '../../../shared/model/desired.ts'
import type { PruneRefusal } from '../../../shared/model/status.ts'
import { serviceKey } from '../../../shared/runtime/ids.ts'
import { andMore } from '../../../shared/runtime/messages.ts'
import { deletionText } from '../../messages/deletion-messages.ts'
import { warning } from '../../messages/event-messages.ts'
import { confirmationOf } from '../plan/gates/confirmation.ts'
import { pruneHold } from '../plan/order/phases.ts'
import {
  type Contents,
  type Decision,
  type DeletionRequest,
  decideDeletions,
  holdingOf,
  isGivenUp,
  withHeld,
} from '../plan/prune/deletion.ts'
import { handedOver, waitsForTakers } from '../plan/prune/handover.ts'
import { mayBeOlder } from '../plan/prune/prune-guard.ts'
import { keptFacts, namespaceThatGoes, nextSteps, type PruneOptions, type PrunePlan, planPrune } from '../plan/prune/prune-plan.ts'
import { firstNotReady, overdueAtMs, waitText } from '../plan/prune/prune-wait.ts'
import { planView } from '../plan/turn-view.ts'
import type { Reports, Requests, Services, Site, Storage, Turns } from '../ports.ts'
import { accountOf, accountTrouble } from '../snapshot/account.ts'
import { refusedDeletion } from '../snapshot/permits.ts'
import type { ServiceModel } from '../snapshot/service-model.ts'
import { beginRevision, removalWait, revisionGate } from './begin.ts'
import { forgetHealing, healLeaving } from './heal-leaving.ts'
import { keepNamespace } from './remember.ts'
import { absorb, carryOut, isInterrupted } from './rounds.ts'

/**
 * PR1, PR6: objects that left the revision are deleted when the guard allows it and the rest is ready. A removal order
 * passed the server's guard already, but one from a backup may concern a service that was created again since (RP2).
 */
export async function pruneRounds(model: ServiceModel, deps: Site & Requests & Storage & Services & Turns & Reports): Promise<void> {
  const { row } = model
  model.pruning.begin()
  if (model.reading.kind !== 'complete' || row === null) return
  if (model.leaving().length > 0) {
    if (!deps.replica.verified()) return
    await deleteLeaving(model, row, deps)
  }
  if (model.leaving().length > 0) return
  model.pruning.waits(model.hooks.removalWait)
  ask(model, deps, row, null, [])
}

/** Round by round, until nothing is left or the rest has to wait. */
async function deleteLeaving(
  model: ServiceModel,
  row: ServiceRow,
  deps: Site & Requests & Storage & Services & Turns & Reports,
): Promise<void> {
  const handovers = handedOver(row.handover ?? [])
  const options: PruneOptions = {
    wantedElsewhere: (key) => deps.othersWanting(model, key).length > 0,
    isUidInForce: deps.isUidInForce,
    handover: (key) => (handovers.has(key) ? waitsForTakers(key, row.handover ?? [], deps.taker) : null),
    account: accountOf(model),
    removal: row.removal !== undefined,
    orphan: row.removal?.policy === 'orphan',
    endOf: () => ({ kind: 'unknown' }),
    isGivenUp: (ref) => isGivenUp(ref, confirmationOf(model, row).names),
  }
  const contents = new Map<string, Contents>()
  while (!isInterrupted(model, deps)) {
    const leaving = model.leaving()
    if (leaving.length === 0) break
    // RC3: it may have moved to a service that has not had its turn.
    if (deps.waitsForOthers(model) || waitsForOrders(model, deps, leaving)) {
      model.pruning.waits(deletionText('others_unread'))
      break
    }
    const seen = deps.takersSeen()
    options.namespaceGoes = namespaceOf(model, row, deps)
    // DE3: a waiting revision is not in force yet.
    const waits = revisionGate(model, deps)
    const isOthers = (key: string) => options.wantedElsewhere(key) || handovers.has(key)
    const open = waits === null ? leaving : await healLeaving(model, deps, leaving, isOthers)
    if (waits === null) forgetHealing(model, leaving)
    options.endOf = await deps.evidence.definitions.endsOf(unservedAmong(model, deps, open))
    const view = planView(model, deps)
    const plan = planPrune(view, open, options)
    if (plan.handedOver.length > 0) deps.wakeWhenRead(model)
    const decision = decideDeletions(requestOf(model, row, deps, plan, contents))
    absorb(model, deps, new Map([...plan.problems, ...decision.kept]))
    const askedBefore = model.pruning.refusal
    const held = whyHeld(model, deps, plan, decision)
    model.pruning.waits(waits?.message ?? held ?? whyLeaving(model, leaving))
    const next = nextSteps(view, plan, decision)
    const steps = held === null ? next.steps : next.steps.filter(({ kind }) => kind === 'forget')
    if (held === null && steps.length === 0 && next.looks.length > 0) {
      // The confirmation stays unchanged until it is judged again.
      if (askedBefore?.digest === confirmationToken(row)) model.pruning.refused(askedBefore)
      // One at a time: it is deleted at once if it has no objects of others.
      for (const { ref, key } of next.looks.slice(0, 1)) contents.set(key, await deps.evidence.contents.look(model, ref))
      continue
    }
    if (steps.length === 0) break
    const kept = keptFacts(row, steps)
    if (kept !== null) keepNamespace(model, deps, kept)
    // HO1: a hold that begins meanwhile. Work without deletes continues under it.
    const isHeld = () => held === null && deps.times.shut(model.id, deps.clock.nowMs()) !== null
    await carryOut(model, deps, steps, () => isInterrupted(model, deps) || deps.takersSeen() !== seen || isHeld())
    // A Namespace that was empty may have objects by the time of the next attempt.
    for (const [key, { kind }] of contents) if (kind === 'own') contents.delete(key)
  }
}

/** RC34: unread rows of a dependent service (DE4), or of one that wanted an object of it, decide. */
function waitsForOrders(model: ServiceModel, deps: Services, leaving: readonly string[]): boolean {
  const isUnread = (other: ServiceModel | null) => other?.revisionPending === true
  const waits =
    deps.dependents.dependentsOf(model.key).some((key) => isUnread(deps.modelOf(key))) ||
    leaving.some((key) => deps.othersWanting(model, key).some(isUnread))
  if (waits) deps.wakeWhenRead(model)
  return waits
}

function requestOf(
  model: ServiceModel,
  row: ServiceRow,
  deps: Site & Storage,
  plan: PrunePlan,
  contents: ReadonlyMap<string, Contents>,
): DeletionRequest {
  const { sync, count, protect, restored = false, factsOnly = false } = row
  const cause = row.removal === undefined ? 'prune' : 'removal'
  const ownedCount = ownedCountOf(model)
  const desiredCount = count - model.hooks.count()
  const guard = { desiredCount, ownedCount, protect, maxPrunePercent: sync.maxPrunePercent, restored, factsOnly }
  const { isConfirmed, names } = confirmationOf(model, row)
  return {
    cause,
    candidates: plan.candidates.map(({ key, ref, live, allowed }) => ({
      ref,
      allowed,
      holding: holdingOf(
        cause,
        ref,
        live,
        contents.get(key) ?? null,
        model.inventory.get(key)?.appliedDoc != null || (live.wasThere !== true && !model.foundByLabel.has(key)),
      ),
    })),
    doomed: plan.doomed,
    undecided: plan.pending.filter(({ allowed, problem }) => !allowed && problem.kind !== 'waiting').map(({ ref }) => ref),
    unreachable: plan.unreachable,
    guard: cause === 'prune' || restored ? guard : null,
    token: confirmationToken(row),
    ownedCount,
    isConfirmed,
    confirmed: names,
    before: (key) => model.problems.get(key),
    nowMs: deps.clock.nowMs(),
  }
}

function namespaceOf({ id, inventory, removal }: ServiceModel, row: ServiceRow, deps: Site & Services): string | null {
  const hasOthersIn = (namespace: string) => deps.hasOthersIn(namespace, serviceKey(id))
  const key = namespaceThatGoes({ id, row, clusterId: deps.clusterId, inventory, hasOthersIn })
  return key !== null && removal.keepsNamespace ? null : key
}

const unservedAmong = ({ inventory }: ServiceModel, { kinds }: Site, keys: readonly string[]): ObjectRef[] =>
  keys.flatMap((key) => {
    const entry = inventory.get(key)
    return entry !== undefined && kinds.findAny(entry.ref.group, versionOf(entry.apiVersion), entry.ref.kind).kind === 'unserved'
      ? [entry.ref]
      : []
  })

/** OR5, HK10: why the order of waves and hooks delays a deletion. */
const orderHold = ({ hooks, row }: ServiceModel): string | null =>
  row?.removal === undefined ? pruneHold(hooks.position) : deletes(row.removal) ? hooks.removalWait : null

/** Returns the reason why nothing is deleted now, or null. Steps that delete nothing continue. */
function whyHeld(
  model: ServiceModel,
  deps: Site & Storage & Services & Turns & Reports,
  { doomed }: PrunePlan,
  decision: Decision,
): string | null {
  const { row } = model
  const shut = deps.times.shut(model.id, deps.clock.nowMs())
  if (shut !== null) return shut.message
  const wait = accountTrouble(model)?.message ?? refusedDeletion(model, true) ?? removalWait(model, deps) ?? orderHold(model)
  if (wait !== null) return wait
  const held = row === null || doomed.length === 0 ? null : holdPrune(model, row, deps, doomed, decision)
  if (held !== null) return held
  // A person who confirmed it here has seen the present list of objects.
  return doomed.length > 0 && mayBeOlder(model, deps) ? deletionText('pruned_when_current') : null
}

function holdPrune(
  model: ServiceModel,
  row: ServiceRow,
  deps: Site & Storage & Services & Turns & Reports,
  doomed: readonly ObjectRef[],
  decision: Decision,
): string | null {
  const { sync } = row
  const isPrune = row.removal === undefined
  const names = namesOf(doomed)
  if (!sync.prune && isPrune) {
    ask(model, deps, row, null, [])
    return deletionText('prune_is_off', { names })
  }
  // A revision that has not begun prunes nothing.
  const shut = beginRevision(model, deps)
  if (shut !== null) {
    ask(model, deps, row, null, [])
    return shut.message
  }
  const { refusal } = decision
  ask(model, deps, row, refusal, doomed)
  if (decision.isShut) return refusal?.why ?? ''
  if (!isPrune) return null
  const waitsFor = firstNotReady(model, deps, doomed)
  if (waitsFor === null) return null
  const overdueMs = overdueAtMs(model, sync.healthDeadline, deps.clock.nowMs())
  model.pruning.overdue(overdueMs === null)
  if (overdueMs !== null) deps.wakeAt(model.key, overdueMs)
  return waitText(waitsFor, names, sync.pruneWhen, overdueMs === null ? sync.healthDeadline : null)
}

const namesOf = (doomed: readonly ObjectRef[]): string => andMore(doomed.slice(0, 5).map(refText), doomed.length)

/**
 * One confirmation for all deletions of the service that wait for a person: those of its prune, of recreations, and of
 * former runs of hooks.
 */
function ask(
  model: ServiceModel,
  deps: Site & Storage & Services & Turns & Reports,
  row: ServiceRow,
  ofPrune: PruneRefusal | null,
  doomed: readonly ObjectRef[],
): void {
  const held = heldDeletions(model)
  const refusal = held.length === 0 ? ofPrune : withHeld(ofPrune, held, { token: confirmationToken(row), ownedCount: ownedCountOf(model) })
  if (refusal !== null && !isSaid(refusal, model.pruning.refusal ?? model.told.last?.refusal ?? null)) {
    const [first] = [...doomed, ...held.map(({ ref }) => ref)]
    const object = first === undefined ? {} : { object: refKey(first) }
    const { why } = refusal
    const event = refusal.only === true ? warning('ConfirmationPending', { why }) : warning('PruneBlocked', { why, names: namesOf(doomed) })
    deps.emit({ ...event, service: model.key, ...object })
  }
  model.pruning.refused(refusal)
}

/** PR14: the deletions that wait for the first contact with the server. */
function heldDeletions({ problems, wanted, hooks }: ServiceModel): Array<{ ref: ObjectRef; what: string }> {
  const held = [...hooks.heldBack]
  for (const [key, problem] of problems) {
    const ref = wanted.get(key)?.ref
    if (problem.kind === 'failed' && problem.again?.asks !== undefined && ref !== undefined) held.push({ ref, what: problem.again.asks })
  }
  return held
}

/** A remaining hook does not show the intention for the other objects. */
function ownedCountOf({ inventory, hooks }: ServiceModel): number {
  const held = hooks.held()
  return [...inventory].filter(([key, { uid }]) => uid !== null && !held.has(key)).length
}

const isSaid = (refusal: PruneRefusal, said: PruneRefusal | null): boolean =>
  said !== null && refusal.digest === said.digest && refusal.why === said.why && refusal.names.join() === said.names.join()

function whyLeaving(model: ServiceModel, leaving: readonly string[]): string {
  const refs = leaving
    .flatMap((key) => model.inventory.get(key)?.ref ?? [])
    .map(refText)
    .sort()
  return deletionText('being_deleted', { names: andMore(refs.slice(0, 5), refs.length) })
}
