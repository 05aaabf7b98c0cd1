// The port of questions about the whole fleet: a filter, an order, a page. Answered beside the server's event loop
// where there is one file to read (SQLite, in a Worker), by the database where there is one. What comes back are facts;
// their words are made by server/fleet/status-view.ts.

import type { HealthWord } from '../../../shared/kube/health-object.ts'
import type { ObjectRef } from '../../../shared/kube/object.ts'
import type { LabelSelector } from '../../../shared/model/labels.ts'
import type { PlacementWords } from '../../../shared/model/placement-words.ts'
import type { ObjectStatus, SyncWord } from '../../../shared/model/status.ts'
import type { ClusterSort, LivenessWord, ObjectSort, PlacementSort } from '../../../shared/model/views.ts'
import type { ClusterId, ServiceId } from '../../../shared/runtime/ids.ts'
import type { ClusterRecord, DesiredService, StoredResource } from '../../fleet/records.ts'
import type { Scope } from '../../fleet/rights.ts'
import type { FailedWords } from '../../fleet/unrendered.ts'

/**
 * The end of a page: passed on, it returns the items strictly after it in the order of the query. Null in it: behind
 * everything that begins so.
 */
export type Position = ReadonlyArray<string | number | null>

interface Paged {
  limit: number
  after?: Position | undefined
}

/** The clusters that a query covers. */
export interface ClusterFilter {
  cluster?: string | undefined
  labels?: LabelSelector | undefined
  /** Only services in it. Absent means all. */
  scope?: Scope | undefined
}

export interface ObjectFilter extends ClusterFilter {
  project?: string | undefined
  service?: string | undefined
  kind?: string | undefined
  group?: string | undefined
  namespace?: string | undefined
  name?: string | undefined
  sync?: readonly SyncWord[] | undefined
  health?: readonly HealthWord[] | undefined
  reason?: string | undefined
  /** Part of an image reference. */
  image?: string | undefined
  /** Only what has drifted and was not put back. */
  drift?: 'open' | undefined
  /** Every one of these words, in small letters, is part of one of its texts. */
  words?: readonly string[] | undefined
}
export interface ObjectQuery extends ObjectFilter, Paged {
  sort: ObjectSort
}

export type SeenCluster = Pick<ClusterRecord, 'name' | 'revoked' | 'lastSeenMs' | 'waitSeconds'>
export interface ObjectFacts {
  cluster: SeenCluster
  id: ServiceId
  ref: ObjectRef
  status: ObjectStatus
  /** Parsed document of its newest drift. Null means none. */
  drift: unknown
}

export interface PlacementFilter extends ClusterFilter {
  project?: string | undefined
  service?: string | undefined
  sync?: readonly SyncWord[] | undefined
  health?: readonly HealthWord[] | undefined
  /** Beginning of the desired revision's commit or digest. */
  revision?: string | undefined
  words?: readonly string[] | undefined
}
export interface PlacementQuery extends PlacementFilter, Paged {
  sort: PlacementSort
}
/** As found, before all of it is read. */
export interface Placed extends ServiceId {
  cluster_id: ClusterId
  sync: SyncWord
  health: HealthWord
}
export interface PlacementFacts {
  cluster: SeenCluster
  desired: DesiredService
  /** Parsed document of the agent's report. Null means none. */
  status: unknown
  /** It keeps its last good revision, because it cannot be rendered any more. */
  failed?: FailedNote
}
export interface FailedNote {
  words: FailedWords
  sinceMs: number
}
/** A service in a cluster that has nothing of it, because it cannot be rendered there. */
export interface UnrenderedFacts {
  cluster: SeenCluster
  id: ServiceId
  failed: FailedNote
}

export interface ClusterQuery extends Pick<ClusterFilter, 'labels'>, Paged {
  liveness?: readonly LivenessWord[] | undefined
  /** Beginning of the version of its agent or of Kubernetes. */
  version?: string | undefined
  words?: readonly string[] | undefined
  /** Only these clusters. Absent means all. */
  visible?: Scope | undefined
  /** Only these services are counted and named. Absent means all. */
  services?: Scope | undefined
  sort: ClusterSort
  /** Liveness is a function of time. */
  nowMs: number
}

export interface ClusterFacts {
  resource: StoredResource
  cluster: ClusterRecord
  /** Parsed document of what its agent said last of itself. Null means nothing. */
  report: unknown
  /** Keys of its services, in order. */
  services: string[]
  counts: Array<PlacementWords & { count: number }>
  /** The worst of them. Null means none is bad. */
  worst: PlacementFacts | null
  /** Time of the youngest report. */
  sinceMs: number | null
}

export interface ChartQuery extends Pick<ClusterFilter, 'labels'> {
  /** Label by whose values the clusters are grouped; `*`: a usual one that makes some groups. */
  by?: string | undefined
  /** Only these. Absent means all. */
  clusters?: readonly ClusterId[] | undefined
  /** Clusters with any of these labels. Absent means all. */
  visible?: readonly LabelSelector[] | undefined
  /** Only services of these projects are counted. Absent means all. */
  projects?: readonly string[] | undefined
  /** Strictly after this name. */
  after?: string | undefined
  limit: number
  /** Names of suspended clusters. */
  suspended: readonly string[] | 'all'
  /** Rows by field. */
  columns?: boolean | undefined
  /** For liveness. */
  nowMs: number
}
export interface FleetChart {
  /** The label of the groups. Null means none. */
  by: string | null
  labels: Array<{ key: string; clusters: number; values: number }>
  /** JSON of ChartCluster rows, or of ChartColumns: thousands of rows cost their reader nothing until they are sent. */
  items: string
  count: number
  next: string | null
}

export interface AttentionQuery {
  /** Only these services. Absent means all. */
  scope?: Scope | undefined
}
/** Services in one answer; those that wait longest. */
export const ATTENTION_MAX = 2_000
/** A service whose agents report that a person is needed. */
export interface WaitingService extends ServiceId {
  kind: 'contested' | 'sync'
  /** Status rows: drifted objects, or clusters. */
  objects: number
  clusters: { count: number; first: string[] }
  /** The oldest. Null means not known. */
  sinceMs: number | null
}

export interface FleetPage<T> {
  items: T[]
  /**
   * Null means: that was all. A page may be short, even empty, and continue: it reached the limit of read rows (QY5).
   */
  next: Position | null
}

export type FleetQuestion =
  | { kind: 'objects'; query: ObjectQuery }
  | { kind: 'placements'; query: PlacementQuery }
  | { kind: 'clusters'; query: ClusterQuery }
  | { kind: 'chart'; query: ChartQuery }
  | { kind: 'attention'; query: AttentionQuery }
  | { kind: 'warm' }
/** By the kind of the question. */
interface Answers {
  objects: FleetPage<ObjectFacts>
  placements: FleetPage<PlacementFacts | UnrenderedFacts>
  clusters: FleetPage<ClusterFacts>
  chart: FleetChart
  attention: FleetPage<WaitingService>
  warm: null
}
export type FleetAnswer<Q extends FleetQuestion> = Answers[Q['kind']]

export interface FleetQueries {
  /** Throws `unavailable` when too many wait, when the server stops and when it takes too long. A caller that went is
   *  not worked for. */
  answer<Q extends FleetQuestion>(question: Q, signal?: AbortSignal): Promise<FleetAnswer<Q>>
  /** Gets ready, in the background. */
  warm(): void
  close(): Promise<void>
}
