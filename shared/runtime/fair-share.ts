// Which of those that wait has the next turn, so that nobody who asks for much keeps those waiting who ask for little: the one that used least of the shared time lately. And nobody takes
// the last free place beside others of its own while somebody else is about. Pure, but for what it remembers.

/** What was used so long ago counts half. */
const HALF_LIFE_MS = 30_000
/** Whoever asked for something within that time may come again at any moment. */
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

  /** It asks for a place, has it until `left`, and gives it back. */
  entered(who: string, nowMs: number): void {
    this.at(who, nowMs).running += 1
  }

  /** `tookMs`: of the shared time. */
  left(who: string, tookMs: number, nowMs: number): void {
    const sharer = this.at(who, nowMs)
    sharer.running = Math.max(0, sharer.running - 1)
    sharer.usedMs += Math.max(0, tookMs)
  }

  /** It wants a place, perhaps later. */
  asked(who: string, nowMs: number): void {
    this.at(who, nowMs)
  }

  /** Who of them is next, where `free` places are; undefined: nobody may take one now. Of equal ones the first. */
  next<Who extends string>(waiting: Iterable<Who>, free: number, nowMs: number): Who | undefined {
    let least: { who: Who; usedMs: number } | undefined
    for (const who of waiting) {
      if (!this.mayTake(who, free, nowMs)) continue
      // What runs is counted when it ends; until then as so much, or whoever starts many at once would have used nothing.
      const usedMs = this.used(who, nowMs) + (this.sharers.get(who)?.running ?? 0) * RUNNING_MS
      if (least === undefined || usedMs < least.usedMs) least = { who, usedMs }
    }
    return least?.who
  }

  private mayTake(who: string, free: number, nowMs: number): boolean {
    if (free <= 0) return false
    const running = this.sharers.get(who)?.running ?? 0
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
