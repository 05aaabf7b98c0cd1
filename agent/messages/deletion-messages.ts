// Texts about deletions: why a prune, a removal or a recreation waits, and what a person is asked to confirm. They
// become parts of statuses, events and confirmations.
import { andMore, objectCount, type Table, textsOf } from '../../shared/runtime/messages.ts'

interface Move {
  service: string
}
const BY_HAND = 'delete it by hand if intended'
const KEPT_FOR_TAKER = 'kept until then; delete it by hand if that service must not manage it'

export const DELETION = {
  // Guard: nothing of the revision is deleted until a person confirms that.
  restored: {
    text: 'the server was restored from a backup, and this revision is older than the one in the cluster: commit the desired state again, or confirm these deletions',
  },
  facts_only: {
    text: 'the Kubernetes version or the served kinds of this cluster changed, which may be the only cause of these deletions: make the service independent of them, or confirm',
  },
  protected: { text: 'the service is protected (spec.protect): every prune needs a confirmation' },
  empty_revision: { text: ({ count }: { count: number }) => `the revision has no objects, so all ${count} would be deleted` },
  precious: {
    text: ({ precious, count, kinds }: { precious: number; count: number; kinds: string }) =>
      `${precious} of ${count} hold other objects or data (${kinds})`,
    next: 'the annotation skerry.dev/prune: allowed permits the deletion without a confirmation',
  },
  too_many: {
    text: ({ count, owned, percent }: { count: number; owned: number; percent: number }) =>
      `${count} of ${owned} objects are more than ${percent} % (sync.maxPrunePercent)`,
  },

  // Loss that the deletion of one object causes.
  unrecorded: { text: 'unrecorded object: it has our label, but is not in the inventory' },
  others_inside: {
    text: ({ count, isMore, names }: { count: number; isMore: boolean; names: string }) =>
      `${isMore ? 'at least ' : ''}${objectCount(count)} not of this service ${count === 1 ? 'is' : 'are'} deleted with it: ${names}`,
  },
  leaving_inside: { text: ({ services }: { services: string }) => `it still holds objects of ${services}, which is being removed` },
  contents_unread: { text: ({ why }: { why: string }) => `cannot read its contents: ${why}` },
  group_silent: { text: ({ group }: { group: string }) => `the API group ${group} does not answer` },
  resources_unserved: { text: 'no API serves its custom resources now' },
  list_failed: { text: ({ plural, failure }: { plural: string; failure: string }) => `cannot list ${plural}: ${failure}` },
  kinds_unread: { text: ({ failure }: { failure: string }) => `cannot read the kinds that the API server serves: ${failure}` },
  unreachable: { text: 'no API serves its kind: a confirmation removes it from the inventory and deletes nothing' },

  // Recreation after a change of an immutable field.
  not_managed: { text: `not recreated, because Skerry does not manage it yet: ${BY_HAND}` },
  not_of_protected: { text: `not recreated, because the service is protected: ${BY_HAND}` },
  not_marked: { text: ({ mark }: { mark: string }) => `not recreated, because it has ${mark}: ${BY_HAND}` },
  refused_again: {
    text: ({ failure }: { failure: string }) =>
      `already recreated once for this document, and the API server refused the new object: ${failure}`,
  },
  raced: {
    text: ({ count }: { count: number }) =>
      `deleted ${count} times for recreation, and each time another client created it first: stop that client`,
  },
  not_by_other_option: {
    text: ({ kind }: { kind: string }) =>
      `a ${kind} is not recreated by the option of another tool, because data or other objects would be deleted with it`,
    next: 'annotate it with skerry.dev/sync-options: Force to recreate it',
  },
  recreated_after_confirmation: { text: ({ lost }: { lost: string }) => `recreated after confirmation (\`skerry confirm\`): ${lost}` },
  no_revision: { text: 'waits for a complete revision of the service' },

  // Why a prune or a removal waits.
  being_deleted: { text: ({ names }: { names: string }) => `being deleted: ${names}` },
  others_unread: { text: 'will be pruned after the new revisions of other services are read' },
  searching: {
    text: ({ failure }: { failure: string }) => `searching all kinds for objects of the service before the removal: ${failure}`,
    next: 'retrying',
  },
  prune_is_off: {
    text: ({ names }: { names: string }) => `kept, because sync.prune is false: ${names}`,
    next: 'delete them by hand, or set sync.prune',
  },
  // PR7: a disk can return to an older state, by a power failure or a snapshot.
  pruned_when_current: {
    text: 'will be pruned at the first contact with the server since this agent started: until then, the data folder could be an older copy',
  },
  recreated_when_current: {
    text: 'recreated at the first contact with the server since this agent started: until then, the data folder could be an older copy',
  },
  dependents_first: {
    text: ({ first, count }: { first: string; count: number }) =>
      `waiting for the removal of ${andMore([first], count)}, which depends on it`,
  },
  after_sync_phase: { text: ({ wait }: { wait: string }) => `to be pruned after the sync phase; ${wait}` },
  when_ready: {
    text: ({ object, until, pruneWhen, names }: { object: string; until: string; pruneWhen: string; names: string }) =>
      `to be pruned when ${object} is ${until} (sync.pruneWhen is ${pruneWhen}): ${names}`,
  },
  overdue_applied: {
    text: (overdue: Overdue) => overdueText(overdue, 'applied'),
    next: 'correct it or undo the change',
  },
  overdue_healthy: {
    text: (overdue: Overdue) => overdueText(overdue, 'healthy'),
    next: 'if it needs a resource that the kept objects hold (hostPort, nodePort, ReadWriteOnce volume, Ingress host), set sync.pruneWhen: applied; otherwise correct it or undo the change',
  },
  not_sent: { text: 'not sent yet' },
  not_seen: { text: 'not seen in the cluster' },
  moving: { text: ({ service }: Move) => `moving to ${service}, whose revision has not arrived yet`, next: KEPT_FOR_TAKER },
  moving_next: { text: ({ service }: Move) => `moving to ${service}, whose next revision has not arrived yet`, next: KEPT_FOR_TAKER },
} satisfies Table

interface Overdue {
  object: string
  deadline: string
  why: string
  names: string
}
function overdueText({ object, deadline, why, names }: Overdue, until: 'applied' | 'healthy'): string {
  return `${object} is not ${until} ${deadline} after its revision arrived (${why}); kept until then: ${names}`
}

export const deletionText = textsOf(DELETION)
