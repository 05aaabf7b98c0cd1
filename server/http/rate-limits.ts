// How many requests a credential may send. One number for each caller (the time at which its allowance is whole again),
// so a check costs no allocation and no timer.

export interface RateVerdict {
  allowed: boolean
  /** Requests at once, after a pause. */
  limit: number
  remaining: number
  /** Until the allowance is whole again. */
  resetMs: number
  /** Until one more request is allowed; 0 if one is. */
  retryAfterMs: number
}

export interface RateLimits {
  /** Takes one request of the caller. Null means that there is no limit. */
  take(caller: string, nowMs: number): RateVerdict | null
}

/** HT5: of each credential. */
export const REQUESTS_PER_SECOND = 100
/** The allowance of a pause: requests of so many seconds may come at once. */
export const BURST_SECONDS = 5
/** Callers that are remembered. One that is forgotten for a newer one has its whole allowance again. */
const CALLERS_MAX = 10_000

/** `perSecond` 0: no limit. */
export function createRateLimits(perSecond: number, callersMax: number = CALLERS_MAX): RateLimits {
  const limit = perSecond * BURST_SECONDS
  const costMs = 1_000 / perSecond
  const windowMs = BURST_SECONDS * 1_000
  /** By caller, the least recent first: when its allowance is whole again. */
  const wholeAt = new Map<string, number>()
  return {
    take(caller, nowMs) {
      if (perSecond === 0) return null
      const held = wholeAt.get(caller) ?? nowMs
      // A clock that was set back must not lock anybody out.
      const from = held > nowMs + windowMs ? nowMs : Math.max(held, nowMs)
      const after = from + costMs
      const allowed = after - nowMs <= windowMs
      const until = allowed ? after : from
      wholeAt.delete(caller)
      wholeAt.set(caller, until)
      if (wholeAt.size > callersMax) {
        const { value } = wholeAt.keys().next()
        if (value !== undefined) wholeAt.delete(value)
      }
      return {
        allowed,
        limit,
        remaining: Math.max(0, Math.floor((windowMs - (until - nowMs)) / costMs)),
        resetMs: until - nowMs,
        retryAfterMs: allowed ? 0 : after - nowMs - windowMs,
      }
    },
  }
}

/** HT5. In whole seconds, rounded up, as clients read them. */
export function setRateHeaders(headers: Headers, { limit, remaining, resetMs }: RateVerdict): void {
  headers.set('ratelimit-limit', String(limit))
  headers.set('ratelimit-remaining', String(remaining))
  headers.set('ratelimit-reset', String(Math.ceil(resetMs / 1_000)))
  headers.set('ratelimit-policy', `${limit};w=${BURST_SECONDS}`)
}
