// Files that a caller sent for a preview, as a source. An upload is an archive with the content of a whole repository;
// its revision is the SHA-256 of the archive. It exists for one request.
import { AppError } from '../../shared/runtime/error.ts'
import { readArchive } from './archive/archive.ts'
import type { OpenedSource, Source } from './source.ts'
import { pathSegments } from './source.ts'
import { createStoredFiles, isSha256, sha256Of } from './stored/files.ts'
import type { Unpacked } from './stored/unpacked.ts'

export interface UploadSource extends Source {
  /** Checks the archive and keeps it. Returns its revision. */
  put(archive: Uint8Array): Promise<string>
}

export const isUpload = (source: Source): source is UploadSource => 'put' in source

const GONE = 'the uploaded files are no longer on the server'

/** `dir` belongs to this source alone. */
export function createUploadSource({ dir, unpacked }: { dir: string; unpacked: Unpacked }): UploadSource {
  const stored = createStoredFiles(dir)
  const refuse = () => Promise.reject(new AppError('source_refused', { detail: 'uploaded files are not fetched' }))
  return {
    head: refuse,
    fetch: refuse,
    has: async (revision) => isSha256(revision) && (await stored.hasBlob(revision)),
    async put(archive) {
      const revision = sha256Of(archive)
      await unpacked.tree(dir, revision, () => readArchive(archive))
      await stored.writeBlob(revision, archive)
      return revision
    },
    async open(revision, pick): Promise<OpenedSource> {
      if (!('path' in pick))
        throw new AppError('source_refused', {
          detail: `chart ${pick.chart}: uploaded files replace a Git repository, and this source is a chart of a Helm repository`,
          remedy: 'Compare a service whose source has a path.',
        })
      const archive = isSha256(revision) ? await stored.readBlob(revision) : null
      if (archive === null) throw new AppError('source_unreachable', { detail: GONE })
      const tree = await unpacked.tree(dir, revision, () => readArchive(archive))
      return { tree, root: pathSegments(pick.path).join('/'), version: `upload:${revision}` }
    },
  }
}
