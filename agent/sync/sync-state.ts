// Where sync stands and what follows from what happened. Pure and whole: every event has an answer in every state, and each of them keeps enforcement
// out of it, which reads the replica and never looks here.
import type { ErrorCode } from '../../shared/protocol/error.ts'
import { exhaustive } from '../../shared/runtime/assert.ts'

/** What the next turn does. `bootstrap` fetches everything into a new file, `follow` polls from the cursor. */
export type Task = 'join' | 'bootstrap' | 'follow'

export interface SyncFailure {
  code: ErrorCode
  message: string
  remedy: string
  atMs: number
}

interface Common {
  sinceMs: number
  /** The last thing that went wrong and was not made good since. */
  failure: SyncFailure | null
}

export type SyncState = Common &
  (
    | { kind: 'joining' }
    | { kind: 'bootstrapping' }
    // `proven`: a poll went well since the last bootstrap. Until then another refetch means that one of both sides is broken.
    | { kind: 'following'; proven: boolean }
    | { kind: 'offline'; task: Task }
    // Only a person can undo it; tried again slowly, because a person may.
    | { kind: 'halted'; task: Task }
  )

export type SyncEvent =
  | { kind: 'joined' }
  | { kind: 'page_applied' }
  | { kind: 'page_discarded' } // an answer to another cursor than ours
  | { kind: 'page_refused'; failure: SyncFailure }
  | { kind: 'nothing_new' }
  | { kind: 'must_refetch' }
  | { kind: 'replica_damaged' }
  | { kind: 'failed'; failure: SyncFailure }
  | { kind: 'refused'; failure: SyncFailure }

/** Before the next turn: nothing, the growing wait of `runLoop`, or about a minute. */
export type Pause = 'none' | 'back_off' | 'rest'

/** Answers after which trying again at once is useless: somebody has to act. */
export const HALTING_CODES: ReadonlySet<ErrorCode> = new Set([
  'revoked',
  'superseded',
  'cluster_unknown',
  'protocol_unsupported',
  'join_token_unknown',
  'join_token_expired',
  'join_token_used_up',
  'join_proof_invalid',
  'join_name_taken',
  'server_key_mismatch',
])

export function taskOf(state: SyncState): Task {
  switch (state.kind) {
    case 'joining':
      return 'join'
    case 'bootstrapping':
      return 'bootstrap'
    case 'following':
      return 'follow'
    case 'offline':
    case 'halted':
      return state.task
    default:
      return exhaustive(state)
  }
}

export function stepSync(state: SyncState, event: SyncEvent, nowMs: number): { state: SyncState; pause: Pause } {
  const task = taskOf(state)
  const unproven = state.kind === 'following' && !state.proven
  const sinceMs = (kind: SyncState['kind']) => (state.kind === kind ? state.sinceMs : nowMs)
  const bootstrapping = (failure: SyncFailure | null): SyncState => ({ kind: 'bootstrapping', sinceMs: sinceMs('bootstrapping'), failure })
  const following = (proven: boolean): SyncState => ({ kind: 'following', proven, sinceMs: sinceMs('following'), failure: null })

  switch (event.kind) {
    case 'joined':
      return { state: bootstrapping(null), pause: 'none' }
    case 'page_applied':
      return task === 'join' ? { state, pause: 'back_off' } : { state: following(task === 'follow'), pause: 'none' }
    case 'nothing_new':
      return task === 'follow' ? { state: following(true), pause: 'none' } : { state, pause: 'back_off' }
    case 'page_discarded':
      return { state, pause: 'back_off' }
    case 'page_refused':
      if (task === 'join') return { state, pause: 'back_off' }
      return { state: bootstrapping(event.failure), pause: unproven ? 'rest' : 'back_off' }
    case 'must_refetch':
      if (task !== 'follow') return { state, pause: 'back_off' }
      return { state: bootstrapping(null), pause: unproven ? 'rest' : 'none' }
    case 'replica_damaged':
      return { state: task === 'join' ? state : bootstrapping(state.failure), pause: 'none' }
    case 'failed':
      return { state: { kind: 'offline', task, sinceMs: sinceMs('offline'), failure: event.failure }, pause: 'back_off' }
    case 'refused':
      return { state: { kind: 'halted', task, sinceMs: sinceMs('halted'), failure: event.failure }, pause: 'rest' }
    default:
      return exhaustive(event)
  }
}
