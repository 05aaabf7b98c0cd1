// Chooses the next user of a shared resource: the one that used the least of it lately, in milliseconds. So a user with
// much work does not delay one with little. While others are active, a user that has places does not take the last free
// one. Keeps state; does no I/O.

/** Time that was used so long ago counts half. */
const HALF_LIFE_MS = 30_000
/** A sharer counts as active for so long after it asked. */
const ABOUT_MS = 10 * 60_000
const RUNNING_MS = 1_000

interface Sharer {
  /** As of `atMs`. */
  usedMs: number
  atMs: number
  running: number
}

export class FairShare {
  private readonly sharers = new Map<string, Sharer>()
  private readonly ofOneMax: number

  /** `ofOneMax`: places that one user may have at once. */
  constructor(ofOneMax = Number.POSITIVE_INFINITY) {
    this.ofOneMax = ofOneMax
  }

  /** The sharer has a place from now until `left`. */
  entered(who: string, nowMs: number): void {
    this.at(who, nowMs).running += 1
  }

  /** `tookMs` is the shared time that it used. */
  left(who: string, tookMs: number, nowMs: number): void {
    const sharer = this.at(who, nowMs)
    sharer.running = Math.max(0, sharer.running - 1)
    sharer.usedMs += Math.max(0, tookMs)
  }

  /** The sharer waits for a place. */
  asked(who: string, nowMs: number): void {
    this.at(who, nowMs)
  }

  /** Chooses among `waiting` for one of `free` places; the first one among equals. Undefined means that none may take
   *  one now. */
  next<Who extends string>(waiting: Iterable<Who>, free: number, nowMs: number): Who | undefined {
    let least: { who: Who; usedMs: number } | undefined
    for (const who of waiting) {
      if (!this.mayTake(who, free, nowMs)) continue
      // Used time is known at the end only. Until then a running job counts as RUNNING_MS, so that many jobs started at
      // once count.
      const usedMs = this.used(who, nowMs) + (this.sharers.get(who)?.running ?? 0) * RUNNING_MS
      if (least === undefined || usedMs < least.usedMs) least = { who, usedMs }
    }
    return least?.who
  }

  private mayTake(who: string, free: number, nowMs: number): boolean {
    if (free <= 0) return false
    const running = this.sharers.get(who)?.running ?? 0
    if (running >= this.ofOneMax) return false
    return free > 1 || running === 0 || !this.othersAbout(who, nowMs)
  }

  private othersAbout(who: string, nowMs: number): boolean {
    for (const [other, { atMs, running }] of this.sharers) {
      if (other === who) continue
      if (running > 0 || nowMs - atMs < ABOUT_MS) return true
      this.sharers.delete(other)
    }
    return false
  }

  private used(who: string, nowMs: number): number {
    const sharer = this.sharers.get(who)
    return sharer === undefined ? 0 : sharer.usedMs * 0.5 ** (Math.max(0, nowMs - sharer.atMs) / HALF_LIFE_MS)
  }

  private at(who: string, nowMs: number): Sharer {
    const held = this.sharers.get(who)
    const sharer = { usedMs: this.used(who, nowMs), atMs: nowMs, running: held?.running ?? 0 }
    this.sharers.set(who, sharer)
    return sharer
  }
}
