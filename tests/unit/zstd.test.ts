import { expect, test } from 'bun:test'
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
