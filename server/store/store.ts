// The port to the fleet store: the source of truth for everything that people wrote and agents reported. Each method is
// one atomic change or one read; no transaction leaves the adapter, so no caller can use the wrong handle inside one.
// Integers stay below 2^53; times are ms since the epoch.

import type { CommitNote, SignedCommit } from '../../shared/model/commits.ts'
import type { LabelSelector, Labels } from '../../shared/model/labels.ts'
import type { InventoryRange } from '../../shared/protocol/status.ts'
import type { AgentId, ClusterId, ServiceId } from '../../shared/runtime/ids.ts'
import type {
  AgentRecord,
  ApiTokenRecord,
  ClusterRecord,
  Confirmation,
  DependencyCycle,
  DesiredService,
  FleetEvent,
  HistoryEntry,
  JoinInput,
  JoinResult,
  JoinTokenRecord,
  KnownVariant,
  NewApiToken,
  Page,
  PendingConfirmations,
  PlacementTotals,
  ProofOf,
  RenderState,
  RepositoryState,
  ResourceKey,
  ResourceKind,
  RestoreProof,
  Revision,
  SessionChange,
  SessionRecord,
  StatusEntry,
  StatusWrite,
  StoredError,
  StoredResource,
  Tombstone,
  UnnumberedEvent,
  Variant,
} from '../fleet/records.ts'
import type { ConfirmedData } from '../fleet/removal-effect.ts'
import type { Scope } from '../fleet/rights.ts'
import type { AuditStore } from './audit/store-audit.ts'
import type { Rollups } from './counts/rollups.ts'
import type { ChangeFeed } from './feed/change-feed.ts'
import type { NotificationOutbox } from './notify/notification-outbox.ts'
import type { FleetQueries } from './queries/fleet-queries.ts'
import type { FleetSql } from './sql/fleet-sql.ts'
import type { SavedQueries } from './sql/saved-queries.ts'
import type { RaisedWatermark, SeenCommit, VerifiedRef } from './store-commits.ts'
import type { StoreUpkeep } from './upkeep/upkeep.ts'

export interface Store {
  // Resources
  /** A Cluster that has not joined is a conflict with version null: clusters come into being by joining. */
  applyResource(
    key: ResourceKey,
    change: { labels: Labels; spec: string; ifVersion?: number | null; nowMs: number },
  ): Promise<
    | { kind: 'created' | 'configured' | 'unchanged'; resource: StoredResource }
    | { kind: 'conflict'; version: number | null }
    /** A service whose dependencies would lead back to it (TG15). */
    | ({ kind: 'cycle' } & DependencyCycle)
  >
  /** The same values, sealed under another key or bound to hosts: no new generation. False: it is at another version by
   *  now. */
  resealConfig(key: ResourceKey, version: number, spec: string): Promise<boolean>
  getResource(key: ResourceKey): Promise<StoredResource | null>
  /** JSON of the rotation of the keys of secrets that is under way, or was last (CG7). */
  secretRotation(): Promise<string | null>
  setSecretRotation(value: string): Promise<void>
  /** JSON of the state of the external sources of a Config. Null means that it has none yet. */
  configState(project: string, name: string): Promise<string | null>
  setConfigState(project: string, name: string, doc: string): Promise<void>
  /** How often the webhook of that repository got another secret. */
  webhookNumber(uid: string): Promise<number>
  /** The number of another secret. */
  nextWebhookNumber(key: ResourceKey, uid: string): Promise<number>
  /** Ordered by project, then name. `scope`: only what is in it; `keep`: of that, only what it answers true for. */
  listResources(
    kind: ResourceKind,
    query: {
      project?: string
      selector?: LabelSelector
      limit: number
      after?: string
      scope?: Scope
      keep?(resource: StoredResource): boolean
    },
  ): Promise<Page<StoredResource>>
  /**
   * A deleted service stays, marked, until its removal orders are done. The first person who deleted it is kept.
   * `events`, here and below: written in the same transaction.
   */
  markDeleting(key: ResourceKey, nowMs: number, by: string, events?: readonly UnnumberedEvent[], ifVersion?: number): Promise<boolean>
  /** Throws `conflict` for another version than the one that is asked for. */
  deleteResource(key: ResourceKey, ifVersion?: number): Promise<boolean>
  /** The end of a deletion: only for a marked service at the version that was read. False: another write came first. */
  finishDeletion(key: ResourceKey, version: number, events?: readonly UnnumberedEvent[]): Promise<boolean>
  /** The service is not deleted after all, if the question of that subject still waits for its answer; the question
   *  goes with it. */
  takeBackDeletion(key: ResourceKey, subject: string, nowMs: number): Promise<boolean>

