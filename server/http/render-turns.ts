// AP13: how many renders a caller may ask for. A render costs the time that it takes, and at least COST_LEAST_MS; what
// a caller has spent comes back with time.

import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'

const COST_LEAST_MS = 1_000
const BUDGET_MS = 60_000
const AT_ONCE_MAX = 4
/** The retry time for a caller with AT_ONCE_MAX running renders. */
const BUSY_MS = 1_000

export interface RenderTurns {
  /** Throws `too_many_requests`, with `retryAfterMs`, before `work` begins. */
  run<T>(caller: string, work: () => Promise<T>): Promise<T>
}

interface Spent {
  running: number
  /** As of `atMs`. Can be more than BUDGET_MS, by renders that took longer than what was left. */
  spentMs: number
  atMs: number
}

export function createRenderTurns(clock: Pick<Clock, 'monotonicMs'>): RenderTurns {
  const callers = new Map<string, Spent>()
  const settle = (nowMs: number): void => {
    for (const [caller, one] of callers) {
      one.spentMs = Math.max(0, one.spentMs - (nowMs - one.atMs))
      one.atMs = nowMs
      if (one.spentMs === 0 && one.running === 0) callers.delete(caller)
    }
  }
  return {
    async run(caller, work) {
      const startMs = clock.monotonicMs()
      settle(startMs)
      const own = callers.get(caller) ?? { running: 0, spentMs: 0, atMs: startMs }
      const overMs = own.spentMs + COST_LEAST_MS - BUDGET_MS
      if (overMs > 0) throw refused('this API token requested too many renders', overMs)
      if (own.running >= AT_ONCE_MAX) throw refused(`${own.running} renders of this API token are running`, BUSY_MS)
      callers.set(caller, own)
      own.running += 1
      own.spentMs += COST_LEAST_MS
      try {
        return await work()
      } finally {
        const endMs = clock.monotonicMs()
        settle(endMs)
        own.running -= 1
        own.spentMs += Math.max(0, endMs - startMs - COST_LEAST_MS)
      }
    },
  }
}

const refused = (detail: string, retryAfterMs: number): AppError =>
  new AppError('too_many_requests', { doing: 'render a service', detail, retryAfterMs })
