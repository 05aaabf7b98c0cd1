// Links of an archive become what they lead to: copies of files and folders within it. Pure; what leads out, in circles or to nothing is refused by name.

import { SOURCE_FILES_MAX, SOURCE_PATH_LENGTH_MAX, SOURCE_TREE_BYTES_MAX } from '../source.ts'
import { archiveRefused, quote, type TarEntry } from './tar.ts'

/** Looks that links set off: folders that are empty are no files, and links can multiply them. */
const LOOKS_MAX = 10 * SOURCE_FILES_MAX
/** A name of a thousand characters can be five hundred folders, which no entry has to name. */
const FOLDERS_MAX = 50_000
/** Links that lead to links. */
const LINKS_FOLLOWED_MAX = 40

/** Path → content, sorted by path. Folders without files are not there. */
export function withoutLinks(entries: ReadonlyMap<string, TarEntry>): Map<string, Uint8Array> {
  const children = childrenOf(entries)
  refuseFilesAsFolders(entries, children)
  const found = new Map<string, Uint8Array>()
  let [total, looks] = [0, 0]
  const add = (path: string, bytes: Uint8Array) => {
    if (path.length > SOURCE_PATH_LENGTH_MAX)
      throw archiveRefused(`links make a path longer than ${SOURCE_PATH_LENGTH_MAX} characters: ${quote(path)}`)
    total += bytes.byteLength
    if (found.size >= SOURCE_FILES_MAX) throw archiveRefused(`links make more than ${SOURCE_FILES_MAX} files of it, at ${quote(path)}`)
    if (total > SOURCE_TREE_BYTES_MAX)
      throw archiveRefused(`links make more than ${SOURCE_TREE_BYTES_MAX / 1024 / 1024} MiB of it, at ${quote(path)}`)
    found.set(path, bytes)
  }
  const copy = (from: string, to: string, within: readonly string[]) => {
    if (++looks > LOOKS_MAX) throw archiveRefused(`links make more than ${LOOKS_MAX} places of it, at ${quote(to)}`)
    const entry = entries.get(from)
    if (entry?.kind === 'file') return add(to, entry.bytes)
    if (entry?.kind === 'link') {
      const target = follow(entries, children, from)
      if (within.some((folder) => folder === target || folder.startsWith(`${target}/`)) || target === '')
        throw archiveRefused(`${quote(from)} is a link to a folder that it is in`)
      return copy(target, to, within)
    }
    for (const name of children.get(from) ?? []) copy(join(from, name), join(to, name), from === '' ? within : [...within, from])
  }
  copy('', '', [])
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)))
}

const join = (folder: string, name: string): string => (folder === '' ? name : `${folder}/${name}`)

function refuseFilesAsFolders(entries: ReadonlyMap<string, TarEntry>, children: ReadonlyMap<string, ReadonlySet<string>>): void {
  for (const [path, [name]] of children) {
    const above = entries.get(path)
    if (above !== undefined && above.kind !== 'folder' && name !== undefined)
      throw archiveRefused(`${quote(join(path, name))} is inside of a ${above.kind}`)
  }
}

/** Folders, also those that have no entry of their own → names in them. */
function childrenOf(entries: ReadonlyMap<string, TarEntry>): ReadonlyMap<string, ReadonlySet<string>> {
  const children = new Map<string, Set<string>>()
  for (const [path, { kind }] of entries) {
    let at = path
    for (let isNew = true; isNew && at !== ''; ) {
      const slash = at.lastIndexOf('/')
      const folder = at.slice(0, Math.max(0, slash))
      const held = children.get(folder)
      const name = at.slice(slash + 1)
      isNew = held === undefined
      if (held === undefined) children.set(folder, new Set([name]))
      else held.add(name)
      at = folder
    }
    if (kind === 'folder' && !children.has(path)) children.set(path, new Set())
    if (children.size > FOLDERS_MAX) throw archiveRefused(`more than ${FOLDERS_MAX} folders, at ${quote(path)}`)
  }
  return children
}

/** The file or folder that a link leads to in the end; links on the way are followed, too. */
function follow(entries: ReadonlyMap<string, TarEntry>, children: ReadonlyMap<string, unknown>, link: string): string {
  let followed = 0
  const resolve = (path: string): string => {
    let at = ''
    for (const segment of path.split('/')) {
      at = join(at, segment)
      const entry = entries.get(at)
      if (entry?.kind !== 'link') continue
      if (++followed > LINKS_FOLLOWED_MAX) throw archiveRefused(`${quote(link)} is a link that leads in circles`)
      at = resolve(targetOf(at, entry.to, entry.from))
    }
    return at
  }
  const target = resolve(link)
  if (target !== '' && !entries.has(target) && !children.has(target)) throw archiveRefused(`${quote(link)} is a link to nothing`)
  return target
}

function targetOf(link: string, to: string, from: 'folder' | 'root'): string {
  if (to.startsWith('/') || to.includes('\\') || to === '')
    throw archiveRefused(`${quote(link)} is a link that leads out of it, to ${quote(to)}`)
  const segments = from === 'root' ? [] : link.split('/').slice(0, -1)
  for (const segment of to.split('/')) {
    if (segment === '' || segment === '.') continue
    if (segment !== '..') segments.push(segment)
    else if (segments.pop() === undefined) throw archiveRefused(`${quote(link)} is a link that leads out of it, to ${quote(to)}`)
  }
  return segments.join('/')
}
