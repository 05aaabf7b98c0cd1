// A thin pack holds differences to what is in other packs. What is taken back and done again would become differences
// in both directions, and a read that never ends: so what they begin at is put beside them, as git itself does it, and
// every pack is read by itself. Bytes in, bytes out.
import { createHash } from 'node:crypto'
import { deflateSync } from 'node:zlib'

/** As isomorphic-git names it, with its bytes. */
export interface WholeObject {
  type: string
  content: Uint8Array
}

const HEAD_BYTES = 12
const COUNT_AT = 8
const TYPES: Readonly<Record<string, number>> = { commit: 1, tree: 2, blob: 3, tag: 4 }

/** `end`: where its last object ends. The objects come last, so that they are what is found under their ids. */
export function withWholeObjects(pack: Buffer, end: number, objects: readonly WholeObject[]): Buffer {
  const head = Buffer.from(pack.subarray(0, HEAD_BYTES))
  head.writeUInt32BE(head.readUInt32BE(COUNT_AT) + objects.length, COUNT_AT)
  const parts = [head, pack.subarray(HEAD_BYTES, end), ...objects.flatMap(packed)]
  const sum = createHash('sha1')
  for (const part of parts) sum.update(part)
  return Buffer.concat([...parts, sum.digest()])
}

function packed({ type, content }: WholeObject): Buffer[] {
  const size = content.byteLength
  const first = ((TYPES[type] ?? 0) << 4) | (size % 16)
  let rest = Math.floor(size / 16)
  const head = [rest > 0 ? first | 0x80 : first]
  for (; rest > 0; rest = Math.floor(rest / 128)) head.push(rest >= 128 ? (rest % 128) | 0x80 : rest)
  return [Buffer.from(head), deflateSync(content, { level: 1 })]
}

const INDEX_HEAD_BYTES = 8
const FANOUT_BYTES = 256 * 4
const ID_BYTES = 20

/** Ids of the objects of a pack, as its index (version 2) has them. */
export function idsOfIndex(index: Buffer): Set<string> {
  const start = INDEX_HEAD_BYTES + FANOUT_BYTES
  const count = index.readUInt32BE(start - 4)
  const ids = new Set<string>()
  for (let at = start; ids.size < count && at + ID_BYTES <= index.byteLength; at += ID_BYTES)
    ids.add(index.toString('hex', at, at + ID_BYTES))
  return ids
}