  // Sources and renders
  repositoryState(project: string, name: string): Promise<RepositoryState>
  /** Known again: what is said of it now counts. */
  noteCommit(commit: SeenCommit): Promise<void>
  /** The known ones of these commits of the project's repositories. */
  commitsOf(project: string, ids: readonly string[]): Promise<ReadonlyMap<string, CommitNote>>
  /** SO55: the commit is the newest verified one of that ref, or it is older than that. */
  raiseWatermark(ref: VerifiedRef, signed: SignedCommit, nowMs: number): Promise<RaisedWatermark>
  /** The errors of all repositories that could not be read last, in the order of their keys. */
  repositoryErrors(): Promise<Array<{ project: string; name: string; error: StoredError }>>
  /** Newest first; `before`: strictly before that one. */
  commitsOfRepository(
    project: string,
    repository: string,
    query: { before?: Pick<SeenCommit, 'seenMs' | 'commit'> | undefined; limit: number },
  ): Promise<SeenCommit[]>
  setRepositoryState(project: string, name: string, state: RepositoryState): Promise<void>
  renderState(id: ServiceId): Promise<RenderState>
  /**
   * For all services whose last render failed, for some clusters or for all, except those that are being deleted.
   * `spec`: the stored text.
   */
  renderErrors(): Promise<Array<{ id: ServiceId; error: StoredError; spec: string }>>
  /** Another digest is the next revision of the service. `variants`: when it is not the same in every cluster; its
   *  digest then stands for theirs together. */
  setRenderState(id: ServiceId, state: RenderState, variants?: readonly Variant[], events?: readonly UnnumberedEvent[]): Promise<void>
  /** Newest first; `before`: strictly below that number. */
  revisions(id: ServiceId, query: { before?: number; limit: number }): Promise<Revision[]>
  /** The revisions of these services of a project that came from any of these commits. */
  revisionsFrom(
    project: string,
    services: readonly string[],
    commits: readonly string[],
  ): Promise<Array<{ service: string; number: number; objectCount: number; given: number; commits: string[] }>>
  /** Those of the digests that are variants of the newest revision, or its only one. */
  newestVariants(id: ServiceId, digests: readonly string[]): Promise<Set<string>>
  /** Whether that is the digest of the newest revision, and every cluster that has the service shall have it, or a
   *  variant of it. */
  isPublished(id: ServiceId, digest: string): Promise<boolean>
  /** To the newest revision, those that it has not; a service without revisions gets none. How many variants it has
   *  then. */
  addVariants(id: ServiceId, variants: readonly Variant[]): Promise<number>
  /** The content of clusters with that digest, as far as it is kept. */
  variant(id: ServiceId, digest: string): Promise<KnownVariant | null>

  // Desired state
  desiredInCluster(clusterId: ClusterId): Promise<DesiredService[]>
  desiredOfService(id: ServiceId): Promise<DesiredService[]>
  /** Its rows in these clusters. */
  desiredOf(id: ServiceId, clusterIds: readonly ClusterId[]): Promise<DesiredService[]>
  /** A row of the service with that digest. Null means none has it. Looks at other rows until it finds one. */
  desiredWith(id: ServiceId, digest: string): Promise<DesiredService | null>
  /** Costs what its removal orders cost, whatever the size of the fleet. */
  placementTotals(id: ServiceId): Promise<PlacementTotals>
  /** For each: takes the cluster's next ordinal and writes the row, or does nothing when it would write the same (RV4)
   *  or the cluster is gone. Null doc: a tombstone. All of them or none. `before`: what a changed row was, null for
   *  none. `proofOf`: the proof of a row, which is written also where nothing else changes; absent means none. */
  publish(
    rows: ReadonlyArray<Omit<DesiredService, 'ordinal'>>,
    proofOf?: ProofOf,
  ): Promise<Array<{ changed: boolean; ordinal: number; before: { doc: string | null; setSha: string | null } | null }>>
  clusterOrdinals(): Promise<Map<ClusterId, number>>
  /** Ordered by cluster id, project and service; `after`: strictly after that one. */
  tombstones(query: { after?: Tombstone; limit: number }): Promise<Tombstone[]>
  /**
   * Those that are unchanged and have no status rows left, but never a cluster's newest row: a rebuilt shard file takes
   * the cluster's ordinal from it. Returns the number of removed ones.
   */
  dropTombstones(tombstones: readonly Tombstone[]): Promise<number>
  /** Those of the clusters that have a service of the project, also one that is being removed. */
  clustersOfProject(project: string, among: readonly ClusterId[]): Promise<Set<ClusterId>>
  /** Those of the keys of the content store that a desired row or a revision names (ST12). */
  referencedContent(sha256s: readonly string[]): Promise<Set<string>>

