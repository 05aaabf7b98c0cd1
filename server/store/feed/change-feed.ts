// The port to the feed of changes: every committed change has a number, without a gap and in the order of commits, so
// that a reader that continues strictly after its last number misses nothing and sees nothing twice. A change names
// what changed, not how: the reader reads the item again.
import type { ChangeTopic } from '../../../shared/model/change.ts'

/** As many of the newest changes are kept… */
export const CHANGES_KEPT_MAX = 100_000
/** …and none that is older. */
export const CHANGES_KEPT_MS = 7 * 24 * 3_600_000

export interface Change {
  /** Position in the feed; resume strictly after it. */
  id: number
  atMs: number
  topic: ChangeTopic
  /** Cluster id. */
  cluster: string | null
  project: string | null
  name: string | null
  /** The changed keys. Null if they are too many to name: read all. */
  keys: readonly string[] | null
}

/**
 * The following changes are incomplete (deleted, or the store was restored): list again, then continue strictly after
 * `newest`.
 */
export interface FeedGone {
  kind: 'gone'
  /** The oldest of the kept changes. Null if there are none. */
  oldest: number | null
  newest: number
}

export interface FeedChanges {
  kind: 'changes'
  items: readonly Change[]
  /** The number to continue with; beyond the last item if later changes are of other topics. */
  next: number
}

/** Nothing came for a while. */
export interface FeedIdle {
  kind: 'idle'
  next: number
}

export interface FollowOptions {
  signal: AbortSignal
  /** Default: all. */
  topics?: ReadonlySet<ChangeTopic>
  /** After so long without a change there is word of that. */
  idleMs: number
}

export interface ChangeFeed {
  /** Number of the newest change. */
  position(): Promise<number>
  /** Strictly after `after`; at most `limit`. No items and the same `next`: there is nothing new. */
  read(after: number, query: { topics?: ReadonlySet<ChangeTopic>; limit: number }): Promise<FeedChanges | FeedGone>
  /**
   * Until the signal aborts or the store is closed. A slow reader reads missed changes from the store; after `gone` it
   * continues from the newest.
   */
  follow(after: number, options: FollowOptions): AsyncIterable<FeedChanges | FeedIdle | FeedGone>
}
