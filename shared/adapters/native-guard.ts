// Keeps native code from ending a program at every start: a doubtful file is tried in a child process, and a file that
// was being opened when processes died is set aside.
import { existsSync, renameSync, rmSync } from 'node:fs'
import type { Opening } from './crdt-db.ts'
import { trialInChild, tryCrdtFiles } from './crdt-trial.ts'
import type { RunRecord } from './run-record.ts'

export interface NativeGuard {
  /** Why native code must not open a file, by path. Doubtful files are tried first. Default: they are doubtful if the
   *  previous process died. */
  refusals(paths: readonly string[], doubtful?: boolean): ReadonlyMap<string, string>
  /** If this process dies in it, the next one knows of the file. */
  opening: Opening
}

export interface NativeGuardOptions {
  run: RunRecord
  libraryDir: string
  /** Processes in a row that may die while they open a file before it is set aside, whatever a child process says of
   *  it. */
  deathsMax: number
  /** Default: a child process. */
  tryFiles?: (paths: readonly string[]) => ReadonlyMap<string, string>
}

export function createNativeGuard({ run, libraryDir, deathsMax, tryFiles }: NativeGuardOptions): NativeGuard {
  const attempt = tryFiles ?? ((paths) => tryCrdtFiles(paths, trialInChild(libraryDir)))
  return {
    refusals(paths, doubtful = run.died) {
      const deadly = paths.filter((path) => run.deathsAt(path) >= deathsMax)
      const refused = new Map(
        deadly.map((path) => [path, `the last process crashed while it opened the file (${run.deathsAt(path)} in a row)`]),
      )
      const tried = paths.filter((path) => !refused.has(path) && (doubtful || run.deathsAt(path) > 0))
      // Where memory is short a child can be what ends the process: it is not tried twice in a row.
      if (tried.length > 0 && !run.diedTrying) for (const [path, why] of run.trying(() => attempt(tried))) refused.set(path, why)
      return refused
    },
    opening: run.opening,
  }
}

export const asidePath = (path: string): string => `${path}.aside`

/** Keeps the file under another name, for a person who investigates; one of each name at most. Its log goes with it. */
export function setAside(path: string): void {
  for (const suffix of ['', '-wal']) {
    rmSync(asidePath(path) + suffix, { force: true })
    if (existsSync(path + suffix)) renameSync(path + suffix, asidePath(path) + suffix)
  }
  rmSync(`${path}-shm`, { force: true })
}
