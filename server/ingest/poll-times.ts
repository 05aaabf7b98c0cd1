// The times of repository reads, spread so that many of them on one server and one host never come in a burst. Pure.
import type { Random } from '../../shared/runtime/random.ts'

/** Ten a second: a server of a few repositories sees within a moment what was pushed while it was away. */
const FIRST_LOOK_EACH_MS = 100

/** After a start: what has no content yet is read at once, as many at a time as there are hands; what has some one
 *  after the other, within its poll interval. `index`: its place among `count` repositories. */
export const firstLookMs = (hasContent: boolean, pollMs: number, index: number, count: number): number =>
  hasContent ? Math.min(index * FIRST_LOOK_EACH_MS, (pollMs * index) / count) : 0

/** Spread, so that those that began together drift apart. */
export const nextLookMs = (pollMs: number, random: Random): number => pollMs * (0.9 + random() * 0.2)

/** `user@host:path` is ssh's own form. */
export const hostOf = (url: string): string =>
  URL.canParse(url) && url.includes('://') ? new URL(url).host : url.replace(/^.*@/, '').replace(/:.*$/, '')

/** The number of repositories that are asked at the same time. */
export const HANDS = 8
const HANDS_OF_HOST = 4
/** The number for all hosts together that do not answer. */
const HANDS_OF_SILENT = 4

/** Which hosts answer: one that was not heard from, or that is silent now, takes one hand, and all silent ones together
 *  half of them. A question to them lasts until its deadline. */
export class Hosts {
  readonly #heard = new Map<string, boolean>()

  note(host: string, answers: boolean): void {
    this.#heard.set(host, answers)
  }

  /** `asked`: questions that are open, by host. */
  mayAsk(host: string, asked: ReadonlyMap<string, number>): boolean {
    const own = asked.get(host) ?? 0
    const answers = this.#heard.get(host)
    if (answers === true) return own < HANDS_OF_HOST
    if (own > 0) return false
    if (answers === undefined) return true
    let silent = 0
    for (const [other, count] of asked) if (this.#heard.get(other) === false) silent += count
    return silent < HANDS_OF_SILENT
  }
}
