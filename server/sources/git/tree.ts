// A commit as files. Links are followed as text, inside the repository only; whoever follows one in circles, or out of it, is refused by name. A folder's id covers what its
// links lead to, so that equal ids are equal bytes.
import { sha256Hex } from '../../../shared/kube/canonical.ts'
import { AppError } from '../../../shared/protocol/error.ts'
import { SizedCache } from '../sized-cache.ts'
import {
  pathSegments,
  SOURCE_FILES_MAX,
  SOURCE_PATH_LENGTH_MAX,
  SOURCE_TREE_BYTES_MAX,
  type SourceEntry,
  type SourceFile,
  type SourceTree,
} from '../source.ts'
import type { BlobWanted, GitEntry, GitFolder, GitObjects } from './objects.ts'

export const LINK_HOPS_MAX = 40
/** That one call looks into: links can make a few folders look like many. */
const FOLDERS_MAX = 50_000
/** In those folders: a few trees that hold each other again and again look like as many as one likes. */
const ENTRIES_MAX = 1_000_000
/** Links that one id looks behind. */
const LINKS_LOOKED_MAX = 20_000
/** Enough to see that one is too long. */
const TARGET_BYTES_KEPT = 5 * 1024
const LFS_POINTER = Buffer.from('version https://git-lfs.github.com/spec/v1')

/** Of a submodule at the commit that is named; null: they are not asked for. */
export type OpenSubmodule = (path: string, commit: string) => Promise<SourceTree | null>

type ModulePlace = { kind: 'module'; tree: SourceTree; path: string; rest: string }
type Place = { kind: 'file' | 'folder'; oid: string; path: string } | ModulePlace | { kind: 'submodule'; oid: string; path: string }

interface Frame {
  /** As it was asked for. */
  path: string
  /** Where it is, without links. */
  real: string
  oid: string
  above: Frame | null
}

export interface GitTreeOptions {
  /** Id of the root's tree. */
  root: string
  objects: GitObjects
  openSubmodule: OpenSubmodule
  /** Paths of links below a tree, by its id: known once, known for ever. */
  links: SizedCache<readonly string[]>
}

export const createLinkCache = (): SizedCache<readonly string[]> => new SizedCache(50_000, (links) => links.length + 1)

export class GitTree implements SourceTree {
  private readonly options: GitTreeOptions
  /** Of links, by the id of their content. */
  private readonly targets = new Map<string, string>()

  constructor(options: GitTreeOptions) {
    this.options = options
  }

  async id(path: string): Promise<string | null> {
    const place = await this.find(path)
    return place === null ? null : this.idOf(place, new Ids())
  }

