// Says what a turn left behind: rows of objects that were touched, the service's own, its progress; and asks for a turn when time alone will
// change something (a retry, a health deadline).
import { hasHealthDeadline } from '../../../shared/kube/health.ts'
import { type ObjectRef, versionOf } from '../../../shared/kube/object.ts'
import { durationMs } from '../../../shared/model/resources.ts'
import { isWell, type ObjectStatus, objectStatusSchema, type ServiceStatus, serviceStatusSchema } from '../../../shared/model/status.ts'
import { leftAlone } from '../apply/left-alone.ts'
import { leftText } from '../fields/left-text.ts'
import { othersIn } from '../fields/shaping.ts'
import { holdSchema, holdText } from '../gates/hold.ts'
import { revisionGate, wakeDependents } from '../gates/revision-gate.ts'
import { phaseWords } from '../order/phases.ts'
import type { ServiceModel } from '../service-model.ts'
import { isStillToCome, retryAtOf } from '../situation.ts'
import { isHealthOverdue, type StatusUpdate, type TurnDeps } from '../turn-deps.ts'
import { notInForce } from '../turn-view.ts'
import type { LiveView } from '../watch/watches.ts'
import { healthTurn, noteDegraded, wasDegraded } from './health-events.ts'
import { objectStatus, type ServiceFacts, serviceStatus } from './outcome.ts'

const UNKNOWN: LiveView = { kind: 'unknown' }
const ABSENT: LiveView = { kind: 'absent' }

/** RC13. */
export function publish(model: ServiceModel, deps: TurnDeps): void {
  const nowMs = deps.clock.nowMs()
  const rows: StatusUpdate[] = []
  for (const key of model.touched) rows.push(...objectRows(model, deps, key, nowMs))
  model.touched.clear()
  const before = model.progress
  advance(model, deps, nowMs)
  const previous = model.status ?? lastService(deps, model.key)
  rows.push(serviceRow(model, previous, nowMs))
  const isDegraded = tellHealth(model, deps, previous)
  deps.report(rows)
  deps.flushReports({ service: model.id, applied: model.takeUnrecorded(), state: model.progress === before ? null : model.progress })
  // After what is reported: a kill between the two tells nothing twice, because the reported state says the same.
  noteDegraded(model, deps.state, isDegraded)
  wakeDependents(model, deps)
  wakeLater(model, deps, nowMs)
  const opensAtMs = deps.times.opensAtMs(model.id, nowMs)
  if (opensAtMs !== null) deps.wakeAt(model.key, opensAtMs)
}

/** Health deadlines that have passed change what is said about their objects. */
export function touchOverdue(model: ServiceModel, nowMs: number): void {
  const deadlineMs = durationMs(model.sync().healthDeadline)
  for (const [key, sinceMs] of model.progressingSinceMs) if (nowMs - sinceMs >= deadlineMs) model.touched.add(key)
}

function objectRows(model: ServiceModel, deps: TurnDeps, key: string, nowMs: number): StatusUpdate[] {
  const statusKey = `${model.key}/${key}`
  const ref = refIn(model, key)
  if (ref === null || isForeignNamespace(model, key)) {
    model.statuses.delete(key)
    model.progressingSinceMs.delete(key)
    return [
      { kind: 'object', key: statusKey, doc: null },
      { kind: 'drift', key: statusKey, doc: null },
    ]
  }
  const previous = model.statuses.get(key) ?? lastObject(deps, statusKey)
  const alone = leftAlone(model.wanted.get(key), model.inventory.get(key), model.problems.get(key))
  if (alone !== null) {
    const status = { ...alone, sinceMs: previous?.reason === alone.reason ? previous.sinceMs : nowMs }
    model.statuses.set(key, status)
    model.progressingSinceMs.delete(key)
    return [{ kind: 'object', key: statusKey, doc: status }]
  }
  const view = viewOf(model, deps, key)
  const problem = model.problems.get(key)
  if (view.kind === 'present' && problem?.kind === 'unknown' && problem.failure === undefined && previous !== null) {
    // Nothing is decided about it yet (DR10): what was said stands.
    model.statuses.set(key, previous)
    return []
  }
  const progressing = view.kind === 'present' && view.live.health.word === 'Progressing'
  if (!progressing) settled(model, key)
  else if (!model.progressingSinceMs.has(key) || beginsToGo(view, previous))
    model.progressingSinceMs.set(key, previous?.health === 'Progressing' && !beginsToGo(view, previous) ? previous.sinceMs : nowMs)
  const facts = {
    view,
    problem: model.problems.get(key) ?? null,
    progressingSinceMs: model.progressingSinceMs.get(key) ?? null,
    kind: ref.kind,
    leaves: view.kind === 'absent' && leaves(model, key),
    deadlineMs: isGoing(view) || hasHealthDeadline(ref.group, ref.kind) ? durationMs(model.sync().healthDeadline) : null,
  }
  // HK4: from now on, not from the next look at it.
  const { progressingSinceMs, deadlineMs } = facts
  if (progressingSinceMs !== null && deadlineMs !== null && model.hooks.isOrdered()) isHealthOverdue(model, deps, key, progressingSinceMs)
  const left = leftOf(model, deps, key, view)
  const bare = objectStatus(left === '' ? facts : { ...facts, left }, previous, nowMs)
  const status = deps.explainer.say(model, key, bare, previous)
  model.statuses.set(key, status)
  return [{ kind: 'object', key: statusKey, doc: status }]
}

