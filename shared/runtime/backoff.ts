// How long to wait before the next try. Pure: the random number comes in.
import type { Random } from './random.ts'

export interface BackoffLimits {
  /** Ceiling of the first wait, ms. */
  baseMs: number
  /** Ceiling of every later wait, ms. */
  capMs: number
}

/**
 * Full jitter: uniform in [0, min(cap, base · 2^attempt)], so that ten thousand agents that lost a server together do
 * not return together. `attempt` starts at 0. A `retryAfterMs` from the other side is a floor, and the jitter is added
 * after it, over as long again: all refused callers got the same time (PL10).
 */
export function backoffMs(attempt: number, limits: BackoffLimits, random: Random, retryAfterMs?: number): number {
  const ceiling = Math.min(limits.capMs, Math.max(limits.baseMs * 2 ** Math.min(attempt, 30), retryAfterMs ?? 0))
  return Math.round((retryAfterMs ?? 0) + random() * ceiling)
}
