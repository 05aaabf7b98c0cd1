// Content by SHA-256 in a folder: `ab/cdef…`. A file is complete and synced before it gets its name, so a name that exists can be trusted to be whole;
// what rotted since is found by its hash when it is read.
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isDiskFull } from '../../shared/adapters/sqlite.ts'
import { sha256Hex } from '../../shared/kube/canonical.ts'
import { AppError } from '../../shared/protocol/error.ts'
import type { ContentStore } from './content-store.ts'

export function createFileContentStore(folder: string): ContentStore {
  const pathOf = (sha256: string) => join(folder, sha256.slice(0, 2), sha256.slice(2))
  let writes = 0
  const read = async (sha256: string): Promise<Uint8Array | null> => {
    if (!/^[0-9a-f]{64}$/.test(sha256)) return null
    const bytes = await readFile(pathOf(sha256)).catch((error: unknown) => {
      if (isMissing(error)) return null
      throw error
    })
    return bytes !== null && sha256Hex(bytes) === sha256 ? new Uint8Array(bytes) : null
  }
  return {
    async put(bytes) {
      const sha256 = sha256Hex(bytes)
      const path = pathOf(sha256)
      if ((await read(sha256)) !== null) return sha256 // a damaged one is written again
      const temporary = `${path}.${process.pid}-${writes++}`
      try {
        await mkdir(dirname(path), { recursive: true })
        await writeSynced(temporary, bytes)
        await rename(temporary, path)
        await syncFolder(dirname(path))
      } catch (error) {
        await rm(temporary, { force: true })
        throw isDiskFull(error) ? new AppError('disk_full', { doing: 'write the content store' }, { cause: error }) : error
      }
      return sha256
    },
    get: read,
  }
}

const isMissing = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'ENOENT'

async function writeSynced(path: string, bytes: Uint8Array): Promise<void> {
  const file = await open(path, 'wx')
  try {
    await file.writeFile(bytes)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Without it the name itself could be lost with the power. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
