// A commit as files: links are what they lead to (places.ts). A folder's id covers what its links lead to, so that
// equal ids are equal bytes.
import { sha256Hex } from '../../../shared/kube/canonical.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { SizedCache } from '../sized-cache.ts'
import {
  isFile,
  pathSegments,
  SOURCE_PATH_LENGTH_MAX,
  SOURCE_TREE_BYTES_MAX,
  type SourceEntry,
  type SourceFile,
  type SourceTree,
} from '../source.ts'
import type { GitEntry } from './objects.ts'
import { GitPlaces, type GitPlacesOptions, joined, linkIds, type ModulePlace, Pace, type Place, refused } from './places.ts'
import { Count, Ids, Walk } from './walk.ts'

const LFS_POINTER = Buffer.from('version https://git-lfs.github.com/spec/v1')

interface Frame {
  /** As it was asked for. */
  path: string
  /** Where it is, without links. */
  real: string
  oid: string
  above: Frame | null
}

export interface GitTreeOptions extends GitPlacesOptions {
  /** Paths of links below a tree, by its id: known once, known for ever. */
  links: SizedCache<readonly string[]>
}

export const createLinkCache = (): SizedCache<readonly string[]> => new SizedCache(50_000, (links) => links.length + 1)

export class GitTree implements SourceTree {
  private readonly options: GitTreeOptions
  private readonly places: GitPlaces

  constructor(options: GitTreeOptions) {
    this.options = options
    this.places = new GitPlaces(options)
  }

  async id(path: string): Promise<string | null> {
    const ids = new Ids(path)
    const place = await this.places.find(path, ids.pace)
    return place === null ? null : this.idOf(place, ids)
  }

  async list(path: string): Promise<SourceEntry[] | null> {
    const ids = new Ids(path)
    const place = await this.places.find(path, ids.pace)
    if (place?.kind === 'module') return place.tree.list(place.rest)
    if (place?.kind !== 'folder') return null
    const listed: SourceEntry[] = []
    for (const entry of (await this.places.folder(place.oid)).values()) listed.push(await this.entry(place.path, entry, ids))
    return listed.sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  async file(path: string): Promise<SourceFile | null> {
    const place = await this.places.find(path, new Pace(path))
    if (place === null || place.kind === 'folder') return null
    if (place.kind === 'module') return place.rest === '' ? null : place.tree.file(place.rest)
    if (place.kind === 'submodule') throw refusedSubmodule(place.path)
    const held = await this.options.objects.blobs([{ path, oid: place.oid }])
    return { oid: place.oid, bytes: contentOf(path, place.oid, held) }
  }

  async files(path: string, wanted: (path: string) => boolean): Promise<Map<string, SourceFile>> {
    return this.collect(await this.walk(path, wanted))
  }

  /** The ids of the files that `files` gives, in this repository itself. */
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
    const place = await this.places.find(asked, walk.pace)
    if (place === null) return walk
    if (place.kind === 'submodule') throw refusedSubmodule(place.path)
    if (place.kind === 'file') throw isFile(path)
    if (place.kind === 'module') await this.enterModule(walk, place, asked)
    let level: Frame[] = place.kind === 'module' ? [] : [{ path: asked, real: place.path, oid: place.oid, above: null }]
    while (level.length > 0) {
      const folders = await objects.folders(level.map(({ oid }) => oid))
      await objects.bring?.(folders.flatMap(linkIds))
      const below: Frame[] = []
      for (const [at, frame] of level.entries())
        for (const entry of folders[at]?.values() ?? []) {
          walk.count.entry()
          walk.pace.step()
          if (walk.pace.isDue()) await walk.pace.turn()
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
    const place = await this.places.find(real, walk.pace)
    if (place === null) throw refused(`${path} is a broken link`)
    if (place.kind === 'submodule') throw refusedSubmodule(path)
    if (place.kind === 'file') return walk.take(path, place.oid)
    if (!asFolder) return
    if (place.kind === 'module') return this.enterModule(walk, place, path)
    const inPlace = `${place.path}/`
    for (let one: Frame | null = frame; one !== null; one = one.above) {
      walk.pace.step()
      if (place.path === '' || one.real === place.path || one.real.startsWith(inPlace))
        throw refused(`${path} is a circular link, to ${place.path === '' ? 'the root' : place.path}`)
    }
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
      const target = await this.places.find(joined(place.path, link), ids.pace).catch(unlessRefused)
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
    const pace = new Pace('one folder')
    let level = [{ path: '', oid: root }]
    while (level.length > 0) {
      const folders = await objects.folders(level.map(({ oid }) => oid))
      if (withLinks) await objects.bring?.(folders.flatMap(linkIds))
      const next: typeof level = []
      for (const [at, { path }] of level.entries())
        for (const entry of folders[at]?.values() ?? []) {
          count.entry()
          pace.step()
          if (pace.isDue()) await pace.turn()
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
    const place = await this.places.find(joined(folder, name), ids.pace).catch(unlessRefused)
    if (place === null || place.kind === 'submodule') return { name, kind, id: oid }
    const id = await this.idOf(place, ids)
    if (place.kind !== 'module') return { name, kind: place.kind, id }
    return { name, kind: (await place.tree.list(place.rest)) === null ? 'file' : 'folder', id }
  }
}

/** Git itself never writes such names; objects made by hand can have them. */
function checkName(folder: string, name: string): void {
  if (name === '' || name === '.' || name === '..' || /[/\\\0]/.test(name))
    throw refused(`${folder === '' ? 'the root' : folder} has ${JSON.stringify(name)}, which is not a valid file name`)
}

const rebased = (path: string, from: string, to: string): string => joined(to, from === '' ? path : path.slice(from.length + 1))
const moved = (from: string, to: string, files: ReadonlyMap<string, SourceFile>): Map<string, SourceFile> =>
  new Map([...files].map(([path, file]) => [rebased(path, from, to), file]))

function contentOf(path: string, oid: string, held: ReadonlyMap<string, Uint8Array>): Uint8Array {
  const bytes = held.get(oid)
  if (bytes === undefined) throw new AppError('git_failed', { detail: `read ${path}: its content ${oid} is missing` })
  if (Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, LFS_POINTER.length)).equals(LFS_POINTER))
    throw refused(
      `${path} is a Git LFS pointer, and its file is not in the repository: commit the file (\`git lfs migrate export --include="${path}"\`), or keep it elsewhere`,
    )
  return bytes
}

const refusedSubmodule = (path: string): AppError =>
  refused(`${path} is a submodule: set spec.git.submodules: true to read its files, or commit a copy`)
const tooLargeTogether = (path: string): AppError =>
  refused(`the files under ${path} are larger than ${SOURCE_TREE_BYTES_MAX / 1024 / 1024} MiB`)

function unlessRefused(error: unknown): null {
  if (error instanceof AppError && error.code === 'source_refused') return null
  throw error
}
