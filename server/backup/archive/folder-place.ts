// Archives of backups in a folder, such as a mounted volume.
import { createReadStream, createWriteStream, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { syncPath } from '../../../shared/adapters/sync-path.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { namedDiskFull } from '../copy-file.ts'
import { type BackupPlace, isArchiveName } from './stored.ts'

export function folderPlace(folder: string): BackupPlace {
  const at = (name: string) => join(folder, name)
  return {
    text: folder,
    remote: false,
    async list() {
      if (!existsSync(folder)) return []
      const names = readdirSync(folder).filter(isArchiveName).sort()
      return names.map((name) => ({ name, bytes: statSync(at(name)).size }))
    },
    async write(name, chunks) {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      if (existsSync(at(name))) throw new AppError('target_exists', { doing: 'back up', detail: `${at(name)} exists` })
      const partial = `${at(name)}.partial`
      try {
        // 0600: it may hold keys, and what every cluster runs.
        await pipeline(Readable.from(chunks), createWriteStream(partial, { mode: 0o600, flags: 'w' }))
        syncPath(partial)
        const { size } = statSync(partial)
        renameSync(partial, at(name))
        syncPath(folder)
        return size
      } catch (error) {
        rmSync(partial, { force: true })
        throw namedDiskFull(error, folder)
      }
    },
    async read(name) {
      if (!statSync(at(name), { throwIfNoEntry: false })?.isFile())
        throw new AppError('backup_unusable', { doing: 'read the backup', detail: `${at(name)} is not a file` })
      return Readable.toWeb(createReadStream(at(name))) as unknown as ReadableStream<Uint8Array>
    },
    async remove(name) {
      rmSync(at(name))
      syncPath(folder)
    },
  }
}
