// Texts for the problems of an object: a reason that tools match on, and a message that ends with the next step.
// Pure and deterministic, so that the same problem gives the same bytes. Warnings of the API server (a deprecated
// version, a violated security standard) stay in the status of an object until a write brings others or none.
import { type ObjectRef, refText } from '../../../shared/kube/object.ts'
import type { EventStatus } from '../../../shared/model/status.ts'
import { exhaustive } from '../../../shared/runtime/assert.ts'
import type { ApiFailure } from '../../cluster/cluster.ts'
import { POLICY_REFUSED, PROJECT_REFUSED } from '../snapshot/permits.ts'
import { CHANGED_BEFORE_DELETE, type Problem } from '../snapshot/situation.ts'

/** The next step for each kind of failure. */
const NEXT: Record<ApiFailure['kind'], { reason: string; next: string }> = {
  unreachable: { reason: 'Unreachable', next: 'check that the API server runs and that the agent can reach it; retrying' },
  throttled: { reason: 'Throttled', next: 'the API server is overloaded; retrying' },
  server_error: { reason: 'ServerError', next: 'if this persists, read the log of the API server; retrying' },
  unauthorized: { reason: 'Unauthorized', next: 'check the credentials of the agent; retrying' },
  forbidden: { reason: 'Forbidden', next: 'change the RBAC rule, quota or admission policy that forbids it; retrying' },
  not_found: { reason: 'NotFound', next: 'install the CRD or APIService, or remove the object from Git; retrying' },
  namespace_missing: { reason: 'NamespaceMissing', next: 'create the namespace or set sync.createNamespace; retrying' },
  namespace_terminating: { reason: 'NamespaceTerminating', next: 'waiting until the namespace is deleted' },
  conflict: { reason: 'Conflict', next: 'remove the other field manager, or set sync.force; retrying' },
  immutable: {
    reason: 'Immutable',
    next: 'undo the change, delete the object so that it is created again, or annotate it with skerry.dev/sync-options: Force',
  },
  taken: {
    reason: 'AlreadyTaken',
    next: 'choose another port or address, or set sync.pruneWhen: applied if this revision removes its current owner; retrying',
  },
  invalid: { reason: 'Invalid', next: 'correct the manifest' },
  webhook: { reason: 'WebhookUnavailable', next: 'start the backend of the webhook, or delete the webhook configuration; retrying' },
}

const DELETE_CONFLICT = { reason: 'Conflict', next: 'stop the manager that keeps writing the object; retrying' }

/** RC38: a later CustomResourceDefinition may accept the manifest. */
const SCHEMA = { reason: 'Invalid', next: 'correct the manifest, or install the CustomResourceDefinition version that it needs; retrying' }

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
        return { reason: 'Waiting', message: `waiting until the existing object of this name is deleted: ${problem.going}` }
      if (problem.isInTheWay === true)
        return {
          reason: 'AlreadyExists',
          message: 'an object of this name exists that this hook did not create; delete it, or rename the hook',
        }
      return {
        reason: 'OwnedByOther',
        message: `already managed by ${problem.owner}; rename the object, remove it there, or set sync.takeover`,
      }
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

/** RC5: the agent changes and deletes nothing of a kind that it cannot read; the message says why. */
export function unknownText(failure: ApiFailure | undefined): string {
  const unknown = 'cannot read this kind yet'
  if (failure === undefined) return `${unknown}; retrying`
  return `${unknown}: ${failure.message}; ${nextForKind(failure)}`
}

function nextForKind({ kind, message }: ApiFailure): string {
  if (kind === 'not_found') return 'install the CRD or APIService, or remove the object from Git; retrying'
  // A watch gets only this message for objects that cannot be converted.
  if (message.includes('storage is (re)initializing'))
    return 'if this persists, check the conversion webhook of the CRD (spec.conversion); retrying'
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
  return { warnings, event: { type: 'Warning', reason: 'AdmissionWarning', message: `${refText(ref)}: ${added.join('; ')}` } }
}
