// The report about an object and a service: statuses, a reason that tools match on, a message for people that names the
// cause and the next step. Pure and deterministic: the same facts give the same bytes, so nothing flaps and nothing is
// reported twice.
import { stuckAdvice } from '../../../shared/kube/deletion.ts'
import { type Health, pastDeadline } from '../../../shared/kube/health.ts'
import type { HealthWord } from '../../../shared/kube/health-object.ts'
import { type ObjectRef, refText } from '../../../shared/kube/object.ts'
import { compareRefs } from '../../../shared/kube/order.ts'
import {
  HEALTH_WORST,
  type ObjectStatus,
  type PruneRefusal,
  type ServiceStatus,
  SYNC_WORST,
  type SyncWord,
  worstOf,
} from '../../../shared/model/status.ts'
import { andMore } from '../../../shared/runtime/messages.ts'
import { objectStatus as statusOf } from '../../messages/object-messages.ts'
import { servicePart, serviceStatus as statusOfService } from '../../messages/service-messages.ts'
import type { ServiceProgress, ServiceState } from '../../state/agent-state.ts'
import type { PhaseWords } from '../plan/order/phases.ts'
import { describeProblem, unknownKind } from '../plan/problem-text.ts'
import type { HookEnd } from '../snapshot/hook-spec.ts'
import type { Hold } from '../snapshot/kept-notes.ts'
import type { Problem } from '../snapshot/situation.ts'
import type { LiveView } from '../snapshot/watch/live-object.ts'

const MESSAGE_CHARS_MAX = 1_000

export interface ObjectFacts {
  view: LiveView
  problem: Problem | null
  /** Since when it is Progressing, without a break and without continuing work (HE21); null when it is not. */
  progressingSinceMs: number | null
  deadlineMs: number
  /** Fields that are left to others, in words. */
  left?: string
  /** For advice on a deletion that does not end. */
  kind?: string
  /** It will be deleted: its absence is no problem. */
  leaves?: boolean
  /** It is to be applied, and the turn was cut before (RC30). */
  unbegun?: boolean
}

const PENDING = statusOf('Pending')

const GONE: Health = { word: 'Progressing', ...statusOf('Removing') }

const MISSING: Health = { word: 'Missing', ...statusOf('Missing') }

/** It exists, but only objects with our mark are watched. */
const ANOTHERS: Health = { word: 'Unknown', ...statusOf('OwnedByOther.unwatched') }

/** HE3, RC13. `previous` keeps its time as long as nothing significant changed. */
export function objectStatus(
  { view, problem, progressingSinceMs, deadlineMs, left = '', kind = '', leaves = false, unbegun = false }: ObjectFacts,
  previous: ObjectStatus | null,
  nowMs: number,
): ObjectStatus {
  const isAnothers = problem?.kind === 'owned' && problem.going === undefined
  const whenAbsent = leaves ? GONE : isAnothers ? ANOTHERS : null
  const health = view.kind === 'absent' && whenAbsent !== null ? whenAbsent : healthOfView(view, progressingSinceMs, deadlineMs, nowMs)
  const isPending = unbegun && problem === null
  const said = isPending
    ? PENDING
    : (stuckDeletion(view, problem, health, deadlineMs, kind) ?? (problem === null ? null : describeProblem(problem)))
  // A missing object is not as Git wants it, although nothing failed: it waits for its namespace or its turn.
  const isMissing = view.kind === 'absent' && view.ended === undefined && !leaves
  const isDone = problem === null && !isPending && !isMissing
  const sync: SyncWord = isDone ? 'Synced' : problem?.kind === 'unknown' ? 'Unknown' : 'OutOfSync'
  const reason = (said?.reason ?? health.reason).slice(0, 128)
  const message = (said?.message ?? [health.message, left].filter((text) => text !== '').join('; ')).slice(0, MESSAGE_CHARS_MAX)
  const same = previous !== null && previous.sync === sync && previous.health === health.word && previous.reason === reason
  const images = view.kind === 'present' ? view.live.images : null
  const status = { sync, health: health.word, reason, message, sinceMs: same ? previous.sinceMs : nowMs }
  return images === null ? status : { ...status, images }
}

