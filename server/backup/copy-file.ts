// Files of a backup, written whole and synced; what is read is hashed as it goes by, so that what was checked is what
// was written.
import { createHash } from 'node:crypto'
import { closeSync, constants, fstatSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { isDiskFull } from '../../shared/adapters/sqlite.ts'
import { AppError } from '../../shared/runtime/error.ts'

const CHUNK = 1_024 * 1_024

export interface FileSum {
  bytes: number
  sha256: string
}

/** `to` null: only looks. It must not exist. Follows no link. */
export async function sumFile(from: string, to: string | null, mode = 0o600): Promise<FileSum> {
  const source = openSync(from, constants.O_RDONLY | constants.O_NOFOLLOW)
  let target: number | null = null
  try {
    if (!fstatSync(source).isFile()) throw new AppError('backup_unusable', { detail: `${from} is not a file` })
    target = to === null ? null : openSync(to, 'wx', mode)
    const hash = createHash('sha256')
    const chunk = Buffer.allocUnsafe(CHUNK)
    let bytes = 0
    for (;;) {
      const read = readSync(source, chunk)
      if (read === 0) break
      hash.update(chunk.subarray(0, read))
      if (target !== null) writeAll(target, chunk.subarray(0, read))
      bytes += read
      if (read === CHUNK) await setImmediate() // a signal to stop is heard
    }
    if (target !== null) fsyncSync(target)
    return { bytes, sha256: hash.digest('hex') }
  } finally {
    closeSync(source)
    if (target !== null) closeSync(target)
  }
}

export function writeSynced(path: string, bytes: Uint8Array, mode = 0o600): void {
  const file = openSync(path, 'wx', mode)
  try {
    writeAll(file, bytes)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

function writeAll(file: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at)
}

/** With the place where space is wanted. */
export const namedDiskFull = (error: unknown, folder: string): unknown =>
  isDiskFull(error)
    ? new AppError(
        'disk_full',
        {
          detail: `no space left for ${folder}`,
          remedy: 'Free some space there, or choose another folder. The incomplete backup was removed.',
        },
        { cause: error },
      )
    : error
