// Ages and times: short to read, whole on hover, and as a machine-readable time.
import { absolute, age, moment, timeOfDay } from '../format.ts'
import { nowMs } from '../state/now.ts'

export function Age({ ms }: { ms: number }) {
  return (
    <time dateTime={new Date(ms).toISOString()} title={absolute(ms)}>
      {age(ms, nowMs.value)}
    </time>
  )
}

export function Moment({ ms }: { ms: number }) {
  return (
    <time dateTime={new Date(ms).toISOString()} title={absolute(ms)}>
      {moment(ms, nowMs.value)}
    </time>
  )
}

export function TimeOfDay({ ms }: { ms: number }) {
  return (
    <time dateTime={new Date(ms).toISOString()} title={absolute(ms)}>
      {timeOfDay(ms)}
    </time>
  )
}
