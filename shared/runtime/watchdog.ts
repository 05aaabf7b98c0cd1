// The watchdog notices work that does not end, loops that make no progress and a blocked event loop. It only reports:
// /readyz names each, and the log gets one line for it.
import type { Clock } from './clock.ts'
import type { Logger } from './logger.ts'

/** Marks the beginning of work that must end; the returned function marks its end. */
export type Watch = (work: string) => () => void

export interface Watchdog {
  watch: Watch
  /**
   * The clock of a loop. Between two sleeps the loop works, and that must end within `stuckAfterMs` (default: as all
   * work). Parts of a loop that run beside each other need a clock each. Another clock of the same name takes the place
   * of this one.
   */
  clockOf(loop: string, stuckAfterMs?: number): Clock
  /** Checks once a second until the signal. */
  run(signal: AbortSignal): Promise<void>
  /** Pieces of work that do not end. */
  stuckCount(): number
  /** Messages for people; empty if all is well. */
  problems(): string[]
}

export interface WatchdogOptions {
  clock: Clock
  log: Logger
  /** Work that lasts longer is stuck. */
  stuckAfterMs: number
}

const LOOK_MS = 1_000
/** The shortest block of the event loop that is reported. */
export const BLOCKED_MS = 2_000
/** How long /readyz names a block after its end. */
export const BLOCKED_TOLD_MS = 300_000
/** /readyz names at most this many pieces of work. */
const NAMED_MAX = 5

export function createWatchdog({ clock, log, stuckAfterMs }: WatchdogOptions): Watchdog {
  const open = new Map<symbol, { work: string; beganMs: number; isTold: boolean; afterMs: number; isLoop: boolean }>()
  /** By loop: the end of the work that it is at. */
  const works = new Map<string, () => void>()
  let blocked: { ms: number; atMs: number } | null = null
  const stuck = (nowMs: number) => [...open.values()].filter(({ beganMs, afterMs }) => nowMs - beganMs >= afterMs)
  const begin = (work: string, afterMs: number, isLoop = false) => {
    const key = Symbol(work)
    open.set(key, { work, beganMs: clock.monotonicMs(), isTold: false, afterMs, isLoop })
    return () => void open.delete(key)
  }
  return {
    watch: (work) => begin(work, stuckAfterMs),
    clockOf(loop, afterMs = stuckAfterMs) {
      const rest = () => {
        works.get(loop)?.()
        works.delete(loop)
      }
      rest()
      return {
        nowMs: clock.nowMs,
        monotonicMs: clock.monotonicMs,
        async sleep(ms, signal) {
          rest()
          await clock.sleep(ms, signal)
          rest()
          // With its signal the loop ends.
          if (signal?.aborted !== true) works.set(loop, begin(`loop ${loop}`, afterMs, true))
        },
      }
    },
    async run(signal) {
      while (!signal.aborted) {
        const beforeMs = clock.monotonicMs()
        await clock.sleep(LOOK_MS, signal)
        if (signal.aborted) return
        const nowMs = clock.monotonicMs()
        const lateMs = Math.round(nowMs - beforeMs - LOOK_MS)
        if (lateMs >= BLOCKED_MS) {
          blocked = { ms: lateMs, atMs: nowMs }
          log.warn('the event loop was blocked', { ms: lateMs })
        }
        for (const one of stuck(nowMs)) {
          if (!one.isTold) log.error('work does not end', { work: one.work, sinceMs: Math.round(nowMs - one.beganMs) })
          one.isTold = true
        }
      }
    },
    stuckCount: () => stuck(clock.monotonicMs()).length,
    problems() {
      const nowMs = clock.monotonicMs()
      const found = stuck(nowMs)
      const named = found
        .slice(0, NAMED_MAX)
        .map(({ work, beganMs, isLoop }) => `${work} ${isLoop ? 'has made no progress' : 'has not ended'} for ${minutes(nowMs - beganMs)}`)
      if (found.length > NAMED_MAX) named.push(`and ${found.length - NAMED_MAX} more`)
      const isRecent = blocked !== null && nowMs - blocked.atMs < BLOCKED_TOLD_MS
      return isRecent && blocked !== null ? [...named, `the event loop was blocked for ${Math.round(blocked.ms / 1_000)} s`] : named
    },
  }
}

/** Runs `act` under the watch, if there is one. */
export async function watched<T>(watch: Watch | undefined, work: string, act: () => Promise<T>): Promise<T> {
  const ended = watch?.(work)
  try {
    return await act()
  } finally {
    ended?.()
  }
}

const minutes = (ms: number): string => `${Math.floor(ms / 60_000)} min`