  // Clusters and agents
  createJoinToken(record: JoinTokenRecord): Promise<void>
  listJoinTokens(): Promise<JoinTokenRecord[]>
  deleteJoinToken(id: string): Promise<boolean>
  /**
   * The hash of the token with that id (`joinTokenId`), or of the one with which the agent of that key joined, also
   * after the token is deleted. Null if there is neither.
   */
  joinTokenHash(tokenId: string, publicKey: string): Promise<string | null>
  /** Uses one use of the token, makes cluster and agent; the same token and key again answer the same and use nothing.
   *  Another token with a known key and name is a re-join: same cluster, next incarnation and epoch. A revoked key is
   *  answered but stays revoked. A known key under another name is `name_taken`. Name and key of a cluster that was
   *  deleted are free again. */
  join(input: JoinInput): Promise<JoinResult>
  /** The removed cluster of that agent. Null if there is no such agent, or if the removal is too long ago. */
  removedCluster(agentId: AgentId): Promise<{ clusterId: ClusterId; name: string } | null>
  /** Ids of removed clusters with this kube-system UID, the newest first; none for ''. */
  formerClusters(clusterUid: string): Promise<ClusterId[]>
  agent(agentId: AgentId): Promise<AgentRecord | null>
  listAgents(): Promise<AgentRecord[]>
  /** Returns the new incarnation. */
  raiseIncarnation(agentId: AgentId): Promise<number>
  /** SL10: in place of `before`, if that is the key of the agent. The epoch of the cluster grows, so that all rows are
   *  sent anew. */
  changeRecipient(change: { agentId: AgentId; before: string; recipient: string; event: Omit<FleetEvent, 'id'> }): Promise<void>
  /** SL11: another recipient key is asked for from then on. False: there is no such cluster. */
  askForRecipient(clusterId: ClusterId, atMs: number): Promise<boolean>
  /** The dbId of each shard file, by its index, as it was adopted last. */
  adoptedShards(): Promise<Map<number, string>>
  /** Raises the epoch of the clusters of each shard file that is another one than when it was last adopted; returns
   *  those clusters. */
  adoptShards(files: ReadonlyArray<{ index: number; dbId: string; clusterIds: readonly ClusterId[] }>): Promise<ClusterId[]>
  listClusters(): Promise<ClusterRecord[]>
  clusterByName(name: string): Promise<ClusterRecord | null>
  /** Those of the names, or ids, that there are, in no certain order. */
  findClusters(by: { names: readonly string[] } | { ids: readonly ClusterId[] }): Promise<ClusterRecord[]>
  /** `waits`: of agents whose polls wait for another time than before. */
  markSeen(seen: ReadonlyMap<ClusterId, number>, waits?: ReadonlyMap<ClusterId, number>): Promise<void>
  /** With agent, desired rows and statuses. */
  deleteCluster(name: string, ifVersion?: number): Promise<boolean>

