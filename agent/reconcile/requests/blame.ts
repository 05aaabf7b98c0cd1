// Decides what a failed request is evidence of: the API server itself, or only one cause behind it, such as a webhook,
// a kind or a namespace. A failing cause must not slow down unrelated requests.
import type { ApiFailure } from '../../cluster/cluster.ts'

/** The target of a request. Requests of one kind share its storage and its webhooks; those of one namespace share
 *  its policies. */
export interface Target {
  access: 'read' | 'write'
  /** `apps/Deployment` */
  kind: string
  /** Empty: cluster-scoped. */
  namespace: string
}

export type Verdict =
  /** The API server answered and had room, also when it refused the request. */
  | { kind: 'good' }
  /** `pauseMs`: nothing at all is sent before that time has passed. */
  | { kind: 'overload'; pauseMs: number }
  /** The webhook that could not be called, or null if the message names none. */
  | { kind: 'webhook'; name: string | null }
  /** Ambiguous until other failures are known (`commonCause`). */
  | { kind: 'error' }

const GOOD: Verdict = { kind: 'good' }
const OWN_REASONS: ReadonlySet<string> = new Set(['Stopped', 'TooManyWatches', 'ServiceAccountUnplaced'])
/** No answer for so long is a request that hung, and no server that is out of reach. */
const HUNG_MS = 30_000
/** The storage of a CRD that was created a moment ago answers 429 for its kind alone. */
const STORAGE_STARTS = /storage is \(re\)initializing/
const WEBHOOK_NAME = /(?:calling|call) webhook "([^"]{1,253})"/

export function verdictOf(failure: ApiFailure | null, tookMs: number): Verdict {
  // The agent's own word: it has stopped the request, or had too many.
  if (failure?.status === 0 && OWN_REASONS.has(failure.reason)) return GOOD
  switch (failure?.kind) {
    case 'throttled':
      return STORAGE_STARTS.test(failure.message) ? { kind: 'error' } : { kind: 'overload', pauseMs: failure.retryAfterMs ?? 0 }
    case 'unreachable':
      return tookMs >= HUNG_MS ? { kind: 'error' } : { kind: 'overload', pauseMs: 0 }
    case 'server_error':
      return { kind: 'error' }
    case 'webhook':
      return { kind: 'webhook', name: WEBHOOK_NAME.exec(failure.message)?.[1] ?? null }
    default:
      return GOOD
  }
}

export const targetKey = ({ access, kind, namespace }: Target): string => `${access} ${kind} ${namespace}`

/** The parts that all targets have in common. */
export interface Common {
  kind: Pick<Target, 'access' | 'kind'> | null
  namespace: string | null
}

/** `common`: null for the first target. */
export function inCommon(common: Common | null, { access, kind, namespace }: Target): Common {
  if (common === null) return { kind: { access, kind }, namespace }
  return {
    kind: common.kind?.access === access && common.kind.kind === kind ? common.kind : null,
    namespace: common.namespace === namespace ? namespace : null,
  }
}

/** Null if they have neither kind nor namespace in common: then the API server itself is the cause. */
export function commonCause({ kind, namespace }: Common): string | null {
  if (kind !== null) return namespace === null ? `kind ${kind.access} ${kind.kind}` : `target ${targetKey({ ...kind, namespace })}`
  return namespace === null || namespace === '' ? null : `namespace ${namespace}`
}
