// A Git repository as a Source, with a bare folder of its own: which commit is meant, whether it may be used, and when
// the folder is fetched afresh. How Git is spoken is a backend's: the library, or the program.

import { existsSync, readFileSync, renameSync } from 'node:fs'
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { CommitNote, SignedCommit } from '../../../shared/model/commits.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { noVersion } from '../range.ts'
import { CORRECT_SPEC, type OpenedSource, pathSegments, type Source, type SourcePick, type SourceTree } from '../source.ts'
import { GitTooLarge } from './limits.ts'
import { type GitBackend, GitDamaged, type GitObjects, type GitWant, type RemoteRef } from './objects.ts'
import type { OpenSubmodule } from './places.ts'
import { COMMIT_ID, firstNamed, greatestTag, isRefName, refNames } from './refs.ts'
import { type Candidate, type Keys, readKeys, Unverified, verifyCommit } from './signature.ts'
import { commitNote, headId } from './text.ts'
import { createLinkCache, GitTree } from './tree.ts'
import { madeMs, olderThan, parentsOf, type RaiseWatermark } from './watermark.ts'

export interface GitSourceOptions {
  url: string
  /** Branch, tag, `refs/…`, or a full commit id. */
  ref: string
  /** Instead of `ref`: the greatest tag of that range. */
  semver?: string | undefined
  /** Belongs to this source alone, with what is beside it under the same name and a dot; made when it is missing. */
  dir: string
  backend: GitBackend
  /** Reads repositories that are too large for it, from a folder that is fetched again. Null means not allowed. */
  larger: (() => GitBackend) | null
  /** Public keys, one of which must have signed. */
  verifyKeys?: readonly string[] | undefined
  raiseWatermark: RaiseWatermark
  nowMs(): number
  /** Packs after which everything is fetched afresh. */
  packsMax?: number | undefined
  submodules: Submodules | null
}

export interface Submodules {
  /** `gitmodules` is the text at the root of the commit. */
  open(path: string, commit: string, gitmodules: string | null): Promise<SourceTree>
  /** There is another one: what it does not need may go. */
  newCommit(): void
}

const PACKS_MAX = 50
const TAGS_FOLLOWED_MAX = 5
/** Paths whose content is brought along with a new commit; the ones after them come when they are read. */
const READS_REMEMBERED_MAX = 2_000
/** More are fetched and checked again. */
const REFUSED_KEPT_MAX = 100
const GITMODULES = '.gitmodules'
/** A clone that cannot be read after a fresh fetch either is not damaged by the disk. */
const MEND_AGAIN_MS = 86_400_000
/** In a folder that `larger` fetched. */
const LARGE_MARK = 'skerry-large'

type Wanted = (path: string) => boolean

export class GitSource implements Source {
  private readonly options: GitSourceOptions
  private readonly place: string
  private backend: GitBackend
  /** Said by the last fetch: the next one does not try again. */
  private tooLarge: GitTooLarge | null = null
  /** The commit that the ref named at its last read. */
  private looked: string | null = null
  /** Too large for the library, without an alternative: not requested again while the ref names it. */
  private unreadable: { oid: string; error: GitTooLarge } | null = null
  /** A read showed that the folder cannot be read, though all of it is there; when it was fetched afresh for that. */
  private damage: { isThere: boolean; mendedMs: number | null } = { isThere: false, mendedMs: null }
  /** Fresh folders until now. */
  private folders = 0
  private readonly links = createLinkCache()
  private keys: Keys | null = null
  /**
   * Commits or annotated tags of a ref without a valid signature: checked once, or again at the time of the key or
   * signature.
   */
  private readonly refused = new Map<string, Unverified>()
  /** By the range of tags, when it was looked up last. */
  private chosen: { commit: string; tag: string } | null = null
  /** Until the next fetch, which may take another folder. */
  private lately: { commit: string; tree: SourceTree } | null = null
  /** Recent reads, with the id of their content: with a new commit they are repeated. */
  private readonly reads = new Map<string, { path: string; wanted: Wanted | null; id: string | null }>()

