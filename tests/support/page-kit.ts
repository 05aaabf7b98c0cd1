// Pages as a test reads them: all parts fetched, inflated, cut into hello, rows and checkpoint.
import { zstdDecompressSync } from 'node:zlib'
import type { Accept, PullResult, Shards } from '../../server/desired/shards.ts'
import type { Position } from '../../shared/crdt/position.ts'
import { type Checkpoint, checkpointSchema, type Hello, helloSchema, parseRowLine, type Row } from '../../shared/protocol/frames.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'

export interface ParsedPage {
  hello: Hello
  rows: Row[]
  checkpoint: Checkpoint
  /** The page, uncompressed. */
  frames: Buffer
  text: string
}

export const IDENTITY: Accept = { zstd: false }
export const ZSTD: Accept = { zstd: true }

/** The page's bytes, whole and uncompressed; fails for any other answer. */
export function wholePage(shards: Pick<Shards, 'part'>, clusterId: ClusterId, pulled: PullResult): Buffer {
  if (pulled.kind !== 'page') throw new Error(`expected a page, got ${JSON.stringify(pulled)}`)
  const { bytes, transfer } = pulled
  const parts = [bytes]
  for (let part = 1; part < (transfer?.parts ?? 1); part++) {
    const got = shards.part(clusterId, transfer?.id ?? '', part)
    if (got.kind !== 'part') throw new Error(`part ${part} is ${got.kind}`)
    parts.push(got.bytes)
  }
  const wire = Buffer.concat(parts)
  if (transfer !== null && wire.length !== transfer.bytes) throw new Error(`${wire.length} bytes of ${transfer.bytes}`)
  return pulled.zstd ? zstdDecompressSync(wire) : wire
}

export function parsePage(frames: Buffer): ParsedPage {
  const text = frames.toString()
  const lines = text.split('\n').slice(0, -1)
  const hello = helloSchema.parse(JSON.parse(lines[0] ?? ''))
  // Wrapped keys of sealed rows are the line after hello.
  const rows = lines.slice(hello.seal === undefined ? 1 : 2, -1).map((line) => {
    const row = parseRowLine(line)
    if (typeof row === 'string') throw new Error(row)
    return row
  })
  const checkpoint = JSON.parse(lines.at(-1) ?? '')
  return { hello, rows, checkpoint: checkpointSchema.parse(checkpoint), frames, text }
}

export const pullPage = async (shards: Shards, cluster: ClusterId, cursor: Position | null, accept = IDENTITY): Promise<ParsedPage> =>
  parsePage(wholePage(shards, cluster, await shards.pull(cluster, cursor, accept)))

export const refetchPage = async (shards: Shards, cluster: ClusterId, sums: Uint8Array, accept = IDENTITY): Promise<ParsedPage> =>
  parsePage(wholePage(shards, cluster, await shards.refetch(cluster, sums, accept)))
