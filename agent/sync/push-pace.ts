// How long what waits in the outbox may gather before it goes up. Pure. Every push has its price in headers, so a dear link sends fewer and fuller ones.

/** Changes of status that come together travel together. */
export const PUSH_DEBOUNCE_MS = 20
/** On a metered link. */
export const PUSH_GATHER_MS = 300_000
/** On a metered link, when a service became Degraded or Healthy: somebody waits for that. */
export const PUSH_URGENT_MS = 15_000
/** With the day's budget spent. */
export const PUSH_SPENT_MS = 3_600_000

export interface Pace {
  metered: boolean
  spent: boolean
  urgent: boolean
  /** When the first row began to wait. */
  sinceMs: number
  /** When the last push went up; null before the first. */
  lastMs: number | null
}

/** When the next push may go. */
export function pushAtMs({ metered, spent, urgent, sinceMs, lastMs }: Pace): number {
  if (spent) return Math.max(sinceMs + PUSH_URGENT_MS, (lastMs ?? Number.NEGATIVE_INFINITY) + PUSH_SPENT_MS)
  if (!metered) return sinceMs + PUSH_DEBOUNCE_MS
  return sinceMs + (urgent ? PUSH_URGENT_MS : PUSH_GATHER_MS)
}
