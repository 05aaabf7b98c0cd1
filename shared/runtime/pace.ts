// Long work in slices, so that no other work on this thread waits for it: after each piece `await pace()`. Slices are
// cut by time, because pieces differ.
import { setImmediate } from 'node:timers/promises'
import type { Clock } from './clock.ts'

/**
 * The longest work without a break. A poll that arrives meanwhile waits this long at most, and for the piece that is
 * being done.
 */
export const SLICE_MS = 5

/** Resolves at once while the slice lasts; when it is over, or `over` says so, after everything else that is due had
 *  its turn. */
export type Pace = (over?: boolean) => Promise<void> | undefined

export function createPace(clock: Pick<Clock, 'nowMs'>, sliceMs: number = SLICE_MS): Pace {
  let sinceMs = clock.nowMs()
  return (over = false) => {
    const ranMs = clock.nowMs() - sinceMs
    if (!over && ranMs >= 0 && ranMs < sliceMs) return undefined // a clock that was set back ends the slice
    return setImmediate().then(() => {
      sinceMs = clock.nowMs()
    })
  }
}

/** Work that offers to stop at each yield. It is written once, for callers that wait for it and for those that cannot.
 */
export type Steps<T> = Generator<void, T>

export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

export async function paced<T>(steps: Steps<T>, pace: Pace): Promise<T> {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
    await pace()
  }
}

const ITEMS_A_STEP = 250

/** `act` for each item, with a yield after some of them. */
export function* inSteps<T>(items: Iterable<T>, act: (item: T) => void): Steps<void> {
  let count = 0
  for (const item of items) {
    act(item)
    count += 1
    if (count % ITEMS_A_STEP === 0) yield
  }
}