  async list(path: string): Promise<SourceEntry[] | null> {
    const place = await this.find(path)
    if (place?.kind === 'module') return place.tree.list(place.rest)
    if (place?.kind !== 'folder') return null
    const ids = new Ids()
    const listed: SourceEntry[] = []
    for (const entry of (await this.folder(place.oid)).values()) listed.push(await this.entry(place.path, entry, ids))
    return listed.sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  async file(path: string): Promise<SourceFile | null> {
    const place = await this.find(path)
    if (place === null || place.kind === 'folder') return null
    if (place.kind === 'module') return place.rest === '' ? null : place.tree.file(place.rest)
    if (place.kind === 'submodule') throw refusedSubmodule(place.path)
    const held = await this.options.objects.blobs([{ path, oid: place.oid }])
    return { oid: place.oid, bytes: contentOf(path, place.oid, held) }
  }

  async files(path: string, wanted: (path: string) => boolean): Promise<Map<string, SourceFile>> {
    return this.collect(await this.walk(path, wanted))
  }

  /** Of the files that `files` gives, in this repository itself. */
  async contentIds(path: string, wanted: (path: string) => boolean): Promise<string[]> {
    return (await this.walk(path, wanted)).found.map(({ oid }) => oid)
  }

  /** Paths of submodules, wherever they are; none of them is opened. */
  async submodules(): Promise<string[]> {
    const found: string[] = []
    await this.below(this.options.root, false, (path, { kind }) => {
      if (kind === 'submodule') found.push(path)
    })
    return found
  }

  private async walk(path: string, wanted: (path: string) => boolean): Promise<Walk> {
    const { objects } = this.options
    const asked = pathSegments(path).join('/')
    const walk = new Walk(path, wanted)
    const place = await this.find(asked)
    if (place === null) return walk
    if (place.kind === 'submodule') throw refusedSubmodule(place.path)
    if (place.kind === 'file') throw refused(`${path} is a file, not a folder`)
    if (place.kind === 'module') await this.enterModule(walk, place, asked)
    let level: Frame[] = place.kind === 'module' ? [] : [{ path: asked, real: place.path, oid: place.oid, above: null }]
    while (level.length > 0) {
      const folders = await objects.folders(level.map(({ oid }) => oid))
      await objects.bring(folders.flatMap(linkIds))
      const below: Frame[] = []
      for (const [at, frame] of level.entries())
        for (const entry of folders[at]?.values() ?? []) {
          walk.count.entry()
          await this.enter(walk, frame, entry, below)
        }
      level = below
    }
    return walk
  }

  private async enterModule(walk: Walk, { tree, rest }: ModulePlace, path: string): Promise<void> {
    walk.add(moved(rest, path, await tree.files(rest, (file) => walk.wanted(rebased(file, rest, path)))))
  }

  private async enter(walk: Walk, frame: Frame, entry: GitEntry, below: Frame[]): Promise<void> {
    checkName(frame.path, entry.name)
    const path = joined(frame.path, entry.name)
    const real = joined(frame.real, entry.name)
    if (path.length > SOURCE_PATH_LENGTH_MAX)
      throw refused(`a path under ${frame.path} is longer than ${SOURCE_PATH_LENGTH_MAX} characters`)
    if (entry.kind === 'file') return walk.take(path, entry.oid)
    // A folder is asked for with a slash at its end, so that a whole one can be left out.
    const asFolder = walk.wanted(`${path}/`)
    if (entry.kind === 'folder') {
      if (!asFolder) return
      walk.count.folder()
      below.push({ path, real, oid: entry.oid, above: frame })
      return
    }
    if (!asFolder && !(entry.kind === 'link' && walk.wanted(path))) return
    const place = await this.find(real)
    if (place === null) throw refused(`${path} is a link to something that the repository does not have`)
    if (place.kind === 'submodule') throw refusedSubmodule(path)
    if (place.kind === 'file') return walk.take(path, place.oid)
    if (!asFolder) return
    if (place.kind === 'module') return this.enterModule(walk, place, path)
    for (let one: Frame | null = frame; one !== null; one = one.above)
      if (place.path === '' || one.real === place.path || one.real.startsWith(`${place.path}/`))
        throw refused(`${path} is a link that leads in a circle, to ${place.path === '' ? 'the root' : place.path}`)
    walk.count.folder()
    below.push({ path, real: place.path, oid: place.oid, above: frame })
  }

  private async collect(walk: Walk): Promise<Map<string, SourceFile>> {
    const { path, found, ready } = walk
    const held = await this.options.objects.blobs(found)
    const files = new Map(ready)
    for (const { path: file, oid } of found) files.set(file, { oid, bytes: contentOf(file, oid, held) })
    let total = 0
    for (const { bytes } of files.values()) total += bytes.byteLength
    if (total > SOURCE_TREE_BYTES_MAX) throw tooLargeTogether(path)
    return new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  /** Where a path leads, links followed. Null: nowhere. */
  private async find(path: string): Promise<Place | null> {
    let segments = pathSegments(path)
    if (segments.includes('..')) throw refused(`${path} leads out of the repository`)
    let hops = 0
    let oid = this.options.root
    for (let at = 0; at < segments.length; at++) {
      const here = segments.slice(0, at + 1).join('/')
      const folder = await this.folder(oid)
      const entry = folder.get(segments[at] ?? '')
      const rest = segments.slice(at + 1)
      if (entry === undefined) return null
      if (entry.kind === 'file') return rest.length === 0 ? { kind: 'file', oid: entry.oid, path: here } : null
      if (entry.kind === 'submodule') return this.module(here, entry.oid, rest)
      oid = entry.oid
      if (entry.kind === 'folder') continue
      if (++hops > LINK_HOPS_MAX) throw refused(`${path} is a link that leads in a circle, or over more than ${LINK_HOPS_MAX} others`)
      segments = [...(await this.target(path, here, entry.oid, folder)), ...rest]
      oid = this.options.root
      at = -1
    }
    return { kind: 'folder', oid, path: segments.join('/') }
  }

  private async module(path: string, commit: string, rest: readonly string[]): Promise<Place> {
    const tree = await this.options.openSubmodule(path, commit)
    return tree === null ? { kind: 'submodule', oid: commit, path } : { kind: 'module', tree, path, rest: rest.join('/') }
  }

  private async target(asked: string, link: string, oid: string, folder: GitFolder): Promise<string[]> {
    if (!this.targets.has(oid)) {
      // All links beside it: one leads to the next.
      const held = await this.options.objects.blobs(
        linkIds(folder).map((id) => ({ path: id === oid ? link : `a link beside ${link}`, oid: id })),
      )
      for (const [id, bytes] of held) this.targets.set(id, new TextDecoder().decode(bytes.subarray(0, TARGET_BYTES_KEPT)))
    }
    const text = this.targets.get(oid) ?? ''
    const what = asked === link ? asked : `${asked}: ${link}`
    if (text.length > SOURCE_PATH_LENGTH_MAX)
      throw refused(`${what} is a link with a target of more than ${SOURCE_PATH_LENGTH_MAX} characters`)
    const found = text.startsWith('/') ? null : within(link.split('/').slice(0, -1), text)
    if (found === null)
      throw refused(`${what} is a link that leads out of the repository: only files of the repository itself are read; put a copy there`)
    return found
  }

  private async idOf(place: Place, ids: Ids): Promise<string> {
    if (place.kind === 'module') return (await place.tree.id(place.rest)) ?? 'nothing'
    if (place.kind !== 'folder') return place.oid
    const known = ids.known.get(place.path)
    if (known !== undefined) return known
    const links = await this.linksBelow(place.oid)
    if (links.length === 0) return place.oid
    ids.known.set(place.path, 'circle')
    const parts = [place.oid]
    for (const link of links) {
      ids.countLink(place.path)
      const target = await this.find(joined(place.path, link)).catch(unlessRefused)
      parts.push(`${link}\0${target === null ? 'nothing' : await this.idOf(target, ids)}`)
    }
    const id = sha256Hex(parts.join('\n'))
    ids.known.set(place.path, id)
    return id
  }

  private async linksBelow(root: string): Promise<readonly string[]> {
    const { links } = this.options
    const held = links.get(root)
    if (held !== undefined) return held
    const found: string[] = []
    await this.below(root, true, (path, { kind }) => {
      if (kind === 'link') found.push(path)
    })
    links.set(root, found)
    return found
  }

  /** Everything in a folder and the folders in it. */
  private async below(root: string, withLinks: boolean, look: (path: string, entry: GitEntry) => void): Promise<void> {
    const { objects } = this.options
    const count = new Count('one folder')
    let level = [{ path: '', oid: root }]
    while (level.length > 0) {
      const folders = await objects.folders(level.map(({ oid }) => oid))
      if (withLinks) await objects.bring(folders.flatMap(linkIds))
      const next: typeof level = []
      for (const [at, { path }] of level.entries())
        for (const entry of folders[at]?.values() ?? []) {
          count.entry()
          look(joined(path, entry.name), entry)
          if (entry.kind !== 'folder') continue
          count.folder()
          next.push({ path: joined(path, entry.name), oid: entry.oid })
        }
      level = next
    }
  }

  private async entry(folder: string, { name, kind, oid }: GitEntry, ids: Ids): Promise<SourceEntry> {
    checkName(folder, name)
    if (kind === 'file') return { name, kind, id: oid }
    const place = await this.find(joined(folder, name)).catch(unlessRefused)
    if (place === null || place.kind === 'submodule') return { name, kind, id: oid }
    const id = await this.idOf(place, ids)
    if (place.kind !== 'module') return { name, kind: place.kind, id }
    return { name, kind: (await place.tree.list(place.rest)) === null ? 'file' : 'folder', id }
  }

  private async folder(oid: string): Promise<ReadonlyMap<string, GitEntry>> {
    const [folder] = await this.options.objects.folders([oid])
    return folder ?? new Map()
  }
}

/** Of one call: folders by their paths, as far as they are known. */
class Ids {
  readonly known = new Map<string, string>()
  private links = 0

  countLink(path: string): void {
    if (++this.links > LINKS_LOOKED_MAX) throw refused(`more than ${LINKS_LOOKED_MAX} links under ${path === '' ? 'the root' : path}`)
  }
}

class Count {
  private readonly path: string
  private entries = 0
  private folders = 0

  constructor(path: string) {
    this.path = path
  }

  entry(): void {
    if (++this.entries > ENTRIES_MAX) throw refused(`more than ${ENTRIES_MAX} files and folders under ${this.path}`)
  }

  folder(): void {
    if (++this.folders > FOLDERS_MAX) throw refused(`more than ${FOLDERS_MAX} folders under ${this.path}`)
  }
}

/** What one call found so far. */
class Walk {
  readonly path: string
  readonly wanted: (path: string) => boolean
  readonly found: BlobWanted[] = []
  /** Read already, in submodules. */
  readonly ready = new Map<string, SourceFile>()
  readonly count: Count

  constructor(path: string, wanted: (path: string) => boolean) {
    this.path = path
    this.wanted = wanted
    this.count = new Count(path)
  }

  take(path: string, oid: string): void {
    if (!this.wanted(path)) return
    this.found.push({ path, oid })
    this.countFiles()
  }

  add(files: ReadonlyMap<string, SourceFile>): void {
    for (const [path, file] of files) this.ready.set(path, file)
    this.countFiles()
  }

  private countFiles(): void {
    if (this.found.length + this.ready.size > SOURCE_FILES_MAX)
      throw refused(`more than ${SOURCE_FILES_MAX} manifest files under ${this.path}`)
  }
}

/** Null: it climbs above the root. */
function within(folder: readonly string[], target: string): string[] | null {
  const path = [...folder]
  for (const segment of pathSegments(target)) {
    if (segment !== '..') path.push(segment)
    else if (path.pop() === undefined) return null
  }
  return path
}

/** Git itself never writes such names; whoever makes the objects by hand can. */
function checkName(folder: string, name: string): void {
  if (name === '' || name === '.' || name === '..' || /[/\\\0]/.test(name))
    throw refused(`${folder === '' ? 'the root' : folder} holds ${JSON.stringify(name)}, which is no name of a file`)
}

const linkIds = (folder: GitFolder): string[] => [...folder.values()].flatMap(({ kind, oid }) => (kind === 'link' ? [oid] : []))
const joined = (folder: string, name: string): string => (folder === '' ? name : `${folder}/${name}`)
const rebased = (path: string, from: string, to: string): string => joined(to, from === '' ? path : path.slice(from.length + 1))
const moved = (from: string, to: string, files: ReadonlyMap<string, SourceFile>): Map<string, SourceFile> =>
  new Map([...files].map(([path, file]) => [rebased(path, from, to), file]))

function contentOf(path: string, oid: string, held: ReadonlyMap<string, Uint8Array>): Uint8Array {
  const bytes = held.get(oid)
  if (bytes === undefined) throw new AppError('git_failed', { detail: `read ${path}: its content ${oid} is not there` })
  if (Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, LFS_POINTER.length)).equals(LFS_POINTER))
    throw refused(
      `${path} is a Git LFS pointer, and what it stands for is not in the repository: commit the file itself (\`git lfs migrate export --include="${path}"\`), or keep it elsewhere`,
    )
  return bytes
}

const refused = (detail: string): AppError => new AppError('source_refused', { detail })
const refusedSubmodule = (path: string): AppError =>
  refused(`${path} is a submodule: set spec.git.submodules: true to read its files, or put a copy there`)
const tooLargeTogether = (path: string): AppError =>
  refused(`the files under ${path} are larger than ${SOURCE_TREE_BYTES_MAX / 1024 / 1024} MiB`)

function unlessRefused(error: unknown): null {
  if (error instanceof AppError && error.code === 'source_refused') return null
  throw error
}