  // Status and events
  /** PU2: only rows with a greater rev change anything. `complete`: PU4; the rows are in its range. What it does not
   *  name goes up to the greatest rev of `rows`, and in any case if its rev is below `olderThan`. Returns the greatest
   *  rev known of the cluster, what it was before, and the keys that changed. `tooMany`: keys that the cluster has no
   *  room for (PU8). */
  upsertStatus(
    clusterId: ClusterId,
    rows: readonly StatusWrite[],
    options: { complete: boolean | InventoryRange; olderThan?: number; nowMs: number },
  ): Promise<{ ack: number; had: number; changed: StatusWrite[]; tooMany?: string[] }>
  /** PU9: null means that a push has room; else when its agent shall come back, and `upsertStatus` throws
   *  `too_many_requests`. */
  readonly statusBacklog: { retryAfterMs(clusterId?: ClusterId): number | null }
  /** Ordered by key, then cluster id. */
  listStatus(query: { clusterId?: ClusterId; kind: StatusEntry['kind']; key?: string; keyPrefix?: string }): Promise<StatusEntry[]>
  /** In steps of a bounded number of rows; nothing of a service that the cluster shall have. Its tombstone then says
   *  that nothing is left. */
  deleteStatusOfService(clusterId: ClusterId, id: ServiceId): Promise<void>
  /** Newest first; `before`: strictly before that time. */
  statusHistory(clusterId: ClusterId, id: ServiceId, query: { before?: number; limit: number }): Promise<HistoryEntry[]>
  /** All services of a cluster, newest first. `before`: strictly before that time. */
  clusterHistory(clusterId: ClusterId, query: { before?: number; limit: number }): Promise<Array<HistoryEntry & ServiceId>>
  /** `clusterId`: for the change feed, of an event about one cluster. */
  appendEvents(events: ReadonlyArray<UnnumberedEvent & { clusterId?: ClusterId }>): Promise<void>
  /** Newest last. `after`: strictly after that id. */
  listEvents(query: {
    scope?: Scope
    /** Beside `scope`: events of services in these clusters, by name. */
    within?: ReadonlyArray<{ place: Scope[number]; clusters: readonly string[] }>
    after?: number
    /** Strictly before that id, newest of them. */
    before?: number
    cluster?: string
    project?: string
    service?: string
    /** CO1: the correlation id of the change that it records. */
    trace?: string
    /** By the times of events, both inclusive; with neither `cluster` nor `service` this reads the whole stream. */
    sinceMs?: number
    untilMs?: number
    limit: number
  }): Promise<FleetEvent[]>
  /**
   * Events about one object, newest first. `object`: as agents name it, `GROUP/KIND/NAMESPACE/NAME`, or without the
   * group for any. The number of events that one page reads is bounded: it may have fewer than its limit, even none,
   * and continue.
   */
  listObjectEvents(query: {
    scope?: Scope
    within?: ReadonlyArray<{ place: Scope[number]; clusters: readonly string[] }>
    cluster: string
    object: string
    /** Strictly below that id. */
    before?: number
    limit: number
  }): Promise<{ items: FleetEvent[]; next: number | null }>

  // A store that was set back
  /** After an unclean stop: that a shard's log does not know a page of before proves nothing. */
  distrustLogs(): Promise<void>
  /**
   * The facts that a proof is compared with. Null if there is no such cluster. `adoptedOrdinal`: a page beyond it is of
   * the shard file in use now, and in its log. `settledEpoch`: a person has resolved all lower epochs.
   */
  restoreFacts(clusterId: ClusterId): Promise<{ epoch: number; ordinal: number; adoptedOrdinal: number; settledEpoch: number } | null>
  /** While there is one, a restore waits for a person. */
  restoreProofs(): Promise<RestoreProof[]>
  /** Keeps the first time and the greatest numbers. */
  /** One of each cluster. */
  recordRestoreProofs(proofs: readonly RestoreProof[]): Promise<void>
  /** Every cluster's epoch leaps past all that any proof says, and the proofs are gone. */
  settleRestore(nowMs: number): Promise<void>

  // Changes
  readonly changes: ChangeFeed
  /** Another number before and after each write: what was read under one number is current as long as it stays. */
  writeVersion(): number

  // Messages to sinks
  readonly notifications: NotificationOutbox

  // Counts
  readonly rollups: Rollups

  /** Records that are kept for a limited time. */
  readonly upkeep: StoreUpkeep

