// Packs that are meant to become more than a server has.
import { expect, test } from 'bun:test'
import { deflateSync } from 'node:zlib'
import { checkPack, PACK_OBJECT_BYTES_MAX } from '../../server/sources/git/pack-check.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { naming } from '../support/naming.ts'

const varint = (value: number): number[] => (value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))])
const headOf = (type: number, size: number): number[] =>
  size < 16 ? [(type << 4) + size] : [128 + (type << 4) + (size % 16), ...varint(Math.floor(size / 16))]
const object = (type: number, content: Uint8Array, before: number[] = []) =>
  Buffer.concat([Buffer.from(headOf(type, content.byteLength)), Buffer.from(before), deflateSync(content)])
const pack = (...objects: Buffer[]) =>
  Buffer.concat([
    Buffer.from('PACK\0\0\0\x02'),
    Buffer.from([0, 0, objects.length >> 8, objects.length % 256]),
    ...objects,
    Buffer.alloc(20),
  ])
const delta = (size: number) => Buffer.from([...varint(3), ...varint(size), 0x90, 3])
const OFS = [6, Buffer.alloc(0)] as const
const outcome = (bytes: Buffer) =>
  checkPack(bytes, async () => {}).then(
    () => 'good',
    (error: unknown) => (error instanceof AppError ? String(error.data.detail) : `thrown: ${error}`),
  )

test.each([
  [
    'a file and deltas of both kinds',
    pack(object(3, Buffer.from('abc')), object(OFS[0], delta(3), [15]), object(7, delta(3), Array(20).fill(1))),
    ['good'],
  ],
  ['a file of the most that is taken', pack(object(3, Buffer.alloc(PACK_OBJECT_BYTES_MAX))), ['good']],
  ['one byte more', pack(object(3, Buffer.alloc(PACK_OBJECT_BYTES_MAX + 1))), ['128 MiB']],
  ['more than it says', pack(Buffer.concat([Buffer.from([0x31]), deflateSync(Buffer.alloc(PACK_OBJECT_BYTES_MAX + 1))])), ['128 MiB']],
  ['a delta that makes the most', pack(object(3, Buffer.from('abc')), object(6, delta(PACK_OBJECT_BYTES_MAX), [15])), ['good']],
  ['a delta that makes one byte more', pack(object(3, Buffer.from('abc')), object(6, delta(PACK_OBJECT_BYTES_MAX + 1), [15])), ['128 MiB']],
  [
    'deltas that make too much together',
    pack(object(3, Buffer.from('abc')), ...Array.from({ length: 257 }, () => object(6, delta(PACK_OBJECT_BYTES_MAX), [15]))),
    ['32 GiB'],
  ],
  ['what is no pack', Buffer.from('PACK\0\0\0\x02\0\0\0\x01garbage'), ['damaged pack']],
])('SO39 a pack with %s', async (_, bytes, expected) => expect(await outcome(bytes)).toEqual(naming(...expected)))
