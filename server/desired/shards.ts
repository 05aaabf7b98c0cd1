// The port to the shard files: every cluster's desired rows in cr-sqlite, as its agent will pull them. Derived from the
// fleet store and rebuildable from it; one db_version is one revision of one service in one cluster (CU6).
import type { Position } from '../../shared/crdt/position.ts'
import type { RefetchReason } from '../../shared/protocol/frames.ts'
import type { TransferHead } from '../../shared/protocol/transfer.ts'
import type { ClusterId, ServiceId } from '../../shared/runtime/ids.ts'
import type { BehindClusters } from './behind.ts'

/** The whole of a service in a cluster, or of its health rules (HEALTH_RULES, whose rows are `objects`). `serviceDoc:
 *  null` with no objects means that nothing is left of it. */
export interface ServiceRevision extends ServiceId {
  clusterId: ClusterId
  /** The cluster's transaction count in the fleet store (CU7). */
  ordinal: number
  /** Canonical JSON of the service row. */
  serviceDoc: string | null
  /** Row id → canonical JSON. */
  objects: ReadonlyMap<string, string>
  /**
   * The fleet store's copy of the service one ordinal ago. A shard that has followed this far takes the difference and
   * need not read its rows.
   */
  before?: Pick<ServiceRevision, 'serviceDoc' | 'objects'>
  /** RV3: an earlier revision of it was aborted, and no agent may still get that one. Absent means false. */
  withdraw?: boolean
  /** SL16: nothing proves that it is for this cluster. */
  unproven?: true
}

/** The encodings that the asking agent can read. */
export interface Accept {
  zstd: boolean
  /** It opens sealed rows. Absent means false. */
  seal?: boolean
  /** It keeps to the bounds of Projects (PJ14). Absent means false. */
  projects?: boolean
  /** It opens keys that are bound to their page (SL13). Absent means false. */
  bound?: boolean
  /** It opens SOPS documents (SP6). Absent means false. */
  sops?: boolean
  /** A page of more than this comes in parts of this size; default PART_BYTES_MAX. */
  sliceBytes?: number
}

export type PullResult =
  /** `bytes` are sent unchanged: a whole page, or part 0 of several if there is a `transfer`. */
  | { kind: 'page'; bytes: Uint8Array; zstd: boolean; transfer: TransferHead | null; to: Position }
  | { kind: 'nothing_new' }
  | { kind: 'refetch'; reason: RefetchReason }

export type PartResult = { kind: 'part'; bytes: Uint8Array } | { kind: 'gone' }

export interface Shards {
  /** Clusters of which the fleet store holds more than their file, because writing it failed. */
  readonly behind: BehindClusters
  /** Whether the agent said, since this process started, that its replica is of the shard file of now. */
  hasFetched(clusterId: ClusterId): boolean
  /** Rows of each service that are not in `objects` are deleted. A revision without a changed row takes no version
   *  (RV4). All of them are of one shard file and are written in one transaction, each with a version of its own (CU6):
   *  all or none. Synchronous. Wakes their clusters after commit. */
  writeRevisions(revisions: readonly ServiceRevision[]): Array<{ changed: boolean }>
  /** The file of a cluster. */
  shardOf(clusterId: ClusterId): number
  /** Greatest ordinal that the shard holds of a cluster; 0 for none. */
  ordinal(clusterId: ClusterId): number
  /** Forgets a removed cluster. */
  removeCluster(clusterId: ClusterId): void
  head(clusterId: ClusterId): Position
  /** From the cursor (null means everything) to the head of one read transaction (PL1, PL2, PL7). What is small is read
   *  before this returns, what is large in a Worker. */
  pull(clusterId: ClusterId, cursor: Position | null, accept: Accept): Promise<PullResult>
  /** A page that becomes a new file, without the buckets that are equal (PL9); `sums`: 0, 1, 16 or 256 of 16 bytes. */
  refetch(clusterId: ClusterId, sums: Uint8Array, accept: Accept): Promise<PullResult>
  /** PL1: why a delta cannot answer the cursor; null when one can. Reads no rows. */
  refusal(clusterId: ClusterId, cursor: Position): RefetchReason | null
  /** PL3: only of a transfer that was made for this cluster. */
  part(clusterId: ClusterId, transferId: string, part: number): PartResult
  /** RV3: what was not fetched yet of the cluster's pages never is. */
  endTransfers(clusterId: ClusterId): void
  /** Resolves as soon as the head is no longer `position`, else after `waitMs` or on abort. A hint only (PL10). */
  waitForChange(clusterId: ClusterId, position: Position, waitMs: number, signal: AbortSignal): Promise<void>
  /** Ends the cluster's waits, for another reason than a new head. */
  wake(clusterId: ClusterId): void
  /** Ends all waits: the server stops. */
  wakeAll(): void
  close(): void
}
