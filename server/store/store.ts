// The port to the fleet store: the truth about everything that people wrote and agents reported. Each method is one atomic change or one read;
// no transaction leaves the adapter, so nobody can use the wrong handle inside one. Integers stay below 2^53; times are ms since the epoch.
import type { RemovalOrder, ServiceRow } from '../../shared/model/desired.ts'
import type { AgentId, ClusterId, ServiceId } from '../../shared/model/ids.ts'
import type { LabelSelector, Labels } from '../../shared/model/labels.ts'
import type { HealthWord, StatusKind, SyncWord } from '../../shared/model/status.ts'
import type { Problem } from '../../shared/protocol/error.ts'
import type { InventoryRange } from '../../shared/protocol/status.ts'
import type { Rollups } from './counts/rollups.ts'
import type { ChangeFeed } from './feed/change-feed.ts'
import type { FleetQueries } from './queries/fleet-queries.ts'
import type { StoreUpkeep } from './upkeep/upkeep.ts'

export const RESOURCE_KINDS = ['Repository', 'Service', 'Cluster'] as const
export type ResourceKind = (typeof RESOURCE_KINDS)[number]

/** Cluster resources have project ''. */
export interface ResourceKey {
  kind: ResourceKind
  project: string
  name: string
}

export interface StoredResource extends ResourceKey {
  uid: string
  /** Grows with every change of spec (not of labels); 1 at creation. */
  generation: number
  /** Grows with every change; the ETag. */
  version: number
  labels: Labels
  /** Canonical JSON of the parsed spec. */
  spec: string
  createdMs: number
  updatedMs: number
  /** Set while a deleted service's removal orders are still being carried out. */
  deletingMs: number | null
}

export interface Page<T> {
  items: T[]
  /** Pass as `after` for the next page; null at the end. */
  next: string | null
}

export interface RepositoryState {
  /** Last commit that was read whole; null before the first. */
  commit: string | null
  fetchedMs: number | null
  /** Set while the repository cannot be read; the last content stays in use. */
  error: StoredError | null
}

export interface StoredError {
  code: string
  message: string
  problems: Problem[]
  sinceMs: number
}

/** Of the last render of a service. With an error, the last good revision stays in force. */
export interface RenderState {
  commit: string | null
  /** Generation of the service's spec that was rendered. */
  generation: number
  digest: string | null
  objectCount: number
  renderedMs: number | null
  error: StoredError | null
}

/** What a service was rendered to at some time. */
export interface Revision {
  /** Of its service, from 1; grows by one with every other digest. */
  number: number
  commit: string | null
  generation: number
  digest: string
  objectCount: number
  /** Content-store key of its rendered set; null until a cluster got it, and when it has no objects. */
  setSha: string | null
  renderedMs: number
  /** That shall have it now. */
  clusters: number
}

/** What a service in a cluster said of itself from a time on. */
export interface HistoryEntry {
  /** When this server heard of it. */
  atMs: number
  sync: SyncWord
  health: HealthWord
  reason: string
  /** That was applied, or received if none was. */
  commit: string | null
}

/** What one cluster shall have of one service. Rows with `doc: null` are tombstones: the service is gone there, the ordinal tells the shard. */
export interface DesiredService extends ServiceId {
  clusterId: ClusterId
  /** Counts the cluster's shard transactions (CU7). */
  ordinal: number
  doc: ServiceRow | null
  /** Content-store key of the rendered set (zstd NDJSON of [row id, doc]); null when there are no object rows. */
  setSha: string | null
  /** Canonical JSON of the selector and excludes that placed it here: tells a changed selector from a changed cluster. */
  placedBy: string
}

export interface JoinTokenRecord {
  id: string
  tokenHash: string
  usesLeft: number
  uses: number
  labels: Labels
  createdMs: number
  expiresMs: number
  createdBy: string
}

export interface AgentRecord {
  agentId: AgentId
  clusterId: ClusterId
  clusterName: string
  publicKey: string
  recipient: string
  incarnation: number
  /** Grows with every rebuild, restore or re-join; signed into checkpoints (CU2a). */
  epoch: number
  revoked: boolean
  joinedMs: number
}

export type JoinResult =
  | { kind: 'joined'; agent: AgentRecord; repeated: boolean }
  | { kind: 'token_unknown' }
  | { kind: 'token_expired' }
  | { kind: 'token_used_up' }
  | { kind: 'name_taken' }

export interface JoinInput {
  tokenHash: string
  clusterName: string
  publicKey: string
  recipient: string
  clusterUid: string
  nowMs: number
  /** Fresh ids, used if the join makes a new cluster. */
  clusterId: ClusterId
  agentId: AgentId
}

export interface ClusterRecord {
  clusterId: ClusterId
  name: string
  labels: Labels
  revoked: boolean
  joinedMs: number
  /** Last request of its agent; kept with a coarseness of 10 s, so that polls write little. */
  lastSeenMs: number | null
  /** How long its agent's polls wait, if that is longer than by default; else 0. */
  waitSeconds: number
  agentId: AgentId
}

