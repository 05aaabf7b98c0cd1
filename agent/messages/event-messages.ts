// Texts of the Events that the agent sends to its server and writes beside the objects.
import { eventsOf, objectCount, type Table } from '../../shared/runtime/messages.ts'

interface OnObject {
  object: string
}
interface Revision {
  digest: string
  commit: string
  count: number
}
interface Hook extends OnObject {
  phase: string
}

/** Events of type Normal. */
export const NEWS = {
  Applied: {
    text: ({ digest, commit, count }: Revision) => `revision ${digest} of commit ${commit} is applied (${objectCount(count)})`,
  },
  'Applied.object': { text: ({ object }: OnObject) => `${object} was applied` },
  DriftHealed: { text: ({ object, drift }: OnObject & { drift: string }) => `${object}: ${drift}; restored` },
  FieldsTaken: { text: ({ object }: OnObject) => `${object}: fields applied by other tools are now managed from Git` },
  Healthy: { text: 'recovered: none of its objects is Degraded' },
  Held: { text: ({ what, hold }: { what: string; hold: string }) => `${what} is ${hold}` },
  HookSucceeded: { text: ({ phase, object }: Hook) => `the ${phase} hook ${object} succeeded` },
  LetGo: { text: ({ object }: OnObject) => `${object} is no longer managed and was kept` },
  Pruned: { text: ({ object }: OnObject) => `${object} was deleted` },
  Recreated: { text: ({ object }: OnObject) => `${object} was recreated, because an immutable field changed` },
  Released: { text: ({ what, by }: { what: string; by: string }) => `${what} goes on; lifted by ${by}` },
  'Released.still': {
    text: ({ what, by }: { what: string; by: string }) =>
      `${what} is still held with the whole cluster (\`skerry-agent unhold --all\`); lifted by ${by}`,
  },
  'Released.butFor': {
    text: ({ what, by, held, count }: { what: string; by: string; held: string; count: number }) =>
      `${what} goes on but for ${held}, held by ${count === 1 ? 'a hold of its own' : 'holds of their own'}; lifted by ${by}`,
  },
  Removed: { text: ({ service, policy }: { service: string; policy: string }) => `${service} was removed (${policy})` },
  Restored: { text: ({ object, drift }: OnObject & { drift: string }) => `${object}: ${drift}; restored` },
} satisfies Table

/** Events of type Warning. */
export const WARNINGS = {
  AdmissionWarning: { text: ({ object, warnings }: OnObject & { warnings: string }) => `${object}: ${warnings}` },
  AnotherAgentActive: {
    text: ({ other, own }: { other: string; own: string }) => `${other} is active in this cluster, so agent ${own} does not enforce`,
  },
  AnotherAgentWaits: {
    text: ({ other }: { other: string }) => `${other} requests to enforce this cluster`,
    next: 'waiting for a decision',
  },
  ClaimUnclear: { text: ({ message }: { message: string }) => message },
  ClusterRemoved: { text: 'the cluster was removed from the server: enforcement has stopped, and all objects stay' },
  ConfirmationPending: { text: ({ why }: { why: string }) => why },
  Contested: { text: ({ object, drift }: OnObject & { drift: string }) => `${object}: ${drift} again after every correction` },
  Degraded: { text: ({ message }: { message: string }) => message },
  DeletionConflict: { text: ({ object, failure }: OnObject & { failure: string }) => `${object}: ${failure}` },
  Drifted: { text: ({ object, drift }: OnObject & { drift: string }) => `${object}: ${drift} and not corrected (sync.drift)` },
  Failed: { text: ({ object, message }: OnObject & { message: string }) => `${object}: ${message}` },
  'Failed.recreates': {
    text: ({ object, failure }: OnObject & { failure: string }) => `${object}: ${failure}; its sync-options permit recreation`,
  },
  HookFailed: { text: ({ phase, object, why }: Hook & { why: string }) => `the ${phase} hook ${object} failed: ${why}` },
  NullRefused: {
    text: ({ object }: OnObject) => `${object}: applied without null fields, because the API server rejects null in this kind`,
  },
  PruneBlocked: { text: ({ why, names }: { why: string; names: string }) => `${why}: ${names}` },
  PruneConfirmed: { text: ({ by, names }: { by: string; names: string }) => `${by} confirmed at the site: delete ${names}` },
  'PruneConfirmed.all': {
    text: ({ by, names, total }: { by: string; names: string; total: number }) =>
      `${by} confirmed at the site: delete ${names} of ${total} objects in total`,
  },
  TakenOver: { text: ({ object, warning }: OnObject & { warning: string }) => `${object} was taken over; ${warning}` },
  'TakenOver.cluster': { text: ({ done, why }: { done: string; why: string }) => `${done}: ${why}` },
} satisfies Table

export const news = eventsOf('Normal', NEWS)
export const warning = eventsOf('Warning', WARNINGS)
