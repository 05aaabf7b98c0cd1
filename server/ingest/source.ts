// The port to where manifests come from: one Source for each repository. Reading needs no network once a commit was fetched, so the last content
// stays in use while the other side is away.

/** Larger folders are refused, not cut. */
export const SOURCE_FILES_MAX = 10_000
export const SOURCE_FILE_BYTES_MAX = 16 * 1024 * 1024
export const SOURCE_TREE_BYTES_MAX = 64 * 1024 * 1024
export const SOURCE_PATH_LENGTH_MAX = 1_024

export interface SourceFile {
  /** Content id. */
  oid: string
  bytes: Uint8Array
}

export interface Source {
  /** The commit that the repository's ref names at this moment, asked of the other side; 40 hex digits. */
  head(): Promise<string>
  /** Makes head and commit readable in as few round trips as there can be; returns what the ref names now. For when a change is expected. */
  fetch(): Promise<string>
  /** Whether the commit can be read without the other side. */
  has(commit: string): Promise<boolean>
  /** Names the content of a folder: equal ids, equal files. Null: the commit has no such folder. */
  treeId(commit: string, path: string): Promise<string | null>
  /** Files of a folder and of the folders in it, by their path in the repository, sorted; only those that are `wanted`. Throws `source_refused` for what is not
   *  read (links, submodules) and past the limits. */
  readTree(commit: string, path: string, wanted: (path: string) => boolean): Promise<Map<string, SourceFile>>
}

/** `.`, `./a/`, `a//b` → segments. */
export const pathSegments = (path: string): string[] => path.split('/').filter((segment) => segment !== '' && segment !== '.')
