// The identity of a renderer in the operator's allow-list, which has no common way to print a version: its command
// line, and everything that it sees.
import { createHash, type Hash } from 'node:crypto'
import { statSync } from 'node:fs'
import { lstat, readdir, readlink, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { PlacedProgram } from './programs.ts'

/** How long a read of the `readOnly` folders counts: everything else is read again each time. */
export const FOLDERS_COUNT_MS = 60_000

export const hasFolders = ({ kind, mounts }: Pick<PlacedProgram, 'kind' | 'mounts'>): boolean =>
  kind === 'exec' && mounts.some(([from]) => mayBeFolder(from))

/** Also an entry that cannot be read now: it is read again. */
function mayBeFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return true
  }
}

/** 16 hex digits. Files by their contents, so that it is the same on another machine; folders, which may be large, by
 *  the names, sizes and times of what is in them. */
export async function execVersion({ command, mounts }: Pick<PlacedProgram, 'command' | 'mounts'>, folders = FOLDERS): Promise<string> {
  const hash = createHash('sha256').update(JSON.stringify(command))
  for (const [from, to] of mounts) {
    hash.update(`\0${to}\0`)
    if ((await stat(from)).isDirectory()) await addFolder(hash, from, folders)
    else for await (const chunk of Bun.file(from).stream()) hash.update(chunk)
  }
  return hash.digest('hex').slice(0, 16)
}

const FOLDERS = { readdir: (folder: string): Promise<string[]> => readdir(folder), lstat, readlink }

/**
 * A file that the server may not read, or that disappeared meanwhile, counts in the identity of the program: the
 * renderer runs without it as well.
 */
const UNSEEN: Readonly<Record<string, string>> = { EACCES: 'unreadable', EPERM: 'unreadable', ENOENT: 'gone' }

async function addFolder(hash: Hash, folder: string, folders: typeof FOLDERS): Promise<void> {
  const names = await seen(hash, folders.readdir(folder))
  for (const name of names?.sort() ?? []) {
    hash.update(`${JSON.stringify(name)} `)
    await addEntry(hash, join(folder, name), folders)
    hash.update('\0')
  }
}

async function addEntry(hash: Hash, path: string, folders: typeof FOLDERS): Promise<void> {
  const found = await seen(hash, folders.lstat(path))
  if (found === null) return
  hash.update(`${found.mode} `)
  if (found.isDirectory()) await addFolder(hash, path, folders)
  else if (found.isSymbolicLink()) hash.update(JSON.stringify(await seen(hash, folders.readlink(path))))
  else hash.update(`${found.size} ${found.mtimeMs}`)
}

async function seen<T>(hash: Hash, looking: Promise<T>): Promise<T | null> {
  try {
    return await looking
  } catch (error) {
    const unseen = UNSEEN[error instanceof Error && 'code' in error ? String(error.code) : '']
    if (unseen === undefined) throw error
    hash.update(unseen)
    return null
  }
}
