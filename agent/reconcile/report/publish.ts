// The main file of the room `report`: it reports the results of a reconciliation (rows of touched objects, the
// service's own, its progress), and requests another one when time alone will change something (a retry, a health
// deadline). It may read everything, and must never send requests for a service or change its wanted state.
import { isBindingUnknown } from '../../../shared/kube/claim-binding.ts'
import { worksToAnEnd } from '../../../shared/kube/health-working.ts'
import { keyInNamespace, keyOutsideNamespaces, type ObjectRef, versionOf } from '../../../shared/kube/object.ts'
import { durationMs } from '../../../shared/model/resources.ts'
import { isWell, type ObjectStatus, type ServiceStatus } from '../../../shared/model/status.ts'
import { withTrace } from '../../../shared/runtime/trace-id.ts'
import { news } from '../../messages/event-messages.ts'
import type { TurnRecord } from '../../state/agent-state.ts'
import { heldBack, isInForce, wakeDependents } from '../apply/begin.ts'
import { lastObject, reaches, remember } from '../apply/remember.ts'
import { holdReason, holdText } from '../plan/gates/hold.ts'
import { leftAlone } from '../plan/left-alone.ts'
import { phaseWords } from '../plan/order/phases.ts'
import { notInForce } from '../plan/turn-view.ts'
import type { Reports, Services, Site, StatusUpdate, Storage, Turns } from '../ports.ts'
import { leftText } from '../snapshot/fields/left-text.ts'
import { othersIn } from '../snapshot/fields/shaping.ts'
import { withEnd } from '../snapshot/finished-jobs.ts'
import { type ActiveHold, holdSchema } from '../snapshot/kept-notes.ts'
import type { Progressed } from '../snapshot/objects.ts'
import { isHealthOverdue } from '../snapshot/overdue.ts'
import type { ServiceModel, ServiceSnapshot } from '../snapshot/service-model.ts'
import { degradedFacts } from '../snapshot/service-state.ts'
import { isStillToCome, retryAtOf } from '../snapshot/situation.ts'
import { NULLS_LEFT_OUT } from '../snapshot/wanted.ts'
import type { LiveView } from '../snapshot/watch/live-object.ts'
import { healthTurn } from './health-events.ts'
import { objectStatus, type ServiceFacts, serviceStatus } from './outcome.ts'
import { progressingSince } from './progressing-since.ts'

const UNKNOWN: LiveView = { kind: 'unknown' }
const ABSENT: LiveView = { kind: 'absent' }

/** The report of a turn that is still to be stored. */
export interface Published {
  record: TurnRecord
  isDegraded: boolean
}

/** RC13. The record goes into the agent's state with the reported rows; then `published`. */
export function publish(model: ServiceModel, deps: Site & Storage & Services & Turns & Reports): Published {
  const nowMs = deps.clock.nowMs()
  const rows: StatusUpdate[] = []
  touchUnread(model)
  for (const key of model.queue.touched) rows.push(...objectRows(model, deps, key, nowMs))
  model.queue.allSaid()
  const before = model.progress.reached
  advance(model, deps, nowMs)
  const previous = model.told.last
  rows.push(serviceRow(model, previous, nowMs))
  const isDegraded = tellHealth(model, deps, previous)
  deps.report(rows)
  const state = model.progress.reached === before ? null : model.progress.reached
  return { record: { service: model.id, applied: model.takeUnrecorded(), state }, isDegraded }
}

/** After the report: a kill between the two reports nothing twice, because the reported state is the same. */
export function published(model: ServiceModel, deps: Site & Storage & Services & Turns & Reports, { isDegraded }: Published): void {
  const nowMs = deps.clock.nowMs()
  remember(model, deps, degradedFacts(model, isDegraded))
  wakeDependents(model, deps)
  wakeLater(model, deps, nowMs)
  const opensAtMs = deps.times.opensAtMs(model.id, nowMs)
  if (opensAtMs !== null) deps.wakeAt(model.key, opensAtMs)
}

/** Passed health deadlines change the report of their objects. */
export function touchOverdue(model: ServiceModel, nowMs: number): void {
  const deadlineMs = durationMs(model.sync().healthDeadline)
  for (const [key, sinceMs] of model.progressingSinceMs) if (nowMs - sinceMs >= deadlineMs) model.queue.touch(key)
}

