// When repositories are looked at, so that many of them on one server and one host never come in a burst. Pure.
import type { Random } from '../../shared/runtime/random.ts'

/** After a start: what has no content yet is read at once, as many at a time as there are hands; what has some is spread over its poll interval, for it is current within
 *  that anyway. */
export const firstLookMs = (hasContent: boolean, pollMs: number, random: Random): number => (hasContent ? pollMs * random() : 0)

/** Spread, so that those that began together drift apart. */
export const nextLookMs = (pollMs: number, random: Random): number => pollMs * (0.9 + random() * 0.2)

/** `user@host:path` is ssh's own form. */
export const hostOf = (url: string): string =>
  URL.canParse(url) && url.includes('://') ? new URL(url).host : url.replace(/^.*@/, '').replace(/:.*$/, '')
