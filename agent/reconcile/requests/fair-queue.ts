// Requests that wait for a place, in the order in which they get one: services in turn, the requests of one service in
// their own order. Requests of one service to one target are one lane: if the first of them has to wait, the others
// wait too, and other lanes continue.
import { type Target, targetKey } from './blame.ts'

export interface Ticket extends Target {
  /** The service whose turn it is. */
  service: string
  /** `heal`: it restores the applied document, or is needed to decide about that. */
  purpose: 'heal' | 'other'
}

export interface Queued {
  ticket: Ticket
}

/** Requests that are judged alike, because they are of one service and go to one target. */
export const laneKey = (ticket: Target & { service: string }): string => `${ticket.service} ${targetKey(ticket)}`

interface Lane<T> {
  waiting: T[]
  /** Those before it have left. */
  head: number
}

export class FairQueue<T extends Queued> {
  /** In the order of their turns. */
  readonly #services = new Map<string, Map<string, Lane<T>>>()

  isEmpty(): boolean {
    return this.#services.size === 0
  }

  push(queued: T): void {
    const { service } = queued.ticket
    const lanes = this.#services.get(service) ?? new Map<string, Lane<T>>()
    this.#services.set(service, lanes)
    const key = laneKey(queued.ticket)
    const lane = lanes.get(key)
    if (lane === undefined) lanes.set(key, { waiting: [queued], head: 0 })
    else lane.waiting.push(queued)
  }

  /** The next one that may begin. Its service gets its next turn after all others. */
  take(mayBegin: (ticket: Ticket, lane: string) => boolean): T | null {
    for (const [service, lanes] of this.#services) {
      for (const [key, lane] of lanes) {
        const next = lane.waiting[lane.head]
        if (next === undefined || !mayBegin(next.ticket, key)) continue
        lane.head += 1
        if (lane.head === lane.waiting.length) lanes.delete(key)
        this.#services.delete(service)
        if (lanes.size > 0) this.#services.set(service, lanes)
        return next
      }
    }
    return null
  }

  /** Removes, in their order, whole lanes whose requests now belong to another queue. */
  takeLanes(belongsElsewhere: (ticket: Ticket, lane: string) => boolean): T[] {
    const taken: T[] = []
    for (const [service, lanes] of this.#services) {
      for (const [key, lane] of lanes) {
        const next = lane.waiting[lane.head]
        if (next === undefined || !belongsElsewhere(next.ticket, key)) continue
        taken.push(...lane.waiting.slice(lane.head))
        lanes.delete(key)
      }
      if (lanes.size === 0) this.#services.delete(service)
    }
    return taken
  }

  /** Takes out those of one service that match. */
  remove(service: string, matches: (queued: T) => boolean): number {
    const lanes = this.#services.get(service)
    if (lanes === undefined) return 0
    let removed = 0
    for (const [key, lane] of lanes) {
      const left = lane.waiting.slice(lane.head)
      lane.waiting = left.filter((queued) => !matches(queued))
      lane.head = 0
      removed += left.length - lane.waiting.length
      if (lane.waiting.length === 0) lanes.delete(key)
    }
    if (lanes.size === 0) this.#services.delete(service)
    return removed
  }
}
