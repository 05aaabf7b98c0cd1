// The state machine of sync: (state, event) → (state, effects). Pure and complete: every event has an answer in every
// state. Enforcement is independent of it: it reads the replica only.

import type { RefetchReason } from '../../shared/protocol/frames.ts'
import { exhaustive } from '../../shared/runtime/assert.ts'
import type { ErrorCode } from '../../shared/runtime/error.ts'
import { ERRORS } from '../../shared/runtime/error-table.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'

/** The way to the next page. `refetch` creates a new file: from the differences (`buckets`), or from everything
 *  (`whole`). */
export type PageTask =
  // `held`: a replica is in force meanwhile.
  | { kind: 'refetch'; scope: 'buckets' | 'whole'; held: boolean; restarted: boolean }
  // `proven`: a poll succeeded since the last refetch. Until then another refetch means that one side is broken.
  | { kind: 'follow'; proven: boolean; restarted: boolean }
// `restarted`: a page in parts was given up since the last whole one, so the next time it is not asked for at once.

export type Task = { kind: 'join' } | PageTask | { kind: 'parts'; of: PageTask }

export interface SyncFailure {
  code: ErrorCode
  message: string
  remedy: string
  atMs: number
}

interface Common {
  sinceMs: number
  /** The last failure that was not followed by a success. */
  failure: SyncFailure | null
}

export type SyncState = Common &
  (
    | { kind: 'joining'; task: { kind: 'join' } }
    | { kind: 'refetching'; task: Extract<PageTask, { kind: 'refetch' }> }
    | { kind: 'following'; task: Extract<PageTask, { kind: 'follow' }> }
    | { kind: 'fetching_parts'; task: { kind: 'parts'; of: PageTask } }
    | { kind: 'offline'; task: Task }
    // Only a person can resolve it; retried slowly, because a person may.
    | { kind: 'halted'; task: Task }
    // The server waits for a person, this agent for the server: there is no error here (RP2).
    | { kind: 'restore_pending'; task: Exclude<Task, { kind: 'join' }> }
  )

export type SyncEvent =
  | { kind: 'joined'; verified: boolean }
  | { kind: 'page_applied'; services: readonly ServiceId[] }
  | { kind: 'page_discarded' } // an answer to another cursor than ours
  | { kind: 'page_refused'; failure: SyncFailure }
  | { kind: 'nothing_new'; pauseMs: number; heard: boolean } // `heard`: by the server's own word
  | { kind: 'must_refetch'; reason: RefetchReason }
  | { kind: 'transfer_began' } // the page comes in parts, the first is staged
  | { kind: 'part_staged' }
  | { kind: 'transfer_gone' } // the server keeps it no longer, or it has to come in other parts
  | { kind: 'replica_damaged' }
  | { kind: 'restore_pending'; failure: SyncFailure }
  | { kind: 'failed'; failure: SyncFailure }
  | { kind: 'refused'; failure: SyncFailure }

/** The effects for the loop, in this order. */
export type SyncEffect =
  | { kind: 'log'; level: 'info' | 'warn' | 'error'; message: string; fields: Record<string, unknown> }
  /** The reconciler reads these services again. */
  | { kind: 'tell'; services: readonly ServiceId[] }
  /** The staged parts of a page are useless now. */
  | { kind: 'drop_parts' }
  /** Before the next turn: the growing wait of `runLoop`. */
  | { kind: 'back_off' }
  /** Before the next turn: about a minute, because trying sooner is useless. */
  | { kind: 'rest' }
  | { kind: 'sleep'; ms: number }

/** The work of the next turn. */
export type Turn =
  | { kind: 'join' }
  | { kind: 'refetch'; sums: boolean }
  /** `patient`: waits for news. Without contact it does not: whether the server is back is to be known at once, the
   *  outbox waits for it. */
  | { kind: 'follow'; patient: boolean }
  | { kind: 'fetch_part'; of: PageTask }

/** Answers after which an immediate retry is useless, because a person has to act. */
export const HALTING_CODES: ReadonlySet<ErrorCode> = new Set([
  'revoked',
  'superseded',
  'cluster_unknown',
  'cluster_removed',
  'protocol_unsupported',
  'join_token_unknown',
  'join_token_expired',
  'join_token_used_up',
  'join_proof_invalid',
  'join_name_taken',
  'server_key_mismatch',
  'link_insecure',
])

/** States in which the server answers: rows of the outbox may be pushed. This includes a site without space for the
 *  received page (RP4). */
export function inContact({ kind, task, failure }: SyncState): boolean {
  if (task.kind === 'join' || kind === 'halted') return false
  return kind !== 'offline' || failure?.code === 'disk_full'
}

