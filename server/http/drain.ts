// How a server leaves its agents: waiting polls are answered at once, each with another time to come back at; what is
// under way is finished; then the doors close.

import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { Random } from '../../shared/runtime/random.ts'

/** The time that running requests get. */
export const DRAIN_MS_MAX = 10_000
/** Ten thousand agents come back over this long, not in one instant. */
const RETRY_AFTER_MS_MIN = 1_000
const RETRY_AFTER_MS_SPAN = 5_000

export interface Drain {
  /** Throws `unavailable` once the server is stopping. */
  admit(): void
  /** Counts a request until its answer is made. */
  track(answer: Promise<Response>): Promise<Response>
  /**
   * From now on no request is admitted. Resolves when all answers are made, or after DRAIN_MS_MAX. `wakePolls` wakes
   * the waiting ones.
   */
  start(wakePolls: () => void): Promise<void>
}

export function createDrain(clock: Clock, random: Random): Drain {
  let stopping = false
  let underWay = 0
  const empty = new AbortController()
  return {
    admit() {
      if (!stopping) return
      throw new AppError('unavailable', {
        detail: 'the server is stopping',
        retryAfterMs: Math.round(RETRY_AFTER_MS_MIN + RETRY_AFTER_MS_SPAN * random()),
      })
    },
    async track(answer) {
      underWay += 1
      try {
        return await answer
      } finally {
        underWay -= 1
        if (stopping && underWay === 0) empty.abort()
      }
    },
    async start(wakePolls) {
      stopping = true
      wakePolls()
      if (underWay > 0) await clock.sleep(DRAIN_MS_MAX, empty.signal)
    },
  }
}