  /** Places of submodules that were read. */
  private readonly modulesRead = new Set<string>()

  constructor(options: GitSourceOptions) {
    this.options = options
    const { dir, larger } = options
    // A process that ended between two renames: nothing else of it is left to read.
    if (!existsSync(dir) && existsSync(`${dir}.old`)) renameSync(`${dir}.old`, dir)
    this.backend = larger !== null && existsSync(join(dir, LARGE_MARK)) ? larger() : options.backend
    this.place = `${options.semver ?? options.ref} of ${options.url}`
  }

  async head(): Promise<string> {
    const { ref, semver } = this.options
    this.backend.release()
    if (semver === undefined && COMMIT_ID.test(ref)) return ref
    return this.guarded('look up', async () => {
      const { oid, commit } = await this.lookUp()
      const refused = this.refused.get(oid)
      if (refused !== undefined && (refused.againMs === null || refused.againMs > this.options.nowMs())) throw refused
      return commit
    })
  }

  tagOf(commit: string): string | null {
    return this.chosen?.commit === commit ? this.chosen.tag : null
  }

  private async lookUp(): Promise<RemoteRef> {
    const found = await this.choose()
    this.looked = found.oid
    return found
  }

  private async choose(): Promise<RemoteRef> {
    const { ref, semver, url } = this.options
    if (semver === undefined) {
      const names = this.names()
      const found = firstNamed(await this.backend.refs(names), names)
      if (found === null) throw this.refNotFound(ref)
      return found
    }
    const tags = await this.backend.refs(['refs/tags/'])
    const greatest = greatestTag(tags, semver)
    if (greatest !== null) {
      this.chosen = { commit: greatest.commit, tag: greatest.name.slice('refs/tags/'.length) }
      return greatest
    }
    const versions = tags.map(({ name }) => name.slice('refs/tags/'.length))
    const detail = noVersion(`tags of ${url}`, versions, semver)
    throw new AppError('git_ref_not_found', { detail, remedy: 'Correct spec.git.semver, or push the tag.' })
  }

  async fetch(): Promise<string> {
    this.lately = null
    const { ref, semver, larger } = this.options
    this.backend.release()
    return this.guarded('fetch', async () => {
      const isPinned = semver === undefined && COMMIT_ID.test(ref)
      if (isPinned && (await this.has(ref))) return ref
      const found = !isPinned && (semver !== undefined || this.unreadable !== null) ? await this.lookUp() : null
      const oid = isPinned ? ref : (found?.oid ?? this.looked)
      if (this.unreadable !== null && this.unreadable.oid === oid) throw this.unreadable.error
      const want: GitWant = isPinned ? { commit: ref } : { refs: semver === undefined || found === null ? this.names() : [found.name] }
      try {
        if (this.tooLarge !== null) throw this.tooLarge
        return await this.fetchWant(want)
      } catch (error) {
        if (!(error instanceof GitTooLarge)) throw error
        if (larger !== null) return await this.fetchLarge(want, larger(), error, oid)
        this.unreadable = oid === null ? null : { oid, error }
        throw error
      } finally {
        this.backend.release()
      }
    })
  }

  private async fetchWant(want: GitWant): Promise<string> {
    const { dir, packsMax = PACKS_MAX } = this.options
    const { backend } = this
    const isDue = this.damage.isThere || (await countPacks(dir)) >= packsMax || (await backend.isDamaged(dir))
    if (isDue) return this.fetchAfresh(want, backend)
    try {
      return await this.fetchInto(dir, want, backend)
    } catch (error) {
      // Not the other side's doing: the folder itself cannot be read, after a crash or a full disk. Nothing in it is
      // precious.
      const isOurs = !(error instanceof AppError) || (error.code === 'git_failed' && existsSync(dir) && !(await backend.isSound(dir)))
      if (!isOurs) throw error
      return this.fetchAfresh(want, backend)
    }
  }

