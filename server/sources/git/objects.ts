// The operations that GitSource needs of the library or the program. Reading uses a fetched folder; only blobs that a
// partial clone left out need the network.
import { AppError } from '../../../shared/runtime/error.ts'
import type { SourceEntry } from '../source.ts'

/** The folder cannot be read, and nothing of it was asked of the server. Errors of other classes mean the same. */
export class GitDamaged extends AppError {
  constructor({ code, data }: AppError) {
    super(code, data)
  }
}

export interface GitEntry {
  name: string
  kind: SourceEntry['kind']
  oid: string
}
/** By name, in the order of names. */
export type GitFolder = ReadonlyMap<string, GitEntry>

/** A commit or an annotated tag, as it was written. */
export interface GitText {
  type: 'commit' | 'tag'
  text: Uint8Array
}

export interface BlobWanted {
  /** For messages. */
  path: string
  oid: string
}

export interface GitObjects {
  /** Null if it is not here, or is of another type. */
  text(oid: string): Promise<GitText | null>
  /** The folders of trees, in the order of the ids. Throws `git_failed` when one is not here. */
  folders(oids: readonly string[]): Promise<readonly GitFolder[]>
  /** By content id. Throws `source_refused` for a file, or files together, past the limits of source.ts. */
  blobs(wanted: readonly BlobWanted[]): Promise<Map<string, Uint8Array>>
  /** Brings those that are not here, in one go. Null means that a commit that is here is whole. */
  bring: ((oids: readonly string[]) => Promise<void>) | null
}

export interface RemoteRef {
  name: string
  /** The id that it names itself: for an annotated tag, the tag's. */
  oid: string
  /** The id of the commit, if it is an annotated tag. */
  commit: string
}

/** Full names of refs of which the first that exists counts, or a commit. */
export type GitWant = { refs: readonly string[] } | { commit: string }

export interface GitBackend {
  /** Those whose names begin with one of these; one request. */
  refs(prefixes: readonly string[]): Promise<RemoteRef[]>
  /** Makes it readable in that folder, which is made when it is missing; the id that the ref names, of an annotated tag
   *  the tag's. Null means that there is no such ref. */
  fetch(gitdir: string, want: GitWant): Promise<string | null>
  /** From now on the remote learns that this commit is stored. */
  keep(gitdir: string, commit: string): Promise<void>
  has(gitdir: string, commit: string): Promise<boolean>
  /** Asked before a fetch, at little cost: whether what it would tell the other side that is here is known to be not.
   */
  isDamaged(gitdir: string): Promise<boolean>
  /** Asked after a fetch that failed: whether the folder can be read at all. False after a crash or a full disk. */
  isSound(gitdir: string): Promise<boolean>
  objects(gitdir: string): GitObjects
  /** Frees the memory between the reads of one reconciliation. */
  release(): void
  /** Ours of one of theirs. */
  translate(doing: string, error: unknown): Error
}
