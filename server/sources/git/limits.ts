// The limits of a fetch into memory, and of the files of one read, counted before they are kept.
import { AppError } from '../../../shared/runtime/error.ts'
import { SOURCE_FILE_BYTES_MAX, SOURCE_TREE_BYTES_MAX } from '../source.ts'
import type { BlobWanted } from './objects.ts'

/** The fetch is too large for memory; the git program can still read it. */
export class GitTooLarge extends AppError {
  constructor(detail: string) {
    super('git_failed', { detail, remedy: USE_PROGRAM })
  }
}
export const USE_PROGRAM = 'Set spec.git.client: cli and install git on the server: it fetches only the needed files.'

export class BlobBudget {
  private readonly paths: ReadonlyMap<string, string>
  private total = 0

  constructor(wanted: readonly BlobWanted[]) {
    this.paths = new Map(wanted.map(({ path, oid }) => [oid, path]))
  }

  /** Throws before a file is read that must not be. */
  count(oid: string, bytes: number): void {
    const path = this.paths.get(oid) ?? oid
    const [file, all] = [SOURCE_FILE_BYTES_MAX / 1024 / 1024, SOURCE_TREE_BYTES_MAX / 1024 / 1024]
    if (bytes > SOURCE_FILE_BYTES_MAX) throw new AppError('source_refused', { detail: `${path} is larger than ${file} MiB` })
    this.total += bytes
    if (this.total > SOURCE_TREE_BYTES_MAX)
      throw new AppError('source_refused', { detail: `${path} and the files before it are larger than ${all} MiB together` })
  }
}