export function turnOf({ kind, task }: SyncState): Turn {
  switch (task.kind) {
    case 'join':
      return { kind: 'join' }
    case 'refetch':
      return { kind: 'refetch', sums: task.scope === 'buckets' }
    case 'follow':
      return { kind: 'follow', patient: kind === 'following' }
    case 'parts':
      return { kind: 'fetch_part', of: task.of }
    default:
      return exhaustive(task)
  }
}

export interface Beginning {
  joined: boolean
  /** The replica's file is whole. */
  verified: boolean
  /** The replica is older than the last head that the server signed. Only a refetch shows that head, and a server
   *  that lost it too learns of it in no other way. */
  behind: boolean
  /** The purpose of the staged parts of a page, when there are any. */
  staged: PageTask | null
}

/** A start with an identity continues where it was, parts of a page included. */
export function beginSync({ joined, verified, behind, staged }: Beginning, nowMs: number): SyncState {
  const fresh: Task = verified && !behind ? FOLLOW_UNPROVEN_TASK : { ...REFETCH_TASK, held: verified }
  const task: Task = !joined ? { kind: 'join' } : staged === null || behind ? fresh : { kind: 'parts', of: staged }
  // A start proves nothing: the files on the disk were verified when they were written.
  return stateOf(task.kind === 'follow' ? { ...task, proven: true } : task, { sinceMs: nowMs, failure: null })
}

const REFETCH_TASK = { kind: 'refetch', scope: 'buckets', held: true, restarted: false } as const
const FOLLOW_UNPROVEN_TASK = { kind: 'follow', proven: false, restarted: false } as const

function stateOf(task: Task, common: Common): SyncState {
  switch (task.kind) {
    case 'join':
      return { kind: 'joining', task, ...common }
    case 'refetch':
      return { kind: 'refetching', task, ...common }
    case 'follow':
      return { kind: 'following', task, ...common }
    case 'parts':
      return { kind: 'fetching_parts', task, ...common }
    default:
      return exhaustive(task)
  }
}

/** The outcome before it becomes a state: the next task, its basis, and further effects. */
interface Outcome {
  task: Task
  footing: 'going' | 'offline' | 'halted' | 'restore_pending' | 'kept' | 'same'
  failure?: SyncFailure | null
  effects?: SyncEffect[]
}

const BACK_OFF: SyncEffect = { kind: 'back_off' }
const REST: SyncEffect = { kind: 'rest' }
const DROP_PARTS: SyncEffect = { kind: 'drop_parts' }

export function stepSync(before: SyncState, event: SyncEvent, nowMs: number): { state: SyncState; effects: SyncEffect[] } {
  const { task, footing, failure = null, effects = [] } = outcomeOf(before, event)
  if (footing === 'same') return { state: before, effects }
  const common = { sinceMs: nowMs, failure }
  const stands = footing === 'kept' ? standing(before.kind) : footing
  const dressed: SyncState = stands === 'going' ? stateOf(task, common) : ({ kind: stands, task, ...common } as SyncState)
  const state = dressed.kind === before.kind ? { ...dressed, sinceMs: before.sinceMs } : dressed
  return { state, effects: state.kind === before.kind ? effects : [changeLine(before, state), ...effects] }
}

const standing = (kind: SyncState['kind']) => (kind === 'offline' || kind === 'halted' || kind === 'restore_pending' ? kind : 'going')

function outcomeOf(before: SyncState, event: SyncEvent): Outcome {
  const { task } = before
  switch (event.kind) {
    case 'failed':
      return { task, footing: 'offline', failure: event.failure, effects: [BACK_OFF] }
    case 'refused':
      return { task, footing: 'halted', failure: event.failure, effects: [REST] }
    case 'joined':
      return { task: event.verified ? FOLLOW_UNPROVEN_TASK : { ...REFETCH_TASK, held: false }, footing: 'going', effects: [DROP_PARTS] }
    default:
      break
  }
  // No other event is possible for an agent that has not joined; a server that answers otherwise is asked less and
  // less.
  if (task.kind === 'join') return { task, footing: 'same', effects: event.kind === 'replica_damaged' ? [] : [BACK_OFF] }
  if (event.kind === 'restore_pending') return { task, footing: 'restore_pending', failure: event.failure, effects: [BACK_OFF] }
  return task.kind === 'parts' ? afterPart(task, event, before) : afterPage(task, event, before)
}

type PageEvent = Exclude<SyncEvent, { kind: 'failed' | 'refused' | 'joined' | 'restore_pending' }>

