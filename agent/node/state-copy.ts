// A copy of the agent's state while a new version is tried. The new version migrates the state at its start, and the
// earlier version refuses a migrated state (`store_newer`), so a rollback of the program needs the state from before.
// The agent must not run at a call.
import { chownSync, copyFileSync, existsSync, mkdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { openSqlite } from '../../shared/adapters/sqlite.ts'

const FILE = 'agent.sqlite'
/** The log holds what is not in the file yet. */
const PARTS = ['', '-wal'] as const

export interface StateCopy {
  /** True if the state had been migrated since, and is now as it was. Reports since then are sent again, and applied
   *  objects are found by their labels. */
  putBackIfMigrated(): boolean
  remove(): void
}

/** `copyDir` is readable by this user alone: the state has the inventory of the site. */
export function copyState(dataDir: string, copyDir: string): StateCopy {
  const take = (from: string, to: string) => {
    rmSync(to, { recursive: true, force: true })
    mkdirSync(to, { recursive: true, mode: 0o700 })
    for (const part of PARTS) if (existsSync(join(from, FILE + part))) copyFileSync(join(from, FILE + part), join(to, FILE + part))
  }
  take(dataDir, copyDir)
  const remove = () => rmSync(copyDir, { recursive: true, force: true })
  return {
    remove,
    putBackIfMigrated() {
      const state = join(dataDir, FILE)
      if (!existsSync(join(copyDir, FILE)) || !existsSync(state)) return false
      // Not read in place: SQLite would make files there that the agent's user cannot open.
      const now = join(copyDir, 'now')
      take(dataDir, now)
      if (schemaOf(now) === schemaOf(copyDir)) return false
      const { uid, gid } = statSync(state)
      rmSync(`${state}-shm`, { force: true })
      rmSync(`${state}-wal`, { force: true })
      for (const part of PARTS) {
        if (!existsSync(join(copyDir, FILE + part))) continue
        copyFileSync(join(copyDir, FILE + part), state + part)
        chownSync(state + part, uid, gid)
      }
      return true
    },
  }
}

/** In a folder of its own, so that the files that SQLite adds while it reads are not part of a copy. */
function schemaOf(folder: string): number {
  const trial = join(folder, 'read')
  mkdirSync(trial, { recursive: true, mode: 0o700 })
  for (const part of PARTS) if (existsSync(join(folder, FILE + part))) copyFileSync(join(folder, FILE + part), join(trial, FILE + part))
  const db = openSqlite(join(trial, FILE))
  try {
    return db.query<{ user_version: number }, []>('PRAGMA user_version').get()?.user_version ?? 0
  } finally {
    db.close()
    rmSync(trial, { recursive: true, force: true })
  }
}
