// When each cluster was last heard of, written every ten seconds in one go: polls are many, and nobody reads this to the second. A cluster that was not
// heard of before is written at once: whoever just joined one looks for it now.
import type { ClusterId } from '../../shared/model/ids.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import type { Store } from '../store/store.ts'

export const SEEN_INTERVAL_MS = 10_000
/** First marks that come together (a server that was away) are written together. */
const FIRST_MARK_WAIT_MS = 50

export interface SeenMarks {
  seen(clusterId: ClusterId): void
  /** Until the signal; the last marks are written then. */
  run(signal: AbortSignal): Promise<void>
}

export function createSeenMarks(store: Pick<Store, 'markSeen'>, clock: Clock, log: Logger): SeenMarks {
  let marks = new Map<ClusterId, number>()
  const known = new Set<ClusterId>()
  let hurry = new AbortController()

  async function flush(): Promise<void> {
    if (marks.size === 0) return
    const written = marks
    marks = new Map()
    await store.markSeen(written).catch((error: unknown) => log.warn('last contacts cannot be written', { error: describeError(error) }))
  }
  return {
    seen(clusterId) {
      marks.set(clusterId, clock.nowMs())
      if (known.has(clusterId)) return
      known.add(clusterId)
      hurry.abort()
    },
    async run(signal) {
      while (!signal.aborted) {
        await clock.sleep(SEEN_INTERVAL_MS, AbortSignal.any([signal, hurry.signal]))
        if (hurry.signal.aborted) {
          hurry = new AbortController()
          await clock.sleep(FIRST_MARK_WAIT_MS, signal)
        }
        await flush()
      }
    },
  }
}
