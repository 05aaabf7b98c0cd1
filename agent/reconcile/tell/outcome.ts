// What is said about an object and a service: words, a reason that tools match on, a message for people that names the cause and what to do next.
// Pure and deterministic: the same facts give the same bytes, so nothing flaps and nothing is reported twice.
import { stuckAdvice } from '../../../shared/kube/deletion.ts'
import { type Health, pastDeadline } from '../../../shared/kube/health.ts'
import { type ObjectRef, refText } from '../../../shared/kube/object.ts'
import { compareRefs } from '../../../shared/kube/order.ts'
import {
  HEALTH_WORST,
  type HealthWord,
  type ObjectStatus,
  type PruneRefusal,
  type ServiceStatus,
  SYNC_WORST,
  type SyncWord,
  worstOf,
} from '../../../shared/model/status.ts'
import { exhaustive } from '../../../shared/runtime/assert.ts'
import type { ApiFailure } from '../../cluster/cluster.ts'
import type { ServiceProgress, ServiceState } from '../../state/agent-state.ts'
import type { Hold } from '../gates/hold.ts'
import type { PhaseWords } from '../order/phases.ts'
import type { Problem } from '../situation.ts'
import type { LiveView } from '../watch/watches.ts'

const MESSAGE_CHARS_MAX = 1_000

export interface ObjectFacts {
  view: LiveView
  problem: Problem | null
  /** Since when it is Progressing, without a break; null when it is not. */
  progressingSinceMs: number | null
  /** Null: this kind has none. */
  deadlineMs: number | null
  /** Fields that are left to others, in words. */
  left?: string
  /** For advice on a deletion that does not end. */
  kind?: string
  /** It is to go: nobody misses it. */
  leaves?: boolean
}

const GONE: Health = {
  word: 'Progressing',
  reason: 'Removing',
  message: 'it is gone from the cluster; it is forgotten when that is certain',
}

/** It is there, but what we watch are objects with our mark. */
const ANOTHERS: Health = { word: 'Unknown', reason: 'OwnedBy', message: 'it is there, and whoever owns it knows its health' }

