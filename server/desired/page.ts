// Makes one signed page from what was read of a shard. Pure: the rows were read before, in one transaction with their
// head (PL2).
import type { Position } from '../../shared/crdt/position.ts'
import { type Checkpoint, checkpointBytes, type Hello } from '../../shared/protocol/frames.ts'
import { COMPRESS_BYTES_MIN } from '../../shared/protocol/routes.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { rawZstd, zstd } from '../../shared/runtime/zstd.ts'
import type { PageKeys } from './page-seal.ts'
import type { RowBody } from './row-frames.ts'

export interface PageInput {
  clusterId: ClusterId
  epoch: number
  ordinal: number
  /** Null for a page that becomes a new file. */
  from: Position | null
  to: Position
  /** Live rows of the cluster at `to`. */
  count: number
  siteId: string
  /** The rows that a re-base keeps (PL9). */
  keep?: string
  /** Keys of its sealed rows. Absent means that it has none. */
  keys?: PageKeys
  body: RowBody
  /** The agent can read zstd. */
  zstd: boolean
  sign(bytes: Uint8Array): string
}

/** The page on the wire is these three one after the other: zstd frames, which inflate as one, or lines as they are. */
export interface WirePage {
  head: Uint8Array
  body: RowBody
  tail: Uint8Array
  zstd: boolean
}

export function encodePage(input: PageInput): WirePage {
  const { clusterId, epoch, ordinal, from, to, count, siteId, keep, keys, body, sign } = input
  const hello: Hello = {
    t: 'hello',
    epoch,
    schema: 1,
    ordinal,
    from,
    to,
    siteId,
    ...(keep === undefined ? {} : { keep }),
    ...(keys === undefined ? {} : { seal: keys.head }),
  }
  const covered = { count, rows: body.sha256 }
  const checkpoint: Checkpoint = { t: 'checkpoint', ...covered, signature: sign(checkpointBytes(clusterId, hello, covered)) }
  const head = Buffer.from(`${JSON.stringify(hello)}\n${keys === undefined ? '' : `${keys.line}\n`}`)
  const tail = Buffer.from(`${JSON.stringify(checkpoint)}\n`)
  // Hello and checkpoint are mostly hex digits: to compress those of thousands of clusters saves 200 bytes each and
  // takes too long.
  const own = body.common ? rawZstd : zstd
  if (body.packed) return { head: own(head), body, tail: own(tail), zstd: true }
  const plain = { head, body, tail, zstd: false }
  return input.zstd ? packedWhole(plain) : plain
}

/** A small page is one zstd frame, if that pays. */
function packedWhole(page: WirePage): WirePage {
  const whole = Buffer.concat([page.head, page.body.bytes, page.tail])
  const packed = whole.length < COMPRESS_BYTES_MIN ? whole : zstd(whole)
  const none = new Uint8Array()
  return packed.length < whole.length ? { head: packed, body: { ...page.body, bytes: none }, tail: none, zstd: true } : page
}
