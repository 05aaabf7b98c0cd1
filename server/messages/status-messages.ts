// Texts of the statuses that the server itself gives to services, placements, clusters and repositories. A next step is
// a field of its own, in sentences. What agents report keeps the words of their catalogue.
import { type Args, type Code, partsOf, type ReasonOf, reasonOf, type Table, textsOf } from '../../shared/runtime/messages.ts'

interface Words<R extends string> {
  reason: R
  message: string
  next: string
}

/** The reason, the text and the next step of a code; empty where there is none. */
function wordsOfState<const T extends Table>(table: T) {
  const say = partsOf(table)
  const reasons = new Map(Object.keys(table).map((code) => [code, reasonOf(code)]))
  return <C extends Code<T>>(code: C, ...args: Args<T[C]>): Words<ReasonOf<C>> => {
    const { text, next = '' } = say(code, ...args)
    return { reason: reasons.get(code) as ReasonOf<C>, message: text, next }
  }
}

interface Service {
  project: string
  service: string
}
interface Placement extends Service {
  cluster: string
}
interface OfCluster {
  cluster: string
}
interface Away {
  /** Why the status is old. Empty means that it is not. */
  away: string
}
interface Question {
  /** Id of the confirmation. */
  confirmation: string
}
interface Suspension {
  suspension: string
  /** The arguments of `skerry resume`. */
  scope: string
}
interface Removal {
  by: string
  why: string
  how: string
  /** Text of the last report. Empty means none. */
  report: string
}
const after = (text: string): string => (text === '' ? '' : `; ${text}`)
const confirmStep = (confirmation: string): string => `\`skerry confirm ${confirmation}\` shows the names and asks for confirmation`
const describeStep = ({ project, service }: Service): string => `\`skerry describe service ${service} -p ${project}\` shows each cluster.`
const objectsStep = ({ project, service, cluster }: Placement): string =>
  `\`skerry get objects -p ${project} --service ${service} --cluster ${cluster}\` shows each object.`

const suspended = ({ suspension }: Suspension): string => suspension
const RESUME = ({ scope }: Suspension): string =>
  `No action needed if the suspension is intended. Otherwise run \`skerry resume ${scope}\`.`
const removing = ({ by, why, how, report }: Removal): string => `removed by ${by} (${why}): ${how}${after(report)}`
/** The remedy of the error, or of its code. */
const remedyOf = ({ remedy }: { remedy: string }): string => remedy
const BEING_RENDERED = 'No action needed: it is being rendered.'
const BEING_SENT = 'No action needed: it is being sent.'
const CONFIRMATION_SENT = 'The confirmation is being sent to the cluster.'

const KEPT = {
  text: ({ by, why, what }: { by: string; why: string; what: string }) => `kept by ${by} (${why}): ${what}`,
  next: ({ confirmation }: Question) =>
    `No action needed if it is intended; to keep the objects for good, restore the manifests or the targets. \`skerry confirm ${confirmation}\` deletes them after all.`,
}

