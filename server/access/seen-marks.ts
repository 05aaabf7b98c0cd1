// When each cluster was last heard of, written every ten seconds in one go: polls are many, and nobody reads this to the second.
import type { ClusterId } from '../../shared/model/ids.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Store } from '../store/store.ts'

export const SEEN_INTERVAL_MS = 10_000

export interface SeenMarks {
  seen(clusterId: ClusterId): void
  /** One write of all marks since the last; for a loop and for the stop. */
  flush(): Promise<void>
}

export function createSeenMarks(store: Pick<Store, 'markSeen'>, clock: Clock): SeenMarks {
  let marks = new Map<ClusterId, number>()
  return {
    seen: (clusterId) => void marks.set(clusterId, clock.nowMs()),
    async flush() {
      if (marks.size === 0) return
      const written = marks
      marks = new Map()
      await store.markSeen(written)
    },
  }
}
