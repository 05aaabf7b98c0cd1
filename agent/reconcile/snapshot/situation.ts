// Why an object is not as its revision wants it. Kept for each object that has a problem, and for no other.
import type { ObjectRef } from '../../../shared/kube/object.ts'
import type { Said } from '../../../shared/runtime/messages.ts'
import type { ApiFailure } from '../../cluster/cluster.ts'
import type { OtherFields } from './fields/other-fields.ts'
import type { Owner } from './watch/live-object.ts'

export type Problem =
  /** No API serves its kind. Checked again when discovery changes, and at `retryAtMs`. */
  | { kind: 'unserved'; message: string; attempt: number; retryAtMs: number }
  /** Its row cannot be applied unchanged: waits for a new revision. */
  | { kind: 'unreadable'; message: string /** Absent: its row cannot be read. */; reason?: string }
  /** Another owner has it. Checked again at `retryAtMs`, since there is no event when that owner releases it. */
  | {
      kind: 'owned'
      owner: string
      attempt: number
      retryAtMs: number
      /** It is being deleted: the obstacle. */
      going?: string
      /** It has the name of a hook whose object cannot be applied over. */
      isInTheWay?: true
    }
  /** For another object of ours, or for its own deletion. An event of `on` ends it. */
  | { kind: 'waiting'; on: string; message: string }
  /** The picture of its kind is not whole. */
  | { kind: 'unknown'; failure?: ApiFailure }
  /** A request about it failed. `retryAtMs` null: waits for a new document. `sent`: which document that was, null for a
   *  delete. */
  | {
      kind: 'failed'
      failure: ApiFailure
      attempt: number
      retryAtMs: number | null
      sent: string | null
      /** PR12: attempts to delete the object, to make it again, that found it changed. */
      changes?: number
      /** It should have restored the applied document. */
      heals?: true
      /** AO5: why it is not recreated, although its sync-options ask for that. */
      again?: NotAgain
    }
  /** A gate is closed (gates.ts); applied documents stay in force. Each reconciliation checks again. */
  | { kind: 'gated'; reason: string; message: string }
  /** Changed or deleted again after every correction. `drift`: the change, in words. */
  /** RM1: it is not deleted: `what` would be lost. `asks`: a person is asked to confirm that. `retryAtMs` null: only
   *  the confirmation ends it. */
  | { kind: 'kept'; what: string; asks: boolean; attempt: number; retryAtMs: number | null }
  | { kind: 'contested'; drift: string; untilMs: number }
  /** Changed or deleted, and the service's drift policy does not correct it. */
  | { kind: 'drifted'; drift: string; deleted?: true }

export interface NotAgain {
  why: string
  /** The loss with the object, which a person is asked to confirm. Set only if it waits for a confirmation alone. */
  asks?: string
}

export type Closed = Extract<Problem, { kind: 'gated' }>
export const closed = (reason: string, message: string): Closed => ({ kind: 'gated', reason, message })
export const closedBy = ({ reason, message }: Said): Closed => closed(reason, message)

/** Reason of a failed delete: the object was never as it had been seen (PR12). */
export const CHANGED_BEFORE_DELETE = 'Changed'

/** Above every wait, and every Retry-After that is kept to. */
const LONGEST_WAIT_MS = 3_900_000

/** RC17: a time further off than any wait was written before the clock was set back: it has come. */
export const isStillToCome = (atMs: number, nowMs: number): boolean => nowMs < atMs && atMs - nowMs <= LONGEST_WAIT_MS

/** RC8: it failed, and its next attempt is not due. */
export const isRefusedStill = (problem: Problem | undefined, nowMs: number): problem is Extract<Problem, { kind: 'failed' }> =>
  problem?.kind === 'failed' && (problem.retryAtMs === null || isStillToCome(problem.retryAtMs, nowMs))

/** RC38: refusals by the schema of a custom kind before the object counts as refused for good. */
const SCHEMA_REFUSALS = 5

/** Only another document helps, as far as is known. */
export const isRefusedForGood = (problem: Problem | undefined): boolean =>
  problem?.kind === 'failed' &&
  (problem.retryAtMs === null || (problem.failure.kind === 'invalid' && problem.sent !== null && problem.attempt >= SCHEMA_REFUSALS))

export const retryAtOf = (problem: Problem): number | null => {
  switch (problem.kind) {
    case 'unserved':
    case 'owned':
    case 'failed':
    case 'kept':
      return problem.retryAtMs
    case 'contested':
      return problem.untilMs
    default:
      return null
  }
}

/** The same problem after a change of the date. */
export function movedProblem(problem: Problem, byMs: number): Problem {
  if (problem.kind === 'contested') return { ...problem, untilMs: problem.untilMs + byMs }
  return 'retryAtMs' in problem && problem.retryAtMs !== null ? { ...problem, retryAtMs: problem.retryAtMs + byMs } : problem
}

/** The state found before the first apply of an object. */
export type Contact =
  /** `listed`: from a list of names that may be some seconds old (RC19). */
  | { kind: 'absent'; listed?: true }
  | {
      kind: 'present'
      owner: Owner
      deleting: string | null /** Only set where somebody owns fields of it. */
      others?: readonly OtherFields[]
    }

export const namespaceKey = (name: string): string => `/Namespace//${name}`
export const ownNamespaceKey = ({ namespace }: ObjectRef): string => namespaceKey(namespace)

export const WAITING_FOR_WAVE = 'WaitingForWave'
export const WAITING_FOR_HOOK = 'WaitingForHook'
/** Reasons of closed gates that only a move of the position opens. */
export const isOrderReason = (reason: string): boolean => reason === WAITING_FOR_WAVE || reason === WAITING_FOR_HOOK
