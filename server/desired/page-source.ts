// One shard file's answers as bytes: what the main thread does itself for small reads, and its Worker for large ones.
import type { Position } from '../../shared/crdt/position.ts'
import type { RefetchReason } from '../../shared/protocol/frames.ts'
import type { RowBody, RowFrames } from './row-frames.ts'
import type { ReadBounds } from './row-lines.ts'
import type { Ask, ShardReader } from './shard-reader.ts'

export type SourceResult =
  | { kind: 'rows'; to: Position; count: number; ordinal: number; siteId: string; keep?: string; body: RowBody }
  | { kind: 'nothing_new' }
  | { kind: 'refetch'; reason: RefetchReason }

export function readBody(
  reader: ShardReader,
  frames: RowFrames,
  { clusterId, ask, zstd }: { clusterId: string; ask: Ask; zstd: boolean },
  bounds: ReadBounds,
): SourceResult | { kind: 'large' } {
  const read = reader.read(clusterId, ask, bounds)
  if (read.kind !== 'rows') return read
  const { lines, ...head } = read
  return { ...head, body: frames.body(lines, zstd) }
}