export const PLACEMENT = {
  Removed: { text: 'no objects are left in this cluster' },
  Suspended: { text: suspended, next: RESUME },
  'Suspended.unconfirmed': {
    text: ({ suspension, away }: Suspension & Away) => `${suspension}; the agent has not confirmed it yet${after(away)}`,
    next: RESUME,
  },
  'Suspended.leaving': { text: ({ suspension }: Suspension) => `${suspension}; its removal waits`, next: RESUME },
  'Suspended.leaving_unconfirmed': {
    text: ({ suspension, away }: Suspension & Away) => `${suspension}; its removal waits; the agent has not confirmed it yet${after(away)}`,
    next: RESUME,
  },
  Removing: {
    text: removing,
    next: (placement: Placement) => `No action needed: it is removed when the agent has reported the removal. ${objectsStep(placement)}`,
  },
  // RM1: a deletion of data waits for a person.
  'ConfirmationPending.removing': {
    text: removing,
    next: ({ confirmation }: Question) => `${confirmStep(confirmation)}; all other objects are deleted meanwhile.`,
  },
  'ConfirmationPending.removing_sent': {
    text: removing,
    next: ({ away }: Away) => `The confirmation is being sent to the cluster${after(away)}.`,
  },
  ConfirmationPending: {
    text: ({ why }: { why: string }) => why,
    next: ({ confirmation }: Question) => `${confirmStep(confirmation)}; to keep the objects, restore the manifests.`,
  },
  'ConfirmationPending.sent': { text: ({ why }: { why: string }) => why, next: CONFIRMATION_SENT },
  PruneBlocked: {
    text: ({ named }: { named: string }) => named,
    next: ({ confirmation }: Question) => `${confirmStep(confirmation)}; to keep the objects, restore the manifests.`,
  },
  'PruneBlocked.sent': { text: ({ named }: { named: string }) => named, next: CONFIRMATION_SENT },
  Kept: KEPT,
  NotReported: { text: 'the agent has not reported this service yet', next: 'No action needed: wait for the agent.' },
  Resuming: { text: 'the agent has not received the resume yet', next: BEING_SENT },
  NotReceived: {
    text: ({ revision, held, away }: Away & { revision: string; held: string }) =>
      `${revision} has not arrived there, it holds ${held}${after(away)}`,
    next: BEING_SENT,
  },
  'NotReceived.first': {
    text: ({ revision, away }: Away & { revision: string }) => `${revision} has not arrived there, it has no revision yet${after(away)}`,
    next: BEING_SENT,
  },
  NotApplied: {
    text: ({ revision, away }: Away & { revision: string }) => `${revision} arrived and is not applied yet${after(away)}`,
    next: (placement: Placement) => `No action needed: it is being applied. ${objectsStep(placement)}`,
  },
  'RenderFailed.kept': {
    text: ({ failure }: { failure: string }) => `it cannot be rendered for this cluster: ${failure}; the last good revision stays active`,
    next: remedyOf,
  },
  'RenderFailed.nothing': {
    text: ({ failure }: { failure: string }) => `it cannot be rendered for this cluster: ${failure}; nothing is published here yet`,
    next: remedyOf,
  },
} satisfies Table

export const placementSays = wordsOfState(PLACEMENT)

interface Asked extends Question {
  why: string
  names: string
}
const asked = (what: string, { why, names }: Asked): string => `${what} waits for confirmation: ${why}: ${names}`