  /** Each of the two programs keeps its own clone, which the other does not read. */
  private async fetchLarge(want: GitWant, backend: GitBackend, tooLarge: GitTooLarge, oid: string | null): Promise<string> {
    try {
      const commit = await this.fetchAfresh(want, backend)
      this.tooLarge = null
      return commit
    } catch (error) {
      if (error instanceof AppError && error.code === 'git_program_missing') {
        this.unreadable = oid === null ? null : { oid, error: tooLarge }
        throw tooLarge
      }
      this.tooLarge = tooLarge
      throw backend.translate('fetch', error)
    }
  }

  /** The old folder stays in use until the new one is whole. */
  private async fetchAfresh(want: GitWant, backend: GitBackend): Promise<string> {
    const { dir } = this.options
    const [fresh, old] = [`${dir}.new`, `${dir}.old`]
    await rm(fresh, { recursive: true, force: true })
    const commit = await this.fetchInto(fresh, want, backend)
    if (backend !== this.options.backend) await writeFile(join(fresh, LARGE_MARK), '')
    await rm(old, { recursive: true, force: true })
    if (existsSync(dir)) await rename(dir, old)
    await rename(fresh, dir)
    this.backend = backend
    this.lately = null
    this.folders++
    if (this.damage.isThere) this.damage = { isThere: false, mendedMs: this.options.nowMs() }
    await rm(old, { recursive: true, force: true })
    backend.release()
    return commit
  }

  private async fetchInto(gitdir: string, want: GitWant, backend: GitBackend): Promise<string> {
    const { ref } = this.options
    const tip = await backend.fetch(gitdir, want)
    if (tip === null) throw this.refNotFound(ref)
    const objects = backend.objects(gitdir)
    const candidates = await this.follow(objects, tip, want)
    const commit = candidates.at(-1)?.oid ?? tip
    await this.verify(gitdir, { tip, commit, isPinned: 'commit' in want }, candidates)
    await this.bringReads(objects, commit)
    if (this.options.submodules !== null && !('commit' in want)) await this.bringSubmodules(this.options.submodules, objects, commit)
    await backend.keep(gitdir, commit)
    return commit
  }

  /** From an annotated tag to its commit, which is the last of them. */
  private async follow(objects: GitObjects, tip: string, want: GitWant): Promise<Candidate[]> {
    const found: Candidate[] = []
    let oid: string | null = tip
    while (oid !== null && found.length <= TAGS_FOLLOWED_MAX) {
      const read = await objects.text(oid)
      if (read === null) break
      found.push({ ...read, oid })
      if (read.type === 'commit') return found.filter(({ type, text }) => type === 'commit' || isNamed(text, want))
      oid = headId(read.text, 'object')
    }
    throw new AppError('git_failed', { detail: `fetch: ${this.place} does not refer to a commit` })
  }

  private async verify(
    gitdir: string,
    { tip, commit, isPinned }: { tip: string; commit: string; isPinned: boolean },
    candidates: readonly Candidate[],
  ): Promise<void> {
    const { verifyKeys, nowMs } = this.options
    if (verifyKeys === undefined) return
    const mark = verifiedMark(gitdir, commit)
    const text = candidates.at(-1)?.text ?? new Uint8Array()
    let atMs = signedMs(mark, text)
    if (atMs === null) {
      this.keys ??= await readKeys(verifyKeys)
      const { keys } = this
      const signed = await this.noting(tip, () => verifyCommit(commit, candidates, keys, nowMs()))
      atMs = madeMs(signed.text) ?? 0
    }
    const signedAt = atMs
    if (!isPinned) await this.noting(tip, () => this.raise({ commit, atMs: signedAt, parents: parentsOf(text) }))
    // An expiring key does not take back what was in force: that is said once, here.
    await mkdir(verifiedMark(gitdir, ''), { recursive: true })
    await writeFile(mark, String(atMs))
  }

