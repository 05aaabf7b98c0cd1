// Brings a service's model up to its row: the complete revision that the replica holds, kinds that discovery knows now,
// inventory for all of it.
import { type ObjectRef, parseRefKey } from '../../../shared/kube/object.ts'
import { dependencyKeys } from '../../../shared/model/dependencies.ts'
import { objectRowId } from '../../../shared/model/desired.ts'
import { backoffMs } from '../../../shared/runtime/backoff.ts'
import { describeError } from '../../../shared/runtime/loop.ts'
import { createPace } from '../../../shared/runtime/pace.ts'
import { withTrace } from '../../../shared/runtime/trace-id.ts'
import { deletionText } from '../../messages/deletion-messages.ts'
import { isUndone } from '../plan/gates/revision-gate.ts'
import { isOurs } from '../plan/plan.ts'
import type { Requests, Services, Site, Storage, Turns } from '../ports.ts'
import { actingFacts, actingOf } from '../snapshot/account.ts'
import { SEALED_FACTS, sealedFacts } from '../snapshot/sealed-objects.ts'
import type { ServiceModel } from '../snapshot/service-model.ts'
import { isStillToCome, retryAtOf } from '../snapshot/situation.ts'
import { preparing, type WantedContext } from '../snapshot/wanted.ts'
import { dropOutdatedConfirmation, remember, takeIn, writeProgress } from './remember.ts'

/** RC8: waits between attempts that may succeed by themselves. */
export const RETRY_BACKOFF = { baseMs: 1_000, capMs: 300_000 }
/** Objects that enter the inventory in one transaction, after which others on this thread may have a turn. */
const TAKEN_AT_ONCE = 500
/** KA60: pauses between questions to discovery for kinds that are not served. */
const [NEW_KIND_PAUSE_MS, RETRY_PAUSE_MS] = [500, 10_000]

export async function readRevision(model: ServiceModel, deps: Site & Storage & Services & Turns): Promise<void> {
  const { replica, clusterId, kinds, clock } = deps
  await deps.healthChoices.rulesRead()
  const unlocking = replica.unlock(model.id)
  if (unlocking !== null) await unlocking
  const seen = deps.revisionsSeen()
  const read = replica.read(model.id)
  switch (read.kind) {
    case 'absent':
      model.readNone()
      dependsOn(model, deps, [])
      deps.revisionRead(model)
      return
    case 'incomplete':
      model.readInPart(read.why)
      deps.revisionRead(model)
      return
    case 'complete': {
      const { row } = read.revision
      if (model.received?.digest !== row.digest) model.receivedAt(row, receivedAtMs(model, deps, row.digest))
      const context = { clusterId, find: kinds.find.bind(kinds), open: replica.open.bind(replica), sops: deps.sops }
      const isFirst = model.row === null
      const pace = createPace(clock)
      for (const opening of model.take(read.revision, context)) {
        const turn = opening ?? pace()
        if (turn !== undefined) await turn
      }
      if (isUndone(model, isFirst)) {
        model.hooks.finished = null
        writeProgress(model, deps, { applied: null, healthy: null })
      }
      remember(model, deps, actingFacts(model))
      remember(model, deps, sealedFacts(model, read.revision.objects, deps.state.facts(model.id, SEALED_FACTS)))
      model.actsAs(actingOf(model))
      dropOutdatedConfirmation(model, deps, row)
      await deps.healthChoices.follow(model, deps)
      dependsOn(model, deps, dependencyKeys(model.id.project, row.dependsOn))
      // Only after success: while a revision is partly read, nothing is pruned. Rows that arrive meanwhile are read
      // next.
      if (deps.revisionsSeen() === seen) deps.revisionRead(model)
      if ([...model.unread.values()].some(({ problem }) => problem.kind === 'unserved')) {
        await refreshKinds(deps, NEW_KIND_PAUSE_MS)
        await prepareUnread(model, context)
        model.readAgain(context)
      }
      model.expectNewObjects()
      if (row.removal === undefined) {
        model.removal.clear()
      } else if (wasRemoved(model)) model.removal.recalled(row.removal) // nothing is left to look for (IV5)
      deps.log.info('revision read', {
        service: model.key,
        revision: row.digest,
        commit: row.commit,
        ...withTrace(row.trace),
        objects: row.count,
        changed: model.queue.dirty.size,
      })
    }
  }
}

/** SP4: before they are read again. */
async function prepareUnread({ id, unread }: ServiceModel, context: Pick<WantedContext, 'open' | 'sops'>): Promise<void> {
  for (const { ref, doc } of [...unread.values()]) await preparing(objectRowId(id, ref), doc, { ...context, service: id })
}

/** DE4: notes the services that this one waits for, and wakes it when they change. */
function dependsOn({ key }: ServiceModel, { dependents, wake }: Services & Turns, dependencies: readonly string[]): void {
  for (const free of dependents.set(key, dependencies)) wake(free)
}

/** The last thing reported was that it is gone, in answer to the order that stands. */
export const wasRemoved = ({ row, told }: ServiceModel): boolean =>
  row?.removal !== undefined && told.last?.removed === true && told.last.removedOrderMs === row.removal.atMs

/** The same revision was received when it was received, also after a restart. */
const receivedAtMs = ({ told }: ServiceModel, { clock }: Site, digest: string): number =>
  told.last?.received?.digest === digest ? told.last.received.atMs : clock.nowMs()

/** IV1: everything that the revision names is in the inventory, and on the disk, before the first request about it.
 *  Objects of other services stay theirs. */
