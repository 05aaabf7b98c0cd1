// Texts for the problems of an object: a reason that tools match on, and a message that ends with the next step.
// Pure and deterministic, so that the same problem gives the same bytes. Warnings of the API server (a deprecated
// version, a violated security standard) stay in the status of an object until a write brings others or none.
import { type ObjectRef, refText } from '../../../shared/kube/object.ts'
import type { EventStatus } from '../../../shared/model/status.ts'
import { exhaustive } from '../../../shared/runtime/assert.ts'
import type { Said } from '../../../shared/runtime/messages.ts'
import type { ApiFailure } from '../../cluster/cluster.ts'
import { warning } from '../../messages/event-messages.ts'
import { OBJECT, objectStatus } from '../../messages/object-messages.ts'
import { POLICY_REFUSED, PROJECT_REFUSED } from '../snapshot/permits.ts'
import { CHANGED_BEFORE_DELETE, type Problem } from '../snapshot/situation.ts'

/** Texts of failed requests. */
const FAILED = {
  unreachable: 'Unreachable',
  throttled: 'Throttled',
  server_error: 'ServerError',
  unauthorized: 'Unauthorized',
  forbidden: 'Forbidden',
  not_found: 'NotFound',
  namespace_missing: 'NamespaceMissing',
  namespace_terminating: 'NamespaceTerminating',
  conflict: 'Conflict',
  immutable: 'Immutable',
  taken: 'AlreadyTaken',
  invalid: 'Invalid',
  webhook: 'WebhookUnavailable',
} as const satisfies Record<ApiFailure['kind'], keyof typeof OBJECT>

function codeOf({ failure, sent, retryAtMs }: Extract<Problem, { kind: 'failed' }>) {
  if (sent === null && failure.reason === CHANGED_BEFORE_DELETE) return 'Conflict.delete'
  // RC38: a later CustomResourceDefinition may accept the manifest.
  return sent !== null && failure.kind === 'invalid' && retryAtMs !== null ? 'Invalid.schema' : FAILED[failure.kind]
}

/** The agent itself refused the request. */
const isRefusal = ({ status, reason }: ApiFailure): boolean => status === 0 && (reason === PROJECT_REFUSED || reason === POLICY_REFUSED)

export function describeProblem(problem: Problem): Said {
  switch (problem.kind) {
    case 'unserved':
      return { reason: 'UnknownKind', message: problem.message }
    case 'unreadable':
      return { reason: problem.reason ?? 'Unreadable', message: problem.message }
    case 'owned':
      if (problem.going !== undefined) return objectStatus('Waiting.namesake', { deleting: problem.going })
      return problem.isInTheWay === true ? objectStatus('AlreadyExists') : objectStatus('OwnedByOther', { owner: problem.owner })
    case 'waiting':
      return { reason: 'Waiting', message: problem.message }
    case 'gated':
      return { reason: problem.reason, message: problem.message }
    case 'unknown':
      return unknownKind(problem.failure)
    case 'failed': {
      const { failure, again } = problem
      if (isRefusal(failure)) return { reason: failure.reason, message: failure.message }
      return objectStatus(codeOf(problem), { failure: again === undefined ? failure.message : `${failure.message}; ${again.why}` })
    }
    case 'kept':
      return problem.asks ? objectStatus('ConfirmationPending', { lost: problem.what }) : { reason: 'Waiting', message: problem.what }
    case 'contested':
      return objectStatus('Contested', { drift: problem.drift })
    case 'drifted':
      return objectStatus(problem.deleted ? 'Drifted.deleted' : 'Drifted', { drift: problem.drift })
    default:
      return exhaustive(problem)
  }
}

/** RC5: the agent changes and deletes nothing of a kind that it cannot read; the message says why. */
export function unknownKind(failure: ApiFailure | undefined): Said<'NotWatched'> {
  if (failure === undefined) return objectStatus('NotWatched')
  const { kind, message } = failure
  // A watch gets only this message for objects that cannot be converted.
  if (kind !== 'not_found' && message.includes('storage is (re)initializing'))
    return objectStatus('NotWatched.conversion', { failure: message })
  return objectStatus('NotWatched.failed', { failure: message, next: OBJECT[FAILED[kind]].next })
}

export interface Warned {
  ref: ObjectRef
  /** The warnings of this write. */
  warnings: readonly string[]
  /** In the status of the object before this write. */
  known: readonly string[]
  /** The API server refused the write, so that the object is as it was. */
  isRefused: boolean
}

export interface WarningNews {
  /** Warnings for the status of the object; null keeps the current ones. */
  warnings: readonly string[] | null
  /** An event for new warnings; null if there are none. */
  event: Pick<EventStatus, 'type' | 'reason' | 'message'> | null
}

/** AW1, AW2: each new warning is one event; a refused write without warnings keeps the status. */
export function warningNews({ ref, warnings, known, isRefused }: Warned): WarningNews {
  if (isRefused && warnings.length === 0) return { warnings: null, event: null }
  const added = warnings.filter((text) => !known.includes(text))
  if (added.length === 0) return { warnings, event: null }
  return { warnings, event: warning('AdmissionWarning', { object: refText(ref), warnings: added.join('; ') }) }
}
