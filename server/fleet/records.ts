// The records of the store, as they pass through its port. Integers stay below 2^53; times are ms since the epoch.

import type { HealthWord } from '../../shared/kube/health-object.ts'
import type { TokenRole } from '../../shared/model/access.ts'
import type { ServiceRow } from '../../shared/model/desired.ts'
import type { HistoryCause } from '../../shared/model/history.ts'
import type { Labels } from '../../shared/model/labels.ts'
import type { ClusterOverride, ConfigData } from '../../shared/model/render.ts'
import type { SiteConfig } from '../../shared/model/site-config.ts'
import type { StatusKind, SyncWord } from '../../shared/model/status.ts'
import type { Problem } from '../../shared/runtime/error.ts'
import type { AgentId, ClusterId, ServiceId } from '../../shared/runtime/ids.ts'

export const RESOURCE_KINDS = [
  'Repository',
  'Service',
  'Cluster',
  'Config',
  'HealthRule',
  'Role',
  'RoleBinding',
  'Suspension',
  'Project',
  'NotificationSink',
  'NotificationRoute',
] as const
export type ResourceKind = (typeof RESOURCE_KINDS)[number]
/** Kinds that people write as documents. */
export type DocumentKind = Exclude<ResourceKind, 'Suspension'>

/** Clusters, and health rules for the whole fleet, have project ''. */
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
  /** The person who deleted it, while `deletingMs` is set. Absent means unknown. */
  deletingBy?: string
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
  /** That a semver range chose; null without one. */
  tag: string | null
  /** Set while the repository cannot be read; the last content stays in use. */
  error: StoredError | null
}

export interface StoredError {
  code: string
  message: string
  problems: Problem[]
  sinceMs: number
  /** The remedy for this particular case. Absent means the remedy of its code. */
  remedy?: string
  /** For a render: the clusters for which it failed. */
  failing?: FailingClusters[]
  /** For a render: the revision at which this failure first appeared. */
  at?: FailedRevision
}

/** Full revision of the first source, and its author. Null means that the source does not say. */
export interface FailedRevision {
  commit: string
  author: string | null
  /** Absent means not known, or a server of before wrote it. */
  subject?: string
}

/** Clusters for which a service cannot be rendered, those together for which it fails alike. */
export interface FailingClusters {
  code: string
  message: string
  remedy?: string
  /** The first. */
  problem?: Problem
  /** That have nothing of the service. */
  without: string[]
  /** That have a revision of it, which stays. */
  keeping: string[]
  /** Like `without`, too many to be named. */
  moreWithout: number
}

/** The state of the last render of a service. With an error, the last good revision stays in force. */
export interface RenderState {
  commit: string | null
  /** Generation of the service's spec that was rendered. */
  generation: number
  digest: string | null
  objectCount: number
  renderedMs: number | null
  error: StoredError | null
  /** Absent means that it is the same in all clusters, no program took part, and nothing was to be warned of. */
  release?: ReleaseNote
}

export interface ReleaseNote {
  /** In how many ways its clusters get it. */
  variants: number
  /** By repository: what was read for it. Empty where there is one only, and no program took part. */
  revisions: Readonly<Record<string, string>>
  /** The programs that took part (RL3), with versions. */
  tools: Readonly<Record<string, string>>
  /** Warnings of the last render; only the first ones. */
  warnings: Problem[]
}

/** A rendered revision of a service. */
export interface Revision {
  /** The number within its service, from 1; it grows by one with every new digest. */
  number: number
  commit: string | null
  generation: number
  digest: string
  objectCount: number
  /** Content-store key of its rendered set; null until a cluster got it, when it has no objects, and with several
   *  variants. */
  setSha: string | null
  renderedMs: number
  /** That shall have it now, or one of its variants. */
  clusters: number
  /** In how many ways its clusters get it. */
  variants: number
  /** By repository: what was read for it. Empty where there is one only. */
  revisions: Readonly<Record<string, string>>
}

/** A release as some of its clusters get it. */
export interface Variant {
  digest: string
  objectCount: number
}
export interface KnownVariant {
  commit: string | null
  objectCount: number
  /** As in Revision. */
  setSha: string | null
}

/** A service in the whole fleet. */
export interface PlacementTotals {
  /** Clusters that have it, without those with a removal order. */
  holders: number
  /** Rows with a removal order. */
  orders: DesiredService[]
}

/** A state of a service in a cluster, from a time on. */
export interface HistoryEntry {
  /** When this server heard of it. */
  atMs: number
  sync: SyncWord
  health: HealthWord
  reason: string
  /** That was applied, or received if none was. */
  commit: string | null
  /** The cause as it was known when its events expired. Null means none was. Absent means that the events tell. */
  kept?: KeptCause | null
}

/** A cause without its events. `of`: whose event it was, which decides over who may read it. */
export interface KeptCause extends HistoryCause {
  of: 'placement' | 'service' | 'cluster'
}

/**
 * The desired state of one service in one cluster. A row with `doc: null` is a tombstone: the service is gone there,
 * and the ordinal tells the shard.
 */
