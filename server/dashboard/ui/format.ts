// Numbers, ages and times as people read them, in the reader's own zone and language.
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

/** Between groups of digits. A formatter of the browser would cost 40 ms of the opening of a list. */
const GROUPS = /\B(?=(?:\d{3})+$)/g
export const number = (value: number): string => {
  const [whole = '', rest] = String(Math.round(value * 1_000) / 1_000).split('.')
  return whole.replace(GROUPS, ',') + (rest === undefined ? '' : `.${rest}`)
}
export const count = (n: number, noun: string, plural = `${noun}s`): string => `${number(n)} ${n === 1 ? noun : plural}`

/** `now`, `40 s`, `2 min`, `3 h`, `5 d`. */
export function age(sinceMs: number, nowMs: number): string {
  const ms = Math.max(0, nowMs - sinceMs)
  if (ms < 5_000) return 'now'
  if (ms < MINUTE_MS) return `${Math.floor(ms / 1_000)} s`
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`
  if (ms < 2 * DAY_MS) return `${Math.floor(ms / HOUR_MS)} h`
  return `${Math.floor(ms / DAY_MS)} d`
}

const formatOf = (options: Intl.DateTimeFormatOptions) => once(() => new Intl.DateTimeFormat('en-GB', options))
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
export function names(all: readonly string[], total = all.length, shown = 3): string {
  const first = all.slice(0, shown).join(', ')
  return total > shown ? `${first} and ${number(total - shown)} more` : first
}

/** Subject and author of a commit; empty: not known. */
export const writtenBy = ({ author, subject }: { author?: string | undefined; subject?: string | undefined }): string =>
  [subject, author].filter(Boolean).join(' · ')
