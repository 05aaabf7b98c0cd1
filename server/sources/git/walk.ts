// The findings so far of one call of a tree, and the amount that it may read.
import { SOURCE_FILES_MAX, type SourceFile } from '../source.ts'
import type { BlobWanted } from './objects.ts'
import { Pace, refused } from './places.ts'

/** That one call looks into: links can make a few folders look like many. */
const FOLDERS_MAX = 50_000
/** In those folders: a few trees that hold each other again and again look like as many as one likes. */
const ENTRIES_MAX = 1_000_000
/** Links that one id looks behind. */
const LINKS_LOOKED_MAX = 20_000

/** The folders of one call by their paths, as far as they are known. */
export class Ids {
  readonly known = new Map<string, string>()
  readonly pace: Pace
  private links = 0

  constructor(path: string) {
    this.pace = new Pace(path)
  }

  /** Throws `source_refused` past 20,000. */
  countLink(path: string): void {
    if (++this.links > LINKS_LOOKED_MAX) throw refused(`more than ${LINKS_LOOKED_MAX} links under ${path === '' ? 'the root' : path}`)
  }
}

export class Count {
  private readonly path: string
  private entries = 0
  private folders = 0

  constructor(path: string) {
    this.path = path
  }

  /** Throws `source_refused` past 1,000,000. */
  entry(): void {
    if (++this.entries > ENTRIES_MAX) throw refused(`more than ${ENTRIES_MAX} files and folders under ${this.path}`)
  }

  /** Throws `source_refused` past 50,000. */
  folder(): void {
    if (++this.folders > FOLDERS_MAX) throw refused(`more than ${FOLDERS_MAX} folders under ${this.path}`)
  }
}

/** Files of one call, at most 10,000: more throw `source_refused`. */
export class Walk {
  readonly path: string
  readonly wanted: (path: string) => boolean
  readonly found: BlobWanted[] = []
  /** Read already, in submodules. */
  readonly ready = new Map<string, SourceFile>()
  readonly count: Count
  readonly pace: Pace

  constructor(path: string, wanted: (path: string) => boolean) {
    this.path = path
    this.wanted = wanted
    this.count = new Count(path)
    this.pace = new Pace(path)
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
