// What a process that works in bursts gives back between them. The collector lets tens of megabytes of garbage gather before it looks, and what code a burst
// touched stays counted: an agent at rest would weigh half as much again as it needs.
import { dropCodePages } from '../../shared/adapters/code-pages.ts'
import type { Clock } from '../../shared/runtime/clock.ts'

/** Between two looks whether there is something to give back: garbage of steady small work would otherwise pile up for as long as the collector lets it. */
export const RELEASE_EVERY_MS = 5_000

/** Processor time after which there is something to give back. Collecting takes 20 ms at 4,000 objects; an idle agent does not come to this in minutes. */
export const WORK_MS = 100
/** Between two looks: the process is busy, and collects no more than is worth it. With 8,000 objects and a thousand services on the way, every look was a tenth of all its work. */
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