  /** For the kind prune with a cluster: clusters of one service with the same token and names ask together. */
  openConfirmation(confirmation: Omit<Confirmation, 'id' | 'confirmedMs' | 'confirmedBy' | 'clusters'>): Promise<Confirmation>
  confirmation(id: string): Promise<Confirmation | null>
  /**
   * RM4: names of data that were confirmed with a change, until a reconciliation has used them; added to the existing
   * ones.
   */
  noteConfirmedData(confirmed: ConfirmedData): Promise<void>
  confirmedData(): Promise<ConfirmedData>
  dropConfirmedData(id: ServiceId, clusters: readonly ClusterId[]): Promise<void>
  confirmationFor(subject: string): Promise<Confirmation | null>
  /** By subject, of those subjects that have one. */
  confirmationsFor(subjects: readonly string[]): Promise<ReadonlyMap<string, Confirmation>>
  /** Open ones, by their subjects. */
  openConfirmationsFor(subjects: readonly string[]): Promise<Map<string, Confirmation>>
  /** Open ones and confirmed ones; one for each cluster. */
  confirmationsOfService(id: ServiceId): Promise<Confirmation[]>
  /** Services of which something is asked, or was confirmed and not carried out, that concerns all of their clusters:
   *  not what one agent refuses to prune. */
  askedServices(): Promise<ServiceId[]>
  /** Services of which something waits for a person. */
  waitingServices(): Promise<ServiceId[]>
  /** How many wait for a person, and since when, by kind; kinds without one are absent. */
  pendingConfirmations(): Promise<PendingConfirmations[]>
  /** Open ones only, oldest first; `refused`: in their place those that a person refused. `after`: strictly after that
   *  one. */
  listConfirmations(page?: {
    scope?: Scope
    limit?: number
    after?: Pick<Confirmation, 'id' | 'createdMs'>
    refused?: boolean
  }): Promise<Confirmation[]>
  /**
   * `upTo`: for a confirmation of several clusters, those that were shown (`Confirmation.clusters`); later ones keep
   * asking, under another id.
   */
  confirm(id: string, by: string, nowMs: number, upTo?: number): Promise<Confirmation | null>
  /** The objects stay until somebody confirms after all, or the question changes. Null means that it is gone, or was
   *  confirmed. */
  refuse(id: string, no: { by: string; why: string; nowMs: number; upTo?: number | undefined }): Promise<Confirmation | null>
  closeConfirmation(subject: string): Promise<void>

  // People
  /** Tokens that have expired by `createdMs` are deleted. */
  createApiToken(record: NewApiToken): Promise<void>
  apiTokenByHash(tokenHash: string): Promise<ApiTokenRecord | null>
  /** The token is in use: the token that it replaces is deleted, with every other token that would replace it. */
  retireReplaced(id: string): Promise<void>
  /** Those of role `admin` that have not expired. */
  countAdminTokens(nowMs: number): Promise<number>
  /** All, oldest first. */
  listApiTokens(): Promise<ApiTokenRecord[]>
  /** False: there is none with that id. */
  deleteApiToken(id: string): Promise<boolean>
  /** Tells no follower of the feed. */
  noteApiTokenUse(id: string, atMs: number, from: string | null): Promise<void>

  /** The audit log. */
  readonly audit: AuditStore

  createSession(session: SessionRecord): Promise<void>
  /** By the hash of its cookie or access token. */
  sessionByAccess(hash: string): Promise<SessionRecord | null>
  /** By the hash of its refresh token, or of the one before it. */
  sessionByRefresh(hash: string): Promise<SessionRecord | null>
  /** All, oldest first. */
  listSessions(): Promise<SessionRecord[]>
  changeSession(id: string, change: SessionChange): Promise<void>
  /** False if there is none with that id. `deed`: what the audit log says of it. */
  deleteSession(id: string, deed: { verb: 'sign-out' | 'revoke' | 'end'; detail?: string }): Promise<boolean>
  /** Answers how many. */
  deleteExpiredSessions(nowMs: number): Promise<number>

  /** HT6: a write with an Idempotency-Key begins. Null means that it is the first with this id; else what is known of
   *  that one. A null `answer`: it did not end, or its answer is not kept. */
  beginRequest(request: {
    id: string
    digest: string
    untilMs: number
    nowMs: number
  }): Promise<{ digest: string; answer: string | null } | null>
  endRequest(id: string, answer: string): Promise<void>
  /** It changed nothing. */
  forgetRequest(id: string): Promise<void>
  /** False if it was used before. `untilMs`: when nobody takes it any more. */
  useOnce(id: string, times: { untilMs: number; nowMs: number }): Promise<boolean>

  /** Questions about the whole fleet. */
  readonly queries: FleetQueries
  /** SQL of people over views of the fleet. */
  readonly fleetSql: FleetSql
  readonly savedQueries: SavedQueries

  close(): Promise<void>
}
