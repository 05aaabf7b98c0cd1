// The operations of the content store and its collection on a folder. Each happens whole or not at all, so that a test
// can put any other between two.
import { constants, copyFile, link, mkdir, open, readdir, readFile, rename, stat, unlink, utimes } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Clock } from '../../../shared/runtime/clock.ts'

/** Paths are below the store's folder, with `/`. */
export interface ContentFiles {
  /** Names in a folder, '' for the top one; none if it is not there. */
  list(folder: string): Promise<string[]>
  /** Null if there is none. */
  read(path: string): Promise<Uint8Array | null>
  /** Null if there is none. */
  stat(path: string): Promise<{ mtimeMs: number; bytes: number } | null>
  /** Whole and synced, of now; its folder is made. The name must be new. */
  writeNew(path: string, bytes: Uint8Array): Promise<void>
  /** Makes it of now. False: there is none. */
  touch(path: string): Promise<boolean>
  /** Takes the place of what has that name. False: there is none. */
  rename(from: string, to: string): Promise<boolean>
  /** A second name, if nothing has it. */
  link(from: string, to: string): Promise<'linked' | 'exists' | 'missing'>
  remove(path: string): Promise<void>
  /** The names in a folder are on the disk. */
  sync(folder: string): Promise<void>
}

export function contentFilesIn(root: string, clock: Clock): ContentFiles {
  const at = (path: string) => join(root, path)
  const now = () => new Date(clock.nowMs())
  return {
    list: async (folder) => (await orMissing(readdir(at(folder)))) ?? [],
    async read(path) {
      const bytes = await orMissing(readFile(at(path)))
      return bytes === null ? null : new Uint8Array(bytes)
    },
    async stat(path) {
      const found = await orMissing(stat(at(path)))
      return found === null ? null : { mtimeMs: found.mtimeMs, bytes: found.size }
    },
    async writeNew(path, bytes) {
      await mkdir(dirname(at(path)), { recursive: true })
      const file = await open(at(path), 'wx')
      try {
        await file.writeFile(bytes)
        await file.utimes(now(), now())
        await file.sync()
      } finally {
        await file.close()
      }
    },
    touch: async (path) => (await orMissing(utimes(at(path), now(), now()).then(() => true))) ?? false,
    rename: async (from, to) => (await orMissing(rename(at(from), at(to)).then(() => true))) ?? false,
    async link(from, to) {
      try {
        await link(at(from), at(to))
        return 'linked'
      } catch (error) {
        if (hasCode(error, 'EEXIST')) return 'exists'
        if (hasCode(error, 'ENOENT')) return 'missing'
        if (!hasCode(error, 'EPERM', 'ENOTSUP', 'ENOSYS')) throw error
        return copy(at(from), at(to)) // a file system without hard links
      }
    },
    remove: async (path) => void (await orMissing(unlink(at(path)))),
    async sync(folder) {
      const opened = await open(at(folder), 'r')
      try {
        await opened.sync()
      } finally {
        await opened.close()
      }
    },
  }
}

async function copy(from: string, to: string): Promise<'linked' | 'exists' | 'missing'> {
  try {
    await copyFile(from, to, constants.COPYFILE_EXCL)
    return 'linked'
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return 'exists'
    if (hasCode(error, 'ENOENT')) return 'missing'
    throw error
  }
}

const hasCode = (error: unknown, ...codes: string[]): boolean =>
  error instanceof Error && 'code' in error && codes.includes(String(error.code))

function orMissing<T>(work: Promise<T>): Promise<T | null> {
  return work.catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return null
    throw error
  })
}
