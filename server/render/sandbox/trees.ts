// Files of renders on the disk, below one private folder: what a run has for itself goes with the run, what runs share
// stays for a while.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { AppError } from '../../../shared/runtime/error.ts'
import { describeError } from '../../../shared/runtime/loop.ts'
import { planFiles, type SharedFolder } from './files.ts'

/** Limits of process trees that no run uses at the moment. */
export interface IdleLimits {
  trees: number
  bytes: number
}
/** SB8: limits of the folders that are kept although no run uses them. */
export const IDLE_LIMITS: IdleLimits = { trees: 32, bytes: 128 * 1024 * 1024 }
const WRITES_AT_ONCE = 32
/** So little is written, and removed, without waiting: that takes less time than to wait for it. */
const FEW_FILES = 8
const FEW_BYTES = 128 * 1024

export interface PlacedFiles {
  /** All that is not in a shared folder; each of those has an empty folder of its name here. Null means that all is in
   *  shared folders. */
  dir: string | null
  shared: ReadonlyArray<{ name: string; dir: string }>
  /** Gone are the run's own files then. */
  release(): Promise<void>
}

export interface Trees {
  /** `whole`: nothing is shared, because nothing can be mounted. */
  place(files: ReadonlyMap<string, Uint8Array>, whole: boolean): Promise<PlacedFiles>
  close(): Promise<void>
}

interface HeldTree {
  dir: string
  ready: Promise<void>
  users: number
  bytes: number
}

/** `root` is emptied: a server that was killed left its trees there. */
export function createTrees(root: string, idle: IdleLimits = IDLE_LIMITS): Trees {
  rmSync(root, { recursive: true, force: true })
  mkdirSync(root, { recursive: true, mode: 0o700 })
  /** In the order of their last use. */
  const held = new Map<string, HeldTree>()
  let made = 0

  const newTree = ({ id, files, bytes }: SharedFolder): HeldTree => {
    made += 1
    const dir = join(root, `tree-${id.slice(0, 16)}-${made}`) // a name of its own: one of the same files may just be going
    return { dir, ready: writeAll(dir, files), users: 0, bytes }
  }
  const take = async (folder: SharedFolder): Promise<HeldTree> => {
    const known = held.get(folder.id)
    const tree = known ?? newTree(folder)
    tree.users += 1
    held.delete(folder.id)
    held.set(folder.id, tree)
    try {
      await tree.ready
      return tree
    } catch (error) {
      tree.users -= 1
      if (held.get(folder.id) === tree) held.delete(folder.id)
      if (tree.users === 0) await rm(tree.dir, { recursive: true, force: true })
      throw error
    }
  }
  const dropIdle = async (): Promise<void> => {
    const unused = [...held].filter(([, { users }]) => users === 0)
    let count = unused.length
    let bytes = unused.reduce((sum, [, tree]) => sum + tree.bytes, 0)
    const dropped: string[] = []
    for (const [id, tree] of unused) {
      if (count <= idle.trees && bytes <= idle.bytes) break
      held.delete(id)
      dropped.push(tree.dir)
      count -= 1
      bytes -= tree.bytes
    }
    await Promise.all(dropped.map((dir) => rm(dir, { recursive: true, force: true })))
  }

  return {
    async place(files, whole) {
      const plan = planFiles(files)
      const { own, shared } = whole ? { own: files, shared: [] } : plan
      const dir = own.size === 0 && !whole ? null : mkdtempSync(join(root, 'run-'))
      const trees: HeldTree[] = []
      const release = async () => {
        for (const tree of trees.splice(0)) tree.users -= 1
        if (dir !== null && areFew(own)) rmSync(dir, { recursive: true, force: true })
        else if (dir !== null) await rm(dir, { recursive: true, force: true })
        await dropIdle()
      }
      try {
        if (dir !== null) await writeAll(dir, own)
        for (const folder of shared) {
          trees.push(await take(folder))
          if (dir !== null) mkdirSync(join(dir, folder.name), { mode: 0o700 })
        }
      } catch (error) {
        await release()
        throw error
      }
      return { dir, shared: shared.map(({ name }, index) => ({ name, dir: trees[index]?.dir ?? '' })), release }
    },
    async close() {
      await rm(root, { recursive: true, force: true })
    },
  }
}

async function writeAll(dir: string, files: ReadonlyMap<string, Uint8Array>): Promise<void> {
  try {
    const folders = new Set([...files.keys()].map((path) => dirname(join(dir, path))))
    mkdirSync(dir, { recursive: true, mode: 0o700 })
    if (areFew(files)) {
      for (const folder of folders) mkdirSync(folder, { recursive: true, mode: 0o700 })
      for (const [path, bytes] of files) writeFileSync(join(dir, path), bytes, { mode: 0o600 })
      return
    }
    for (const folder of folders) await mkdir(folder, { recursive: true, mode: 0o700 })
    const entries = [...files]
    for (let at = 0; at < entries.length; at += WRITES_AT_ONCE)
      await Promise.all(entries.slice(at, at + WRITES_AT_ONCE).map(([path, bytes]) => writeFile(join(dir, path), bytes, { mode: 0o600 })))
  } catch (error) {
    const full = error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT')
    throw new AppError(
      full ? 'disk_full' : 'internal',
      { doing: 'write the files of a render', detail: describeError(error) },
      { cause: error },
    )
  }
}

function areFew(files: ReadonlyMap<string, Uint8Array>): boolean {
  if (files.size > FEW_FILES) return false
  let bytes = 0
  for (const { byteLength } of files.values()) bytes += byteLength
  return bytes <= FEW_BYTES
}