function objectRows(model: ServiceModel, deps: Site & Storage & Turns & Reports, key: string, nowMs: number): StatusUpdate[] {
  const statusKey = `${model.key}/${key}`
  const ref = refIn(model, key)
  if (ref === null || isForeignNamespace(model, key)) {
    model.objects.unsaid(key)
    return [
      { kind: 'object', key: statusKey, doc: null },
      { kind: 'drift', key: statusKey, doc: null },
    ]
  }
  const previous = lastObject(model, deps, key)
  const alone = leftAlone(model.wanted.get(key), model.inventory.get(key), model.problems.get(key))
  if (alone !== null) {
    const status = { ...alone, sinceMs: previous?.reason === alone.reason ? previous.sinceMs : nowMs }
    model.objects.saidAgain(key, status)
    model.objects.progresses(key, null)
    return [{ kind: 'object', key: statusKey, doc: status }]
  }
  const view = viewOf(model, deps, key)
  const problem = model.problems.get(key)
  const isUndecided = problem?.kind === 'unknown' && problem.failure === undefined
  if (view.kind === 'present' && previous !== null && (isUndecided || isBindingUnknown(view.live.health))) {
    // The object is not decided yet (DR10, HE20): its last status stays.
    model.objects.saidAgain(key, previous)
    return []
  }
  const deadlineMs = durationMs(model.sync().healthDeadline)
  if (view.kind !== 'present' || view.live.health.word !== 'Progressing' || view.live.isWorking === true) settled(model, key, view, nowMs)
  else if (beginsToGo(view, previous)) model.objects.progresses(key, nowMs)
  else if (!model.progressingSinceMs.has(key)) {
    const { health, movedMs = null } = view.live
    const isKnown = model.statuses.has(key)
    const before = progressedBefore(model, key)
    const begins = {
      before,
      previous,
      isKnown,
      worksToAnEnd: worksToAnEnd(ref.group, ref.kind),
      reason: health.reason,
      movedMs,
      deadlineMs,
      nowMs,
    }
    model.objects.progresses(key, progressingSince(begins))
  }
  const progressingSinceMs = model.progressingSinceMs.get(key) ?? null
  const facts = {
    view,
    problem: model.problems.get(key) ?? null,
    progressingSinceMs,
    kind: ref.kind,
    leaves: view.kind === 'absent' && leaves(model, key),
    unbegun: model.queue.unbegun.has(key),
    deadlineMs,
  }
  // HK4: from now on, not from the next evaluation.
  if (progressingSinceMs !== null && model.hooks.isOrdered()) isHealthOverdue(model, deps, key, progressingSinceMs)
  const isWithoutNulls = view.kind === 'present' && model.wanted.get(key)?.nullsRefused === true
  const left = [leftOf(model, deps, key, view), isWithoutNulls ? NULLS_LEFT_OUT : ''].filter((text) => text !== '').join('; ')
  const bare = objectStatus(left === '' ? facts : { ...facts, left }, previous, nowMs)
  const explained = deps.explainer.say(model, key, bare, previous)
  const warnings = model.warnings.get(key) ?? previous?.warnings ?? []
  const status = warnings.length === 0 ? explained : { ...explained, warnings: [...warnings] }
  model.objects.said(key, status)
  if (status.health === 'Missing') followMissing(model, deps, key)
  return [{ kind: 'object', key: statusKey, doc: status }]
}

/** LS1: follows an object by name that the labelled watch does not show. */
function followMissing({ inventory }: ServiceSnapshot, { kinds, watches }: Site, key: string): void {
  const entry = inventory.get(key)
  if (entry === undefined) return
  const lookup = kinds.findAny(entry.ref.group, versionOf(entry.apiVersion), entry.ref.kind)
  if (lookup.kind === 'served') watches.followMissing(lookup.resource, entry.ref)
}

function settled(model: ServiceModel, key: string, view: LiveView, nowMs: number): void {
  const sinceMs = model.progressingSinceMs.get(key)
  const isWell = view.kind === 'present' && view.live.health.word === 'Healthy'
  if (sinceMs !== undefined && isWell) model.objects.ceased(key, { sinceMs, wellMs: nowMs, digest: digestOf(model, key) })
  model.objects.progresses(key, null)
  model.deadlines.forget(key)
}

const digestOf = ({ inventory }: ServiceSnapshot, key: string): string | null => inventory.get(key)?.digest ?? null

/** Null if the applied object was not Progressing before. */
function progressedBefore(model: ServiceModel, key: string): Progressed | null {
  const progressed = model.progressed.get(key)
  return progressed !== undefined && progressed.digest === digestOf(model, key) ? progressed : null
}

