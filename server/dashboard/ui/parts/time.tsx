// Ages and times: short to read, whole on hover, and as a machine-readable time.
import type { ComponentChildren } from 'preact'
import { absolute, age, moment, timeOfDay } from '../format.ts'
import { nowMs } from '../state/now.ts'

export const Age = ({ ms }: { ms: number }) => <Time ms={ms}>{age(ms, nowMs.value)}</Time>
export const Moment = ({ ms }: { ms: number }) => <Time ms={ms}>{moment(ms, nowMs.value)}</Time>
export const TimeOfDay = ({ ms }: { ms: number }) => <Time ms={ms}>{timeOfDay(ms)}</Time>

function Time({ ms, children }: { ms: number; children: ComponentChildren }) {
  return (
    <time dateTime={new Date(ms).toISOString()} onPointerEnter={nameWhole}>
      {children}
    </time>
  )
}

/** Written when somebody points at it: the formatter takes the browser 20 ms, and few times of a long list are read
 *  that way. */
function nameWhole({ currentTarget: time }: { currentTarget: HTMLTimeElement }): void {
  time.title = absolute(Date.parse(time.dateTime))
}
