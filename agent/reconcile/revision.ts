// Brings a service's model up to its row: the complete revision that the replica holds, kinds that discovery knows now, inventory for all of it.
import { type ObjectRef, parseRefKey, refKey } from '../../shared/kube/object.ts'
import { dependencyKeys } from '../../shared/model/dependencies.ts'
import { backoffMs } from '../../shared/runtime/backoff.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import { rememberActing } from './apply/acting.ts'
import { forgetConfirmation } from './gates/edge-orders.ts'
import { isUndone } from './gates/revision-gate.ts'
import { isOurs } from './plan.ts'
import type { ServiceModel } from './service-model.ts'
import { isStillToCome, retryAtOf } from './situation.ts'
import type { TurnDeps } from './turn-deps.ts'

/** RC8: waits between attempts that may succeed by themselves. */
export const RETRY_BACKOFF = { baseMs: 1_000, capMs: 300_000 }

export async function readRevision(model: ServiceModel, deps: TurnDeps): Promise<void> {
  const { replica, clusterId, kinds } = deps
  const read = replica.read(model.id)
  switch (read.kind) {
    case 'absent':
      model.reading = { kind: 'absent' }
      dependsOn(model, deps, [])
      markRead(model, deps)
      return
    case 'incomplete':
      model.reading = { kind: 'incomplete', why: read.why }
      model.holdApplied()
      markRead(model, deps)
      return
    case 'complete': {
      const { row } = read.revision
      if (model.received?.digest !== row.digest)
        model.received = { digest: row.digest, commit: row.commit, atMs: receivedAtMs(model, deps, row.digest) }
      const context = { clusterId, find: kinds.find.bind(kinds) }
      const isFirst = model.row === null
      model.take(read.revision, context)
      if (isUndone(model, isFirst)) {
        model.progress = { applied: null, healthy: null }
        model.hooks.finished = null
        deps.state.setServiceState(model.id, model.progress)
      }
      rememberActing(model, deps.state)
      forgetConfirmation(model, deps.state, row.digest)
      const seen = deps.revisionsSeen()
      await deps.healthChoices.follow(model, deps)
      dependsOn(model, deps, dependencyKeys(model.id.project, row.dependsOn))
      // What came while its health rules were compiled is read next.
      if (deps.revisionsSeen() === seen) markRead(model, deps)
      if ([...model.unread.values()].some(({ problem }) => problem.kind === 'unserved')) {
        await refreshKinds(deps)
        model.readAgain(context)
      }
      model.narrow = true
      if (row.removal === undefined) {
        model.removedOrderMs = null
        model.recalledOrderMs = null
      } else if (wasRemoved(model, deps)) model.recalledOrderMs = row.removal.atMs // nothing is left to look for (IV5)
      deps.log.info('revision read', {
        service: model.key,
        revision: row.digest,
        commit: row.commit,
        objects: row.count,
        changed: model.dirty.size,
      })
    }
  }
}

/** DE4 */
function dependsOn({ key }: ServiceModel, { dependents, wake }: TurnDeps, dependencies: readonly string[]): void {
  for (const free of dependents.set(key, dependencies)) wake(free)
}

/** Not before it succeeded: while a revision is only half read, nobody prunes. */
function markRead(model: ServiceModel, deps: TurnDeps): void {
  model.revisionPending = false
  deps.revisionRead()
}

/** The last thing reported was that it is gone, in answer to the order that stands. */
export function wasRemoved({ key, row }: ServiceModel, { state }: TurnDeps): boolean {
  const last = state.lastReported('service', key)
  if (last === null || typeof last !== 'object' || row?.removal === undefined) return false
  return 'removed' in last && last.removed === true && 'removedOrderMs' in last && last.removedOrderMs === row.removal.atMs
}

/** The same revision was received when it was received, also after a restart. */
function receivedAtMs(model: ServiceModel, { state, clock }: TurnDeps, digest: string): number {
  const last = state.lastReported('service', model.key)
  const received =
    last !== null && typeof last === 'object' && 'received' in last ? (last.received as { digest?: string; atMs?: number }) : undefined
  return received?.digest === digest && received.atMs !== undefined ? received.atMs : clock.nowMs()
}

