// Decides how long rows may gather in the outbox before a push. Pure. Every push costs header bytes, so an expensive
// link sends fewer and larger ones.

/** Changes of status within this time are pushed together. */
export const PUSH_DEBOUNCE_MS = 20
/** The work of a server for a push hardly depends on its rows: of many that follow each other the first few go at once…
 */
export const PUSHES_AT_ONCE = 5
/** …and then one each time. States that changed twice meanwhile travel once. */
export const PUSH_INTERVAL_MS = 250
/** On a metered link. */
export const PUSH_GATHER_MS = 300_000
/** On a metered link, after a service became Degraded or Healthy: a person may wait for that. */
export const PUSH_URGENT_MS = 15_000
/** With the day's budget spent. */
export const PUSH_SPENT_MS = 3_600_000

/** All times are of one clock, which is never set. */
export interface Pace {
  metered: boolean
  spent: boolean
  urgent: boolean
  /** When the first row began to wait. */
  sinceMs: number
  /** Time of the last push; null before the first. */
  lastMs: number | null
  /** The position of pushes at one each interval (`paidUntilMs`). Absent means none yet. */
  paidMs?: number
  /** There are rows for a whole push: waiting would add nothing. */
  full?: boolean
}

/** After a push, from the former `paidMs`. Pushes that waited for nothing make no run longer. */
export const paidUntilMs = (paidMs: number, nowMs: number): number =>
  Math.min(Math.max(paidMs, nowMs) + PUSH_INTERVAL_MS, nowMs + PUSHES_AT_ONCE * PUSH_INTERVAL_MS)

/** When the next push may go. */
export function pushAtMs({ metered, spent, urgent, sinceMs, lastMs, paidMs = Number.NEGATIVE_INFINITY, full = false }: Pace): number {
  if (spent) return Math.max(sinceMs + PUSH_URGENT_MS, (lastMs ?? Number.NEGATIVE_INFINITY) + PUSH_SPENT_MS)
  if (!metered && full) return sinceMs
  if (!metered) return Math.max(sinceMs + PUSH_DEBOUNCE_MS, paidMs - (PUSHES_AT_ONCE - 1) * PUSH_INTERVAL_MS)
  return sinceMs + (urgent ? PUSH_URGENT_MS : PUSH_GATHER_MS)
}
