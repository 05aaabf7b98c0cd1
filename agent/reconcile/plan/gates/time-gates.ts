// Holds and windows as gates of a service: what they close now, and when that ends by itself.
import { type ServiceId, serviceKey } from '../../../../shared/runtime/ids.ts'
import type { ActiveHold } from '../../snapshot/kept-notes.ts'
import { type Closed, closed } from '../../snapshot/situation.ts'
import type { Gate } from './gates.ts'
import { type Holds, heldGate } from './hold.ts'
import { type ChangeWindow, judgeWindows, type WindowVerdict } from './windows.ts'

/** Corrections while changes are closed: missing objects are restored, manual changes stay. */
export interface ShutPolicy {
  restore: boolean
  correct: boolean
}
export const CAREFUL: ShutPolicy = { restore: true, correct: false }

export interface ServiceWindows {
  windows: readonly ChangeWindow[]
  /** `driftOutsideWindow`. */
  drift?: ShutPolicy
}

/** Windows of a service; none until rows bring them. */
export type WindowSource = (id: ServiceId) => ServiceWindows

/** Without an edge in view, and after a change of the clock, it is evaluated again. */
const VERDICT_MS_MAX = 3_600_000

export class TimeGates {
  readonly #holds: Holds
  readonly #windowsOf: WindowSource
  readonly #verdicts = new Map<string, { windows: readonly ChangeWindow[]; askedMs: number; verdict: WindowVerdict }>()

  constructor(holds: Holds, windowsOf: WindowSource) {
    this.#holds = holds
    this.#windowsOf = windowsOf
  }

  hold(id: ServiceId, nowMs: number): ActiveHold | null {
    return this.#holds.of(id, nowMs)
  }

  /** The service is gone, its facts with it. */
  forget(id: ServiceId): void {
    this.#holds.forget(id)
    this.#verdicts.delete(serviceKey(id))
  }

  /** Null if it is open. A hold comes before a window: it is a person's order. */
  shut(id: ServiceId, nowMs: number): Closed | null {
    const hold = this.#holds.of(id, nowMs)
    if (hold !== null) return heldGate(hold)
    const verdict = this.#verdict(id, nowMs)
    return verdict === null || verdict.closed === null ? null : closed('OutsideWindow', verdict.closed)
  }

  gate(id: ServiceId, nowMs: number): Gate {
    const shut = this.shut(id, nowMs)
    if (shut === null) return () => null
    // SU2: a suspended service is not changed.
    if (this.#holds.of(id, nowMs)?.suspended !== undefined) return () => shut
    const drift = this.#windowsOf(id).drift ?? CAREFUL
    return (_, deed) => (deed !== 'change' && drift[deed] ? null : shut)
  }

  /** When the gate may open by itself. Null means that it is open, or only a person opens it. */
  opensAtMs(id: ServiceId, nowMs: number): number | null {
    const hold = this.#holds.of(id, nowMs)
    if (hold !== null) return hold.untilMs ?? null
    const verdict = this.#verdict(id, nowMs)
    return verdict === null || verdict.closed === null ? null : (verdict.changesAtMs ?? verdict.checkedAgainAtMs ?? null)
  }

  #verdict(id: ServiceId, nowMs: number): WindowVerdict | null {
    const { windows } = this.#windowsOf(id)
    if (windows.length === 0) return null
    const key = serviceKey(id)
    const known = this.#verdicts.get(key)
    if (known !== undefined && known.windows === windows && isFresh(known, nowMs)) return known.verdict
    const verdict = judgeWindows(windows, nowMs)
    this.#verdicts.set(key, { windows, askedMs: nowMs, verdict })
    return verdict
  }
}

const isFresh = ({ askedMs, verdict }: { askedMs: number; verdict: WindowVerdict }, nowMs: number): boolean =>
  nowMs >= askedMs &&
  nowMs < Math.min(verdict.changesAtMs ?? verdict.checkedAgainAtMs ?? Number.POSITIVE_INFINITY, askedMs + VERDICT_MS_MAX)