  private async raise(signed: SignedCommit): Promise<void> {
    const newer = await this.options.raiseWatermark(signed)
    if (newer !== null) throw olderThan(signed, newer)
  }

  /** Remembers what is refused, so that it is not fetched again. */
  private async noting<T>(tip: string, act: () => Promise<T>): Promise<T> {
    try {
      return await act()
    } catch (error) {
      if (this.refused.size >= REFUSED_KEPT_MAX) this.refused.clear()
      if (error instanceof Unverified) this.refused.set(tip, error)
      throw error
    }
  }

  /** Fetches the content that is likely to be read next, while the server can be reached. */
  private async bringReads(objects: GitObjects, commit: string): Promise<void> {
    if (objects.bring === null) return
    try {
      const tree = await this.gitTree(objects, commit, NO_SUBMODULES)
      const ids: string[] = []
      for (const read of this.reads.values()) {
        const id = await tree.id(read.path).catch(() => null)
        if (id === null || id === read.id) continue
        ids.push(...(read.wanted === null ? [id] : await tree.contentIds(read.path, read.wanted).catch(() => [])))
      }
      if (ids.length > 0) await objects.bring(ids)
    } catch (error) {
      if (!(error instanceof AppError)) throw error // it is told when it is read
    }
  }

  /** Those that were read before; the others come when they are read. */
  private async bringSubmodules(submodules: Submodules, objects: GitObjects, commit: string): Promise<void> {
    submodules.newCommit()
    const tree = await this.gitTree(objects, commit, this.openSubmodules(objects, commit))
    for (const path of this.modulesRead) await tree.id(path).catch(() => null) // it is told when it is read
  }

  async has(commit: string): Promise<boolean> {
    const { dir, verifyKeys } = this.options
    if (this.damage.isThere) return false
    return (verifyKeys === undefined || existsSync(verifiedMark(dir, commit))) && this.backend.has(dir, commit)
  }

  async open(commit: string, pick: SourcePick): Promise<OpenedSource> {
    if (!('path' in pick)) {
      const detail = `${this.place} is a Git repository; set source.path to the folder of the chart instead of source.chart`
      throw new AppError('source_refused', { detail, remedy: CORRECT_SPEC })
    }
    if (this.options.verifyKeys !== undefined && !(await this.has(commit)))
      throw this.refused.get(commit) ?? new AppError('commit_unverified', { detail: `commit ${commit} was not verified` })
    // One for all services of the repository: a thousand of them ask for the same folders.
    if (this.lately?.commit !== commit) this.lately = { commit, tree: this.treeAt(commit) }
    return { tree: this.lately.tree, root: pathSegments(pick.path).join('/'), version: commit }
  }

  async noteOf(commit: string): Promise<CommitNote | null> {
    const read = await this.backend.objects(this.options.dir).text(commit)
    return read?.type === 'commit' ? commitNote(read.text) : null
  }

  private treeAt(commit: string): SourceTree {
    const objects = this.backend.objects(this.options.dir)
    let opened: Promise<GitTree> | null = null
    const within = <T>(path: string, act: (tree: GitTree) => Promise<T>): Promise<T> =>
      this.guarded(`read ${path}`, async () => {
        opened ??= this.gitTree(objects, commit, this.openSubmodules(objects, commit))
        opened.catch(() => {
          opened = null // asked again next time
        })
        const { folders } = this
        try {
          return await act(await opened)
        } catch (error) {
          if (folders === this.folders) await this.noteDamage(commit, error)
          throw error
        }
      })
    return {
      id: (path) => within(path, (tree) => tree.id(path)),
      list: (path) => within(path, (tree) => tree.list(path)),
      file: (path) =>
        within(path, async (tree) => {
          const file = await tree.file(path)
          if (file !== null) this.remember(path, null, file.oid)
          return file
        }),
      files: (path, wanted) =>
        within(path, async (tree) => {
          const files = await tree.files(path, wanted)
          this.remember(path, wanted, await tree.id(path))
          return files
        }),
    }
  }