/** HE3, RC13. `previous` lends its time as long as nothing changed that anybody would call a change. */
export function objectStatus(
  { view, problem, progressingSinceMs, deadlineMs, left = '', kind = '', leaves = false }: ObjectFacts,
  previous: ObjectStatus | null,
  nowMs: number,
): ObjectStatus {
  const isAnothers = problem?.kind === 'owned' && problem.going === undefined
  const whenAbsent = leaves ? GONE : isAnothers ? ANOTHERS : null
  const health = view.kind === 'absent' && whenAbsent !== null ? whenAbsent : healthOfView(view, progressingSinceMs, deadlineMs, nowMs)
  const said = stuckDeletion(view, problem, health, deadlineMs, kind) ?? (problem === null ? null : describeProblem(problem))
  const sync: SyncWord = problem === null ? 'Synced' : problem.kind === 'unknown' ? 'Unknown' : 'OutOfSync'
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
  deadlineMs: number | null,
  kind: string,
): { reason: string; message: string } | null {
  if (view.kind !== 'present' || view.live.deleting === null || problem?.kind !== 'waiting' || health.word !== 'Degraded') return null
  const seconds = Math.round((deadlineMs ?? 0) / 1_000)
  const length = seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`
  return {
    reason: 'DeletionStuck',
    message: `${view.live.deleting}, for more than ${length}: ${stuckAdvice(kind, view.live.deleting)}`,
  }
}

function healthOfView(view: LiveView, sinceMs: number | null, deadlineMs: number | null, nowMs: number): Health {
  if (view.kind === 'unknown') return { word: 'Unknown', reason: 'NotWatched', message: unknownText(view.failure) }
  if (view.kind === 'absent')
    return { word: 'Missing', reason: 'Missing', message: 'it is not in the cluster; it is made as soon as nothing stands in its way' }
  const { health } = view.live
  return sinceMs === null || deadlineMs === null ? health : pastDeadline(health, sinceMs, deadlineMs, nowMs)
}

/** What comes next, in the words of somebody who has to act. */
const NEXT: Record<ApiFailure['kind'], { reason: string; next: string }> = {
  unreachable: { reason: 'Unreachable', next: 'check that the API server runs and that the agent can reach it; it is tried again' },
  throttled: { reason: 'Throttled', next: 'the API server has too much to do; it is tried again' },
  server_error: { reason: 'ServerError', next: 'look at the API server’s own log if this stays; it is tried again' },
  unauthorized: { reason: 'Unauthorized', next: 'check the credentials of the agent; it is tried again' },
  forbidden: { reason: 'Forbidden', next: 'allow it by RBAC, quota or admission; it is tried again' },
  not_found: { reason: 'NotFound', next: 'bring its API back (a CRD, an APIService), or take it out of Git; it is tried again' },
  namespace_missing: { reason: 'NamespaceMissing', next: 'create the namespace or set sync.createNamespace; it is tried again' },
  namespace_terminating: { reason: 'NamespaceTerminating', next: 'it is tried again when the namespace is gone' },
  conflict: { reason: 'Conflict', next: 'let the other manager go, or set sync.force; it is tried again' },
  immutable: {
    reason: 'Immutable',
    next: 'undo the change, delete the object so that it is made again, or annotate it with skerry.dev/sync-options: Force',
  },
  taken: {
    reason: 'AlreadyTaken',
    next: 'give it another port or address; if what has it leaves with this revision, set sync.pruneWhen: applied; it is tried again',
  },
  invalid: { reason: 'Invalid', next: 'correct the manifest' },
  webhook: { reason: 'WebhookUnavailable', next: 'start the webhook’s backend, or take its configuration away; it is tried again' },
}

export function describeProblem(problem: Problem): { reason: string; message: string } {
  switch (problem.kind) {
    case 'unserved':
      return { reason: 'UnknownKind', message: problem.message }
    case 'unreadable':
      return { reason: 'Unreadable', message: problem.message }
    case 'owned':
      if (problem.going !== undefined)
        return { reason: 'Waiting', message: `an object of this name is there still: ${problem.going}; this one is made when that is gone` }
      return { reason: 'OwnedBy', message: `it belongs to ${problem.owner}; rename it, remove it there, or set sync.takeover` }
    case 'waiting':
      return { reason: 'Waiting', message: problem.message }
    case 'gated':
      return { reason: problem.reason, message: problem.message }
    case 'unknown':
      return { reason: 'NotWatched', message: unknownText(problem.failure) }
    case 'failed': {
      const { reason, next } = NEXT[problem.failure.kind]
      return { reason, message: `${problem.failure.message}; ${next}` }
    }
    case 'contested':
      return {
        reason: 'Contested',
        message: `${problem.rival || 'somebody'} changes it again after every correction; stop that manager, or take the field out of Git`,
      }
    case 'drifted':
      return {
        reason: 'Drifted',
        message: `${problem.rival || 'somebody'} changed ${problem.paths.join(', ') || 'it'}; put it back, commit it, or set sync.drift to correct`,
      }
    default:
      return exhaustive(problem)
  }
}

/** RC5: nothing of the kind is changed or deleted meanwhile, so whoever reads it wants to know why. */
function unknownText(failure: ApiFailure | undefined): string {
  const unknown = 'what the cluster holds of this kind is not known at the moment'
  if (failure === undefined) return `${unknown}; it is looked at again by itself`
  return `${unknown}: ${failure.message}; ${nextForKind(failure)}`
}

function nextForKind({ kind, message }: ApiFailure): string {
  if (kind === 'not_found') return 'serve this kind again (its CRD or APIService), or take it out of Git; it is tried again'
  // All that a watch is told of objects that cannot be converted.
  if (message.includes('storage is (re)initializing'))
    return 'if it lasts, the conversion webhook of its CRD (spec.conversion) gives no answer; it is tried again'
  return NEXT[kind].next
}

export interface ServiceFacts {
  /** Null: no complete revision was read. `why`: then, what is wrong with the one that came. */
  revision:
    | { kind: 'complete'; commit: string; digest: string; count: number }
    | { kind: 'incomplete'; why: string }
    | { kind: 'unclaimed' }
  objects: ReadonlyArray<{ ref: ObjectRef; status: ObjectStatus /** Named by the revision: counted. */; desired: boolean }>
  /** Which hook or wave holds something back; absent: none. */
  phase?: PhaseWords | null
  /** What is still to be pruned, in words, sorted; kept by `sync.prune: false` or waiting for health. */
  leaving: { count: number; why: string; overdue?: boolean } | null
  /** A person's hold, in words. */
  hold?: { text: string; hold: Hold } | null
  refusal: PruneRefusal | null
  /** The revision as a whole has not begun, and why. */
  held?: { reason: string; message: string } | null
  received: ServiceProgress | null
  state: ServiceState
  /** A removal order: under way, or carried out; then `orderMs` says which one. */
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
  if (revision.kind === 'unclaimed') {
    return {
      sync: 'Unknown',
      reason: 'Unclaimed',
      message: 'the server names no such service; its objects are kept. Bring it back, or delete them by hand',
    }
  }
  if (revision.kind === 'incomplete') {
    return { sync: 'Unknown', reason: 'RevisionIncomplete', message: `${revision.why}; the last complete revision stays in force` }
  }
  if (facts.hold) {
    // What waits for the hold to end is not done.
    const waits = refusal !== null || leaving !== null || removal.kind === 'running' || facts.held || facts.phase?.holdsBack
    return { sync: sync === 'Synced' && waits ? 'OutOfSync' : sync, reason: 'Held', message: facts.hold.text }
  }
  if (refusal !== null) {
    return {
      sync: 'OutOfSync',
      reason: 'PruneRefused',
      message: `${refusal.why}; nothing of this revision is pruned until it is confirmed: ${refusal.names.slice(0, 5).join(', ')}${refusal.count > 5 ? ` and ${refusal.count - 5} more` : ''}`,
    }
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

/** What is left, unless an object says what keeps it. */
const removingText = (why: string | undefined, wrong: ReturnType<typeof worstFirst>): string =>
  wrong === null || wrong.reason === GONE.reason ? (why ?? '') : wrong.message

/** The first of the worst objects speaks. */
function worstFirst(facts: ServiceFacts, sync: SyncWord, health: HealthWord): { reason: string; message: string } | null {
  const pool = facts.objects.filter(({ status }) => (sync === 'Synced' ? status.health === health : status.sync === sync))
  return sync === 'Synced' && health === 'Healthy' ? null : firstSaid(pool)
}

export interface SaidObject {
  ref: ObjectRef
  status: ObjectStatus
}

/** What the first of these objects says, and how many there are besides; null: there is none. */
export function firstSaid(objects: Iterable<SaidObject>): { reason: string; message: string } | null {
  let count = 0
  let first: SaidObject | null = null
  for (const object of objects) {
    count += 1
    if (first === null || compareRefs(object.ref, first.ref) < 0) first = object
  }
  if (first === null) return null
  const { ref, status } = first
  const more = count === 1 ? '' : ` (and ${count - 1} more)`
  return { reason: status.reason, message: `${refText(ref)}: ${status.message || status.reason}${more}` }
}
