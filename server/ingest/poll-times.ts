// When repositories are looked at, so that many of them on one server and one host never come in a burst. Pure.
import type { Random } from '../../shared/runtime/random.ts'

/** Ten a second: a server of a few repositories sees within a moment what was pushed while it was away. */
const FIRST_LOOK_EACH_MS = 100

/** After a start: what has no content yet is read at once, as many at a time as there are hands; what has some one after the other, within its poll interval. `index`: its
 *  place among `count` repositories. */
export const firstLookMs = (hasContent: boolean, pollMs: number, index: number, count: number): number =>
  hasContent ? Math.min(index * FIRST_LOOK_EACH_MS, (pollMs * index) / count) : 0

/** Spread, so that those that began together drift apart. */
export const nextLookMs = (pollMs: number, random: Random): number => pollMs * (0.9 + random() * 0.2)

/** `user@host:path` is ssh's own form. */
export const hostOf = (url: string): string =>
  URL.canParse(url) && url.includes('://') ? new URL(url).host : url.replace(/^.*@/, '').replace(/:.*$/, '')