function leftOf(model: ServiceSnapshot, { autoscalers }: Site, key: string, view: LiveView): string {
  const wanted = model.wanted.get(key)
  const additions = model.sync().driftAdditions === 'report'
  if (wanted === undefined || view.kind !== 'present' || (!additions && wanted.leave === undefined)) return ''
  const others = othersIn(view)
  const scaled = wanted.leave === undefined ? [] : autoscalers.of(key, others).filter(({ part }) => wanted.leave?.scaled.includes(part))
  const applied = model.inventory.get(key)?.appliedDoc ?? null
  return leftText({ wanted: wanted.sent, applied, autoscalers: scaled, additions: additions ? { others } : null })
}

const leaves = ({ reading, wanted, unread, hooks }: ServiceSnapshot, key: string): boolean =>
  reading.kind === 'complete' && !wanted.has(key) && !unread.has(key) && !hooks.held().has(key)

const isGoing = (view: LiveView): boolean => view.kind === 'present' && view.live.deleting !== null

/** Time before its deletion does not count as time of the deletion. */
const beginsToGo = (view: LiveView, previous: ObjectStatus | null): boolean =>
  isGoing(view) && previous !== null && !['Deleting', 'Waiting', 'DeletionStuck'].includes(previous.reason)

const refIn = (model: ServiceSnapshot, key: string): ObjectRef | null =>
  (model.wanted.get(key) ?? model.unread.get(key) ?? model.inventory.get(key))?.ref ?? null

/** The service's namespace, if somebody else created it: not reported. */
function isForeignNamespace(model: ServiceSnapshot, key: string): boolean {
  return model.wanted.get(key)?.onlyIfAbsent === true && !model.problems.has(key) && (model.inventory.get(key)?.appliedDoc ?? null) === null
}

function viewOf(model: ServiceSnapshot, { kinds, watches }: Site, named: string): LiveView {
  const key = keyInForce(model, named)
  const entry = model.inventory.get(key)
  const wanted = model.wanted.get(key)
  // HE31: of an applied object, whatever the problem of its row.
  const isInForce = entry !== undefined && entry.appliedDoc !== null
  const known = wanted ?? entry
  if (known === undefined || (model.unread.has(named) && !isInForce)) return ABSENT
  const version = versionOf(known.apiVersion)
  const { group, kind } = known.ref
  const lookup = wanted === undefined || isInForce ? kinds.findAny(group, version, kind) : kinds.find(group, version, kind)
  if (lookup.kind === 'served') return withEnd(watches.view(lookup.resource, key), model.finishedJobs, key, entry)
  return lookup.kind === 'stale' ? UNKNOWN : ABSENT
}

/** A row that cannot be read, and names no namespace, is of the object in the namespace of the service. */
function keyInForce({ row, unread, inventory }: ServiceSnapshot, named: string): string {
  const key = unread.has(named) && row?.namespace !== undefined ? keyInNamespace(named, row.namespace) : named
  return inventory.has(key) ? key : named
}

/** An event is of an object where it is; its row that cannot be read may name no namespace. */
function touchUnread({ unread, queue }: ServiceModel): void {
  if (unread.size === 0) return
  for (const key of [...queue.touched].map(keyOutsideNamespaces)) if (unread.has(key)) queue.touch(key)
}

/** RC15: applied means that no work of the revision is left; healthy means that, in addition, all of it is healthy. */
function advance(model: ServiceModel, deps: Site & Storage & Services & Turns & Reports, nowMs: number): void {
  const { row } = model
  const progress = model.progress.reached
  if (heldBack(model, deps) !== null) return
  if (model.reading.kind !== 'complete' || row === null || row.removal !== undefined) return
  const point = { digest: row.digest, commit: row.commit, atMs: nowMs, ...withTrace(row.trace) }
  const desired = [...model.wanted.keys(), ...[...model.unread].flatMap(([key, { hook }]) => (hook === undefined ? [key] : []))]
  const { position } = model.hooks
  const isApplied = desired.every((key) => !model.problems.has(key)) && model.queue.dirty.size === 0 && position?.applied !== false
  if (!isApplied || (progress.applied?.digest !== row.digest && !isAllInForce(model, deps, nowMs))) return
  isInForce(model, row)
  // HK3: post-sync hooks are part of being healthy.
  const isPast = position === null || position.phase === 'done'
  const isHealthy = isPast && desired.every((key) => isWell(model.statuses.get(key)?.health ?? 'Healthy'))
  const applied = progress.applied?.digest === row.digest ? progress.applied : point
  // A returning revision was healthy earlier, and is not yet now.
  const before = applied !== progress.applied && progress.healthy?.digest === row.digest ? null : progress.healthy
  const healthy = isHealthy && before?.digest !== row.digest ? point : before
  if (applied === progress.applied && healthy === progress.healthy) return
  if (applied !== progress.applied) {
    const count = row.count - model.hooks.count()
    const event = news('Applied', { digest: row.digest.slice(0, 12), commit: row.commit.slice(0, 12), count })
    deps.emit({ ...event, service: model.key })
  }
  reaches(model, { applied, healthy })
}

