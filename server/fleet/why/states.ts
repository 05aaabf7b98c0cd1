// Causes for which nothing happens at all: states of a service and of a placement, by reason.
import { DEPTH } from './apply-signs.ts'

export interface StateCause {
  cause: string
  /** Where the reason is from. */
  of: 'service' | 'placement'
  summary: string
  next: string
  depth: number
}

const BEFORE_ALL = 100
const PERSON = 90
/** A cluster that is offline explains what has not arrived; what it reported last is explained by its objects. */
const GATE = DEPTH.blocked + 5

const service = (cause: string, summary: string, next: string, depth = BEFORE_ALL): StateCause => ({
  cause,
  of: 'service',
  summary,
  next,
  depth,
})
const placement = (cause: string, summary: string, next: string, depth: number = GATE): StateCause => ({
  cause,
  of: 'placement',
  summary,
  next,
  depth,
})

export const STATES: Readonly<Record<string, StateCause>> = {
  RenderFailed: service(
    'RenderFailed',
    'the manifests do not render; clusters keep the last good revision, if they have one',
    'Correct the file and line that the message names, and commit.',
  ),
  RepositoryNotFound: service(
    'RepositoryNotFound',
    'the Repository that the service names does not exist',
    'Create the Repository, or correct spec.source.',
  ),
  RepositoryUnreadable: service(
    'RepositoryUnreadable',
    'the Repository cannot be read',
    'Correct URL, ref or credential of the Repository; `skerry describe repository` has the answer of the forge.',
  ),
  RepositoryNotRead: service(
    'RepositoryNotRead',
    'the Repository has not been read yet',
    'Wait, or `skerry refresh repository`.',
    DEPTH.late,
  ),
  NoTargets: service('NoTargets', 'spec.targets matches no cluster', 'Correct spec.targets, or label a cluster.'),
  NoDestination: service(
    'NoDestination',
    'the Project allows none of the clusters that spec.targets matches',
    'Change the destinations of the Project, or spec.targets.',
  ),
  WaitingForConfirmation: service('WaitingForConfirmation', 'a person has to confirm', '`skerry confirm` lists what waits.'),
  Deleting: service('Deleting', 'the service is being deleted', 'Wait, or apply it again.'),
  WaitingForFacts: service('WaitingForFacts', 'a new cluster has not reported what it serves yet', 'Wait a minute.', GATE),
  Rendering: service('Rendering', 'the service is not rendered yet', 'Wait a moment.', GATE),
  Suspended: placement('Suspended', 'a person suspended the service', '`skerry resume`, when it is meant to go on.', PERSON),
  PartlySuspended: service('Suspended', 'a person suspended the service in some clusters', '`skerry get suspensions`.', PERSON),
  Held: placement('Held', 'a person at the site holds the service', '`skerry-agent unhold` at the site.', PERSON),
  ManualSync: placement(
    'ManualSync',
    'the revision waits for a person (sync.mode: manual)',
    '`skerry sync` shows the changes and asks.',
    PERSON,
  ),
  ConfirmationPending: placement('WaitingForConfirmation', 'deletions wait for a person', '`skerry confirm` lists them.', PERSON),
  PruneBlocked: placement('PruneBlocked', 'the guard holds the deletions of the revision', '`skerry confirm` lists them.', PERSON),
  OutsideWindow: placement('OutsideWindow', 'the sync window is closed', 'Wait until it opens.', PERSON),
  BlockedBy: placement('DependencyNotHealthy', 'a service of dependsOn is not healthy', 'Fix the service that it waits for.', PERSON),
  NotReceived: placement('NotReceived', 'the revision has not arrived in the cluster', 'Check that the agent runs and reaches the server.'),
  ClusterNeverSeen: placement(
    'ClusterOffline',
    'the agent of the cluster has never contacted the server',
    'Check the agent and its network.',
    PERSON,
  ),
  ClusterOffline: placement(
    'ClusterOffline',
    'the cluster is offline; this is what it last reported',
    'Check the agent and its network; the cluster keeps enforcing what it has.',
    DEPTH.other,
  ),
  ClusterRevoked: placement('ClusterRevoked', 'the cluster is revoked', 'Set spec.revoked: false to admit it again.', PERSON),
  RevisionIncomplete: placement(
    'RevisionIncomplete',
    'the agent does not have the whole revision, or is too old to read it',
    'Upgrade the agent if the message says so.',
  ),
  PruneOverdue: placement(
    'PruneOverdue',
    'a deletion takes longer than sync.healthDeadline',
    'The message names the object.',
    // The object itself says what it waits for.
    DEPTH.object - 1,
  ),
  Removing: placement('Removing', 'the service is being removed from the cluster', 'Wait.'),
  HookFailed: placement('HookFailed', 'a hook failed', 'Read the log of the hook, correct it and commit.'),
  WaitingForHook: placement('WaitingForHook', 'the next phase waits for a hook', 'Look at the hook if it takes long.', DEPTH.other),
  WaitingForWave: placement(
    'WaitingForWave',
    'the next wave waits for an object',
    'Look at the object that the message names.',
    DEPTH.other - 5,
  ),
}

/** Null if the reason is that of an object, or nothing is wrong. */
export const readState = (reason: string): StateCause | null => (Object.hasOwn(STATES, reason) ? (STATES[reason] ?? null) : null)
