// A folder of the content store in memory, with inodes, of which each step waits until a test lets it happen.
import type { ContentFiles } from '../../server/store/content/content-files.ts'

interface Inode {
  bytes: Uint8Array
  mtimeMs: number
}

export interface MemoryFolder {
  names: Map<string, Inode>
  /** For one process: `step` is awaited before each step. */
  files(nowMs: () => number, step: () => Promise<void>): ContentFiles
}

export function createMemoryFolder(): MemoryFolder {
  const names = new Map<string, Inode>()
  return {
    names,
    files: (nowMs, step) => ({
      async list(folder) {
        await step()
        const prefix = folder === '' ? '' : `${folder}/`
        return [
          ...new Set(
            [...names.keys()].filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length).split('/')[0] ?? ''),
          ),
        ]
      },
      async read(path) {
        await step()
        return names.get(path)?.bytes.slice() ?? null
      },
      async stat(path) {
        await step()
        const found = names.get(path)
        return found === undefined ? null : { mtimeMs: found.mtimeMs, bytes: found.bytes.length }
      },
      async writeNew(path, bytes) {
        await step()
        if (names.has(path)) throw new Error(`${path} exists`)
        names.set(path, { bytes: bytes.slice(), mtimeMs: nowMs() })
      },
      async touch(path) {
        await step()
        const found = names.get(path)
        if (found !== undefined) found.mtimeMs = nowMs()
        return found !== undefined
      },
      async rename(from, to) {
        await step()
        const found = names.get(from)
        if (found === undefined) return false
        if (names.get(to) === found) return true // as POSIX has it: two names of one file stay
        names.set(to, found)
        names.delete(from)
        return true
      },
      async link(from, to) {
        await step()
        const found = names.get(from)
        if (found === undefined) return 'missing'
        if (names.has(to)) return 'exists'
        names.set(to, found)
        return 'linked'
      },
      async remove(path) {
        await step()
        names.delete(path)
      },
      sync: () => step(),
    }),
  }
}