/** While a page is asked for as a whole. */
function afterPage(task: PageTask, event: PageEvent, before: SyncState): Outcome {
  const nonsense: Outcome = { task, footing: 'same', effects: [BACK_OFF] }
  switch (event.kind) {
    case 'page_applied':
      return { task: { kind: 'follow', proven: task.kind === 'follow', restarted: false }, footing: 'going', effects: told(event.services) }
    case 'nothing_new':
      if (task.kind === 'refetch') return nonsense
      return {
        task: event.heard ? { kind: 'follow', proven: true, restarted: false } : task,
        footing: 'going',
        effects: event.pauseMs > 0 ? [{ kind: 'sleep', ms: event.pauseMs }] : [],
      }
    case 'must_refetch':
      if (task.kind === 'refetch') return nonsense
      return {
        task: REFETCH_TASK,
        footing: 'going',
        effects: [refetchLine(event.reason), ...(task.proven ? [] : [REST])],
      }
    case 'page_refused': {
      if (task.kind === 'follow')
        return { task: REFETCH_TASK, footing: 'going', failure: event.failure, effects: [task.proven ? BACK_OFF : REST] }
      const next: PageTask = { ...task, scope: 'whole', restarted: false }
      return { task: next, footing: 'going', failure: event.failure, effects: task.scope === 'buckets' ? [] : [BACK_OFF] }
    }
    case 'transfer_began':
      return { task: { kind: 'parts', of: task }, footing: 'going' }
    case 'replica_damaged':
      return {
        task: { ...REFETCH_TASK, scope: task.kind === 'refetch' ? task.scope : 'buckets', held: false },
        footing: 'kept',
        failure: before.failure,
        // The rows fetched just now are damaged again. The disk is at fault, and a refetch does not repair it.
        effects: task.kind === 'follow' && !task.proven ? [REST] : [],
      }
    case 'page_discarded':
    case 'part_staged':
    case 'transfer_gone':
      return nonsense
    default:
      return exhaustive(event)
  }
}

/** While a page arrives in parts. Its end is judged as that of a whole page, and its parts are deleted. */
function afterPart(task: Extract<Task, { kind: 'parts' }>, event: PageEvent, before: SyncState): Outcome {
  const { of } = task
  switch (event.kind) {
    case 'part_staged':
      return { task, footing: 'going' }
    case 'transfer_gone':
      return { task: { ...of, restarted: true }, footing: 'going', effects: [DROP_PARTS, ...(of.restarted ? [REST] : [])] }
    case 'page_discarded':
      return { task: of, footing: 'going', effects: [DROP_PARTS, BACK_OFF] }
    case 'replica_damaged':
      // A delta continues a file that is gone; a page that makes a new file is as good as before.
      if (of.kind === 'refetch') return { task: { kind: 'parts', of: { ...of, held: false } }, footing: 'kept', failure: before.failure }
      return withoutParts(afterPage(of, event, before))
    case 'page_refused':
      return restedAfterAll(of, withoutParts(afterPage(of, event, before)))
    case 'page_applied':
    case 'must_refetch':
      return withoutParts(afterPage(of, event, before))
    case 'nothing_new':
    case 'transfer_began':
      return { task, footing: 'same', effects: [BACK_OFF] }
    default:
      return exhaustive(event)
  }
}

/** Each received part would reset the growing wait, also after pages that are received whole and refused. */
const restedAfterAll = (of: PageTask, outcome: Outcome): Outcome =>
  of.kind === 'refetch' && of.scope === 'whole'
    ? { ...outcome, effects: (outcome.effects ?? []).map((effect) => (effect === BACK_OFF ? REST : effect)) }
    : outcome

const withoutParts = (outcome: Outcome): Outcome =>
  outcome.footing === 'same' ? outcome : { ...outcome, effects: [DROP_PARTS, ...(outcome.effects ?? [])] }

/** Also for a page that changed no service: it had rows of other kinds. */
const told = (services: readonly ServiceId[]): SyncEffect[] => [{ kind: 'tell', services }]

const refetchLine = (reason: RefetchReason): SyncEffect => ({
  kind: 'log',
  level: 'info',
  message: 'cannot continue from the cursor; fetching the differences',
  fields: { reason },
})

function changeLine(before: SyncState, { kind, failure }: SyncState): SyncEffect {
  const level = kind === 'halted' ? 'error' : kind === 'offline' || kind === 'restore_pending' ? 'warn' : 'info'
  const why = failure === null ? {} : { why: failure.message }
  return { kind: 'log', level, message: 'sync changed', fields: { state: kind, before: before.kind, ...why } }
}

/** A failure as the state keeps it and a person reads it. */
export const syncFailure = (code: ErrorCode, message: string, atMs: number, remedy: string = ERRORS[code].remedy): SyncFailure => ({
  code,
  message,
  remedy,
  atMs,
})
