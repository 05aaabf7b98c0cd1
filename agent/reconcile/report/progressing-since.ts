// Since when an object counts as Progressing for its health deadline. Pure.
import type { ObjectStatus } from '../../../shared/model/status.ts'
import type { Progressed } from '../snapshot/objects.ts'

/** The first evaluation leaves at least this much of the deadline, however old the object is. */
const LEAST_MS = 60_000
/** HE30: a container without a readiness probe is ready for the moment that it lives, before each of its crashes. */
const WELL_MS = 60_000
const LATE = 'DeadlineExceeded'

export interface BeginsToProgress {
  /** Its last time of being Progressing, in this process and of the same revision. */
  before: Progressed | null

  /** The last report of the object. */
  previous: ObjectStatus | null
  /** This process has judged the object before. Only a restart continues the time of a former process. */
  isKnown: boolean
  /** Its kind runs to an end, so that only the very same reason continues the time. */
  worksToAnEnd: boolean
  reason: string
  /** The last change by the object's own status. */
  movedMs: number | null
  deadlineMs: number
  nowMs: number
}

/** HE21: progress of a Job moves the begin of the deadline. */
export function progressingSince(facts: BeginsToProgress): number {
  const { before, previous, isKnown, worksToAnEnd, reason, movedMs, deadlineMs, nowMs } = facts
  if (before !== null && !worksToAnEnd && before.wellMs <= nowMs && nowMs - before.wellMs < WELL_MS) return before.sinceMs
  if (isKnown) return nowMs
  if (previous?.health === 'Progressing' && (!worksToAnEnd || previous.reason === reason)) return previous.sinceMs
  if (previous?.reason === LATE) return previous.sinceMs - deadlineMs
  if (previous !== null || movedMs === null) return nowMs
  return Math.max(Math.min(movedMs, nowMs), nowMs - Math.max(deadlineMs - LEAST_MS, 0))
}
