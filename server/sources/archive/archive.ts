// Files of a tar archive, compressed with gzip or not: what a chart and an OCI layer are. Inflates piece by piece, so
// that a bomb ends at the limits and not in memory.
import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { AppError } from '../../../shared/runtime/error.ts'
import { SOURCE_FILES_MAX, SOURCE_TREE_BYTES_MAX } from '../source.ts'
import { withoutLinks } from './links.ts'
import { archiveRefused, readTar } from './tar.ts'

/** As it comes over the network. */
export const ARCHIVE_BYTES_MAX = 64 * 1024 * 1024
/** Files with the header and the padding of each, and extended headers. */
const INFLATED_BYTES_MAX = SOURCE_TREE_BYTES_MAX + SOURCE_FILES_MAX * 4 * 512
/** Texts of charts shrink to a tenth; zeros to a thousandth. Not asked of what is small anyway. */
const RATIO_MAX = 200
const RATIO_FREE_BYTES = 4 * 1024 * 1024
const PIECE_BYTES = 256 * 1024

/** By path from the archive's root; what links lead to is there under their names. */
export type ArchiveFiles = ReadonlyMap<string, Uint8Array>

/** Throws `source_refused` with the entry and the reason, and nothing else. */
export async function readArchive(bytes: Uint8Array): Promise<ArchiveFiles> {
  if (bytes.byteLength > ARCHIVE_BYTES_MAX) throw archiveRefused(`it is larger than ${ARCHIVE_BYTES_MAX / 1024 / 1024} MiB`)
  const isGzip = bytes[0] === 0x1f && bytes[1] === 0x8b
  return withoutLinks(await readTar(isGzip ? inflated(bytes) : pieces(bytes)))
}

async function* pieces(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES)
}

async function* inflated(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  const gunzip = createGunzip({ chunkSize: PIECE_BYTES })
  const compressed = Readable.from(pieces(bytes))
  compressed.pipe(gunzip)
  let size = 0
  try {
    for await (const piece of gunzip as AsyncIterable<Buffer>) {
      size += piece.byteLength
      if (size > INFLATED_BYTES_MAX) throw archiveRefused(`it inflates to more than ${Math.round(INFLATED_BYTES_MAX / 1024 / 1024)} MiB`)
      if (size > RATIO_FREE_BYTES && size > bytes.byteLength * RATIO_MAX)
        throw archiveRefused(`it inflates to more than ${RATIO_MAX} times its size`)
      yield piece
    }
  } catch (error) {
    throw error instanceof AppError ? error : archiveRefused('it is not a complete gzip file')
  } finally {
    compressed.destroy()
    gunzip.destroy()
  }
}
