// Five cron fields as days and minutes of a wall clock, in no time zone: Bun.cron.parse answers in the machine's own
// zone only.

import type { Zone } from './zone.ts'

export interface CronTimes {
  /** Days are counted from 1970-01-01. */
  isDay(day: number): boolean
  /** Minutes of such a day, rising. */
  minutes: readonly number[]
}

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']
const DAY_MS = 86_400_000
/** A schedule that is asked for openings further off than this has none. */
const HORIZON_DAYS = 366

/** Null if it is not a cron line. A day matches by its date or by its weekday when both are given, as in cron. */
export function parseCron(line: string): CronTimes | null {
  const fields = line.trim().split(/\s+/)
  if (fields.length !== 5) return null
  const [minute = '', hour = '', date = '', month = '', weekday = ''] = fields
  const minutes = parseField(minute, 0, 59, [])
  const hours = parseField(hour, 0, 23, [])
  const dates = parseField(date, 1, 31, [])
  const months = parseField(month, 1, 12, MONTHS, 1)
  const weekdays = parseField(weekday, 0, 7, DAYS)
  if (minutes === null || hours === null || dates === null || months === null || weekdays === null) return null
  if (weekdays.delete(7)) weekdays.add(0)
  const anyDate = date.startsWith('*')
  const anyWeekday = weekday.startsWith('*')
  return {
    isDay(day) {
      const at = new Date(day * DAY_MS)
      if (!months.has(at.getUTCMonth() + 1)) return false
      const byDate = dates.has(at.getUTCDate())
      const byWeekday = weekdays.has(at.getUTCDay())
      return anyDate || anyWeekday ? byDate && byWeekday : byDate || byWeekday
    },
    minutes: [...hours].sort((a, b) => a - b).flatMap((h) => [...minutes].sort((a, b) => a - b).map((m) => h * 60 + m)),
  }
}

/** `*`, `5`, `1-5`, `* /15`, `mon-fri`, lists of them. */
function parseField(text: string, low: number, high: number, names: readonly string[], firstName = 0): Set<number> | null {
  const found = new Set<number>()
  const numberOf = (part: string): number => {
    const named = names.indexOf(part.toLowerCase())
    if (named >= 0) return named + firstName
    return /^\d{1,2}$/.test(part) ? Number(part) : Number.NaN
  }
  for (const item of text.split(',')) {
    const [range = '', step, ...more] = item.split('/')
    if (more.length > 0 || (step !== undefined && !/^[1-9]\d?$/.test(step))) return null
    const [from = '', to, ...rest] = range.split('-')
    if (rest.length > 0) return null
    const first = range === '*' ? low : numberOf(from)
    const last = range === '*' ? high : to === undefined ? (step === undefined ? first : high) : numberOf(to)
    if (!(first >= low && last <= high && first <= last)) return null
    for (let value = first; value <= last; value += step === undefined ? 1 : Number(step)) found.add(value)
  }
  return found
}

/** Null if there is none within a year. */
export function nextOpening({ zone, times }: { zone: Pick<Zone, 'dayOf' | 'instantOf'>; times: CronTimes }, atMs: number): number | null {
  const today = zone.dayOf(atMs)
  for (let day = today; day <= today + HORIZON_DAYS; day += 1) {
    if (!times.isDay(day)) continue
    const minute = times.minutes[firstAfter(zone, day, times.minutes, atMs)]
    if (minute !== undefined) return zone.instantOf(day, minute)
  }
  return null
}

/** Where the openings of a day begin that come after `atMs`: a wall clock that is set back repeats none, so their order
 *  is that of the minutes. */
export function firstAfter(zone: Pick<Zone, 'instantOf'>, day: number, minutes: readonly number[], atMs: number): number {
  let [low, high] = [0, minutes.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (zone.instantOf(day, minutes[middle] ?? 0) <= atMs) low = middle + 1
    else high = middle
  }
  return low
}
