// Renders in which a program ran out of time (IC14): what failed so is tried again by itself, less and less often.
// Nothing else is.
import type { BackoffLimits } from '../../../shared/runtime/backoff.ts'

const LATE: BackoffLimits = { baseMs: 60_000, capMs: 3_600_000 }

interface Late {
  attempt: number
  againMs: number
}

export class LateRenders {
  /**
   * Late renders of each service by the key of the render. Each has its own time, whatever else of the service is late.
   */
  private readonly lates = new Map<string, Map<string, Late>>()

  /** When the next one is due. Null means never. */
  againMs(service: string): number | null {
    let next: number | null = null
    for (const { againMs } of this.lates.get(service)?.values() ?? []) next = Math.min(next ?? againMs, againMs)
    return next
  }

  /** Renders that are to be tried again now. */
  due(service: string, nowMs: number): ReadonlySet<string> {
    return new Set([...(this.lates.get(service) ?? [])].flatMap(([key, { againMs }]) => (againMs <= nowMs ? [key] : [])))
  }

  /** `keys`: of what was late just now; `retried`: what was due. */
  note(service: string, keys: ReadonlySet<string>, retried: ReadonlySet<string>, nowMs: number): void {
    const lates = this.lates.get(service) ?? new Map<string, Late>()
    // By when it is ended a program has looked here or there, so that what is late once more may have another key.
    let attempt = 0
    for (const key of retried) {
      attempt = Math.max(attempt, (lates.get(key)?.attempt ?? -1) + 1)
      lates.delete(key)
    }
    const againMs = nowMs + Math.min(LATE.capMs, LATE.baseMs * 2 ** attempt)
    for (const key of keys) if (!lates.has(key)) lates.set(key, { attempt, againMs })
    if (lates.size > 0) this.lates.set(service, lates)
    else this.lates.delete(service)
  }

  forget(service: string): void {
    this.lates.delete(service)
  }
}
