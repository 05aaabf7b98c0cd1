// Names of the folders of sources, and which of them go. Nothing in them is read.
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** Of a repository, and what lies beside it: `UID-12 hex digits`, `….modules`. */
const FOLDER = /^.+-[0-9a-f]{12}(\..*)?$/
export const uidOf = (folder: string): string => folder.slice(0, -13)

/** In the names of folders with secrets; `owner` is the process that made them, where several share the sources. */
export const privateMark = (owner: string): string => (owner === '' ? '.private-' : `.private-${owner}-`)

export async function removeFolders(root: string, isOld: (folder: string) => boolean): Promise<void> {
  const names = await readdir(root).catch(() => [])
  const old = names.filter((name) => FOLDER.test(name) && isOld(name.replace(/\..*$/, '')))
  await Promise.all(old.map((name) => rm(join(root, name), { recursive: true, force: true })))
}

/** What belongs to none of the repositories that are known. */
export const removeUnknownFolders = (root: string, isKnown: (uid: string) => boolean): Promise<void> =>
  removeFolders(root, (folder) => !isKnown(uidOf(folder)))

/** A process that was killed while git ran left its keys there, and whose commit is pinned may never speak again. `owner`: of that one only. */
export function removeLeftSecrets(root: string, owner = ''): void {
  const names = (folder: string) => (existsSync(folder) ? readdirSync(folder) : [])
  const folders = [root, ...names(root).flatMap((name) => (name.endsWith('.modules') ? [join(root, name)] : []))]
  for (const folder of folders)
    for (const name of names(folder)) if (name.includes(privateMark(owner))) rmSync(join(folder, name), { recursive: true, force: true })
}
