// The last contact of each cluster, written every ten seconds in one batch: polls are many, and nobody needs it to the
// second. A new cluster is written at once, because the person who joined it looks for it now.

import { WAIT_SECONDS_DEFAULT } from '../../shared/protocol/routes.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import type { Store } from '../store/store.ts'

export const SEEN_INTERVAL_MS = 10_000
/** First marks that come together (a server that was away) are written together. */
const FIRST_MARK_WAIT_MS = 50

export interface SeenMarks {
  /** `waitSeconds`: what a poll asked for. */
  seen(clusterId: ClusterId, waitSeconds?: number): void
  /** Until the signal; the last marks are written then. */
  run(signal: AbortSignal): Promise<void>
}

/** In minutes, so that a wait that adapts is written seldom; 0 for all that are no longer than by default. */
const coarseWait = (seconds: number): number => (seconds <= WAIT_SECONDS_DEFAULT ? 0 : Math.ceil(seconds / 60) * 60)

export function createSeenMarks(store: Pick<Store, 'markSeen'>, clock: Clock, log: Logger): SeenMarks {
  let marks = new Map<ClusterId, number>()
  let waits = new Map<ClusterId, number>()
  const knownWaits = new Map<ClusterId, number>()
  const known = new Set<ClusterId>()
  let hurry = new AbortController()

  async function flush(): Promise<void> {
    if (marks.size === 0) return
    const [written, changed] = [marks, waits]
    marks = new Map()
    waits = new Map()
    await store
      .markSeen(written, changed)
      .catch((error: unknown) => log.warn('last contacts cannot be written', { error: describeError(error) }))
  }
  return {
    seen(clusterId, waitSeconds) {
      marks.set(clusterId, clock.nowMs())
      const wait = waitSeconds === undefined ? undefined : coarseWait(waitSeconds)
      if (wait !== undefined && knownWaits.get(clusterId) !== wait) {
        knownWaits.set(clusterId, wait)
        waits.set(clusterId, wait)
      }
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
