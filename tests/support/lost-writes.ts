// What power loss, a lying disk, a copied folder or a backup leave of a process's files. All of it while that process
// is dead.
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import type { Random } from '../../shared/runtime/random.ts'

/** A write-ahead log loses its end, at any byte; the shared memory beside it is gone with the machine. Answers what was
 *  cut off. */
export function cutWal(database: string, random: Random): number {
  rmSync(`${database}-shm`, { force: true })
  const wal = `${database}-wal`
  const size = existsSync(wal) ? statSync(wal).size : 0
  if (size === 0) return 0
  const kept = Math.floor(random() * size)
  truncateSync(wal, kept)
  return size - kept
}

/** What is in the log now is safe from `cutWal`. */
export function checkpoint(database: string): void {
  const db = openSqlite(database)
  db.run('PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
}

/** Its whole log is gone. */
export function dropWal(database: string): void {
  for (const suffix of ['-wal', '-shm']) rmSync(database + suffix, { force: true })
}

/** One bit of the file is another one. */
export function flipBit(path: string, random: Random): void {
  const bytes = readFileSync(path)
  const at = Math.floor(random() * bytes.length)
  bytes[at] = (bytes[at] ?? 0) ^ (1 << Math.floor(random() * 8))
  writeFileSync(path, bytes)
}

/** A copy of a folder that can be put back. */
export function takeCopy(folder: string): { putBack(): void; remove(): void } {
  const copy = `${folder}.copy-${Date.now()}`
  cpSync(folder, copy, { recursive: true, filter: (path) => !path.endsWith('.sock') })
  return {
    putBack: () => {
      for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true })
      cpSync(copy, folder, { recursive: true })
    },
    remove: () => rmSync(copy, { recursive: true, force: true }),
  }
}

export const shardPaths = (dataDir: string): string[] =>
  readdirSync(join(dataDir, 'shards'))
    .filter((name) => name.endsWith('.db'))
    .map((name) => join(dataDir, 'shards', name))

/** Beside it, so that it is on the same disk. */
export const besides = (folder: string, name: string): string => join(dirname(folder), name)