/**
 * A bug: no other code remembers that the work is still to be done. The work is done then, and nothing counts as
 * applied before.
 */
const FORGOTTEN_WAIT_MS = 30_000

function isAllInForce(model: ServiceModel, deps: Site & Turns, nowMs: number): boolean {
  const forgotten = notInForce(model, deps)
  if (forgotten === null) return true
  deps.log.error('applied document differs from the revision although no work was planned; planning all objects again', {
    service: model.key,
    object: forgotten,
    retryInMs: FORGOTTEN_WAIT_MS,
  })
  model.markAll()
  deps.wakeAt(model.key, nowMs + FORGOTTEN_WAIT_MS)
  return false
}

/** HE11: returns whether it is Degraded, or was and is not well yet. */
function tellHealth(model: ServiceModel, deps: Storage & Reports, previous: ServiceStatus | null): boolean {
  const { status } = model.told
  const before = model.told.degraded
  // A removal is no rollout.
  if (status === null || model.row?.removal !== undefined) return before && status !== null
  const objects = statusesOf(model)
  const { isDegraded, event } = healthTurn({ wasDegraded: before, previous, now: status, objects })
  if (event !== null) deps.emit({ ...event, service: model.key })
  return isDegraded
}

function* statusesOf(model: ServiceSnapshot): Generator<{ ref: ObjectRef; status: ObjectStatus }> {
  for (const [key, status] of model.statuses) {
    const ref = refIn(model, key)
    if (ref !== null) yield { ref, status }
  }
}

function serviceRow(model: ServiceModel, previous: ServiceStatus | null, nowMs: number): StatusUpdate {
  const facts = serviceFacts(model)
  if (facts === null) {
    model.told.said(null)
    return { kind: 'service', key: model.key, doc: null }
  }
  const status = serviceStatus(facts, previous, nowMs)
  model.told.said(status)
  return { kind: 'service', key: model.key, doc: status }
}

/** Null if there is nothing to report. */
function serviceFacts(model: ServiceSnapshot): ServiceFacts | null {
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
    leaving:
      model.pruning.why === null ? null : { count: model.leaving().length, why: model.pruning.why, overdue: model.pruning.isOverdue },
    hold: model.gating.hold === null ? null : holdWords(model.gating.hold),
    refusal: model.pruning.refusal,
    held: model.gating.held,
    received: model.received,
    state: model.progress.reached,
    removal: removalOf(model),
  }
}

const holdWords = (hold: ActiveHold) => ({ reason: holdReason(hold), text: holdText(hold), hold: holdSchema.parse(hold) })

function removalOf({ row, removal }: ServiceSnapshot): ServiceFacts['removal'] {
  const order = row?.removal
  if (order === undefined) return { kind: 'none' }
  return removal.isCarriedOut(order) ? { kind: 'done', orderMs: order.atMs } : { kind: 'running' }
}

function wakeLater(model: ServiceSnapshot, deps: Turns, nowMs: number): void {
  let atMs = Number.POSITIVE_INFINITY
  for (const problem of model.problems.values()) {
    const retryAtMs = retryAtOf(problem)
    // Due work was evaluated when the reconciliation began. If it still waits (a held prune), an event ends it, and a
    // timer would only spin.
    if (retryAtMs === null) continue
    const wasSetBack = nowMs < model.queue.turnBeganMs // the clock, during the turn (RC17)
    if (wasSetBack || retryAtMs > model.queue.turnBeganMs) atMs = Math.min(atMs, isStillToCome(retryAtMs, nowMs) ? retryAtMs : nowMs)
  }
  const deadlineMs = durationMs(model.sync().healthDeadline)
  // HE8: at half of it the explainer asks why.
  for (const sinceMs of model.progressingSinceMs.values())
    for (const dueMs of [sinceMs + deadlineMs / 2, sinceMs + deadlineMs]) if (dueMs > nowMs) atMs = Math.min(atMs, dueMs)
  if (Number.isFinite(atMs)) deps.wakeAt(model.key, atMs)
}
