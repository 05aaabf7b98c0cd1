// The folders of sources: their names, and removal of unused ones. Reads no content.
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** The folder of a repository is `UID-12 hex digits`, that of its submodules has `.modules` behind it. */
const FOLDER = /^.+-[0-9a-f]{12}(\..*)?$/
export const uidOf = (folder: string): string => folder.slice(0, -13)

/** Part of the names of folders with secrets. `owner` is the process that made them, if several share the sources. */
export const privateMark = (owner: string): string => (owner === '' ? '.private-' : `.private-${owner}-`)

export async function removeFolders(root: string, isOld: (folder: string) => boolean): Promise<void> {
  const names = await readdir(root).catch(() => [])
  const old = names.filter((name) => FOLDER.test(name) && isOld(name.replace(/\..*$/, '')))
  await Promise.all(old.map((name) => rm(join(root, name), { recursive: true, force: true })))
}

/** Begins the uids of remote bases, which no resource names. */
export const BASE_UID_PREFIX = 'remote-base-'

/** Removes the folders of unknown repositories and spares those of remote bases. */
export const removeUnknownFolders = (root: string, isKnown: (uid: string) => boolean): Promise<void> =>
  removeFolders(root, (folder) => !isBase(folder) && !isKnown(uidOf(folder)))

/** Removes the folders of all remote bases but these. */
export const removeUnusedBases = (root: string, uids: ReadonlySet<string>): Promise<void> =>
  removeFolders(root, (folder) => isBase(folder) && !uids.has(uidOf(folder)))

const isBase = (folder: string): boolean => folder.startsWith(BASE_UID_PREFIX)

/** Removes keys that a process left when it was killed while git ran. `owner` limits it to the folders of one process.
 */
export function removeLeftSecrets(root: string, owner = ''): void {
  const names = (folder: string) => (existsSync(folder) ? readdirSync(folder) : [])
  const folders = [root, ...names(root).flatMap((name) => (name.endsWith('.modules') ? [join(root, name)] : []))]
  for (const folder of folders)
    for (const name of names(folder)) if (name.includes(privateMark(owner))) rmSync(join(folder, name), { recursive: true, force: true })
}
