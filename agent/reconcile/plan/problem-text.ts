// What stands in the way of an object, in words for people: a reason that tools match on, and a message that names what to do next. Pure and deterministic: the same problem gives the
// same bytes. Warnings of the API server (a deprecated version, a violated security standard) stand in the status of an object until a write brings others or none, and each is told once.
import { type ObjectRef, refText } from '../../../shared/kube/object.ts'
import type { EventStatus } from '../../../shared/model/status.ts'
import { exhaustive } from '../../../shared/runtime/assert.ts'
import type { ApiFailure } from '../../cluster/cluster.ts'
import { POLICY_REFUSED, PROJECT_REFUSED } from '../snapshot/permits.ts'
import { CHANGED_BEFORE_DELETE, type Problem } from '../snapshot/situation.ts'

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

const DELETE_CONFLICT = { reason: 'Conflict', next: 'stop the manager that keeps writing the object; retrying' }

/** RC38 */
const SCHEMA = { reason: 'Invalid', next: 'correct the manifest, or install the CustomResourceDefinition that it is written for; retrying' }

function nextOf({ failure, sent, retryAtMs }: Extract<Problem, { kind: 'failed' }>): { reason: string; next: string } {
  if (sent === null) return failure.reason === CHANGED_BEFORE_DELETE ? DELETE_CONFLICT : NEXT[failure.kind]
  return failure.kind === 'invalid' && retryAtMs !== null ? SCHEMA : NEXT[failure.kind]
}

/** The agent itself refused the request. */
const isRefusal = ({ status, reason }: ApiFailure): boolean => status === 0 && (reason === PROJECT_REFUSED || reason === POLICY_REFUSED)

export function describeProblem(problem: Problem): { reason: string; message: string } {
  switch (problem.kind) {
    case 'unserved':
      return { reason: 'UnknownKind', message: problem.message }
    case 'unreadable':
      return { reason: problem.reason ?? 'Unreadable', message: problem.message }
    case 'owned':
      if (problem.going !== undefined)
        return { reason: 'Waiting', message: `an object of this name is there still: ${problem.going}; this one is made when that is gone` }
      if (problem.isInTheWay === true)
        return {
          reason: 'AlreadyExists',
          message: 'an object of this name exists and no run of this hook made it; delete it, or rename the hook',
        }
      return { reason: 'OwnedBy', message: `it belongs to ${problem.owner}; rename it, remove it there, or set sync.takeover` }
    case 'waiting':
      return { reason: 'Waiting', message: problem.message }
    case 'gated':
      return { reason: problem.reason, message: problem.message }
    case 'unknown':
      return { reason: 'NotWatched', message: unknownText(problem.failure) }
    case 'failed': {
      if (isRefusal(problem.failure)) return { reason: problem.failure.reason, message: problem.failure.message }
      const { reason, next } = nextOf(problem)
      const again = problem.again === undefined ? '' : `${problem.again.why}; `
      return { reason, message: `${problem.failure.message}; ${again}${next}` }
    }
    case 'kept':
      return problem.asks
        ? { reason: 'ConfirmationPending', message: `kept until its deletion is confirmed (\`skerry confirm\`): ${problem.what}` }
        : { reason: 'Waiting', message: problem.what }
    case 'contested':
      return {
        reason: 'Contested',
        message: `${problem.drift} again after every correction; stop that manager, or remove the field from Git`,
      }
    case 'drifted': {
      const next = `${problem.deleted ? 'create it again, remove it from Git' : 'restore it, commit the change'}, or set sync.drift to correct`
      return { reason: 'Drifted', message: `${problem.drift}; ${next}` }
    }
    default:
      return exhaustive(problem)
  }
}

/** RC5: nothing of the kind is changed or deleted meanwhile, so whoever reads it wants to know why. */
export function unknownText(failure: ApiFailure | undefined): string {
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
  /** For the status of the object. Null: those that it has stay. */
  warnings: readonly string[] | null
  /** Null if every warning was told before. */
  event: Pick<EventStatus, 'type' | 'reason' | 'message'> | null
}

/** AW1, AW2 */
export function warningNews({ ref, warnings, known, isRefused }: Warned): WarningNews {
  if (isRefused && warnings.length === 0) return { warnings: null, event: null }
  const added = warnings.filter((text) => !known.includes(text))
  if (added.length === 0) return { warnings, event: null }
  return { warnings, event: { type: 'Warning', reason: 'AdmissionWarning', message: `${refText(ref)}: ${added.join('; ')}` } }
}
