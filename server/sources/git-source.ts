// The importer of isomorphic-git: a Source over smart HTTP with a bare folder of its own. The first fetch is shallow, later ones bring only what is new; packs
// that pile up are dropped by fetching afresh into a new folder.
import fs from 'node:fs'
import { readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import git, { type ReadTreeResult } from 'isomorphic-git'
import type { HttpClient } from 'isomorphic-git/http/web'
import { isDiskFull } from '../../shared/adapters/sqlite.ts'
import { AppError } from '../../shared/protocol/error.ts'
import { createGitHttp, type Fetcher } from './git-http.ts'
import { SizedCache } from './sized-cache.ts'
import {
  type OpenedSource,
  pathSegments,
  SOURCE_FILE_BYTES_MAX,
  SOURCE_FILES_MAX,
  SOURCE_PATH_LENGTH_MAX,
  SOURCE_TREE_BYTES_MAX,
  type Source,
  type SourceEntry,
  type SourceFile,
  type SourcePick,
  type SourceTree,
} from './source.ts'

export interface GitSourceOptions {
  url: string
  /** Branch, tag, `refs/…`, or a full commit id. */
  ref: string
  /** Belongs to this source alone; made when it is missing. */
  dir: string
  fetcher: Fetcher
  timeoutMs?: number
  /** Packs after which everything is fetched afresh. */
  packsMax?: number
}

const COMMIT_ID = /^[0-9a-f]{40}$/
/** What the remote is told that we have; isomorphic-git reads it through its `ref` option. */
const LOCAL_REF = 'refs/skerry/head'
const PACKS_MAX = 50
/** Entries of folders that are kept; about 0.3 KB each, and each commit brings every folder above what it changed anew. */
const FOLDER_ENTRIES_KEPT_MAX = 50_000
const BLOB_CACHE_BYTES_MAX = 16 * 1024 * 1024

export function createGitSource(options: GitSourceOptions): Source {
  return new GitSource(options)
}

class GitSource implements Source {
  private readonly options: GitSourceOptions
  private readonly http: HttpClient
  private readonly place: string
  private readonly blobs = new SizedCache<Uint8Array>(BLOB_CACHE_BYTES_MAX, ({ byteLength }) => byteLength)
  /** isomorphic-git's own: whole packs and their indexes. Kept between the reads of one pass only. */
  private packs: object = {}
  private readonly folders = new SizedCache<ReadTreeResult>(FOLDER_ENTRIES_KEPT_MAX, ({ tree }) => tree.length + 1)

  constructor(options: GitSourceOptions) {
    this.options = options
    this.http = createGitHttp(options.fetcher, options.timeoutMs)
    this.place = `${options.ref} of ${options.url}`
  }

  async head(): Promise<string> {
    const { ref, url } = this.options
    this.packs = {}
    if (COMMIT_ID.test(ref)) return ref
    return this.guarded('look up', async () => {
      // A branch wins over a tag of the same name, as it does in `git clone --branch`.
      for (const prefix of candidates(ref)) {
        const found = await git.listServerRefs({ http: this.http, url, prefix, protocolVersion: 2, peelTags: true })
        const match = found.find((candidate) => candidate.ref === prefix)
        if (match !== undefined) return match.peeled ?? match.oid
      }
      throw this.refNotFound()
    })
  }

  async fetch(): Promise<string> {
    const { dir, ref } = this.options
    this.packs = {}
    return this.guarded('fetch', async () => {
      if (COMMIT_ID.test(ref) && (await this.has(ref))) return ref
      if ((await countPacks(dir)) >= (this.options.packsMax ?? PACKS_MAX)) return this.fetchAfresh(dir)
      try {
        return await this.fetchInto(dir)
      } catch (error) {
        // Not the other side's doing: the folder itself cannot be read, after a crash or a full disk. Nothing in it is precious.
        if (error instanceof AppError || ['HttpError', 'NotFoundError'].includes(errorCode(error))) throw error
        return this.fetchAfresh(dir)
      }
    })
  }

  /** The old folder stays in use until the new one is whole. */
  private async fetchAfresh(dir: string): Promise<string> {
    const [fresh, old] = [`${dir}.new`, `${dir}.old`]
    await rm(fresh, { recursive: true, force: true })
    const commit = await this.fetchInto(fresh)
    await rm(old, { recursive: true, force: true })
    if (fs.existsSync(dir)) await rename(dir, old)
    await rename(fresh, dir)
    await rm(old, { recursive: true, force: true })
    return commit
  }

  private async fetchInto(gitdir: string): Promise<string> {
    const { url, ref } = this.options
    const pinned = COMMIT_ID.test(ref)
    if (!fs.existsSync(join(gitdir, 'HEAD'))) {
      await git.init({ fs, gitdir, bare: true })
      await git.addRemote({ fs, gitdir, remote: 'origin', url })
    }
    const known = await git.resolveRef({ fs, gitdir, ref: LOCAL_REF }).catch(() => null)
    const result = await git.fetch({
      fs,
      http: this.http,
      gitdir,
      url,
      remote: 'origin',
      ref: LOCAL_REF,
      // A commit id names no ref of the other side: all branches are fetched whole, and it must be on one of them.
      ...(pinned ? { remoteRef: 'HEAD', singleBranch: false, tags: true } : { remoteRef: ref, singleBranch: true, tags: false }),
      ...(known === null && !pinned ? { depth: 1 } : {}),
    })
    if (result.fetchHead === null) throw this.refNotFound()
    if (pinned && !(await hasCommit(gitdir, ref, {}))) throw this.refNotFound()
    // readCommit follows an annotated tag to its commit.
    const { oid } = await git.readCommit({ fs, gitdir, oid: pinned ? ref : result.fetchHead })
    await git.writeRef({ fs, gitdir, ref: LOCAL_REF, value: oid, force: true })
    return oid
  }

  has(commit: string): Promise<boolean> {
    return hasCommit(this.options.dir, commit, this.packs)
  }

  async open(commit: string, pick: SourcePick): Promise<OpenedSource> {
    if (!('path' in pick)) throw refused(`${this.place} is a Git repository and has no charts by name; give the path of the chart's folder`)
    return { tree: this.treeAt(commit), root: pathSegments(pick.path).join('/'), version: commit }
  }

  private treeAt(commit: string): SourceTree {
    return {
      id: (path) => this.guarded(`read ${path}`, async () => (await this.findEntry(commit, path, this.packs))?.oid ?? null),
      list: (path) => this.guarded(`read ${path}`, () => this.listFolder(commit, path)),
      file: (path) => this.guarded(`read ${path}`, () => this.readFile(commit, path)),
      files: (path, wanted) => this.readFiles(commit, path, wanted),
    }
  }

  private async listFolder(commit: string, path: string): Promise<SourceEntry[] | null> {
    const entry = await this.findEntry(commit, path, this.packs)
    if (entry === null || entry.kind !== 'folder') return null
    const { tree } = await this.folder(entry.oid, this.packs)
    return tree.map((child) => ({ name: child.path, kind: kindOf(child), id: child.oid })).sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  private async readFile(commit: string, path: string): Promise<SourceFile | null> {
    const entry = await this.findEntry(commit, path, this.packs)
    if (entry === null || entry.kind === 'folder') return null
    if (entry.kind !== 'file') throw refusedKind(path, entry.kind)
    return { oid: entry.oid, bytes: await this.blob(path, entry.oid, this.packs) }
  }

  private async readFiles(commit: string, path: string, wanted: (path: string) => boolean): Promise<Map<string, SourceFile>> {
    return this.guarded(`read ${path}`, async () => {
      const cache = this.packs
      const tree = await this.findTree(commit, path, cache)
      const found: Array<{ path: string; oid: string }> = []
      if (tree !== null) await this.listTree(tree, pathSegments(path).join('/'), wanted, cache, found)
      const files = new Map<string, SourceFile>()
      let total = 0
      for (const { path: file, oid } of found.sort((a, b) => (a.path < b.path ? -1 : 1))) {
        const bytes = await this.blob(file, oid, cache)
        total += bytes.byteLength
        if (total > SOURCE_TREE_BYTES_MAX)
          throw refused(`the files under ${path} are larger than ${SOURCE_TREE_BYTES_MAX / 1024 / 1024} MiB`)
        files.set(file, { oid, bytes })
      }
      this.packs = {}
      return files
    })
  }

  private async blob(path: string, oid: string, cache: object): Promise<Uint8Array> {
    const blob = this.blobs.get(oid) ?? (await git.readBlob({ fs, gitdir: this.options.dir, oid, cache })).blob
    this.blobs.set(oid, blob)
    if (blob.byteLength > SOURCE_FILE_BYTES_MAX) throw refused(`${path} is larger than ${SOURCE_FILE_BYTES_MAX / 1024 / 1024} MiB`)
    return blob
  }

  private async findEntry(commit: string, path: string, cache: object): Promise<{ kind: SourceEntry['kind']; oid: string } | null> {
    const segments = pathSegments(path)
    const name = segments.pop()
    const folder = await this.findTree(commit, segments.join('/'), cache).catch((error: unknown) => {
      if (error instanceof AppError && error.code === 'source_refused') return null // a file is where a folder should be
      throw error
    })
    if (folder === null) return null
    if (name === undefined) return { kind: 'folder', oid: folder }
    const { tree } = await this.folder(folder, cache)
    const entry = tree.find((candidate) => candidate.path === name)
    return entry === undefined ? null : { kind: kindOf(entry), oid: entry.oid }
  }

  private async findTree(commit: string, path: string, cache: object): Promise<string | null> {
    let { oid } = await this.folder(commit, cache)
    for (const segment of pathSegments(path)) {
      const { tree } = await this.folder(oid, cache)
      const entry = tree.find((candidate) => candidate.path === segment)
      if (entry === undefined) return null
      if (entry.type !== 'tree') throw refused(`${path} is a ${kindOf(entry)}, not a folder`)
      oid = entry.oid
    }
    return oid
  }

  /** By tree or commit id: a thousand services of one repository ask for the same few folders. */
  private async folder(oid: string, cache: object): Promise<ReadTreeResult> {
    const held = this.folders.get(oid)
    if (held !== undefined) return held
    const read = await git.readTree({ fs, gitdir: this.options.dir, oid, cache })
    this.folders.set(oid, read)
    return read
  }

  private async listTree(
    oid: string,
    folder: string,
    wanted: (path: string) => boolean,
    cache: object,
    found: Array<{ path: string; oid: string }>,
  ): Promise<void> {
    const { tree } = await this.folder(oid, cache)
    for (const entry of tree) {
      const path = folder === '' ? entry.path : `${folder}/${entry.path}`
      if (path.length > SOURCE_PATH_LENGTH_MAX) throw refused(`a path under ${folder} is longer than ${SOURCE_PATH_LENGTH_MAX} characters`)
      const kind = kindOf(entry)
      if (kind === 'link' || kind === 'submodule') throw refusedKind(path, kind)
      if (kind === 'folder') {
        // A folder is asked for with a slash at its end, so that a whole one can be left out.
        if (wanted(`${path}/`)) await this.listTree(entry.oid, path, wanted, cache, found)
      } else if (wanted(path)) {
        found.push({ path, oid: entry.oid })
        if (found.length > SOURCE_FILES_MAX) throw refused(`more than ${SOURCE_FILES_MAX} manifest files under ${folder}`)
      }
    }
  }

  /** Errors of isomorphic-git become ours, once. */
  private async guarded<T>(doing: string, act: () => Promise<T>): Promise<T> {
    try {
      return await act()
    } catch (error) {
      throw error instanceof AppError ? error : this.translate(doing, error)
    }
  }

  private translate(doing: string, error: unknown): AppError {
    const code = errorCode(error)
    if (isDiskFull(error)) return new AppError('disk_full', { doing: `${doing}: ${this.place}` }, { cause: error })
    if (code === 'NotFoundError' && (doing === 'fetch' || doing === 'look up')) return this.refNotFound(error)
    if (FOREIGN_ANSWERS.includes(code))
      return new AppError('git_failed', { detail: `${doing}: ${this.place}: what answers there is no Git server` })
    const detail = `${doing}: ${this.place}: ${error instanceof Error ? error.message : String(error)}`
    return new AppError('git_failed', { detail }, { cause: error })
  }

  private refNotFound(cause?: unknown): AppError {
    const { ref, url } = this.options
    const what = COMMIT_ID.test(ref) ? 'commit that a branch or tag leads to' : 'branch or tag'
    return new AppError('git_ref_not_found', { detail: `${url} has no ${what} ${ref}` }, { cause })
  }
}

const refused = (detail: string): AppError => new AppError('source_refused', { detail })

/** IN14: their messages and causes quote what was received, which may be anything that the server's network reaches. */
const FOREIGN_ANSWERS = ['SmartHttpError', 'ParseError']

const errorCode = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '')

const refusedKind = (path: string, kind: 'link' | 'submodule'): AppError =>
  refused(`${path} is a ${kind}: only files of the repository itself are read; put a copy there`)

function kindOf(entry: { type: string; mode: string }): SourceEntry['kind'] {
  if (entry.type === 'commit') return 'submodule'
  if (entry.type === 'tree') return 'folder'
  return entry.mode === '120000' ? 'link' : 'file'
}

const candidates = (ref: string): string[] =>
  ref.startsWith('refs/') || ref === 'HEAD' ? [ref] : [`refs/heads/${ref}`, `refs/tags/${ref}`]

const hasCommit = (gitdir: string, oid: string, cache: object): Promise<boolean> =>
  git.readCommit({ fs, gitdir, oid, cache }).then(
    () => true,
    () => false,
  )

async function countPacks(gitdir: string): Promise<number> {
  const names = await readdir(join(gitdir, 'objects', 'pack')).catch(() => [])
  return names.filter((name) => name.endsWith('.pack')).length
}
