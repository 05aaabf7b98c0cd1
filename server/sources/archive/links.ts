// Links of an archive become what they lead to: copies of files and folders within it. Pure; what leads out, in circles
// or to nothing is refused by name.

import { SOURCE_FILES_MAX, SOURCE_PATH_LENGTH_MAX, SOURCE_TREE_BYTES_MAX } from '../source.ts'
import { archiveRefused, quote, type TarEntry } from './tar.ts'

/** Looks that links set off: folders that are empty are no files, and links can multiply them. */
const LOOKS_MAX = 10 * SOURCE_FILES_MAX
/** A name of a thousand characters can be five hundred folders, which no entry has to name. */
const FOLDERS_MAX = 50_000
/** Links that lead to links. */
const LINKS_FOLLOWED_MAX = 40
/** Folders that links lead through, all links together: a link can name five hundred, and there can be thousands of
 *  links. */
export const LINK_STEPS_MAX = 200_000

/** Path → content, sorted by path. Folders without files are not there. Throws `source_refused` for a link that leads
 *  out, in circles, to nothing or into a folder that it is in, and past the limits above and those of source.ts. */
export function withoutLinks(entries: ReadonlyMap<string, TarEntry>): Map<string, Uint8Array> {
  const children = childrenOf(entries)
  refuseFilesAsFolders(entries, children)
  const links = new Links(entries, children)
  const open = new OpenFolders()
  const found = new Map<string, Uint8Array>()
  let [total, looks] = [0, 0]
  const add = (path: string, bytes: Uint8Array) => {
    total += bytes.byteLength
    if (found.size >= SOURCE_FILES_MAX)
      throw archiveRefused(`with links expanded it has more than ${SOURCE_FILES_MAX} files, at ${quote(path)}`)
    if (total > SOURCE_TREE_BYTES_MAX)
      throw archiveRefused(`with links expanded it is larger than ${SOURCE_TREE_BYTES_MAX / 1024 / 1024} MiB, at ${quote(path)}`)
    found.set(path, bytes)
  }
  const copy = (from: string, to: string) => {
    if (++looks > LOOKS_MAX) throw archiveRefused(`with links expanded it has more than ${LOOKS_MAX} paths, at ${quote(to)}`)
    if (to.length > SOURCE_PATH_LENGTH_MAX)
      throw archiveRefused(`with links expanded a path is longer than ${SOURCE_PATH_LENGTH_MAX} characters: ${quote(to)}`)
    const entry = entries.get(from)
    if (entry?.kind === 'file') return add(to, entry.bytes)
    if (entry?.kind === 'link') return copyTarget(from, to)
    open.enter(from)
    for (const name of children.get(from) ?? []) copy(join(from, name), join(to, name))
    open.leave(from)
  }
  const copyTarget = (link: string, to: string) => {
    const target = links.follow(link)
    if (target === '' || open.has(target)) throw archiveRefused(`${quote(link)} is a link to a folder that contains it`)
    // Only a folder can be one that the link is in.
    const above = children.has(target) ? foldersAbove(target) : []
    links.charge(link, above.length)
    for (const folder of above) open.enter(folder)
    copy(target, to)
    for (const folder of above) open.leave(folder)
  }
  copy('', '')
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)))
}

const join = (folder: string, name: string): string => (folder === '' ? name : `${folder}/${name}`)

/** `a/b/c` → a, a/b. */
function foldersAbove(path: string): string[] {
  const above: string[] = []
  for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) above.push(path.slice(0, at))
  return above
}

/** Folders that are being copied, and those that they are in. */
class OpenFolders {
  private readonly counts = new Map<string, number>()

  has(folder: string): boolean {
    return this.counts.has(folder)
  }

  enter(folder: string): void {
    this.counts.set(folder, (this.counts.get(folder) ?? 0) + 1)
  }

  leave(folder: string): void {
    const left = (this.counts.get(folder) ?? 0) - 1
    if (left > 0) this.counts.set(folder, left)
    else this.counts.delete(folder)
  }
}

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

class Links {
  private readonly entries: ReadonlyMap<string, TarEntry>
  private readonly children: ReadonlyMap<string, unknown>
  /** `hops`: over so many links. */
  private readonly known = new Map<string, { target: string; hops: number }>()
  private steps = 0

  constructor(entries: ReadonlyMap<string, TarEntry>, children: ReadonlyMap<string, unknown>) {
    this.entries = entries
    this.children = children
  }

  charge(link: string, steps: number): void {
    this.steps += steps
    if (this.steps > LINK_STEPS_MAX)
      throw archiveRefused(`its links lead through more than ${LINK_STEPS_MAX} folders, at ${quote(link)}: replace them by copies`)
  }

  /** The file or folder that a link leads to in the end; links on the way are followed, too, at most 40. */
  follow(link: string): string {
    const { target } = this.resolve(link, 0, link)
    if (target !== '' && !this.entries.has(target) && !this.children.has(target)) throw archiveRefused(`${quote(link)} is a broken link`)
    return target
  }

  /** `before`: links that were followed until here. */
  private resolve(link: string, before: number, asked: string): { target: string; hops: number } {
    const entry = this.entries.get(link)
    if (entry?.kind !== 'link') return { target: link, hops: 0 }
    const held = this.known.get(link)
    if (before + (held?.hops ?? 1) > LINKS_FOLLOWED_MAX) throw archiveRefused(`${quote(asked)} is a circular link`)
    if (held !== undefined) return held
    const path = targetOf(link, entry.to, entry.from)
    // The folder of the link is no link, and nor is what it has in common with the path.
    let at = path.slice(0, sharedFolders(link, path))
    let hops = 1
    for (const name of path.slice(at === '' ? 0 : at.length + 1).split('/')) {
      this.charge(asked, 1)
      const next = this.resolve(join(at, name), before + hops, asked)
      at = next.target
      hops += next.hops
    }
    const result = { target: at, hops }
    this.known.set(link, result)
    return result
  }
}

/** Length of the folders that both paths begin with: 3 for `a/b/c` and `a/b/d`; at most those above the last name of
 *  each. */
function sharedFolders(a: string, b: string): number {
  let shared = 0
  for (let at = 0; at < a.length && a[at] === b[at]; at++) if (a[at] === '/') shared = at
  return shared
}

function targetOf(link: string, to: string, from: 'folder' | 'root'): string {
  if (to.startsWith('/') || to.includes('\\') || to === '')
    throw archiveRefused(`${quote(link)} is a link that leads outside, to ${quote(to)}`)
  const segments = from === 'root' ? [] : link.split('/').slice(0, -1)
  for (const segment of to.split('/')) {
    if (segment === '' || segment === '.') continue
    if (segment !== '..') segments.push(segment)
    else if (segments.pop() === undefined) throw archiveRefused(`${quote(link)} is a link that leads outside, to ${quote(to)}`)
  }
  return segments.join('/')
}
