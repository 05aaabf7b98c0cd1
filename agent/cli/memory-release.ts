// Frees the memory of a process that works in bursts. The collector lets tens of megabytes of garbage gather, and code
// pages of a burst stay counted: an idle agent would use half as much memory again as it needs.
import { dropCodePages } from '../../shared/adapters/code-pages.ts'
import type { Clock } from '../../shared/runtime/clock.ts'

/** Time between two checks whether there is memory to free: garbage of steady small work would otherwise accumulate
 *  for as long as the collector lets it. */
export const RELEASE_EVERY_MS = 5_000

/** Processor time after which there is memory to free. Collecting takes 20 ms at 4,000 objects; an idle agent needs
 *  minutes for this. */
export const WORK_MS = 100
/** Time between two checks in a busy process, so that collecting costs little. With 8,000 objects and a thousand
 *  services in work, checks were a tenth of all its work. */
export const BUSY_MS = 500
/** Work of a busy process for each ms of the last collection. */
export const WORK_PER_COLLECTION = 30

export interface ProcessMemory {
  /** Processor time of this process so far. */
  cpuMs(): number
  collect(): void
  dropCode(): void
}

const ownMemory: ProcessMemory = {
  cpuMs: () => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1_000
  },
  collect: () => Bun.gc(true),
  dropCode: () => void dropCodePages(),
}

export function createMemoryRelease({ cpuMs, collect, dropCode }: ProcessMemory = ownMemory): () => void {
  let sinceMs = 0
  let lookedMs = 0
  let costMs = 0
  return () => {
    const nowMs = cpuMs()
    const isBusy = nowMs - lookedMs > BUSY_MS
    lookedMs = nowMs
    if (nowMs - sinceMs < (isBusy ? Math.max(WORK_MS, WORK_PER_COLLECTION * costMs) : WORK_MS)) return
    collect()
    dropCode() // last: collecting is code, too
    sinceMs = lookedMs = cpuMs()
    costMs = sinceMs - nowMs
  }
}

/** Until the signal aborts. */
export async function releaseOften(release: () => void, clock: Clock, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await clock.sleep(RELEASE_EVERY_MS, signal)
    if (!signal.aborted) release()
  }
}