export async function widenInventory(model: ServiceModel, deps: Site & Storage & Services): Promise<void> {
  if (!model.takeNarrow()) return
  const missing: Array<{ ref: ObjectRef; apiVersion: string }> = []
  for (const named of [model.wanted, model.unread]) {
    for (const [key, { ref, apiVersion }] of named) {
      if (model.wanted.get(key)?.options?.touch === 'never') continue
      if (!model.inventory.has(key) && !deps.owners.has(key)) missing.push({ ref, apiVersion })
    }
  }
  const pace = createPace(deps.clock)
  for (let start = 0; start < missing.length; start += TAKEN_AT_ONCE) {
    if (start > 0) await pace()
    // It may have been evaluated while it had no owner, in a reconciliation during another service's prune.
    for (const key of takeIn(model, deps, missing.slice(start, start + TAKEN_AT_ONCE))) {
      model.foundByLabel.delete(key)
      model.queue.mark(key)
    }
  }
  adoptMarked(model, deps)
  deps.followKinds(model)
  if (missing.length > 0) await deps.state.settled()
}

/**
 * IV3: live objects that carry the mark of this service and are in no inventory: the inventory was lost with the disk,
 * a crash came between an apply and its record, or a person restored them. Those that the revision does not name are
 * then pruned past the guard and PR13.
 */
function adoptMarked(model: ServiceModel, deps: Site & Storage & Services): void {
  if (model.reading.kind !== 'complete') return
  const view = { id: model.id, clusterId: deps.clusterId, former: deps.former }
  for (const { key, apiVersion, live } of deps.unrecorded(model)) {
    if (deps.owners.has(key) || !isOurs(view, live)) continue
    // It was released for them, and they take it in their turn: two services that hand objects to each other would take
    // them back for ever.
    if (deps.othersWanting(model, key).length > 0) continue
    const ref = parseRefKey(key)
    if (ref === null) continue
    for (const taken of takeIn(model, deps, [{ ref, apiVersion, uid: live.uid }])) {
      if (!model.deletedUids.has(live.uid)) model.foundByLabel.add(taken)
      model.queue.mark(taken)
    }
  }
}

/** Plans again each object whose retry is due. For kinds that were not served, discovery is asked first. */
export async function retryWhatIsDue(model: ServiceModel, deps: Site & Storage & Services): Promise<void> {
  const { clock, random, kinds, clusterId, replica } = deps
  const nowMs = clock.nowMs()
  model.objects.noteDate(nowMs - clock.monotonicMs())
  model.queue.began(nowMs)
  let askKinds = false
  for (const [key, problem] of model.problems) {
    const retryAtMs = retryAtOf(problem)
    if (retryAtMs === null || isStillToCome(retryAtMs, nowMs)) continue
    model.queue.mark(key)
    if (problem.kind === 'unserved' || (problem.kind === 'failed' && problem.failure.kind === 'not_found')) askKinds = true
    if (problem.kind === 'owned') {
      model.objects.forgetContact(key)
      model.expectNewObjects()
    }
  }
  if (!askKinds) return
  await refreshKinds(deps, RETRY_PAUSE_MS)
  deps.followKinds(model) // what is served again is watched again
  const unlocking = replica.unlock(model.id)
  if (unlocking !== null) await unlocking
  const context = { clusterId, find: kinds.find.bind(kinds), open: replica.open.bind(replica), sops: deps.sops }
  await prepareUnread(model, context)
  if (model.readAgain(context)) model.expectNewObjects()
  for (const [key, unread] of model.unread) {
    const problem = model.problems.get(key)
    if (problem?.kind !== 'unserved' || problem.retryAtMs > nowMs) continue
    const next = { ...problem, attempt: problem.attempt + 1, retryAtMs: nowMs + backoffMs(problem.attempt, RETRY_BACKOFF, random) }
    model.objects.setProblem(key, next)
    model.objects.setUnread(key, { ...unread, problem: next })
  }
}

/** An unknown state is no failure of the reconciliation: it stays a problem of its object, with its time. */
async function refreshKinds({ kinds, log, clock }: Site, pauseMs: number): Promise<void> {
  try {
    await kinds.refreshAfter(pauseMs, clock.nowMs())
  } catch (error) {
    log.warn('discovery failed', { error: describeError(error) })
  }
}

/** IV6: after a lost disk the inventory holds only later objects, so that it cannot prove a removal: the marks on
 *  live objects are searched first, in every kind. True when there is nothing (more) to search. Found objects are in
 *  the inventory then, all of them or none. */
export async function recallInventory(model: ServiceModel, deps: Site & Requests & Storage & Services & Turns): Promise<boolean> {
  const order = model.reading.kind === 'complete' ? model.row?.removal : undefined
  if (order === undefined || model.removal.isRecalled(order)) return true
  const { marked } = deps.evidence
  const failure = await marked.look(deps.isHalted)
  if (deps.isHalted()) return false
  if (failure !== null) {
    const retryInMs = backoffMs(model.removal.attempts, RETRY_BACKOFF, deps.random, failure.retryAfterMs)
    model.removal.lookedInVain()
    model.pruning.waits(deletionText('searching', { failure: failure.message }))
    deps.wakeAt(model.key, deps.clock.nowMs() + retryInMs)
    return false
  }
  const found = marked.of(model)
  deps.log.info('searched the objects of a service before its removal', { service: model.key, found: found.length })
  for (const key of takeIn(model, deps, found)) model.queue.mark(key)
  model.removal.recalled(order)
  model.expectNewObjects() // also what watches show of it
  return true
}