  /** SO10: the next check fetches it again, because the remote has no change that would cause it. */
  private async noteDamage(commit: string, error: unknown): Promise<void> {
    const { mendedMs } = this.damage
    const isOurs = error instanceof GitDamaged || !(error instanceof AppError)
    if (!isOurs || !(await this.has(commit))) return
    if (mendedMs !== null && Math.abs(this.options.nowMs() - mendedMs) < MEND_AGAIN_MS) return
    this.damage = { isThere: true, mendedMs }
  }

  private remember(path: string, wanted: Wanted | null, id: string | null): void {
    const key = `${wanted === null ? 'file' : 'files'} ${path}`
    if (this.reads.size >= READS_REMEMBERED_MAX && !this.reads.has(key)) return
    this.reads.set(key, { path, wanted, id })
  }

  private async gitTree(objects: GitObjects, commit: string, openSubmodule: OpenSubmodule): Promise<GitTree> {
    const read = await objects.text(commit)
    const root = read?.type === 'commit' ? headId(read.text, 'tree') : null
    if (root === null) throw new AppError('git_failed', { detail: `read ${this.place}: commit ${commit} is missing` })
    return new GitTree({ root, objects, links: this.links, openSubmodule })
  }

  private openSubmodules(objects: GitObjects, commit: string): OpenSubmodule {
    const { submodules } = this.options
    if (submodules === null) return NO_SUBMODULES
    let text: Promise<string | null> | null = null
    return async (path, wanted) => {
      text ??= this.gitTree(objects, commit, NO_SUBMODULES)
        .then((tree) => tree.file(GITMODULES))
        .then((file) => (file === null ? null : new TextDecoder().decode(file.bytes)))
      text.catch(() => {
        text = null // asked again next time
      })
      if (this.modulesRead.size < READS_REMEMBERED_MAX) this.modulesRead.add(path)
      return submodules.open(path, wanted, await text)
    }
  }

  private names(): readonly string[] {
    const { ref, url } = this.options
    if (!isRefName(ref))
      throw new AppError('git_ref_not_found', { detail: `${url}: ${JSON.stringify(ref)} is not a valid name of a branch or tag` })
    return refNames(ref)
  }

  /** Errors of a backend become ours, once. */
  private async guarded<T>(doing: string, act: () => Promise<T>): Promise<T> {
    try {
      return await act()
    } catch (error) {
      throw this.backend.translate(doing, error)
    }
  }

  private refNotFound(ref: string): AppError {
    const what = COMMIT_ID.test(ref) ? 'commit of a branch or tag' : 'branch or tag'
    return new AppError('git_ref_not_found', { detail: `${this.options.url} has no ${what} ${this.options.semver ?? ref}` })
  }
}

const NO_SUBMODULES: OpenSubmodule = async () => null
const verifiedMark = (gitdir: string, commit: string): string => join(gitdir, 'skerry-verified', commit)

/** When a commit that was verified was signed; of marks of earlier versions, which do not say it, by the commit. Null
 *  means that it was not verified. */
function signedMs(mark: string, commit: Uint8Array): number | null {
  if (!existsSync(mark)) return null
  const text = readFileSync(mark, 'utf8')
  return text === '' ? (madeMs(commit) ?? 0) : Number(text)
}

/** A tag that was signed under another name says nothing about this one. */
function isNamed(tag: Uint8Array, want: GitWant): boolean {
  const name = /^tag (.+)$/m.exec(new TextDecoder().decode(tag.subarray(0, 1_024)))?.[1]
  return 'refs' in want && want.refs.includes(`refs/tags/${name}`)
}

async function countPacks(gitdir: string): Promise<number> {
  const names = await readdir(join(gitdir, 'objects', 'pack')).catch(() => [])
  return names.filter((name) => name.endsWith('.pack')).length
}
