// How long the other side asked us to stay away. Pure: seconds or an HTTP date in the header, milliseconds in a
// problem, and never more than an hour, because a wrong one must not silence an agent for a year.
export const RETRY_AFTER_MS_MAX = 3_600_000

const HTTP_DATE = /^[A-Za-z]{3,9},? /

/**
 * Undefined if no time is given. A date is compared with this machine's clock, which may be wrong, so the wait is
 * bounded.
 */
export function retryAfterMsOf(bodyMs: number | undefined, header: string | null, nowMs: number): number | undefined {
  const asked = bodyMs ?? headerMs(header?.trim() ?? '', nowMs)
  return asked === undefined ? undefined : Math.min(Math.max(0, asked), RETRY_AFTER_MS_MAX)
}

function headerMs(text: string, nowMs: number): number | undefined {
  if (/^\d{1,12}$/.test(text)) return Number(text) * 1_000
  if (!HTTP_DATE.test(text)) return undefined
  const atMs = Date.parse(text)
  return Number.isNaN(atMs) ? undefined : atMs - nowMs
}