/** PR9: an object of ours that is going, and does not go. */
function stuckDeletion(
  view: LiveView,
  problem: Problem | null,
  health: Health,
  deadlineMs: number,
  kind: string,
): { reason: string; message: string } | null {
  if (view.kind !== 'present' || view.live.deleting === null || problem?.kind !== 'waiting' || health.word !== 'Degraded') return null
  const seconds = Math.round(deadlineMs / 1_000)
  const length = seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`
  const { deleting } = view.live
  return statusOf('DeletionStuck', { deleting, length, advice: stuckAdvice(kind, deleting) })
}

function healthOfView(view: LiveView, sinceMs: number | null, deadlineMs: number, nowMs: number): Health {
  if (view.kind === 'unknown') return { word: 'Unknown', ...unknownKind(view.failure) }
  if (view.kind === 'absent' && view.ended !== undefined) return endedHealth(view.ended)
  if (view.kind === 'absent') return MISSING
  const { health } = view.live
  return sinceMs === null ? health : pastDeadline(health, sinceMs, deadlineMs, nowMs)
}

/** JB1: the health of a Job that ended and was deleted by its TTL. */
function endedHealth({ outcome, message }: HookEnd): Health {
  return outcome === 'succeeded'
    ? { word: 'Healthy', ...statusOf('Finished') }
    : { word: 'Degraded', ...statusOf('JobFailed', { cause: message }) }
}

export interface ServiceFacts {
  /** Null if no complete revision was read. `why`: the problem of the received one. */
  revision:
    | { kind: 'complete'; commit: string; digest: string; count: number }
    | { kind: 'incomplete'; why: string }
    | { kind: 'unclaimed' }
  objects: ReadonlyArray<{ ref: ObjectRef; status: ObjectStatus /** Named by the revision: counted. */; desired: boolean }>
  /** The hook or wave that delays work. Absent means none. */
  phase?: PhaseWords | null
  /** Objects still to be pruned, in words, sorted; kept by `sync.prune: false` or waiting for health. */
  leaving: { count: number; why: string; overdue?: boolean } | null
  /** A person's hold or suspension, in words. */
  hold?: { reason: 'Held' | 'Suspended'; text: string; hold: Hold } | null
  refusal: PruneRefusal | null
  /** The revision as a whole has not begun, and why. */
  held?: { reason: string; message: string } | null
  received: ServiceProgress | null
  state: ServiceState
  /** A removal order: running, or carried out; then `orderMs` identifies it. */
  removal: { kind: 'none' } | { kind: 'running' } | { kind: 'done'; orderMs: number }
}

export function serviceStatus(facts: ServiceFacts, previous: ServiceStatus | null, nowMs: number): ServiceStatus {
  const counted = facts.objects.filter(({ desired }) => desired)
  const ofObjects = facts.objects.map(({ status }) => status.health)
  // HK3: a hook that failed may have left no object.
  const health = worstOf<HealthWord>(HEALTH_WORST, facts.phase?.failed ? [...ofObjects, 'Degraded'] : ofObjects)
  const objectsSync = worstOf<SyncWord>(
    SYNC_WORST,
    facts.objects.map(({ status }) => status.sync),
  )
  const { reason, message, sync } = summary(facts, objectsSync, health)
  const same = previous !== null && previous.sync === sync && previous.health === health && previous.reason === reason
  return {
    sync,
    health,
    reason,
    message: message.slice(0, MESSAGE_CHARS_MAX),
    sinceMs: same ? previous.sinceMs : nowMs,
    ...(facts.received === null ? {} : { received: facts.received }),
    ...(facts.state.applied === null ? {} : { applied: facts.state.applied }),
    ...(facts.state.healthy === null ? {} : { healthy: facts.state.healthy }),
    objectCount: facts.revision.kind === 'complete' ? facts.revision.count : counted.length,
    healthyCount: counted.filter(({ status }) => status.health === 'Healthy').length,
    ...(facts.refusal === null ? {} : { refusal: facts.refusal }),
    ...(facts.hold ? { held: facts.hold.hold } : {}),
    ...(facts.removal.kind === 'done' ? { removed: true, removedOrderMs: facts.removal.orderMs } : {}),
  }
}

function summary(facts: ServiceFacts, sync: SyncWord, health: HealthWord): { sync: SyncWord; reason: string; message: string } {
  const { revision, refusal, leaving, removal } = facts
  if (removal.kind === 'done') return { sync: 'Synced', reason: 'Removed', message: leaving?.why ?? '' }
  if (revision.kind === 'unclaimed') return { sync: 'Unknown', ...statusOfService('Unclaimed') }
  if (revision.kind === 'incomplete') return { sync: 'Unknown', ...statusOfService('RevisionIncomplete', { why: revision.why }) }
  if (facts.hold) {
    // Work that waits for the end of the hold is not done.
    const waits = refusal !== null || leaving !== null || removal.kind === 'running' || facts.held || facts.phase?.holdsBack
    return { sync: sync === 'Synced' && waits ? 'OutOfSync' : sync, reason: facts.hold.reason, message: facts.hold.text }
  }
  if (refusal?.only === true) {
    const what = removal.kind === 'running' ? 'removal' : 'prune'
    return { sync: 'OutOfSync', ...statusOfService('ConfirmationPending', { what, why: refusal.why }) }
  }
  if (refusal !== null) {
    const { why, count } = refusal
    return { sync: 'OutOfSync', ...statusOfService('PruneBlocked', { why, names: andMore(refusal.names.slice(0, 5), count) }) }
  }
  if (facts.held) return { sync: 'OutOfSync', reason: facts.held.reason, message: facts.held.message }
  const { phase } = facts
  const wrong = worstFirst(facts, sync, health)
  const objectSpeaks = phase?.behindObjects === true && sync !== 'Synced' && wrong !== null
  if (phase?.holdsBack && !objectSpeaks)
    return { sync: sync === 'Unknown' ? 'Unknown' : 'OutOfSync', reason: phase.reason, message: phase.message }
  if (removal.kind === 'running') return { sync: 'OutOfSync', reason: 'Removing', message: removingText(leaving?.why, wrong) }
  if (sync !== 'Synced' && wrong !== null) return { sync, ...wrong }
  if (phase?.failed) return { sync, reason: phase.reason, message: phase.message }
  if (leaving !== null)
    return { sync: 'OutOfSync', reason: leaving.overdue === true ? 'PruneOverdue' : 'PrunePending', message: leaving.why }
  if (phase) return { sync, reason: phase.reason, message: phase.message }
  if (health !== 'Healthy' && wrong !== null) return { sync, ...wrong }
  return { sync, reason: 'Synced', message: '' }
}

/** The remaining objects, unless one of them names its obstacle. */
const removingText = (why: string | undefined, wrong: ReturnType<typeof worstFirst>): string =>
  wrong === null || wrong.reason === GONE.reason ? (why ?? '') : wrong.message

/** The first of the worst objects gives the message. */
function worstFirst(facts: ServiceFacts, sync: SyncWord, health: HealthWord): { reason: string; message: string } | null {
  const pool = facts.objects.filter(({ status }) => (sync === 'Synced' ? status.health === health : status.sync === sync))
  return sync === 'Synced' && health === 'Healthy' ? null : firstSaid(pool)
}

export interface SaidObject {
  ref: ObjectRef
  status: ObjectStatus
}

/** The message of the first of these objects, and the number of others. Null means that there is none. */
export function firstSaid(objects: Iterable<SaidObject>): { reason: string; message: string } | null {
  let count = 0
  let first: SaidObject | null = null
  for (const object of objects) {
    count += 1
    if (first === null || compareRefs(object.ref, first.ref) < 0) first = object
  }
  if (first === null) return null
  const { ref, status } = first
  const message = servicePart('first_of', { object: refText(ref), message: status.message || status.reason, more: count - 1 })
  return { reason: status.reason, message }
}