function settled(model: ServiceModel, key: string): void {
  model.progressingSinceMs.delete(key)
  model.deadlines.forget(key)
}

function leftOf(model: ServiceModel, { autoscalers }: TurnDeps, key: string, view: LiveView): string {
  const wanted = model.wanted.get(key)
  const additions = model.sync().driftAdditions === 'report'
  if (wanted === undefined || view.kind !== 'present' || (!additions && wanted.leave === undefined)) return ''
  const others = othersIn(view)
  const scaled = wanted.leave === undefined ? [] : autoscalers.of(key, others).filter(({ part }) => wanted.leave?.scaled.includes(part))
  const applied = model.inventory.get(key)?.appliedDoc ?? null
  return leftText({ wanted: wanted.sent, applied, autoscalers: scaled, additions: additions ? { others } : null })
}

const leaves = ({ reading, wanted, unread, hooks }: ServiceModel, key: string): boolean =>
  reading.kind === 'complete' && !wanted.has(key) && !unread.has(key) && !hooks.held().has(key)

const isGoing = (view: LiveView): boolean => view.kind === 'present' && view.live.deleting !== null

/** What it was before it was deleted does not count as time of its deletion. */
const beginsToGo = (view: LiveView, previous: ObjectStatus | null): boolean =>
  isGoing(view) && previous !== null && !['Deleting', 'Waiting', 'DeletionStuck'].includes(previous.reason)

function lastObject({ state }: TurnDeps, statusKey: string): ObjectStatus | null {
  const parsed = objectStatusSchema.safeParse(state.lastReported('object', statusKey))
  return parsed.success ? parsed.data : null
}

const refIn = (model: ServiceModel, key: string): ObjectRef | null =>
  (model.wanted.get(key) ?? model.unread.get(key) ?? model.inventory.get(key))?.ref ?? null

/** The service's namespace, where somebody else made it: nothing of ours to report. */
function isForeignNamespace(model: ServiceModel, key: string): boolean {
  return model.wanted.get(key)?.onlyIfAbsent === true && !model.problems.has(key) && (model.inventory.get(key)?.appliedDoc ?? null) === null
}

function viewOf(model: ServiceModel, { kinds, watches }: TurnDeps, key: string): LiveView {
  const wanted = model.wanted.get(key)
  const known = wanted ?? model.inventory.get(key)
  if (known === undefined || model.unread.has(key)) return ABSENT
  const version = versionOf(known.apiVersion)
  const { group, kind } = known.ref
  const lookup = wanted === undefined ? kinds.findAny(group, version, kind) : kinds.find(group, version, kind)
  if (lookup.kind === 'served') return watches.view(lookup.resource, key)
  return lookup.kind === 'stale' ? UNKNOWN : ABSENT
}

/** RC15: applied is when nothing of the revision is left to do; healthy is when all of it is well besides. */
function advance(model: ServiceModel, deps: TurnDeps, nowMs: number): void {
  const { row, progress } = model
  model.held = revisionGate(model, deps, false)
  if (model.held !== null) return
  if (model.reading.kind !== 'complete' || row === null || row.removal !== undefined) return
  const point = { digest: row.digest, commit: row.commit, atMs: nowMs }
  const desired = [...model.wanted.keys(), ...[...model.unread].flatMap(([key, { hook }]) => (hook === undefined ? [key] : []))]
  const { position } = model.hooks
  const isApplied = desired.every((key) => !model.problems.has(key)) && model.dirty.size === 0 && position?.applied !== false
  if (!isApplied || (progress.applied?.digest !== row.digest && !isAllInForce(model, deps, nowMs))) return
  model.begunDigest = row.digest
  // HK3: post-sync hooks are part of being healthy.
  const isPast = position === null || position.phase === 'done'
  const isHealthy = isPast && desired.every((key) => isWell(model.statuses.get(key)?.health ?? 'Healthy'))
  const applied = progress.applied?.digest === row.digest ? progress.applied : point
  // A revision that comes back was well in its former life, and is not yet in this one.
  const before = applied !== progress.applied && progress.healthy?.digest === row.digest ? null : progress.healthy
  const healthy = isHealthy && before?.digest !== row.digest ? point : before
  if (applied === progress.applied && healthy === progress.healthy) return
  if (applied !== progress.applied) {
    const count = row.count - model.hooks.count()
    const message = `revision ${row.digest.slice(0, 12)} of commit ${row.commit.slice(0, 12)} is applied (${count} ${count === 1 ? 'object' : 'objects'})`
    deps.emit({ type: 'Normal', reason: 'Applied', message, service: model.key })
  }
  model.progress = { applied, healthy }
}

