// RP4: reserved space in the data folder for a full disk. The first write that fails releases it, so that the agent can
// still record changes and report the full disk. The reserve is created again when there is space for it twice.
import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, openSync, rmSync, statfsSync, statSync, truncateSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { isDiskFull } from '../../shared/adapters/sqlite.ts'
import { agentProblem } from '../messages/site-messages.ts'

/** The log of a state file between two checkpoints, or a delta of some thousand rows. */
export const RESERVE_BYTES = 4 * 1_024 * 1_024
/** The part that is kept even then: an agent that is restarted on a full disk has to open its files, whose logs need
 *  an index. */
export const START_BYTES = 256 * 1_024

export interface DiskReserve {
  /** A write found no space. For the opening of a file the rest is given, too. */
  giveBack(to: 'write' | 'open'): void
  /** Makes it where there is space. Cheap while it is there. */
  restock(): void
  /** Null, or the message from the first failed write until there is a reserve again. */
  problem(): string | null
}

/** `onChange`: the problem appeared, or was resolved. */
export function createDiskReserve(dir: string, onChange: () => unknown = () => {}): DiskReserve {
  const path = join(dir, 'reserve')
  let problem: string | null = null
  const size = () => statSync(path, { throwIfNoEntry: false })?.size ?? 0
  return {
    giveBack(to) {
      if (to === 'open') rmSync(path, { force: true })
      else if (size() > START_BYTES) truncateSync(path, START_BYTES)
      if (problem !== null) return
      problem = agentProblem('disk_full', { folder: dir }).message
      onChange()
    },
    restock() {
      if (size() !== RESERVE_BYTES && !(hasSpace(dir) && make(path, RESERVE_BYTES))) {
        for (let bytes = START_BYTES; size() === 0 && bytes >= START_BYTES / 4; bytes /= 2) make(path, bytes)
        return
      }
      if (problem === null) return
      problem = null
      onChange()
    },
    problem: () => problem,
  }
}

function hasSpace(dir: string): boolean {
  const { bavail, bsize } = statfsSync(dir)
  return bavail * bsize >= 2 * RESERVE_BYTES
}

function make(path: string, size: number): boolean {
  try {
    const file = openSync(path, 'w', 0o600)
    try {
      const bytes = randomBytes(size) // zeros would take no blocks on a file system that compresses
      for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    return true
  } catch (error) {
    rmSync(path, { force: true })
    if (isDiskFull(error)) return false
    throw error
  }
}
