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
  const inflated =
    declaredSize(bytes) <= bytesMax
      ? Bun.zstdDecompressSync(bytes as Uint8Array<ArrayBuffer>)
      : zstdDecompressSync(bytes, { maxOutputLength: bytesMax })
  // Bun answers a truncated frame with an empty result instead of an error; Skerry never compresses empty data.
  if (inflated.length === 0) throw new Error('the zstd data is incomplete')
  return inflated
}

/** Blocks of a body that is small: each of them inflates to 128 KiB at most, whatever its frame declares. */
const SMALL_BLOCKS_MAX = 16
/** A window of 128 MiB. */
const WINDOW_BYTE_MAX = (17 << 3) | 7

/** The size of the content that its frames declare. Infinite for more than a few blocks, and for what Skerry does not
 *  write: frames that declare no size, that need a dictionary, or that are not whole. Bun's own function inflates what
 *  declares its size into a buffer of that size, in a fifth of the time of node:zlib and without memory of a stream. It
 *  has no bound of its own, so that nothing else may reach it. */
function declaredSize(bytes: Uint8Array): number {
  const data = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let [at, size, blocks] = [0, 0, 0]
  try {
    while (at < bytes.length) {
      if (data.getUint32(at, true) !== MAGIC) return Number.POSITIVE_INFINITY
      const flags = data.getUint8(at + 4)
      const isSingle = (flags & 0x20) !== 0
      const sizeBytes = SIZE_BYTES[flags >> 6] ?? 0
      const isUnknown = sizeBytes === 0 && !isSingle
      const isStrange = (flags & 0x1b) !== 0 || (!isSingle && data.getUint8(at + 5) > WINDOW_BYTE_MAX)
      if (isUnknown || isStrange || sizeBytes === 8) return Number.POSITIVE_INFINITY
      at += isSingle ? 5 : 6
      size += sizeBytes === 4 ? data.getUint32(at, true) : sizeBytes === 2 ? data.getUint16(at, true) + 256 : data.getUint8(at)
      at += Math.max(1, sizeBytes)
      for (let isLast = false; !isLast; ) {
        blocks += 1
        const block = data.getUint16(at, true) | (data.getUint8(at + 2) << 16)
        isLast = (block & 1) !== 0
        const type = (block >> 1) & 3
        if (type === RESERVED_BLOCK || blocks > SMALL_BLOCKS_MAX) return Number.POSITIVE_INFINITY
        at += 3 + (type === RLE_BLOCK ? 1 : block >> 3)
      }
      if ((flags & CHECKSUM) !== 0) at += 4
    }
  } catch (error) {
    if (error instanceof RangeError) return Number.POSITIVE_INFINITY // it ends early
    throw error
  }
  return at === bytes.length ? size : Number.POSITIVE_INFINITY
}

/** By the first two bits of a frame's descriptor. */
const SIZE_BYTES = [0, 2, 4, 8]
const [RLE_BLOCK, RESERVED_BLOCK, CHECKSUM] = [1, 3, 0x04]
