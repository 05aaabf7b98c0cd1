// The packs of repositories that are being read, whole in memory. They stay for a moment after each read: a thousand
// services of one repository are read one after the other, and each would load all of it again. Memory is the
// process's, however many repositories there are.
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../../../shared/runtime/clock.ts'

/** The limit of all repositories together. The one that is being read now is always held. */
export const HELD_BYTES_MAX = 128 * 1024 * 1024
/** Since the last read. */
export const HELD_FOR_MS = 1_000

/** Bytes by owner, the least recent reader first. */
const HOLDERS = new Map<HeldPacks, number>()

export class HeldPacks {
  private readonly clock: Clock
  private packs: object = {}
  private readMs = 0
  private isWatched = false

  constructor(clock: Clock) {
    this.clock = clock
  }

  /** For one read: isomorphic-git's `cache`, in which it keeps packs and their indexes. */
  in(gitdir: string): object {
    this.readMs = this.clock.nowMs()
    const bytes = HOLDERS.get(this) ?? bytesOfPacks(gitdir)
    HOLDERS.delete(this)
    HOLDERS.set(this, bytes)
    let total = 0
    for (const held of HOLDERS.values()) total += held
    for (const [oldest, held] of HOLDERS) {
      if (total <= HELD_BYTES_MAX || oldest === this) break
      total -= held
      oldest.release()
    }
    if (!this.isWatched) void this.releaseUnread()
    return this.packs
  }

  release(): void {
    this.packs = {}
    HOLDERS.delete(this)
  }

  private async releaseUnread(): Promise<void> {
    this.isWatched = true
    let restMs = HELD_FOR_MS
    while (restMs > 0) {
      await this.clock.sleep(restMs)
      const sinceMs = this.clock.nowMs() - this.readMs
      restMs = sinceMs < 0 ? 0 : HELD_FOR_MS - sinceMs // the clock was set back meanwhile
    }
    this.isWatched = false
    this.release()
  }
}

function bytesOfPacks(gitdir: string): number {
  try {
    const folder = join(gitdir, 'objects', 'pack')
    return readdirSync(folder).reduce((sum, name) => sum + (statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0), 0)
  } catch {
    return 0 // whoever reads them says why
  }
}