export const SERVICE = {
  'WaitingForConfirmation.remove_service': {
    text: (question: Asked) => asked('its deletion', question),
    next: ({ confirmation }: Question) => `${confirmStep(confirmation)}. To undo the deletion, apply the service again.`,
  },
  'WaitingForConfirmation.release': {
    text: (question: Asked) => asked('a new version of a render tool', question),
    next: ({ confirmation }: Question) => `${confirmStep(confirmation)}. Clusters keep their state until then.`,
  },
  'WaitingForConfirmation.leaving': {
    text: (question: Asked) => asked('leaving clusters', question),
    next: ({ confirmation }: Question) => `${confirmStep(confirmation)}. To undo it, restore its targets or the labels of the clusters.`,
  },
  Kept: KEPT,
  Deleting: {
    text: ({ count, clusters }: { count: number; clusters: string }) =>
      count === 0
        ? 'the removal is almost complete'
        : `${count} ${count === 1 ? 'cluster still has' : 'clusters still have'} it: ${clusters}`,
    next: (service: Service) => `No action needed: it is removed when each cluster has reported the removal. ${describeStep(service)}`,
  },
  'Deleting.question': {
    text: ({ count, clusters }: { count: number; clusters: string }) =>
      count === 0
        ? 'the removal is almost complete'
        : `${count} ${count === 1 ? 'cluster still has' : 'clusters still have'} it: ${clusters}`,
    next: (service: Service & Question) =>
      `\`skerry confirm ${service.confirmation}\` shows the pending confirmation. ${describeStep(service)}`,
  },
  RepositoryNotFound: {
    text: ({ missing, kept }: { missing: string; kept: string }) => `${missing}; ${kept}`,
    next: 'Create it with `skerry apply -f`, or correct spec.source.repository.',
  },
  RepositoryNotRead: {
    text: ({ repository }: { repository: string }) => `repository ${repository} has not been read yet`,
    next: ({ repository, project }: { repository: string; project: string }) =>
      `\`skerry describe repository ${repository} -p ${project}\` shows the time of the next read.`,
  },
  RepositoryUnreadable: { text: ({ failure }: { failure: string }) => failure, next: remedyOf },
  'RepositoryUnreadable.one_of_many': {
    text: ({ repository, failure }: { repository: string; failure: string }) => `repository ${repository}: ${failure}`,
    next: remedyOf,
  },
  RenderFailed: {
    text: ({ failure, kept }: { failure: string; kept: string }) => `${failure}; ${kept}`,
    next: remedyOf,
  },
  Rendering: { text: 'not rendered yet', next: BEING_RENDERED },
  'Rendering.clusters': { text: ({ clusters }: { clusters: string }) => `not rendered for ${clusters} yet`, next: BEING_RENDERED },
  WaitingForFacts: {
    text: ({ count, clusters }: { count: number; clusters: string }) =>
      `${count === 1 ? 'cluster' : 'clusters'} ${clusters} just joined and ${count === 1 ? 'has' : 'have'} not reported the served kinds yet; the render follows within 60 s`,
    next: 'No action needed: it continues automatically.',
  },
  NoDestination: {
    text: ({ project, count }: { project: string; count: number }) =>
      `project ${project} has no destination for ${count} ${count === 1 ? 'cluster' : 'clusters'} that spec.targets matches`,
    next: ({ project }: { project: string }) =>
      `Give the clusters labels that a destination selects, or add one: \`skerry describe project ${project}\` shows them.`,
  },
  NoTargets: {
    text: 'spec.targets matches no cluster',
    next: 'Compare spec.targets with `skerry get clusters -o wide`, which shows their labels.',
  },
  // RD10: a service that was rendered for no cluster, and has warnings or failed.
  'NoTargets.doubts': {
    text: ({ problems }: Service & { problems: string }) =>
      `spec.targets matches no cluster, and without one it does not render${problems}`,
    next: noTargetsStep,
  },
  'NoTargets.unrendered': {
    text: 'spec.targets matches no cluster, and without one it cannot be rendered',
    next: noTargetsStep,
  },
  PartlySuspended: {
    text: ({ clusters }: { clusters: string }) => `suspended in ${clusters}`,
    next: 'No action needed if it is intended; see `skerry get suspensions`.',
  },
  Suspended: { text: suspended, next: RESUME },
  LastKnown: { text: ({ places }: { places: string }) => `last known state of ${places} (not online)` },
  CountsChanging: { text: 'changing now', next: 'Ask again.' },
  'CountsChanging.many': { text: ({ bad, all }: { bad: number; all: number }) => `${bad} of ${all}: changing now`, next: 'Ask again.' },
} satisfies Table

function noTargetsStep({ project, service }: Service): string {
  return `Compare spec.targets with \`skerry get clusters -o wide\`, which shows their labels. \`skerry render ${service} -p ${project}\` shows the missing values.`
}

export const serviceSays = wordsOfState(SERVICE)

export const CLUSTER = {
  ClusterNeverSeen: {
    text: ({ cluster }: OfCluster) => `cluster ${cluster} joined, but its agent has not connected yet`,
    next: 'No action needed if it has just joined. Otherwise run `skerry-agent status` there, and read the log of the agent.',
  },
  ClusterOffline: {
    text: ({ cluster }: OfCluster) => `cluster ${cluster} is offline: last known state`,
    next: 'No action needed if the cluster is expected to be offline: it keeps enforcing its state and catches up when it reconnects. Otherwise run `skerry-agent status` there.',
  },
  ClusterRevoked: {
    text: ({ cluster }: OfCluster) => `cluster ${cluster} is revoked: its agent receives no changes; applied objects stay`,
    next: ({ cluster }: OfCluster) => `Set spec.revoked of the cluster to false, or remove it with \`skerry delete cluster ${cluster}\`.`,
  },
  NoServices: { text: 'no service is placed here' },
  // RP2: the same words as the error.
  RestorePending: { text: ({ cause }: { cause: string }) => cause, next: remedyOf },
} satisfies Table

export const clusterSays = wordsOfState(CLUSTER)

export const REPOSITORY = {
  Fetched: { text: '' },
  NotFetched: { text: 'not read yet', next: 'No action needed: it is being fetched.' },
} satisfies Table

