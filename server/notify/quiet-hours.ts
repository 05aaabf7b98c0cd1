// Quiet hours, pure: when a message that is due may be sent. Times of day are those of the zone, also on the days when
// its clocks change.
import { DAYS, type QuietHours, type Severity } from '../../shared/model/notifications.ts'
import { isAtLeast } from './severity.ts'

const MINUTE_MS = 60_000
const DAY_MINUTES = 1_440
/** A week. */
const HOURS_MAX = 7 * 24

interface LocalTime {
  day: number
  minute: number
}

const formats = new Map<string, Intl.DateTimeFormat>()

function localTime(atMs: number, timeZone: string): LocalTime {
  let format = formats.get(timeZone)
  if (format === undefined) {
    format = new Intl.DateTimeFormat('en-US', { timeZone, weekday: 'short', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
    formats.set(timeZone, format)
  }
  const parts = Object.fromEntries(format.formatToParts(atMs).map(({ type, value }) => [type, value]))
  const day = DAYS.findIndex((name) => name === parts['weekday'])
  return { day, minute: Number(parts['hour']) * 60 + Number(parts['minute']) }
}

const minuteOf = (text: string): number => Number(text.slice(0, 2)) * 60 + Number(text.slice(3))

/** Whole minutes until the quiet hours end; 0: they are not on. */
function minutesLeft({ days, from, to, timeZone }: QuietHours, atMs: number): number {
  const { day, minute } = localTime(atMs, timeZone)
  const [begin, end] = [minuteOf(from), minuteOf(to)]
  const beginsOn = (index: number) => days === undefined || days.some((name) => DAYS.indexOf(name) === (index + 7) % 7)
  if (begin < end) return beginsOn(day) && minute >= begin && minute < end ? end - minute : 0
  if (minute >= begin && beginsOn(day)) return DAY_MINUTES - minute + end
  return minute < end && beginsOn(day - 1) ? end - minute : 0
}

/** When a message may be sent that is due then. Hours that never end hold it for a week. */
export function afterQuietHours(quiet: readonly QuietHours[], severity: Severity, dueMs: number): number {
  const held = quiet.filter(({ except }) => !isAtLeast(severity, except))
  let atMs = dueMs
  for (let hour = 0; hour < HOURS_MAX; hour++) {
    const left = Math.max(0, ...held.map((one) => minutesLeft(one, atMs)))
    if (left === 0) return atMs
    // By an hour at most, because the clock of the zone may change meanwhile.
    atMs = Math.floor(atMs / MINUTE_MS) * MINUTE_MS + Math.min(left, 60) * MINUTE_MS
  }
  return atMs
}
