// Predicts slow requests: a lane whose last answer was slow, and, for an unknown service, targets like those that hang
// or hung a moment ago. A slow webhook is recognized by the duration of requests, also while none of them has been
// answered.
import type { Target } from './blame.ts'
import { laneKey, type Ticket } from './fair-queue.ts'

/** RC27: a request on its way for this long is slow. */
export const SLOW_MS = 1_000
/** A quick answer proves for this long that a lane does not hang. */
const QUICK_FOR_MS = 10_000
/** Other services are suspected for this long after a request that hung. */
const SUSPECT_FOR_MS = 30_000
/** More lanes are forgotten, the oldest first. A forgotten lane is learned again by one request. */
const LANES_MAX = 4_096
/** With more kinds and namespaces, those in which nothing hung lately are forgotten at once. */
const HUNG_MAX = 256

interface Lane {
  slow: boolean
  atMs: number
  /** The cause why its last request failed; null if it did not fail. */
  cause: string | null
}

/** All times are those of the monotonic clock. */
export class Slowness {
  readonly #lanes = new Map<string, Lane>()
  /** When a request hung last: by kind, in each namespace, and by namespace, of each kind. */
  readonly #hung = new Map<string, Map<string, number>>()

  /** True if the lane was not known to be so. */
  learn(target: Target & { service: string }, slow: boolean, cause: string | null, nowMs: number): boolean {
    const key = laneKey(target)
    const lane = this.#lanes.get(key)
    if (lane !== undefined) {
      const turned = lane.slow !== slow
      Object.assign(lane, { slow, cause, atMs: nowMs })
      return turned
    }
    this.#lanes.set(key, { slow, cause, atMs: nowMs })
    const [oldest] = this.#lanes.keys()
    if (this.#lanes.size > LANES_MAX && oldest !== undefined) this.#lanes.delete(oldest)
    return slow
  }

  /** False: no request of the lane was answered yet. */
  isKnown(lane: string): boolean {
    return this.#lanes.has(lane)
  }

  causeOf(lane: string): string | null {
    return this.#lanes.get(lane)?.cause ?? null
  }

  /** The last request of some lane failed by this cause. */
  isBlamed(cause: string): boolean {
    for (const lane of this.#lanes.values()) if (lane.cause === cause) return true
    return false
  }

  /** A request to this target is slow. */
  suspect(target: Target, nowMs: number): void {
    const { kind, namespace } = target
    this.#note(ofKind(target), namespace, nowMs)
    if (namespace !== '') this.#note(ofNamespace(target), kind, nowMs)
  }

  /** RC27: whether requests of this lane were slow lately. */
  isSlow(ticket: Ticket, lane: string, nowMs: number): boolean {
    const known = this.#lanes.get(lane)
    if (known?.slow === true) return true
    // A correction is not kept waiting by a suspicion.
    if (ticket.purpose === 'heal') return false
    if (known !== undefined && nowMs - known.atMs < QUICK_FOR_MS) return false
    const namespaces = this.#hungIn(ofKind(ticket), nowMs)
    // Requests of one kind that hang in one namespace prove nothing about other namespaces; in two they do.
    return namespaces.includes(ticket.namespace) || namespaces.length > 1 || this.#hungIn(ofNamespace(ticket), nowMs).length > 1
  }

  #note(key: string, part: string, nowMs: number): void {
    const parts = this.#hung.get(key) ?? new Map<string, number>()
    this.#hung.set(key, parts.set(part, nowMs))
    if (this.#hung.size > HUNG_MAX) for (const old of this.#hung.keys()) this.#hungIn(old, nowMs)
  }

  #hungIn(key: string, nowMs: number): string[] {
    const parts = this.#hung.get(key)
    if (parts === undefined) return []
    for (const [part, atMs] of parts) if (nowMs - atMs >= SUSPECT_FOR_MS) parts.delete(part)
    if (parts.size === 0) this.#hung.delete(key)
    return [...parts.keys()]
  }
}

const ofKind = ({ access, kind }: Target): string => `${access} kind ${kind}`
const ofNamespace = ({ access, namespace }: Target): string => `${access} namespace ${namespace}`