export const repositorySays = wordsOfState(REPOSITORY)

/** Next steps for what an agent reports, by reason. For one that is not here: look at the objects. */
export const REPORTED_STEPS = {
  BlockedBy: {
    text: ({ project, service }: Placement) =>
      `No action needed while the dependency is in progress. Otherwise correct the dependency; \`skerry describe service ${service} -p ${project}\` shows its dependencies.`,
  },
  ManualSync: {
    text: ({ project, service, cluster }: Placement) =>
      `\`skerry sync ${service} -p ${project} --cluster ${cluster}\` shows the changes and asks for confirmation.`,
  },
  WaitingForWave: { text: 'No action needed while the object is in progress. If it failed, correct it in Git.' },
  WaitingForHook: { text: 'No action needed: the sync continues when the hook ends.' },
  HookFailed: { text: 'Read the log of the hook in the cluster, correct it and commit: a new revision runs it again.' },
  Held: {
    text: ({ cluster }: Placement) =>
      `No action needed if the hold is intended. Otherwise run the \`skerry-agent unhold\` of the message in ${cluster}.`,
  },
  OutsideWindow: { text: 'No action needed: the sync continues when the window opens.' },
  ShardBehind: { text: 'Check the disk of the server and run `skerry doctor` there; the server retries automatically.' },
  RevisionIncomplete: { text: 'Upgrade the agent if the message says so. Otherwise no action is needed: the rest arrives soon.' },
} satisfies Table

export const STEPS = {
  objects: { text: objectsStep },
  service: { text: describeStep },
  object: { text: ({ object }: { object: string }) => `In the cluster: \`kubectl describe ${object}\`.` },
  error: { text: 'Correct it and push again.' },
  agent: { text: 'Run `skerry-agent status` in the cluster.' },
} satisfies Table

export const stepText = textsOf(STEPS)

/** Parts of these texts, and of events. */
export const STATUS_PARTS = {
  objects_deleted: { text: 'its objects are being deleted' },
  objects_released: { text: 'its objects are being released and stay in the cluster' },
  healthy_objects: { text: ({ healthy, total }: { healthy: number; total: number }) => `${healthy} of ${total} objects are healthy` },
  named: { text: ({ why, names }: { why: string; names: string }) => `${why}: ${names}` },
  named_some: { text: ({ why, names, total }: { why: string; names: string; total: number }) => `${why}: ${names} (${total} in total)` },
  suspended_and: { text: ({ suspension, message }: { suspension: string; message: string }) => `${suspension}; ${message}` },
  repository_missing: {
    text: ({ repository, project }: { repository: string; project: string }) =>
      `repository ${repository} does not exist in project ${project}`,
  },
  // The revision that stays active where a service cannot be rendered.
  no_revision: { text: 'no revision is published yet' },
  last_revision: { text: 'the last good revision stays active' },
  no_revision_in: { text: ({ clusters }: { clusters: string }) => `no revision is published in ${clusters} yet` },
  no_revision_in_some: {
    text: ({ clusters }: { clusters: string }) => `no revision is published in ${clusters} yet, the others keep their last good revision`,
  },
  more_problems: { text: ({ count }: { count: number }) => `(and ${count} ${count === 1 ? 'more problem' : 'more problems'})` },
  // A problem of a cluster.
  shard_behind: {
    text: ({ failure }: { failure: string }) => `the server cannot write new revisions to the shard file of this cluster: ${failure}`,
    next: 'retrying',
  },
  // AZ4: in the place of a message, in answers to SQL queries.
  hidden: { text: 'hidden: the message may name a service that you may not read' },
  // The first of the placements that are so, for a service with several.
  alike_of: { text: ({ alike, all, first }: Counted) => `${alike} of ${all}, first ${first}` },
  failed_of: { text: ({ alike, all, first }: Counted) => `${alike} of ${all} cannot be rendered, first ${first}` },
  bad_of: { text: ({ alike, all, first }: Counted) => `${alike} of ${all}: ${first}` },
} satisfies Table

interface Counted {
  alike: number
  all: number
  /** The place, with its message. */
  first: string
}

export const statusPart = textsOf(STATUS_PARTS)
