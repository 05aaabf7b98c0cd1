/** Time as a dependency. Nothing outside `systemClock` reads the real clock, so the simulation can move it by years. */
export interface Clock {
  /** Milliseconds since the Unix epoch. For display and local deadlines only: no wall clock orders anything between machines (CU3). */
  nowMs(): number
  /** Resolves after `ms`, or at once when the signal aborts; it never rejects, callers look at the signal. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve()
      const done = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', done)
        resolve()
      }
      const timer = setTimeout(done, ms)
      signal?.addEventListener('abort', done, { once: true })
    }),
}
