// The meaning of each reason and event that the server gives, for the documentation.
import type { Code, ReasonOf } from '../../shared/runtime/messages.ts'
import type { NEWS, WARNINGS } from './event-messages.ts'
import type { CLUSTER, PLACEMENT, REPOSITORY, SERVICE } from './status-messages.ts'

/** At least for each reason of these codes. */
type Meanings<C extends string> = Readonly<Record<ReasonOf<C>, string> & Record<string, string>>

/** Reasons that the agent gives as well stand in its table. */
type OfAgent = 'ConfirmationPending' | 'PruneBlocked' | 'Removed' | 'Removing' | 'Suspended'

export const SERVICE_REASONS = {
  ClusterNeverSeen: 'The cluster joined, but its agent has not asked for anything yet.',
  ClusterOffline: 'The cluster is offline; the status is what it last reported.',
  ClusterRevoked: 'The cluster is revoked (`spec.revoked`); its agent gets nothing new.',
  CountsChanging: 'The counts changed while they were read; ask again.',
  Deleting: 'The service was deleted and is being removed from its clusters.',
  Kept: 'A person decided to keep the objects that the revision no longer has; the message says who and why.',
  LastKnown: 'All is well as far as is known, but some clusters are not online.',
  NoDestination: 'No destination of the Project selects the clusters that `spec.targets` matches.',
  NoTargets: '`spec.targets` matches no cluster.',
  NotApplied: 'The revision arrived in the cluster and is not applied yet.',
  NotReceived: 'The revision has not arrived in the cluster yet.',
  NotReported: 'The agent has not reported this service yet. For an object: its controller has reported no status yet.',
  PartlySuspended: 'The service is suspended in some of its clusters.',
  RenderFailed: 'The service cannot be rendered; the last good revision stays active.',
  Rendering: 'The service is not rendered yet.',
  RepositoryNotFound: 'The Repository that the service names does not exist.',
  RepositoryNotRead: 'The Repository has not been read yet.',
  RepositoryUnreadable: 'The Repository cannot be read; the last content stays in use.',
  Resuming: 'The service was resumed; its agent has not taken that yet.',
  WaitingForConfirmation: 'The deletion of the service, leaving clusters, or another tool version waits for confirmation.',
  WaitingForFacts: 'A new cluster has not reported what it serves yet; at most 60 seconds.',
} satisfies Meanings<Exclude<ReasonOf<Code<typeof PLACEMENT> | Code<typeof SERVICE>>, OfAgent>>

/** A cluster has those of services that concern all of it, too. */
export const CLUSTER_REASONS = {
  NoServices: 'No service is placed in the cluster.',
  RestorePending: 'The server was restored from a backup and waits for `skerry restore confirm`.',
} satisfies Meanings<Exclude<Code<typeof CLUSTER>, keyof typeof SERVICE_REASONS>>

/** Otherwise a repository has the code of its error. */
export const REPOSITORY_REASONS = {
  Fetched: 'The content was read.',
  NotFetched: 'The repository was not read yet.',
} satisfies Meanings<Code<typeof REPOSITORY>>

export const EVENTS = {
  ApiTokenCreated: 'An API token was created.',
  ApiTokenExchanged: 'An API token was exchanged for another one.',
  ApiTokenRevoked: 'An API token was revoked.',
  BreakGlassToken: '`skerry admin-token` created an admin token; the message has the reason.',
  ClusterDeleted: 'A cluster was deleted.',
  ClusterJoined: 'A cluster joined.',
  ClusterOffline: 'A cluster has had no contact for the offline time.',
  ClusterOnline: 'A cluster that was offline is back.',
  ClusterReadmitted: 'A revoked cluster may sync again.',
  ClusterRelabelled: 'The labels of a cluster were changed; the message says which and by whom.',
  ClusterRevoked: 'A cluster was revoked.',
  ConfigValuesChanged: 'Values of `spec.valueFrom` of a Config changed at their source.',
  ConfirmationNeeded: 'Something waits for `skerry confirm`.',
  ConfirmationRefused: 'A person decided to keep the objects; the message says who and why.',
  Confirmed: 'A person confirmed it; the message says who.',
  DeletionRequested: 'A person deleted a service.',
  DeletionTakenBack: 'A service was applied again before its deletion was carried out.',
  EventsDropped: 'A cluster sent more events than the server keeps.',
  MacKeyRotated: 'The key of sessions and webhooks was rotated.',
  ManifestWarning: 'A render has a warning.',
  RecipientChanged: 'The agent of a cluster has another recipient key, to which its rows are sealed from now on.',
  RefreshTokenReused: 'A refresh token was used twice, so it may have been copied; the session ended.',
  RemovalOrdered: 'A service is removed from a cluster; the message says by whom and why.',
  RenderFailed: 'A service cannot be rendered.',
  RenderRecovered: 'A service can be rendered again.',
  RepositoryFailed: 'A repository cannot be read.',
  RepositoryRecovered: 'A repository can be read again.',
  RestoreConfirmed: 'A person confirmed the plan of a restore.',
  RestorePending: 'The server found that it was restored from a backup.',
  Resumed: 'A person lifted a suspension.',
  RevisionPublished: 'A new revision of a service was published.',
  RowsSealed: 'Rendered Secrets are sealed to their clusters from now on.',
  SecretKeyRotated: 'The secrets of Configs were encrypted under new data keys.',
  ServerKeyRotated: 'The signing key was rotated.',
  ServerKeysRevoked: 'Earlier signing keys were revoked.',
  ServiceDeleted: 'A deleted service left its last cluster.',
  ServiceRemoved: 'A service left a cluster.',
  SessionRevoked: 'A session was revoked.',
  SignInEnded: 'The identity provider no longer confirms the person; the session ended.',
  SignInLinkUsed: 'A browser signed in with a one-time link of `skerry dashboard`.',
  SignedIn: 'A person or a pipeline signed in.',
  SignedOut: 'A person signed out.',
  StatusRowsRefused: 'The server refused status rows of a cluster.',
  Suspended: 'A person suspended services; the message says who and why.',
  SyncAllowed: 'A person allowed a revision with `skerry sync`.',
  ValueSourceFailed: 'A source of `spec.valueFrom` cannot be read; the last value stays in use.',
  ValueSourceRecovered: 'A source of `spec.valueFrom` can be read again.',
  VerificationBegan: 'The first verified commit of a ref is remembered; older signed commits of it are refused from now on.',
} satisfies Meanings<Code<typeof NEWS> | Code<typeof WARNINGS>>