/** IV1: everything that the revision names is in the inventory before the first request about it. Objects of other services stay theirs. */
export function widenInventory(model: ServiceModel, deps: TurnDeps): void {
  if (!model.narrow) return
  model.narrow = false
  const missing: Array<{ ref: ObjectRef; apiVersion: string }> = []
  for (const named of [model.wanted, model.unread]) {
    for (const [key, { ref, apiVersion }] of named) {
      if (model.wanted.get(key)?.options?.touch === 'never') continue
      if (!model.inventory.has(key) && !deps.owners.has(key)) missing.push({ ref, apiVersion })
    }
  }
  if (missing.length > 0) {
    const taken = new Set(deps.state.widenInventory(model.id, missing).map(refKey))
    for (const { ref, apiVersion } of missing) {
      const key = refKey(ref)
      if (taken.has(key)) continue
      model.inventory.set(key, { ref, apiVersion, uid: null, appliedDoc: null, ownedHash: null, digest: null })
      deps.owners.set(key, model.id)
      // It may have been looked at while it was nobody's, in a turn that another service's prune crossed.
      model.mark(key)
    }
  }
  adoptMarked(model, deps)
  deps.followKinds(model)
}

/** IV3: live objects that carry our mark for this service and are in no inventory: the inventory was lost with the disk, or a crash came between
 *  an apply and its record. Those that the revision does not name are then pruned past the guard. */
function adoptMarked(model: ServiceModel, deps: TurnDeps): void {
  if (model.reading.kind !== 'complete') return
  const view = { id: model.id, clusterId: deps.clusterId }
  for (const { key, apiVersion, live } of deps.strays(model)) {
    if (deps.owners.has(key) || !isOurs(view, live)) continue
    const ref = parseRefKey(key)
    if (ref === null) continue
    if (deps.state.widenInventory(model.id, [{ ref, apiVersion }]).length > 0) continue
    model.inventory.set(key, { ref, apiVersion, uid: live.uid, appliedDoc: null, ownedHash: null, digest: null })
    deps.owners.set(key, model.id)
    model.mark(key)
  }
}

/** What waited for a time that has come is planned again; a kind that was not served is asked for again first. */
export async function retryWhatIsDue(model: ServiceModel, deps: TurnDeps): Promise<void> {
  const { clock, random, kinds, clusterId } = deps
  const nowMs = clock.nowMs()
  model.turnBeganMs = nowMs
  let askKinds = false
  for (const [key, problem] of model.problems) {
    const retryAtMs = retryAtOf(problem)
    if (retryAtMs === null || isStillToCome(retryAtMs, nowMs)) continue
    model.mark(key)
    if (problem.kind === 'unserved' || (problem.kind === 'failed' && problem.failure.kind === 'not_found')) askKinds = true
    if (problem.kind === 'owned') {
      model.contacts.delete(key)
      model.narrow = true
    }
  }
  if (!askKinds) return
  await refreshKinds(deps)
  deps.followKinds(model) // what is served again is watched again
  if (model.readAgain({ clusterId, find: kinds.find.bind(kinds) })) model.narrow = true
  for (const [key, unread] of model.unread) {
    const problem = model.problems.get(key)
    if (problem?.kind !== 'unserved' || problem.retryAtMs > nowMs) continue
    const next = { ...problem, attempt: problem.attempt + 1, retryAtMs: nowMs + backoffMs(problem.attempt, RETRY_BACKOFF, random) }
    model.problems.set(key, next)
    unread.problem = next
  }
}

/** Not knowing is no failure of the turn: what is unknown stays a problem of its object, with its time. */
async function refreshKinds({ kinds, log }: TurnDeps): Promise<void> {
  try {
    await kinds.refresh()
  } catch (error) {
    log.warn('discovery failed', { error: describeError(error) })
  }
}