export interface StatusEntry {
  clusterId: ClusterId
  kind: Exclude<StatusKind, 'event'>
  key: string
  rev: number
  /** Parsed document; its schema is STATUS_SCHEMAS[kind]. */
  doc: unknown
  receivedMs: number
}

/** A row that passed its schema; `doc: null` removes. */
export interface StatusWrite {
  kind: StatusKind
  key: string
  rev: number
  doc: unknown
}

export interface FleetEvent {
  /** Position in the stream; resume strictly after it. */
  id: number
  atMs: number
  type: 'Normal' | 'Warning'
  reason: string
  message: string
  cluster: string | null
  project: string | null
  service: string | null
  object: string | null
}

/** Something that waits for a person. `subject` is unique: opening it again with the same token and no further name keeps id and yes, with anything else it
 *  becomes a new question with a new id. */
export interface Confirmation {
  /** Short, typed by people: 6 letters and digits. */
  id: string
  kind: 'remove_service' | 'leave_targets' | 'prune'
  /** `remove_service/<project>/<name>`, `leave_targets/<project>/<name>`, `prune/<cluster id>/<project>/<name>`. */
  subject: string
  project: string
  service: string
  cluster: string | null
  /** What exactly was refused; a yes is for this only: the digest of a revision, or of the sorted names. */
  token: string
  /** Exact names: clusters, or objects as `Kind namespace/name`; sorted. */
  names: string[]
  why: string
  createdMs: number
  confirmedMs: number | null
  confirmedBy: string | null
}

/** What a cluster's agent can prove that this server once said (RP2). */
export interface RestoreProof {
  clusterId: ClusterId
  epoch: number
  ordinal: number
  atMs: number
}

export interface Store {
  // Resources
  /** A Cluster that has not joined is a conflict with version null: clusters come into being by joining. */
  applyResource(
    key: ResourceKey,
    change: { labels: Labels; spec: string; ifVersion?: number; nowMs: number },
  ): Promise<{ kind: 'created' | 'configured' | 'unchanged'; resource: StoredResource } | { kind: 'conflict'; version: number | null }>
  getResource(key: ResourceKey): Promise<StoredResource | null>
  /** Ordered by project, then name. */
  listResources(
    kind: ResourceKind,
    query: { project?: string; selector?: LabelSelector; limit: number; after?: string },
  ): Promise<Page<StoredResource>>
  /** A deleted service stays, marked, until its removal orders are done. */
  markDeleting(key: ResourceKey, nowMs: number): Promise<boolean>
  deleteResource(key: ResourceKey): Promise<boolean>
  /** The end of a deletion: only what is still marked, and still at the version that was looked at. False: somebody was faster. */
  finishDeletion(key: ResourceKey, version: number): Promise<boolean>
  /** The service is not deleted after all, if the question of that subject still waits for its answer; the question goes with it. */
  takeBackDeletion(key: ResourceKey, subject: string, nowMs: number): Promise<boolean>

  // Sources and renders
  repositoryState(project: string, name: string): Promise<RepositoryState>
  setRepositoryState(project: string, name: string, state: RepositoryState): Promise<void>
  renderState(id: ServiceId): Promise<RenderState>
  /** Another digest is the next revision of the service. */
  setRenderState(id: ServiceId, state: RenderState): Promise<void>
  /** Newest first; `before`: strictly below that number. */
  revisions(id: ServiceId, query: { before?: number; limit: number }): Promise<Revision[]>

  // Desired state
  desiredInCluster(clusterId: ClusterId): Promise<DesiredService[]>
  desiredOfService(id: ServiceId): Promise<DesiredService[]>
  /** For each: takes the cluster's next ordinal and writes the row, or does nothing when it would write the same (RV4) or the cluster is gone. Null doc: a
   *  tombstone. All of them or none. `before`: what a changed row was, null for none. */
  publish(
    rows: ReadonlyArray<Omit<DesiredService, 'ordinal'>>,
  ): Promise<Array<{ changed: boolean; ordinal: number; before: { doc: string | null; setSha: string | null } | null }>>
  clusterOrdinals(): Promise<Map<ClusterId, number>>
  /** Of these keys of the content store, those that a desired row or a revision names (ST12). */
  referencedContent(sha256s: readonly string[]): Promise<Set<string>>

