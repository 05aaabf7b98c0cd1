// How many files this process has open, connections among them, and how many it may open. Connections must leave some
// to the store, shards and sources: without a free file the process can neither accept a connection nor read a
// database.
import { readdirSync, readFileSync, statSync } from 'node:fs'

export interface OpenFiles {
  /** The limit of this process. */
  max: number
  /** Open now. Null when the kernel does not tell. */
  count(): number | null
}

/** Where the limit cannot be read. */
const OPEN_FILES_DEFAULT = 1_024
const OWN_FILES = '/proc/self/fd'

export const ownOpenFiles = (): OpenFiles => ({ max: readMax(), count: countOpen })

function readMax(): number {
  try {
    const found = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
    return found === undefined ? OPEN_FILES_DEFAULT : Number(found)
  } catch {
    return OPEN_FILES_DEFAULT
  }
}

function countOpen(): number | null {
  try {
    const { size } = statSync(OWN_FILES) // the number of files, since Linux 6.2
    return size > 0 ? size : readdirSync(OWN_FILES).length
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EMFILE' ? Number.POSITIVE_INFINITY : null
  }
}
