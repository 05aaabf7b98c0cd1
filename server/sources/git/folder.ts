// The bare folder of a repository on the disk: what it weighs, and what a program left in it.
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** Removes locks of programs that were stopped early: no other process writes here, so a lock has no owner. */
export async function removeUnfinished(gitdir: string): Promise<void> {
  const isLeft = (name: string) => name.startsWith('tmp_') || name.endsWith('.lock')
  for (const folder of ['.', 'objects/pack', 'refs/skerry']) {
    const names = await readdir(join(gitdir, folder)).catch(() => [])
    for (const name of names) if (isLeft(name)) await rm(join(gitdir, folder, name), { force: true, recursive: true })
  }
}

/** The size of packs on the disk, finished or not. */
export async function packBytes(gitdir: string): Promise<number> {
  const folder = join(gitdir, 'objects', 'pack')
  const names = await readdir(folder).catch(() => [])
  const sizes = await Promise.all(
    names.map((name) =>
      stat(join(folder, name)).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  )
  return sizes.reduce((sum, size) => sum + size, 0)
}
