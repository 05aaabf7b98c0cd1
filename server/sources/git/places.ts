// Where paths of a commit lead, links followed as text inside the repository only. What was found out about folders and
// links is kept: thousands of links can lead over one another through hundreds of folders.
import { setImmediate } from 'node:timers/promises'
import { AppError } from '../../../shared/runtime/error.ts'
import { pathSegments, SOURCE_PATH_LENGTH_MAX, type SourceTree } from '../source.ts'
import type { GitEntry, GitFolder, GitObjects } from './objects.ts'

/** SO22: the number of links that are followed for one path. */
export const LINK_HOPS_MAX = 40
/** Names of paths and entries of folders that one call looks at, all together. */
export const TREE_STEPS_MAX = 5_000_000
/** After so many others have their turn. */
const STEPS_A_TURN = 5_000
/** Enough to see that one is too long. */
const TARGET_BYTES_KEPT = 5 * 1024
/** Characters of the paths of folders and links that are kept. */
const KEPT_MAX = 4 * 1024 * 1024
/** Characters of what links lead to, but for the folder that was looked into last. */
const TARGETS_KEPT_MAX = 8 * 1024 * 1024
const TOO_LONG = ' '.repeat(SOURCE_PATH_LENGTH_MAX + 1)

/** Opens a submodule at the commit that is named. Null if submodules are not read. */
export type OpenSubmodule = (path: string, commit: string) => Promise<SourceTree | null>

/** In a submodule that lies at `path`; `rest` is looked for in its tree. */
export type ModulePlace = { kind: 'module'; tree: SourceTree; path: string; rest: string }
export type Place = { kind: 'file' | 'folder'; oid: string; path: string } | ModulePlace | { kind: 'submodule'; oid: string; path: string }

/** The limits of one call of a tree. */
export class Pace {
  private readonly path: string
  private steps = 0
  private turnAt = STEPS_A_TURN

  constructor(path: string) {
    this.path = path
  }

  /** Throws `source_refused` past 5,000,000. */
  step(): void {
    if (++this.steps > TREE_STEPS_MAX)
      throw refused(
        `reading ${this.path === '' ? 'the root' : this.path} needs more than ${TREE_STEPS_MAX} steps: too many links through too many folders`,
      )
  }

  isDue(): boolean {
    return this.steps >= this.turnAt
  }

  /** Lets others have their turn: requests, timers. */
  turn(): Promise<void> {
    this.turnAt = this.steps + STEPS_A_TURN
    return setImmediate()
  }
}

/** A folder by where it is, without links. */
interface Known {
  path: string
  oid: string
  folders: Map<string, Known>
  links: Map<string, Found>
}
type Found = { place: Place | null; hops: number; folder: Known | null }

export interface GitPlacesOptions {
  /** Id of the root's tree. */
  root: string
  objects: GitObjects
  openSubmodule: OpenSubmodule
}

export class GitPlaces {
  private readonly options: GitPlacesOptions
  /** The targets of links, by the id of their content. */
  private readonly targets = new Map<string, string>()
  private targetsKept = 0
  private root: Known
  private kept = 0

  constructor(options: GitPlacesOptions) {
    this.options = options
    this.root = known('', options.root)
  }

  /**
   * Null if it leads nowhere. Throws `source_refused` for a link that leads out of the repository, in circles or over
   * more than 40 links, and past the limits of the pace.
   */
  async find(path: string, pace: Pace): Promise<Place | null> {
    const segments = pathSegments(path)
    if (segments.includes('..')) throw refused(`${path} leads outside the repository`)
    return (await this.follow(segments, { path, pace }, 0)).place
  }

  async folder(oid: string): Promise<GitFolder> {
    const [folder] = await this.options.objects.folders([oid])
    return folder ?? new Map()
  }

  /** `before`: links that were followed until here. */
  private async follow(segments: readonly string[], asked: { path: string; pace: Pace }, before: number): Promise<Found> {
    let here = this.root
    let hops = 0
    for (const [at, name] of segments.entries()) {
      asked.pace.step()
      if (asked.pace.isDue()) await asked.pace.turn()
      let next = here.folders.get(name) ?? null
      if (next === null) {
        const folder = await this.folder(here.oid)
        const entry = folder.get(name)
        const rest = segments.slice(at + 1)
        if (entry === undefined) return { place: null, hops, folder: null }
        if (entry.kind === 'file') return { place: rest.length === 0 ? fileAt(here, entry) : null, hops, folder: null }
        if (entry.kind === 'submodule') return { place: await this.module(joined(here.path, name), entry.oid, rest), hops, folder: null }
        if (entry.kind === 'folder') next = this.keep(here, entry)
        else {
          const found = await this.link(here, entry, folder, asked, before + hops)
          hops += found.hops
          if (found.folder === null) return { place: beyond(found.place, rest), hops, folder: null }
          next = found.folder
        }
      }
      here = next
    }
    return { place: { kind: 'folder', oid: here.oid, path: here.path }, hops, folder: here }
  }

