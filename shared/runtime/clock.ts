/** Time as a dependency. Nothing outside `systemClock` reads the real clock, so the simulation can move it by years. */
export interface Clock {
  /** Milliseconds since the Unix epoch. For display, and for times that people or other machines set: no wall clock
   *  orders anything between machines (CU3). */
  nowMs(): number
  /**
   * Whole milliseconds since an arbitrary moment. For durations and deadlines within this process: a change of the date
   * does not affect it.
   */
  monotonicMs(): number
  /** Resolves after `ms`, or at once when the signal aborts; it never rejects, callers look at the signal. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/**
 * A longer timer would fire at once, and a caller that waits for the same time again would spin. So it fires early,
 * every 24 days.
 */
const TIMER_MS_MAX = 2 ** 31 - 1

/** The reason to abort a signal that only ends a wait. Without one, each abort creates a DOMException with a stack. */
export const OVER = 'over'

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => Math.floor(performance.now()),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve()
      const done = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', done)
        resolve()
      }
      const timer = setTimeout(done, Math.min(ms, TIMER_MS_MAX))
      signal?.addEventListener('abort', done, { once: true })
    }),
}
