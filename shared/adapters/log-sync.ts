// Durability without a blocked thread. SQLite's own way (synchronous=FULL) waits for the disk inside of each commit: 1
// to 3 ms on a disk of a cloud machine, tens on the memory card of a small one, and nothing else of the process runs
// meanwhile. A database with synchronous=NORMAL commits into its write-ahead log without waiting. A caller whose commit
// must survive a power failure waits here until the log is on the disk. Callers that wait at one time share one sync.
import { closeSync, fdatasync, fdatasyncSync, openSync } from 'node:fs'
import { AppError } from '../runtime/error.ts'

export interface LogSync {
  /** Resolves when everything that was committed before the call is on the disk. Throws `data_unusable` when the disk
   *  refuses, and from then on always: the kernel drops pages that it could not write, so that a later sync would
   *  succeed without them. */
  settled(): Promise<void>
  /** The same on this thread, before anything else happens. */
  settle(): void
  close(): void
}

export interface LogFile {
  sync(done: (error: Error | null) => void): void
  syncNow(): void
  close(): void
}

/** For disposable files: simulated processes, databases in memory. */
export const NO_LOG: LogFile = { sync: (done) => done(null), syncNow: () => {}, close: () => {} }

/** The log of a database that is open with `journal_mode=WAL`; the file must not be closed by its last connection
 *  meanwhile. */
function logFileOf(databasePath: string): LogFile {
  const fd = openSync(`${databasePath}-wal`, 'r')
  return { sync: (done) => fdatasync(fd, done), syncNow: () => fdatasyncSync(fd), close: () => closeSync(fd) }
}

export function createLogSync(path: string, file: LogFile = logFileOf(path)): LogSync {
  let running: Promise<void> | null = null
  let next: Promise<void> | null = null
  let refused: AppError | null = null
  let isClosed = false

  const refuse = (cause: unknown): AppError => {
    refused ??= new AppError(
      'data_unusable',
      {
        doing: 'write to the disk',
        detail: `${path}-wal: ${cause instanceof Error ? cause.message : cause}; writes have stopped`,
        remedy: 'Check the disk and its file system, then start again: the last writes may be missing.',
      },
      { cause },
    )
    return refused
  }
  const closeUnused = () => {
    if (isClosed && running === null && next === null) file.close()
  }
  const begin = (): Promise<void> => {
    const mine = new Promise<void>((resolve, reject) => file.sync((error) => (error === null ? resolve() : reject(refuse(error)))))
    running = mine
    const ended = () => {
      running = null
      closeUnused()
    }
    mine.then(ended, ended)
    return mine
  }

  return {
    settled: () => {
      if (refused !== null) return Promise.reject(refused)
      if (running === null) return begin()
      // A commit during a sync may have come too late for it.
      const after = () => {
        next = null
        if (refused === null) return begin()
        closeUnused()
        return Promise.reject(refused)
      }
      next ??= running.then(after, after)
      return next
    },
    settle: () => {
      if (refused !== null) throw refused
      try {
        file.syncNow()
      } catch (error) {
        throw refuse(error)
      }
    },
    close: () => {
      isClosed = true
      closeUnused()
    },
  }
}