  private async link(here: Known, entry: GitEntry, folder: GitFolder, asked: { path: string; pace: Pace }, before: number): Promise<Found> {
    const held = here.links.get(entry.name)
    if (before + (held?.hops ?? 1) > LINK_HOPS_MAX)
      throw refused(`${asked.path} is a circular link, or leads over more than ${LINK_HOPS_MAX} others`)
    if (held !== undefined) return held
    const target = await this.target(asked, joined(here.path, entry.name), entry.oid, folder)
    const { hops, ...found } = await this.follow(target, asked, before + 1)
    const result = { ...found, hops: hops + 1 }
    // Submodules are requested each time: their opener keeps them.
    if (found.place?.kind === 'module' || found.place?.kind === 'submodule') return result
    here.links.set(entry.name, result)
    this.weigh(here.path.length + entry.name.length)
    return result
  }

  private keep(above: Known, { name, oid }: GitEntry): Known {
    const made = known(joined(above.path, name), oid)
    above.folders.set(name, made)
    this.weigh(made.path.length)
    return made
  }

  private weigh(characters: number): void {
    this.kept += characters + 100
    if (this.kept <= KEPT_MAX) return
    this.root = known('', this.options.root)
    this.kept = 0
  }

  private async module(path: string, commit: string, rest: readonly string[]): Promise<Place> {
    const tree = await this.options.openSubmodule(path, commit)
    return tree === null ? { kind: 'submodule', oid: commit, path } : { kind: 'module', tree, path, rest: rest.join('/') }
  }

  private async target(
    { path: asked, pace }: { path: string; pace: Pace },
    link: string,
    oid: string,
    folder: GitFolder,
  ): Promise<string[]> {
    const text = this.targets.get(oid) ?? (await this.readTarget(link, oid, folder, pace))
    const what = asked === link ? asked : `${asked}: ${link}`
    if (text.length > SOURCE_PATH_LENGTH_MAX)
      throw refused(`${what} is a link with a target of more than ${SOURCE_PATH_LENGTH_MAX} characters`)
    const found = text.startsWith('/') ? null : within(link.split('/').slice(0, -1), text)
    if (found === null)
      throw refused(
        `${what} is a link that leads outside the repository: only files of the repository are read; replace the link by a copy`,
      )
    return found
  }

  /**
   * With those of all links beside it: one leads to the next. Each counts as a step, because released ones are read
   * again.
   */
  private async readTarget(link: string, oid: string, folder: GitFolder, pace: Pace): Promise<string> {
    const ids = linkIds(folder)
    for (const _ of ids) pace.step()
    const held = await this.options.objects.blobs(ids.map((id) => ({ path: id === oid ? link : `a link beside ${link}`, oid: id })))
    if (this.targetsKept > TARGETS_KEPT_MAX) {
      this.targets.clear()
      this.targetsKept = 0
    }
    for (const [id, bytes] of held) {
      const text = new TextDecoder().decode(bytes.subarray(0, TARGET_BYTES_KEPT))
      this.targets.set(id, text.length > SOURCE_PATH_LENGTH_MAX ? TOO_LONG : text)
      this.targetsKept += Math.min(text.length, SOURCE_PATH_LENGTH_MAX) + 100
    }
    return this.targets.get(oid) ?? '' // others may let go of it as soon as this is awaited
  }
}

const known = (path: string, oid: string): Known => ({ path, oid, folders: new Map(), links: new Map() })
const fileAt = (above: Known, { name, oid }: GitEntry): Place => ({ kind: 'file', oid, path: joined(above.path, name) })

/** From what a link leads to, which is no folder of this repository. */
function beyond(place: Place | null, rest: readonly string[]): Place | null {
  if (rest.length === 0 || place === null || place.kind === 'submodule') return place
  return place.kind === 'module' ? { ...place, rest: [...pathSegments(place.rest), ...rest].join('/') } : null
}

/** Null if it climbs above the root. */
function within(folder: readonly string[], target: string): string[] | null {
  const path = [...folder]
  for (const segment of pathSegments(target)) {
    if (segment !== '..') path.push(segment)
    else if (path.pop() === undefined) return null
  }
  return path
}

export const linkIds = (folder: GitFolder): string[] => [...folder.values()].flatMap(({ kind, oid }) => (kind === 'link' ? [oid] : []))
export const joined = (folder: string, name: string): string => (folder === '' ? name : `${folder}/${name}`)
export const refused = (detail: string): AppError => new AppError('source_refused', { detail })
