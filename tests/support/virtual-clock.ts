// Time that a test moves. Sleepers wake in order of their hour; between two of them everything that can run without
// waiting has run.
import type { Clock } from '../../shared/runtime/clock.ts'

interface Sleeper {
  atMs: number
  order: number
  process: object | null
  wake(): void
}

/** The clock of one process: its own idea of the date, the same passing of time. */
export interface ProcessClock extends Clock {
  /** Somebody set its date. Sleeps are not shortened by it. */
  setBy(ms: number): void
  /** The process is gone: none of its sleepers ever wakes. */
  end(): void
}

export interface VirtualClock extends Clock {
  /** Lengths of all sleeps that were asked for, in order. */
  readonly asked: readonly number[]
  /** Lets `ms` pass. */
  advance(ms: number): Promise<void>
  /** Lets whatever needs no time happen. */
  settle(): Promise<void>
  /** Wakes everybody who sleeps, for the end of a test. */
  jump(ms: number): void
}

export interface SharedClock extends VirtualClock {
  process(offsetMs: number): ProcessClock
}

/** When virtual time begins. */
export const VIRTUAL_START_MS = 1_700_000_000_000

/** `onWake` is told which sleeper wakes, by the order in which they began to sleep. */
export function createVirtualClock(startMs = VIRTUAL_START_MS, onWake: (sleeper: number) => void = () => {}): SharedClock {
  let nowMs = startMs
  let order = 0
  let activity = 0
  const asked: number[] = []
  const sleepers = new Set<Sleeper>()
  const next = () => {
    let first: Sleeper | null = null
    for (const sleeper of sleepers) {
      if (first === null || sleeper.atMs < first.atMs || (sleeper.atMs === first.atMs && sleeper.order < first.order)) first = sleeper
    }
    return first
  }
  /** Quiet: three turns of the event loop in which nobody began or ended a sleep. A sleep of no time ends here. */
  const settle = async () => {
    for (;;) {
      for (let quiet = 0, seen = activity; quiet < 3; seen = activity) {
        await turnOfTheLoop()
        quiet = activity === seen ? quiet + 1 : 0
      }
      const due = next()
      if (due === null || due.atMs > nowMs) return
      due.wake()
    }
  }
  const sleep = (ms: number, signal: AbortSignal | undefined, process: object | null) =>
    new Promise<void>((resolve) => {
      activity++
      if (signal?.aborted) return resolve()
      asked.push(ms)
      const sleeper: Sleeper = {
        atMs: nowMs + Math.max(0, ms),
        order: order++,
        process,
        wake: () => {
          if (!sleepers.delete(sleeper)) return
          activity++
          onWake(sleeper.order)
          signal?.removeEventListener('abort', sleeper.wake)
          resolve()
        },
      }
      sleepers.add(sleeper)
      signal?.addEventListener('abort', sleeper.wake, { once: true })
    })
  return {
    asked,
    nowMs: () => Math.floor(nowMs),
    monotonicMs: () => Math.floor(nowMs - startMs),
    jump: (ms) => {
      nowMs += ms
    },
    sleep: (ms, signal) => sleep(ms, signal, null),
    process(offsetMs) {
      const process = {}
      let offset = offsetMs
      let ended = false
      return {
        nowMs: () => Math.floor(nowMs + offset),
        monotonicMs: () => Math.floor(nowMs - startMs),
        sleep: (ms, signal) => (ended ? new Promise(() => {}) : sleep(ms, signal, process)),
        setBy: (ms) => {
          offset += ms
        },
        end() {
          ended = true
          for (const sleeper of sleepers) if (sleeper.process === process) sleepers.delete(sleeper)
        },
      }
    },
    settle,
    async advance(ms) {
      const untilMs = nowMs + ms
      for (;;) {
        await settle()
        const sleeper = next()
        if (sleeper === null || sleeper.atMs > untilMs) break
        nowMs = Math.max(nowMs, sleeper.atMs)
        sleeper.wake()
      }
      nowMs = untilMs
    },
  }
}

/** Lets go on what needs no time but a real socket. A macrotask, because streams take several turns. */
export const turnOfTheLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
