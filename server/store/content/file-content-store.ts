// Content by SHA-256 in a folder: `ab/cdef…`. A file is complete and synced before it gets its name, so a name that
// exists can be trusted to be whole; what rotted since is found by its hash when it is read.
import { isDiskFull } from '../../../shared/adapters/sqlite.ts'
import { sha256Hex } from '../../../shared/kube/canonical.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { type ContentFiles, contentFilesIn } from './content-files.ts'
import { asidePath, contentPath, folderOf, isSha256, temporaryPath } from './content-names.ts'
import type { ContentStore } from './content-store.ts'

export const createFileContentStore = (folder: string, clock: Clock): ContentStore => contentStoreOn(contentFilesIn(folder, clock))

/** Repeated: between checks under the two names, collection may have returned it to the first. */
const LOOKS = 3

export function contentStoreOn(files: ContentFiles): ContentStore {
  return {
    async put(bytes) {
      const sha256 = sha256Hex(bytes)
      const path = contentPath(sha256)
      try {
        // Only under its own name: what was set aside goes. A damaged one is written again.
        if (!(await isWhole(files, path, sha256)) || !(await files.touch(path))) {
          const temporary = temporaryPath(sha256)
          await files.writeNew(temporary, bytes).catch(async (error: unknown) => {
            await files.remove(temporary)
            throw error
          })
          await files.rename(temporary, path)
        }
        await files.sync(folderOf(path)) // else the name itself could be lost with the power
      } catch (error) {
        throw isDiskFull(error) ? new AppError('disk_full', { doing: 'write the content store' }, { cause: error }) : error
      }
      return sha256
    },
    async get(sha256) {
      if (!isSha256(sha256)) return null
      for (let look = 0; look < LOOKS; look++) {
        for (const path of [contentPath(sha256), asidePath(sha256)]) {
          const bytes = await files.read(path)
          if (bytes !== null && sha256Hex(bytes) === sha256) return bytes
        }
      }
      return null
    },
    refresh: (sha256) => files.touch(contentPath(sha256)),
  }
}

export async function isWhole(files: Pick<ContentFiles, 'read'>, path: string, sha256: string): Promise<boolean> {
  const bytes = await files.read(path)
  return bytes !== null && sha256Hex(bytes) === sha256
}
