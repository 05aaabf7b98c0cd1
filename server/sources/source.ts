// The port to where manifests come from: one Source for each repository. Reading needs no network once a commit was
// fetched, so the last content stays in use while the other side is away.
import type { CommitNote } from '../../shared/model/commits.ts'
import type { RepositoryPlace } from '../../shared/model/resources.ts'
import { AppError } from '../../shared/runtime/error.ts'

/** Larger folders are refused, not cut. */
export const SOURCE_FILES_MAX = 10_000
/** The limit of one file, and of all files that are read at once. */
export const SOURCE_FILE_BYTES_MAX = 16 * 1024 * 1024
export const SOURCE_TREE_BYTES_MAX = 64 * 1024 * 1024
/** Characters. */
export const SOURCE_PATH_LENGTH_MAX = 1_024

export interface SourceFile {
  /** Content id. */
  oid: string
  bytes: Uint8Array
}

export interface SourceEntry {
  name: string
  /** A link that stays inside the tree is what it leads to; one that leads out, and a submodule that was not asked for,
   *  are refused when they are read. */
  kind: 'file' | 'folder' | 'link' | 'submodule'
  /** Content id of the file, or of the folder with all that is in it. */
  id: string
}

/** One revision of a source as files. Paths are relative to its root, forward slashes, `.` or '' is the root. Reads
 *  need no network. All of them throw `source_refused` for what is never read (links that lead out, LFS pointers,
 *  submodules) and past the limits above. */
export interface SourceTree {
  /** Names the content of a file or folder: equal ids, equal bytes. Null means that there is none. */
  id(path: string): Promise<string | null>
  /** The entries of a folder, sorted by name. Null if it is not a folder. */
  list(path: string): Promise<SourceEntry[] | null>
  /** Null if there is no such file. */
  file(path: string): Promise<SourceFile | null>
  /**
   * The files of a folder and its subfolders, by path from the tree's root, sorted; only the `wanted` ones (a folder is
   * asked for with a slash at its end). Empty if there is no such folder.
   */
  files(path: string, wanted: (path: string) => boolean): Promise<Map<string, SourceFile>>
}

/**
 * The part of a repository that a service takes: a folder, or a chart of a Helm repository in the newest version of a
 * semver range (absent means the newest that is no pre-release).
 */
export type SourcePick = { path: string } | { chart: string; version?: string | undefined }

export interface OpenedSource {
  tree: SourceTree
  /** Where in the tree the service is. */
  root: string
  /** For people: `commit 3f2c…` is '3f2c…' in full; of a chart `6.5.2 sha256:…`; of an OCI artifact `v1.2.0 sha256:…`.
   *  At most 200 characters. */
  version: string
}

/** Where a source is: of a Repository, one file at a URL, or files that came with a request. */
export type SourcePlace = RepositoryPlace | { kind: 'file' | 'upload'; spec: FileSpec }
export interface FileSpec {
  url: string
  auth?: { secretRef: string }
}

/** Path of the only file in the tree of a source that is one file. */
export const SINGLE_FILE = 'file'

/** Where manifests come from. A revision is text that names all of it: a Git commit, the SHA-256 of a Helm repository's
 *  index, the digest of an OCI manifest. */
export interface Source {
  /** The revision that the repository's ref names at this moment, asked of the other side. */
  head(): Promise<string>
  /** Makes head and revision readable in as few round trips as there can be; returns what the ref names now. For when a
   *  change is expected. */
  fetch(): Promise<string>
  /**
   * The name that people use for a revision that was read since the start: the tag that a semver range chose. Null or
   * absent if there is none.
   */
  tagOf?(revision: string): string | null
  /** Author and subject of a revision that was fetched. Null, or absent: the source does not say. */
  noteOf?(revision: string): Promise<CommitNote | null>
  /** Whether the revision can be read without the other side. A chart may still have to be downloaded once. */
  has(revision: string): Promise<boolean>
  /** Throws `source_refused` (no such chart, no version in the range), `git_failed` and its like. */
  open(revision: string, pick: SourcePick): Promise<OpenedSource>
  /** Exactly one version of a chart, for another chart that depends on it. `repository` is what that one's Chart.lock
   *  says. Absent means that it has no charts for others. */
  chart?(repository: string, name: string, version: string): Promise<OpenedSource>
}

/** The remedy for a name in a Service's spec that does not exist, or is of another type than needed. */
export const CORRECT_SPEC = 'Correct the source in the spec of the service and `skerry apply` it.'

/** A folder was meant. */
export const isFile = (path: string): AppError =>
  new AppError('source_refused', { detail: `${path} is a file, not a folder`, remedy: CORRECT_SPEC })

/** `.`, `./a/`, `a//b` → segments. */
export const pathSegments = (path: string): string[] => path.split('/').filter((segment) => segment !== '' && segment !== '.')
