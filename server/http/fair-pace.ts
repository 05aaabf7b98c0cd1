// Concurrent requests of many agents are processed in slices, in the order of arrival, so that timers, people and
// finished answers have their turn in between. A single request does not wait: a slice begins with the first request in
// a turn of the loop.
import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../../shared/runtime/clock.ts'
import { SLICE_MS } from '../../shared/runtime/pace.ts'

/** Awaited before a piece of work. Undefined means now. What was looked up before may have changed when there was a
 *  wait. */
export type FairPace = () => Promise<void> | undefined

export function createFairPace(clock: Pick<Clock, 'nowMs'>, sliceMs: number = SLICE_MS): FairPace {
  let waiting: Array<() => void> = []
  /** Null if there was no request in this turn of the event loop. */
  let sinceMs: number | null = null

  const over = (): boolean => {
    if (sinceMs === null) {
      sinceMs = clock.nowMs()
      void setImmediate().then(nextSlice)
    }
    const ranMs = clock.nowMs() - sinceMs
    return ranMs < 0 || ranMs >= sliceMs // a clock that was set back ends the slice
  }
  const nextSlice = async () => {
    sinceMs = null
    let called = 0
    while (called < waiting.length && !over()) {
      waiting[called++]?.()
      await undefined // it does its work before the clock is asked again
    }
    waiting = waiting.slice(called)
  }

  return () => {
    if (waiting.length === 0 && !over()) return undefined
    return new Promise<void>((resolve) => void waiting.push(resolve))
  }
}
