// When a backup is due: an interval after the last one, or the times of a cron line in UTC.
import { type CronTimes, nextOpening, parseCron } from '../../../shared/kube/cron-times.ts'
import { durationMs } from '../../../shared/runtime/durations.ts'
import type { BackupState } from './state.ts'

const [HOUR_MS, DAY_MS, MINUTE_MS] = [3_600_000, 86_400_000, 60_000]
const INTERVAL_MS_MIN = 15 * MINUTE_MS
/** A backup that is late by so much is a problem. */
export const LATE_MS = HOUR_MS

export const SCHEDULE_FORM = 'an interval of at least 15m, such as 6h, or five fields of cron in UTC, such as "0 3 * * *"'

const UTC = {
  dayOf: (atMs: number) => Math.floor(atMs / DAY_MS),
  instantOf: (day: number, minute: number) => day * DAY_MS + minute * MINUTE_MS,
}

type Schedule = { everyMs: number } | { times: CronTimes }

/** Answers null for text that is no schedule, or for one without a time within a year. */
export function parseSchedule(text: string): Schedule | null {
  const everyMs = durationMs(text)
  if (!Number.isNaN(everyMs)) return everyMs >= INTERVAL_MS_MIN ? { everyMs } : null
  const times = parseCron(text)
  return times === null || nextOpening({ zone: UTC, times }, 0) === null ? null : { times }
}

/** When the backup after the last complete one is due. Null means that no backups are scheduled. */
export function dueMs({ schedule, scheduledMs, last }: BackupState): number | null {
  const read = schedule === null ? null : parseSchedule(schedule)
  if (read === null) return null
  if (last === null) return scheduledMs ?? 0
  return 'everyMs' in read ? last.createdMs + read.everyMs : nextOpening({ zone: UTC, times: read.times }, last.createdMs)
}

export const isLate = (state: BackupState, nowMs: number): boolean => {
  const due = dueMs(state)
  return due !== null && nowMs > due + LATE_MS
}
