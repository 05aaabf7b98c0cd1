// Numbers, ages and times as people read them, in the reader's own zone.
import { LOCALE, namesAndMore, number, units } from './words/count.ts'

export { number }

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** Made when first used: each takes the browser some milliseconds of the opening of the page. */
const once = <T>(make: () => T): (() => T) => {
  let made: T | undefined
  return () => {
    made ??= make()
    return made
  }
}

/** `now`, `40 s`, `2 min`, `3 h`, `5 d`. */
export function age(sinceMs: number, nowMs: number): string {
  const ms = Math.max(0, nowMs - sinceMs)
  if (ms < 5_000) return units.now
  if (ms < MINUTE_MS) return units.seconds(Math.floor(ms / 1_000))
  if (ms < HOUR_MS) return units.minutes(Math.floor(ms / MINUTE_MS))
  if (ms < 2 * DAY_MS) return units.hours(Math.floor(ms / HOUR_MS))
  return units.days(Math.floor(ms / DAY_MS))
}

const formatOf = (options: Intl.DateTimeFormatOptions) => once(() => new Intl.DateTimeFormat(LOCALE, options))
const clock = formatOf({ hour: '2-digit', minute: '2-digit', second: '2-digit' })
const hourMinute = formatOf({ hour: '2-digit', minute: '2-digit' })
const weekday = formatOf({ weekday: 'short', hour: '2-digit', minute: '2-digit' })
const day = formatOf({ day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' })
const whole = formatOf({ dateStyle: 'full', timeStyle: 'long' })

export const timeOfDay = (ms: number): string => clock().format(ms)
export const absolute = (ms: number): string => whole().format(ms)

/** `14:02`, `Tue 14:02`, `3 Nov, 14:02`. */
export function moment(ms: number, nowMs: number): string {
  if (new Date(ms).toDateString() === new Date(nowMs).toDateString()) return hourMinute().format(ms)
  return nowMs - ms < 6 * DAY_MS ? weekday().format(ms) : day().format(ms)
}

export const shortCommit = (commit: string): string => (/^[0-9a-f]{12,}$/.test(commit) ? commit.slice(0, 7) : commit)
/** The first names, and how many more. */
export const names = (all: readonly string[], total = all.length, shown = 3): string =>
  namesAndMore(all.slice(0, shown).join(', '), total - shown)

/** Subject and author of a commit; empty: not known. */
export const writtenBy = ({ author, subject }: { author?: string | undefined; subject?: string | undefined }): string =>
  [subject, author].filter(Boolean).join(' · ')
