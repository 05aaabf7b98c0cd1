// zstd both ways, for bodies and stored sets. What is inflated is bounded, because a small body can be a large one.
import { zstdDecompressSync } from 'node:zlib'
import { assert } from './assert.ts'

/** Bun's own function makes the same bytes as node:zlib's in a third of the time where they are few, and a page is a
 *  few hundred. */
export const zstd = (bytes: Uint8Array, level = 3): Uint8Array => Bun.zstdCompressSync(bytes as Uint8Array<ArrayBuffer>, { level })

const RAW_FRAME_BYTES_MAX = 255 + 65_536
/** A frame of one block that is not compressed: 9 or 10 bytes more than `bytes`. For a short text between compressed
 *  frames. */
export function rawZstd(bytes: Uint8Array): Uint8Array {
  assert(bytes.length > 0 && bytes.length <= RAW_FRAME_BYTES_MAX, 'a raw frame must be small')
  const isShort = bytes.length < 256
  const frame = Buffer.allocUnsafe((isShort ? 9 : 10) + bytes.length)
  frame.writeUInt32LE(MAGIC, 0)
  frame[4] = isShort ? 0x20 : 0x60 // single segment; the content size has one byte, or two from 256 on
  if (isShort) frame[5] = bytes.length
  else frame.writeUInt16LE(bytes.length - 256, 5)
  frame.writeUIntLE((bytes.length << 3) | LAST_RAW_BLOCK, isShort ? 6 : 7, 3)
  frame.set(bytes, isShort ? 9 : 10)
  return frame
}
const MAGIC = 0xfd2fb528
const LAST_RAW_BLOCK = 1

/** Throws a RangeError past `bytesMax`, another error for bytes that are no whole zstd. */
export function unzstd(bytes: Uint8Array, bytesMax: number): Uint8Array {
  const inflated = zstdDecompressSync(bytes, { maxOutputLength: bytesMax })
  // Bun answers a truncated frame with an empty result instead of an error; Skerry never compresses empty data.
  if (inflated.length === 0) throw new Error('the zstd data is incomplete')
  return inflated
}
