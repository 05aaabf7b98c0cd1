// The importer of isomorphic-git: smart HTTP without a process. Each fetch brings one commit, of which only what is new
// is sent; history never comes.
import fs from 'node:fs'
import { basename, dirname, join } from 'node:path'
import git from 'isomorphic-git'
import { isDiskFull } from '../../../shared/adapters/sqlite.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { SizedCache } from '../sized-cache.ts'
import { HeldPacks } from './held-packs.ts'
import type { GitWeb } from './http.ts'
import { KeptFiles } from './kept-files.ts'
import { BlobBudget, GitTooLarge } from './limits.ts'
import type { BlobWanted, GitBackend, GitEntry, GitFolder, GitObjects, GitText, GitWant, RemoteRef } from './objects.ts'
import { checkPack, type PackParts } from './pack-check.ts'
import { kindOfMode } from './text.ts'
import { askForThinPacks } from './thin-pack.ts'
import { noteWhole, readWhole, writeWhole } from './whole.ts'
import { idsOfIndex, type WholeObject, withWholeObjects } from './whole-pack.ts'

export interface GitLibraryOptions {
  url: string
  /** For messages: `main of https://…`. */
  place: string
  web: GitWeb
  clock: Clock
}

/** The commit that the remote learns; isomorphic-git reads it through its `ref` option. */
const LOCAL_REF = 'refs/skerry/head'
/** Entries of folders that are kept; about 0.3 KB each, and each commit adds every folder above its changes again. */
const FOLDER_ENTRIES_KEPT_MAX = 50_000

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
/** The limit of all bases of fetched packs together: they are in memory for one fetch. */
const BASE_BYTES_MAX = 256 * 1024 * 1024

/**
 * The file system that isomorphic-git writes to: a pack is checked before anything of it is unpacked, and completed
 * when its index shows what it lacks. Ends of history are written in place.
 */
function checkedFs(gitdir: string): typeof fs {
  const packs = new Map<string, SentPack>()
  const writeFile = async (...args: Parameters<typeof fs.promises.writeFile>): Promise<void> => {
    const [path, data] = args
    if (typeof path !== 'string' || !Buffer.isBuffer(data))
      return typeof path === 'string' && path.endsWith('/shallow') ? writeWhole(path, String(data)) : fs.promises.writeFile(...args)
    if (path.endsWith('.pack')) packs.set(path, { bytes: data, ...(await checkPack(data, nextTurn)) })
    const pack = path.replace(/\.idx$/, '.pack')
    const sent = pack === path ? undefined : packs.get(pack)
    const whole = sent === undefined ? null : await wholePack(gitdir, sent, idsOfIndex(data))
    if (whole === null) return fs.promises.writeFile(...args)
    await fs.promises.writeFile(pack, whole)
    await git.indexPack({ fs, dir: dirname(pack), gitdir, filepath: basename(pack) })
  }
  return { ...fs, promises: { ...fs.promises, writeFile } } as typeof fs
}

interface SentPack extends PackParts {
  bytes: Buffer
}

/** `own`: what is in it. Null means that it needs no other. */
async function wholePack(gitdir: string, { bytes: pack, bases, end }: SentPack, own: ReadonlySet<string>): Promise<Buffer | null> {
  const objects: WholeObject[] = []
  const cache = {}
  let bytes = 0
  for (const oid of bases) {
    if (own.has(oid)) continue
    const read = await git.readObject({ fs, gitdir, oid, format: 'content', cache }).catch((error: unknown) => {
      if (errorCode(error) === 'NotFoundError') return null // whoever reads what begins at it says so
      throw error
    })
    if (!(read?.object instanceof Uint8Array) || read.type === undefined) continue
    bytes += read.object.byteLength
    if (bytes > BASE_BYTES_MAX) throw new GitTooLarge('a commit changes files of more than 256 MiB')
    objects.push({ type: read.type, content: read.object })
    await nextTurn()
  }
  return objects.length === 0 ? null : withWholeObjects(pack, end, objects)
}

export function createGitLibrary(options: GitLibraryOptions): GitBackend {
  return new GitLibrary(options)
}

class GitLibrary implements GitBackend {
  private readonly options: GitLibraryOptions
  private readonly kept = new KeptFiles()
  private readonly trees = new SizedCache<GitFolder>(FOLDER_ENTRIES_KEPT_MAX, ({ size }) => size + 1)
  private readonly packs: HeldPacks

  constructor(options: GitLibraryOptions) {
    this.options = options
    this.packs = new HeldPacks(options.clock)
  }

  refs(prefixes: readonly string[]): Promise<RemoteRef[]> {
    return this.options.web.refs(prefixes)
  }

  release(): void {
    this.packs.release()
  }

  async fetch(gitdir: string, want: GitWant): Promise<string | null> {
    const { url } = this.options
    if (!fs.existsSync(join(gitdir, 'HEAD'))) {
      await git.init({ fs, gitdir, bare: true })
      await git.addRemote({ fs, gitdir, remote: 'origin', url })
    }
    if ('commit' in want) {
      // Most servers give any commit that is asked for by its id; of one that does not, nothing comes, and it must be
      // on a branch or tag.
      await this.fetchRef(gitdir, { remoteRef: want.commit, singleBranch: true, tags: false, depth: 1 })
      if (await this.isFetched(gitdir, want.commit)) return want.commit
      await this.fetchRef(gitdir, { remoteRef: 'HEAD', singleBranch: false, tags: true })
      return (await this.isFetched(gitdir, want.commit)) ? want.commit : null
    }
    for (const remoteRef of want.refs) {
      const head = await this.fetchRef(gitdir, { remoteRef, singleBranch: true, tags: false, depth: 1 })
      if (head !== null) return head
    }
    return null
  }

