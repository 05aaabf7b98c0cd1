// Runs the loops of the server for as long as it serves. A loop that throws, or that ends by itself, is started again
// after a backoff; the other loops and the requests continue. A loop may therefore be started several times: it must
// find its work in the store again.
import { type BackoffLimits, backoffMs } from '../shared/runtime/backoff.ts'
import type { Clock } from '../shared/runtime/clock.ts'
import type { Logger } from '../shared/runtime/logger.ts'
import { describeError } from '../shared/runtime/loop.ts'
import type { Random } from '../shared/runtime/random.ts'
import { actAsSystem } from './store/audit/caller.ts'

/** Resolves after the signal is aborted, and not before. */
export type ServerLoop = (signal: AbortSignal) => Promise<void>

export interface Supervisor {
  /** Names of the loops that failed within the last STEADY_MS. */
  failing(): string[]
  /** Resolves when every loop ended after the signal. */
  ended: Promise<void>
}

const RESTART: BackoffLimits = { baseMs: 1_000, capMs: 60_000 }
/** A loop that did not fail for so long is no longer named as failing, and its next failure begins a new backoff. */
export const STEADY_MS = 120_000

export function supervise(
  loops: Readonly<Record<string, ServerLoop>>,
  { clock, random, log }: { clock: Clock; random: Random; log: Logger },
  signal: AbortSignal,
): Supervisor {
  const failedMs = new Map<string, number>()
  const sinceMs = (atMs: number | undefined) => (atMs === undefined ? Number.POSITIVE_INFINITY : clock.monotonicMs() - atMs)

  async function keepRunning(name: string, loop: ServerLoop): Promise<void> {
    for (let failures = 0; !signal.aborted; ) {
      try {
        await actAsSystem(`loop ${name}`, () => loop(signal))
        if (signal.aborted) return
        throw new Error('the loop ended unexpectedly')
      } catch (error) {
        if (signal.aborted) return log.error('server loop failed while the server stopped', { loop: name, error: describeError(error) })
        failures = sinceMs(failedMs.get(name)) < STEADY_MS ? failures + 1 : 1
        failedMs.set(name, clock.monotonicMs())
        const retryInMs = backoffMs(failures - 1, RESTART, random)
        log.error('server loop failed; restarting it', { loop: name, failures, retryInMs, error: describeError(error) })
        await clock.sleep(retryInMs, signal)
      }
    }
  }

  const running = Object.entries(loops).map(([name, loop]) => keepRunning(name, loop))
  return {
    failing: () => [...failedMs].flatMap(([name, atMs]) => (sinceMs(atMs) < STEADY_MS ? [name] : [])).sort(),
    ended: Promise.all(running).then(() => {}),
  }
}
