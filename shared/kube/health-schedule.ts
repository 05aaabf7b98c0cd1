// When the next run of a CronJob has to have been started. Nothing in the status of a CronJob tells that its controller
// stopped: `lastScheduleTime` stands still. Pure; it errs towards a later time.
import { type CronTimes, nextOpening, parseCron } from './cron-times.ts'
import { count, degraded, HEALTHY, type Health, type Reading, text } from './health-object.ts'
import { createZone, type Zone } from './zone.ts'

export const SCHEDULE_MISSED = 'ScheduleMissed'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
/** A controller that was restarted or has much to do starts a run late. */
const START_GRACE_MS = 10 * MINUTE_MS
/** Wall clocks on the earth. */
const [OFFSET_FIRST_MS, OFFSET_LAST_MS, OFFSET_STEP_MS] = [-12 * HOUR_MS, 14 * HOUR_MS, 15 * MINUTE_MS]

const MACROS: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
}

/** HE24: Healthy until a run is due that was not started. */
export function onSchedule(reading: Reading): Health {
  const { spec, status, nowMs } = reading
  const last = text(status['lastScheduleTime'])
  const schedule = text(spec['schedule']).trim()
  const dueMs = nextRunMs(schedule, spec['timeZone'], Date.parse(last), quietSinceMs(reading))
  if (dueMs === null) return HEALTHY
  const lateMs = Math.max(START_GRACE_MS, count(spec['startingDeadlineSeconds']) * 1_000)
  const atMs = dueMs + lateMs
  const due = new Date(dueMs).toISOString().replace('.000Z', 'Z')
  const health = degraded(
    SCHEDULE_MISSED,
    `no run started for the schedule ${JSON.stringify(schedule)}, due at ${due} at the latest; the last run was ${last === '' ? 'never' : `due at ${last}`}; ` +
      'check that kube-controller-manager runs, and the Events of the CronJob',
  )
  return nowMs >= atMs ? health : { ...HEALTHY, settles: { atMs, health } }
}

/** Since when nothing about the object has moved. A change of the schedule, the end of a suspension and the end of a
 *  run count from when they were written. */
function quietSinceMs({ status, createdMs, changedMs }: Reading): number {
  const told = ['lastScheduleTime', 'lastSuccessfulTime'].map((name) => Date.parse(text(status[name])))
  return Math.max(createdMs, changedMs ?? createdMs, ...told.filter((ms) => !Number.isNaN(ms)))
}

/** Null if the schedule cannot be understood, or has no time within a year. */
function nextRunMs(schedule: string, timeZone: unknown, lastMs: number, sinceMs: number): number | null {
  const times = parseCron((MACROS[schedule.toLowerCase()] ?? schedule).replaceAll('?', '*'))
  if (times === null) return null
  if (typeof timeZone === 'string') {
    const zone = createZone(timeZone)
    return zone === null ? null : nextOpening({ zone, times }, sinceMs)
  }
  // The schedule is in the zone of the controller, which is unknown here. If the last run shows which offsets are
  // possible, the others do not count.
  const zones = offsets().map(fixedZone)
  const possible = zones.filter((zone) => isTimeOf(times, zone, lastMs))
  const next = (possible.length > 0 ? possible : zones).map((zone) => nextOpening({ zone, times }, sinceMs))
  if (next.some((ms) => ms === null)) return null
  // Its wall clock may be set back an hour meanwhile.
  const isHourly = new Set(times.minutes.map((minute) => Math.floor(minute / 60))).size === 24
  return Math.max(...next.map((ms) => ms ?? 0)) + (isHourly ? 0 : HOUR_MS)
}

type Wall = Pick<Zone, 'dayOf' | 'instantOf'>

const offsets = (): number[] =>
  Array.from({ length: (OFFSET_LAST_MS - OFFSET_FIRST_MS) / OFFSET_STEP_MS + 1 }, (_, n) => OFFSET_FIRST_MS + n * OFFSET_STEP_MS)

const fixedZone = (offsetMs: number): Wall => ({
  dayOf: (atMs) => Math.floor((atMs + offsetMs) / DAY_MS),
  instantOf: (day, minute) => day * DAY_MS + minute * MINUTE_MS - offsetMs,
})

const isTimeOf = (times: CronTimes, zone: Wall, atMs: number): boolean => {
  if (Number.isNaN(atMs)) return false
  const day = zone.dayOf(atMs)
  return times.isDay(day) && times.minutes.some((minute) => zone.instantOf(day, minute) === atMs)
}