  private async fetchRef(
    gitdir: string,
    want: { remoteRef: string; singleBranch: boolean; tags: boolean; depth?: number },
  ): Promise<string | null> {
    const { url, web } = this.options
    try {
      const which = { gitdir, url, remote: 'origin', ref: LOCAL_REF, ...want }
      const { fetchHead } = await web.use((http) => git.fetch({ fs: checkedFs(gitdir), http: askForThinPacks(http), ...which }))
      return fetchHead
    } catch (error) {
      if (errorCode(error) === 'NotFoundError') return null
      throw error
    }
  }

  async keep(gitdir: string, commit: string): Promise<void> {
    const before = await this.lastKept(gitdir)
    // The ends of history: each fetch adds its commit, all of them are sent to the remote, and the last one is enough;
    // until the ref is written the one before it is the last one.
    await writeWhole(join(gitdir, 'shallow'), [...new Set([commit, before ?? commit])].map((oid) => `${oid}\n`).join(''))
    await noteWhole(gitdir, commit)
    await git.writeRef({ fs, gitdir, ref: LOCAL_REF, value: commit, force: true })
  }

  /** The commit that the remote learns. */
  private lastKept(gitdir: string): Promise<string | null> {
    return git.resolveRef({ fs, gitdir, ref: LOCAL_REF }).catch(() => null)
  }

  /** Asked at each poll, of all repositories at the start: no pack is read for it. What has no note was not kept, or by
   *  a server whose packs need each other. */
  async has(gitdir: string, commit: string): Promise<boolean> {
    return (await readWhole(gitdir, commit)) === 'whole'
  }

  private isFetched(gitdir: string, commit: string): Promise<boolean> {
    return git.readCommit({ fs, gitdir, oid: commit, cache: {} }).then(
      () => true,
      () => false,
    )
  }

  /** The last commit needs the packs of those before it. Without a note they are of a server that did not make them
   *  whole. */
  async isDamaged(gitdir: string): Promise<boolean> {
    const kept = await this.lastKept(gitdir)
    return kept !== null && (await readWhole(gitdir, kept)) !== 'whole'
  }

  /** A folder that cannot be read shows itself by errors that are not ours. */
  async isSound(): Promise<boolean> {
    return true
  }

  objects(gitdir: string): GitObjects {
    return {
      text: (oid) => this.text(gitdir, oid),
      folders: (oids) => inTurn(oids, (oid) => this.folder(gitdir, oid)),
      blobs: (wanted) => this.blobs(gitdir, wanted),
      bring: null, // all of a commit comes with it
    }
  }

  private async text(gitdir: string, oid: string): Promise<GitText | null> {
    const read = await git.readObject({ fs, gitdir, oid, format: 'content', cache: this.packs.in(gitdir) }).catch((error: unknown) => {
      if (errorCode(error) === 'NotFoundError') return null
      throw error
    })
    const type = read?.type
    return (type === 'commit' || type === 'tag') && read?.object instanceof Uint8Array ? { type, text: read.object } : null
  }

  /** A thousand services of one repository ask for the same few folders. */
  private async folder(gitdir: string, oid: string): Promise<GitFolder> {
    const held = this.trees.get(oid)
    if (held !== undefined) return held
    const { tree } = await git.readTree({ fs, gitdir, oid, cache: this.packs.in(gitdir) })
    const folder = new Map(
      tree.map(({ path, mode, oid: id }): [string, GitEntry] => [path, { name: path, kind: kindOfMode(mode), oid: id }]),
    )
    this.trees.set(oid, folder)
    return folder
  }

  private async blobs(gitdir: string, wanted: readonly BlobWanted[]): Promise<Map<string, Uint8Array>> {
    const budget = new BlobBudget(wanted)
    const found = new Map<string, Uint8Array>()
    for (const { oid } of wanted) {
      if (found.has(oid)) continue
      const blob = this.kept.get(oid) ?? (await git.readBlob({ fs, gitdir, oid, cache: this.packs.in(gitdir) })).blob
      budget.count(oid, blob.byteLength)
      this.kept.set(oid, blob)
      found.set(oid, blob)
    }
    return found
  }

  translate(doing: string, error: unknown): Error {
    const { place } = this.options
    if (error instanceof AppError) return error
    if (isDiskFull(error)) return new AppError('disk_full', { doing: `${doing}: ${place}` }, { cause: error })
    if (FOREIGN_ANSWERS.includes(errorCode(error)))
      return new AppError('git_failed', { detail: `${doing}: ${place}: the server there is not a Git server` })
    const detail = `${doing}: ${place}: ${error instanceof Error ? error.message : String(error)}`
    return new AppError('git_failed', { detail }, { cause: error })
  }
}

/** IN14: their messages and causes quote what was received, which may be anything that the server's network reaches. */
const FOREIGN_ANSWERS = ['SmartHttpError', 'ParseError']

const errorCode = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '')

async function inTurn<In, Out>(all: readonly In[], act: (one: In) => Promise<Out>): Promise<Out[]> {
  const done: Out[] = []
  for (const one of all) done.push(await act(one))
  return done
}