/** A bug that waits to be found: nobody remembers that it is still to be done. It is done, and nothing is called applied before. */
const FORGOTTEN_WAIT_MS = 30_000

function isAllInForce(model: ServiceModel, deps: TurnDeps, nowMs: number): boolean {
  const forgotten = notInForce(model, deps)
  if (forgotten === null) return true
  deps.log.error('an object was forgotten', { service: model.key, object: forgotten, retryInMs: FORGOTTEN_WAIT_MS })
  model.markAll()
  deps.wakeAt(model.key, nowMs + FORGOTTEN_WAIT_MS)
  return false
}

/** HE11: returns whether it is Degraded, or was and is not well yet. */
function tellHealth(model: ServiceModel, deps: TurnDeps, previous: ServiceStatus | null): boolean {
  const { status } = model
  const before = wasDegraded(model, deps.state)
  // What is about to be gone is no rollout.
  if (status === null || model.row?.removal !== undefined) return before && status !== null
  const objects = statusesOf(model)
  const { isDegraded, event } = healthTurn({ wasDegraded: before, previous, now: status, objects })
  if (event !== null) deps.emit({ ...event, service: model.key })
  return isDegraded
}

function* statusesOf(model: ServiceModel): Generator<{ ref: ObjectRef; status: ObjectStatus }> {
  for (const [key, status] of model.statuses) {
    const ref = refIn(model, key)
    if (ref !== null) yield { ref, status }
  }
}

function serviceRow(model: ServiceModel, previous: ServiceStatus | null, nowMs: number): StatusUpdate {
  const facts = serviceFacts(model)
  if (facts === null) {
    model.status = null
    return { kind: 'service', key: model.key, doc: null }
  }
  const status = serviceStatus(facts, previous, nowMs)
  model.status = status
  return { kind: 'service', key: model.key, doc: status }
}

function lastService({ state }: TurnDeps, key: string): ServiceStatus | null {
  const parsed = serviceStatusSchema.safeParse(state.lastReported('service', key))
  return parsed.success ? parsed.data : null
}

/** Null: nothing is left to speak of. */
function serviceFacts(model: ServiceModel): ServiceFacts | null {
  const { reading } = model
  if (reading.kind === 'none' || (reading.kind === 'absent' && model.inventory.size === 0)) return null
  const objects: Array<ServiceFacts['objects'][number]> = []
  for (const [key, status] of model.statuses) {
    const ref = refIn(model, key)
    if (ref !== null) objects.push({ ref, status, desired: model.wanted.get(key)?.onlyIfAbsent === false || model.unread.has(key) })
  }
  return {
    revision:
      reading.kind === 'complete'
        ? { kind: 'complete', commit: reading.row.commit, digest: reading.row.digest, count: reading.row.count - model.hooks.count() }
        : reading.kind === 'incomplete'
          ? { kind: 'incomplete', why: reading.why }
          : { kind: 'unclaimed' },
    objects,
    phase: phaseWords(model.hooks.position),
    leaving: model.pruneWhy === null ? null : { count: model.leaving().length, why: model.pruneWhy, overdue: model.pruneOverdue },
    hold: model.hold === null ? null : { text: holdText(model.hold), hold: holdSchema.parse(model.hold) },
    refusal: model.refusal,
    held: model.held,
    received: model.received,
    state: model.progress,
    removal: removalOf(model),
  }
}

function removalOf({ row, removedOrderMs }: ServiceModel): ServiceFacts['removal'] {
  const order = row?.removal
  if (order === undefined) return { kind: 'none' }
  return order.atMs === removedOrderMs ? { kind: 'done', orderMs: order.atMs } : { kind: 'running' }
}

function wakeLater(model: ServiceModel, deps: TurnDeps, nowMs: number): void {
  let atMs = Number.POSITIVE_INFINITY
  for (const problem of model.problems.values()) {
    const retryAtMs = retryAtOf(problem)
    // What was due when the turn began has been looked at: if it still stands (a held prune), an event ends it, and the clock would only spin.
    if (retryAtMs === null) continue
    const wasSetBack = nowMs < model.turnBeganMs // the clock, during the turn (RC17)
    if (wasSetBack || retryAtMs > model.turnBeganMs) atMs = Math.min(atMs, isStillToCome(retryAtMs, nowMs) ? retryAtMs : nowMs)
  }
  const deadlineMs = durationMs(model.sync().healthDeadline)
  for (const sinceMs of model.progressingSinceMs.values()) if (sinceMs + deadlineMs > nowMs) atMs = Math.min(atMs, sinceMs + deadlineMs)
  if (Number.isFinite(atMs)) deps.wakeAt(model.key, atMs)
}
