// What a process that works in bursts gives back between them. The collector lets tens of megabytes of garbage gather before it looks, and what code a burst
// touched stays counted: an agent at rest would weigh half as much again as it needs.
import { dropCodePages } from '../../shared/adapters/code-pages.ts'

/** Processor time after which there is something to give back. Collecting takes 20 ms at 4,000 objects; an idle agent does not come to this in minutes. */
export const WORK_MS = 100

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
  return () => {
    if (cpuMs() - sinceMs < WORK_MS) return
    collect()
    dropCode() // last: collecting is code, too
    sinceMs = cpuMs()
  }
}
