// zstd both ways, for bodies and stored sets. What is inflated is bounded, because a small body can be a large one.
import { zstdDecompressSync } from 'node:zlib'

/** Bun's own function makes the same bytes as node:zlib's in a third of the time where they are few, and a page is a few hundred. */
export const zstd = (bytes: Uint8Array, level = 3): Uint8Array => Bun.zstdCompressSync(bytes as Uint8Array<ArrayBuffer>, { level })

/** Throws a RangeError past `bytesMax`, another error for bytes that are no whole zstd. */
export function unzstd(bytes: Uint8Array, bytesMax: number): Uint8Array {
  const inflated = zstdDecompressSync(bytes, { maxOutputLength: bytesMax })
  // Bun answers a frame that was cut short with nothing at all instead of an error; nobody here compresses nothing.
  if (inflated.length === 0) throw new Error('the zstd data is cut short')
  return inflated
}
