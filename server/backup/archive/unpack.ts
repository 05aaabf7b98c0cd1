// An archive of a backup as the folder that it was made of, for a check or a restore.
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { decryptAge } from '../../../shared/adapters/age-streams.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { namedDiskFull } from '../copy-file.ts'
import { type BackupDeps, stopIfTold } from '../create.ts'
import { peekArchive, readArchive } from './archive.ts'
import type { BackupPlace } from './stored.ts'

export interface UnpackOptions {
  place: BackupPlace
  name: string
  identities: readonly string[]
  /** A new folder is made here, readable by its owner alone, and removed at the end. It needs room for the whole
   *  backup. */
  near: string
}

/** Throws `backup_unusable` for what is damaged, cut off or encrypted to somebody else. */
export async function withUnpacked<T>(options: UnpackOptions, deps: BackupDeps, work: (folder: string) => Promise<T>): Promise<T> {
  const { place, name, identities, near } = options
  const folder = mkdtempSync(join(near, '.skerry-unpacked-'))
  try {
    deps.progress('reading the archive', 0, 0)
    const { encrypted, stream } = await peekArchive(await place.read(name))
    if (encrypted && identities.length === 0)
      throw new AppError('bad_options', {
        doing: `open ${name}`,
        detail: 'the archive is encrypted with age',
        remedy: 'Set --identity to the file of age-keygen with the private key of one of its recipients.',
      })
    const plain = encrypted ? await opened(name, stream, identities) : stream
    await readArchive(plain, folder).catch((error: unknown) => {
      throw namedDiskFull(error, folder)
    })
    stopIfTold(deps)
    return await work(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function opened(
  name: string,
  stream: ReadableStream<Uint8Array>,
  identities: readonly string[],
): Promise<ReadableStream<Uint8Array>> {
  try {
    return await decryptAge(stream, identities)
  } catch (error) {
    throw new AppError(
      'backup_unusable',
      {
        doing: `open ${name}`,
        detail: 'no identity opens the archive, or its head is damaged',
        remedy: 'Use the private key of one of its recipients, or another backup.',
      },
      { cause: error },
    )
  }
}