export interface DesiredService extends ServiceId {
  clusterId: ClusterId
  /** Counts the cluster's shard transactions (CU7). */
  ordinal: number
  doc: ServiceRow | null
  /** Content-store key of the rendered set (zstd NDJSON of [row id, doc]); null when there are no object rows. */
  setSha: string | null
  /** Canonical JSON of the selector and excludes that placed it here: tells a changed selector from a changed cluster.
   */
  placedBy: string
  /**
   * Names the cluster's facts for which its objects were made (RL5). Absent means that its render read none. With
   * `factsOnly` those of before, absent: of several.
   */
  factsKey?: string
  /** Names the values at all places where its render looked, if a program took part in it (RL6). */
  renderedFrom?: string
  /** SL16: proves that this server placed the set here. Absent means that a server without proofs wrote the row. */
  proof?: string
  /** Nothing proves it: a sealed set is not opened for the cluster. Absent means that it is proven, or was not checked.
   */
  unproven?: true
}

/** SL16: the proof of a row that gets that ordinal. Null means that it gets none. */
export type ProofOf = (row: Omit<DesiredService, 'ordinal'>, ordinal: number) => string | null

export interface ApiTokenRecord {
  id: string
  name: string
  /** Time of expiry in ms since the epoch; null for a token that does not expire. */
  expiresMs: number | null
  /** Id of the token that ends with the first use of this one. */
  replaces: string | null
  role: TokenRole
  /** It has no right outside of these. Null means no such limit. */
  projects: readonly string[] | null
  createdMs: number
  /** Name of the token that made it; null for the first admin token. */
  createdBy: string | null
  /** When it was last used, to within a minute. Null if never. */
  lastUsedMs: number | null
  /** Address of that caller; null if it is not known. */
  lastUsedFrom: string | null
}

/** A person or a pipeline that signed in through an identity provider. */
export interface SessionRecord {
  id: string
  /** `cli`: it is renewed with a refresh token. `workload`: it was given for a JWT, and ends with its access token. */
  kind: 'browser' | 'cli' | 'workload'
  provider: string
  /** As the provider names the caller. */
  subject: string
  name: string
  /** Only an address that the provider has verified. */
  email: string | null
  groups: readonly string[]
  /** SHA-256 of the cookie or the access token. */
  accessHash: string
  accessExpiresMs: number
  /** SHA-256 of the refresh token, and of the one before it. */
  refreshHash: string | null
  earlierRefreshHash: string | null
  /** When the refresh token was made. */
  rotatedMs: number
  createdMs: number
  /** It ends then in any case. */
  expiresMs: number
  /** When the provider last confirmed name and groups. */
  checkedMs: number
  /** Within a minute of the last use. */
  lastUsedMs: number
  lastUsedFrom: string | null
  /** Tokens of the provider, sealed, in base64. Null means that it gave none. */
  sealed: string | null
}
export type SessionChange = Partial<Omit<SessionRecord, 'id' | 'kind' | 'provider' | 'subject' | 'createdMs' | 'expiresMs'>>

export type NewApiToken = Omit<ApiTokenRecord, 'lastUsedMs' | 'lastUsedFrom' | 'projects'> & {
  tokenHash: string
  projects?: readonly string[] | null
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
  /** SL11: when another recipient key was asked for. Absent means that it was not, or the agent has made it. */
  rotateMs?: number
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
  /** Written together with a join that is not a repeated one. */
  event?: Omit<FleetEvent, 'id'>
}

export interface ClusterRecord {
  clusterId: ClusterId
  name: string
  labels: Labels
  revoked: boolean
  /** Deviations from its spec. */
  config?: ConfigData
  overrides?: readonly ClusterOverride[]
  siteConfig?: SiteConfig
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
  /** CO1: of the change that it tells of. Absent means of none. */
  trace?: string
}
/** Before it is in the stream. */
export type UnnumberedEvent = Omit<FleetEvent, 'id'>

/** Something that waits for a person. `subject` is unique: opening it again with the same token and no further name
 *  keeps id and yes, with anything else it becomes a new question with a new id. */
export interface Confirmation {
  /** Short, typed by people: 6 letters and digits. */
  id: string
  kind: 'remove_service' | 'leave_targets' | 'prune' | 'sync' | 'release'
  /** `remove_service/<project>/<name>`, `leave_targets/<project>/<name>`, `release/<project>/<name>`, `prune/<cluster
   *  id>/<project>/<name>`, `sync/<project>/<name>/<of digest and clusters>`. */
  subject: string
  project: string
  service: string
  cluster: string | null
  /** Exactly what was refused; a confirmation is for this only: the digest of a revision, or of the sorted names. */
  token: string
  /** Exact names: clusters, or objects as `Kind namespace/name`; sorted. */
  names: string[]
  why: string
  createdMs: number
  confirmedMs: number | null
  confirmedBy: string | null
  /**
   * For several clusters with the same question, in place of `cluster`: their number, the first ones by name, and the
   * number of the last one (`confirm`).
   */
  clusters?: { count: number; first: string[]; upTo: number }
  /** A person decided to keep the objects; a later confirmation is still possible. Absent means nobody refused. */
  refused?: { atMs: number; by: string; why: string }
}

/** Confirmations of one kind that wait for a person. */
export interface PendingConfirmations {
  kind: Confirmation['kind']
  count: number
  oldestMs: number
}

/** A service that left a cluster: its row in the fleet store, without a document. */
export interface Tombstone extends ServiceId {
  clusterId: ClusterId
  ordinal: number
  /** Status rows of it may be left. */
  hasStatus: boolean
}

/** A proof, held by a cluster's agent, of what this server once sent (RP2). */
export interface RestoreProof {
  clusterId: ClusterId
  epoch: number
  ordinal: number
  atMs: number
}

/** Services that would wait for each other. */
export interface DependencyCycle {
  /** Keys of services, the written one at both ends. */
  cycle: string[]
  /** Index of the entry in its `dependsOn` that closes it. */
  entry: number
}
