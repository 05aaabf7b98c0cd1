import { expect, test } from 'bun:test'
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { rawZstd, unzstd, zstd } from '../../shared/runtime/zstd.ts'

test.each([1, 255, 256, 341, 65_791])('a raw frame of %d bytes inflates together with the compressed frames beside it', (length) => {
  const bytes = Buffer.alloc(length, 'abcdefg')
  const rows = Buffer.from('row\n'.repeat(100))
  const wire = Buffer.concat([rawZstd(bytes), zstd(rows), rawZstd(bytes)])
  expect(Buffer.from(unzstd(wire, 1_000_000)).equals(Buffer.concat([bytes, rows, bytes]))).toBe(true)
  expect(rawZstd(bytes).length - length).toBeLessThanOrEqual(10)
})

test.each([0, 65_792])('a raw frame of %d bytes is refused', (length) => {
  expect(() => rawZstd(Buffer.alloc(length))).toThrow()
})

/** A frame of blocks that repeat one byte 131,072 times each. `declared`: the size in its header, from 256 on. Null
 *  means that it has none. */
function repeated(declared: number | null, blocks: number): Buffer {
  const head = Buffer.from(declared === null ? [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58] : [0x28, 0xb5, 0x2f, 0xfd, 0x60, 0, 0])
  if (declared !== null) head.writeUInt16LE(declared - 256, 5)
  const body = Buffer.alloc(blocks * 4, 0x41)
  for (let n = 0; n < blocks; n++) body.writeUIntLE((131_072 << 3) | 2 | (n === blocks - 1 ? 1 : 0), n * 4, 3)
  return Buffer.concat([head, body])
}

test.each([
  ['declares no size', repeated(null, 2_000)],
  ['declares less than it has', repeated(300, 2_000)],
  ['declares less than it has, behind an honest frame', Buffer.concat([rawZstd(Buffer.from('rows')), repeated(300, 2_000)])],
  ['declares less than it has, in few blocks', repeated(300, 16)],
])('a body that %s is refused before more than the limit is inflated', (_, body) => {
  const before = process.memoryUsage.rss()
  expect(() => unzstd(body, 65_536)).toThrow()
  expect(process.memoryUsage.rss() - before).toBeLessThan(32_000_000)
})

test('a body above the limit is a RangeError, declared or not', () => {
  expect(() => unzstd(zstd(Buffer.alloc(70_000)), 65_536)).toThrow(RangeError)
  expect(() => unzstd(zstdCompressSync(Buffer.alloc(70_000)), 65_536)).toThrow(RangeError)
})

test.each([
  ['one frame', zstd(Buffer.from('row '.repeat(700)))],
  ['three frames', Buffer.concat([rawZstd(Buffer.from('hello')), zstd(Buffer.from('row '.repeat(90))), rawZstd(Buffer.alloc(300, 'ab'))])],
  ['a frame with a checksum', zstdCompressSync(Buffer.from('row '.repeat(99)), { params: { [constants.ZSTD_c_checksumFlag]: 1 } })],
  ['a skippable frame', Buffer.concat([Buffer.from('502a4d180400000001020304', 'hex'), zstd(Buffer.from('row '.repeat(99)))])],
])('%s, whole, cut or with a wrong byte, inflates to what node:zlib makes of it or is refused', (_, whole) => {
  const limit = 8_192
  const expected = (bytes: Uint8Array) => {
    try {
      return zstdDecompressSync(bytes, { maxOutputLength: limit }).toString('hex')
    } catch {
      return ''
    }
  }
  const inflated = (bytes: Uint8Array) => {
    try {
      return Buffer.from(unzstd(bytes, limit)).toString('hex')
    } catch {
      return ''
    }
  }
  const differ: string[] = []
  const compare = (what: string, bytes: Uint8Array) => inflated(bytes) === expected(bytes) || differ.push(what)
  compare('whole', whole)
  for (let at = 0; at < whole.length; at++) {
    compare(`cut at ${at}`, whole.subarray(0, at))
    for (const bit of [0x01, 0x04, 0x10, 0x20, 0x80]) {
      const wrong = Buffer.from(whole)
      wrong[at] = (wrong[at] ?? 0) ^ bit
      compare(`bit ${bit} at ${at}`, wrong)
    }
  }
  expect(differ).toEqual([])
})
