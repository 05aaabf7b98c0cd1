// Services of which a program ran out of time (IC14): what failed so is tried again by itself, less and less often. Nothing else is.
import type { BackoffLimits } from '../../../shared/runtime/backoff.ts'

const LATE: BackoffLimits = { baseMs: 60_000, capMs: 3_600_000 }

interface Late {
  /** Of the renders that failed. */
  keys: ReadonlySet<string>
  attempt: number
  againMs: number
}

export class LateRenders {
  private readonly lates = new Map<string, Late>()

  /** When it is due; null: never. */
  againMs(service: string): number | null {
    return this.lates.get(service)?.againMs ?? null
  }

  /** What is to be tried again now; null: nothing is due. */
  due(service: string, nowMs: number): ReadonlySet<string> | null {
    const late = this.lates.get(service)
    return late === undefined || late.againMs > nowMs ? null : late.keys
  }

  /** `isRetry`: it was due. */
  note(service: string, keys: ReadonlySet<string>, isRetry: boolean, nowMs: number): void {
    const attempt = isRetry ? (this.lates.get(service)?.attempt ?? -1) + 1 : 0
    if (keys.size > 0) this.lates.set(service, { keys, attempt, againMs: nowMs + Math.min(LATE.capMs, LATE.baseMs * 2 ** attempt) })
    else if (isRetry) this.lates.delete(service)
  }

  forget(service: string): void {
    this.lates.delete(service)
  }
}