  // Clusters and agents
  createJoinToken(record: JoinTokenRecord): Promise<void>
  listJoinTokens(): Promise<JoinTokenRecord[]>
  deleteJoinToken(id: string): Promise<boolean>
  /** Uses one use of the token, makes cluster and agent; the same token and key again answer the same and use nothing. Another token with a known key and
   *  name is a re-join: same cluster, next incarnation and epoch. A revoked key is answered but stays revoked. A known key under another name is
   *  `name_taken`. Name and key of a cluster that was deleted are free again. */
  join(input: JoinInput): Promise<JoinResult>
  agent(agentId: AgentId): Promise<AgentRecord | null>
  listAgents(): Promise<AgentRecord[]>
  /** Returns the new incarnation. */
  raiseIncarnation(agentId: AgentId): Promise<number>
  /** The dbId of each shard file, by its index, as it was adopted last. */
  adoptedShards(): Promise<Map<number, string>>
  /** Raises the epoch of the clusters of each shard file that is another one than when it was last adopted; returns those clusters. */
  adoptShards(files: ReadonlyArray<{ index: number; dbId: string; clusterIds: readonly ClusterId[] }>): Promise<ClusterId[]>
  listClusters(): Promise<ClusterRecord[]>
  clusterByName(name: string): Promise<ClusterRecord | null>
  /** `waits`: of agents whose polls wait for another time than before. */
  markSeen(seen: ReadonlyMap<ClusterId, number>, waits?: ReadonlyMap<ClusterId, number>): Promise<void>
  /** With agent, desired rows and statuses. */
  deleteCluster(name: string): Promise<boolean>

  // Status and events
  /** PU2: only rows with a greater rev change anything. `complete`: PU4; the rows are in its range. What it does not name goes up to the greatest rev of
   *  `rows`, and in any case if its rev is below `olderThan`. Returns the greatest rev known of the cluster, what it was before, and the keys that changed.
   *  `tooMany`: keys that the cluster has no room for (PU8). */
  upsertStatus(
    clusterId: ClusterId,
    rows: readonly StatusWrite[],
    options: { complete: boolean | InventoryRange; olderThan?: number; nowMs: number },
  ): Promise<{ ack: number; had: number; changed: StatusWrite[]; tooMany?: string[] }>
  /** PU9: null: a push has room; else when its agent shall come back, and `upsertStatus` throws `too_many_requests`. */
  readonly statusBacklog: { retryAfterMs(clusterId?: ClusterId): number | null }
  /** Ordered by key, then cluster id. */
  listStatus(query: { clusterId?: ClusterId; kind: StatusEntry['kind']; key?: string; keyPrefix?: string }): Promise<StatusEntry[]>
  deleteStatusOfService(clusterId: ClusterId, id: ServiceId): Promise<void>
  /** Newest first; `before`: strictly before that time. */
  statusHistory(clusterId: ClusterId, id: ServiceId, query: { before?: number; limit: number }): Promise<HistoryEntry[]>
  appendEvents(events: ReadonlyArray<Omit<FleetEvent, 'id'>>): Promise<void>
  /** Newest last. `after`: strictly after that id. */
  listEvents(query: { after?: number; cluster?: string; project?: string; service?: string; limit: number }): Promise<FleetEvent[]>

  // A store that was set back
  /** After an unclean stop: that a shard's log does not know a page of before proves nothing. */
  distrustLogs(): Promise<void>
  /** What a proof is held against; null: no such cluster. `adoptedOrdinal`: whatever page goes beyond it is of the shard file in use now, and in its log. `settledEpoch`: what is of a
   *  lower one was settled by a person. */
  restoreFacts(clusterId: ClusterId): Promise<{ epoch: number; ordinal: number; adoptedOrdinal: number; settledEpoch: number } | null>
  /** While there is one, a restore waits for a person. */
  restoreProofs(): Promise<RestoreProof[]>
  /** Keeps the first time and the greatest numbers. */
  /** One of each cluster. */
  recordRestoreProofs(proofs: readonly RestoreProof[]): Promise<void>
  /** Every cluster's epoch leaps past all that any proof says, and the proofs are gone. */
  settleRestore(nowMs: number): Promise<void>

  // What changed
  readonly changes: ChangeFeed

  // Counts
  readonly rollups: Rollups

  /** What is not kept for ever. */
  readonly upkeep: StoreUpkeep

  // What waits for a person
  openConfirmation(confirmation: Omit<Confirmation, 'id' | 'confirmedMs' | 'confirmedBy'>): Promise<Confirmation>
  confirmation(id: string): Promise<Confirmation | null>
  confirmationFor(subject: string): Promise<Confirmation | null>
  /** Open ones and confirmed ones. */
  confirmationsOfService(id: ServiceId): Promise<Confirmation[]>
  /** Open ones only, oldest first. */
  listConfirmations(): Promise<Confirmation[]>
  confirm(id: string, by: string, nowMs: number): Promise<Confirmation | null>
  closeConfirmation(subject: string): Promise<void>

  // People
  createApiToken(record: { id: string; tokenHash: string; name: string; createdMs: number }): Promise<void>
  apiTokenByHash(tokenHash: string): Promise<{ id: string; name: string } | null>
  countApiTokens(): Promise<number>

  /** Questions about the whole fleet. */
  readonly queries: FleetQueries

  close(): Promise<void>
}

export type { RemovalOrder }
