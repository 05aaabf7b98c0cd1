// What a renderer of the operator's allow-list is, whose ways to tell its version nobody knows: its command line, and everything that it sees.
import { createHash, type Hash } from 'node:crypto'
import { statSync } from 'node:fs'
import { lstat, readdir, readlink, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { PlacedProgram } from './programs.ts'

/** How long a look at the folders of `readOnly` counts: whatever else it sees is looked at anew each time. */
export const FOLDERS_COUNT_MS = 60_000

export const hasFolders = ({ kind, mounts }: PlacedProgram): boolean =>
  kind === 'exec' && mounts.some(([from]) => statSync(from, { throwIfNoEntry: false })?.isDirectory() === true)

/** 16 hex digits. Files by their contents, so that it is the same on another machine; folders, which may be large, by the names, sizes and times of what is in them. */
export async function execVersion({ command, mounts }: PlacedProgram): Promise<string> {
  const hash = createHash('sha256').update(JSON.stringify(command))
  for (const [from, to] of mounts) {
    hash.update(`\0${to}\0`)
    if ((await stat(from)).isDirectory()) await addFolder(hash, from)
    else for await (const chunk of Bun.file(from).stream()) hash.update(chunk)
  }
  return hash.digest('hex').slice(0, 16)
}

async function addFolder(hash: Hash, folder: string): Promise<void> {
  for (const name of (await readdir(folder)).sort()) {
    const path = join(folder, name)
    const found = await lstat(path)
    hash.update(`${JSON.stringify(name)} ${found.mode} `)
    if (found.isDirectory()) await addFolder(hash, path)
    else if (found.isSymbolicLink()) hash.update(JSON.stringify(await readlink(path)))
    else hash.update(`${found.size} ${found.mtimeMs}`)
    hash.update('\0')
  }
}
