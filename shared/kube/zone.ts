// The wall clock of a time zone, from what the runtime knows of zones. Days are counted from 1970-01-01 of the wall
// clock.

export interface Zone {
  name: string
  /** Which day it is there. */
  dayOf(atMs: number): number
  /** When the wall clock shows that minute of that day: the first time if it comes twice; if it is skipped, the moment
   *  of the jump. */
  instantOf(day: number, minute: number): number
}

const DAY_MS = 86_400_000
const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000

const zones = new Map<string, Zone>()

/** Null if there is no such zone. Absent means the machine's own zone. */
export function createZone(timeZone: string | undefined): Zone | null {
  const known = zones.get(timeZone ?? '')
  if (known !== undefined) return known
  try {
    const zone = zoneOf(new Intl.DateTimeFormat('en-US', { ...FIELDS, ...(timeZone === undefined ? {} : { timeZone }) }))
    zones.set(timeZone ?? '', zone)
    return zone
  } catch {
    return null
  }
}

const FIELDS = {
  calendar: 'gregory',
  numberingSystem: 'latn',
  hourCycle: 'h23',
  year: 'numeric',
  month: 'numeric',
  day: 'numeric',
  hour: 'numeric',
  minute: 'numeric',
  second: 'numeric',
} as const satisfies Intl.DateTimeFormatOptions

function zoneOf(format: Intl.DateTimeFormat): Zone {
  /** The wall clock as if it were UTC. */
  const wallMs = (atMs: number): number => {
    const parts: Record<string, number> = {}
    for (const { type, value } of format.formatToParts(atMs)) parts[type] = Number(value)
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts
    return Date.UTC(year, month - 1, day, hour, minute, second) + (((atMs % 1_000) + 1_000) % 1_000)
  }
  const offsetAt = (atMs: number): number => wallMs(atMs) - atMs
  const starts = new Map<number, { before: number; after: number }>()
  return {
    name: format.resolvedOptions().timeZone,
    dayOf: (atMs) => Math.floor(wallMs(atMs) / DAY_MS),
    instantOf(day, minute) {
      const wall = day * DAY_MS + minute * MINUTE_MS
      // Zones jump by at most a day; the offsets on both sides of it are all that can apply.
      let sides = starts.get(day)
      if (sides === undefined) {
        sides = { before: offsetAt(day * DAY_MS - 14 * HOUR_MS), after: offsetAt(day * DAY_MS + 38 * HOUR_MS) }
        if (starts.size > 1_000) starts.clear()
        starts.set(day, sides)
      }
      const { before, after } = sides
      const candidates = [wall - before, wall - after].filter((atMs) => wallMs(atMs) === wall)
      if (candidates.length > 0) return Math.min(...candidates)
      return jumpBetween(wall - Math.max(before, after), wall - Math.min(before, after), offsetAt)
    },
  }
}

/** The moment at which the offset changes. */
function jumpBetween(fromMs: number, toMs: number, offsetAt: (atMs: number) => number): number {
  let [low, high] = [Math.floor(fromMs / MINUTE_MS), Math.ceil(toMs / MINUTE_MS)]
  const start = offsetAt(low * MINUTE_MS)
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (offsetAt(middle * MINUTE_MS) === start) low = middle
    else high = middle
  }
  return high * MINUTE_MS
}
