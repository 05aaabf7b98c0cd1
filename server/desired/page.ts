// Rows of a shard → the bytes of one page, signed. Pure: what is in it was read before, in one transaction with its head (PL2).
import { createHash } from 'node:crypto'
import type { Position } from '../../shared/crdt/position.ts'
import type { ClusterId } from '../../shared/model/ids.ts'
import { type Checkpoint, checkpointBytes, type Hello, type Row, rowLine } from '../../shared/protocol/frames.ts'

export interface PageInput {
  clusterId: ClusterId
  epoch: number
  ordinal: number
  /** Null for a bootstrap. */
  from: Position | null
  to: Position
  /** Live rows of the cluster at `to`. */
  count: number
  siteId: string
  /** Of a re-base (PL9). */
  keep?: string
  rows: readonly Row[]
  sign(bytes: Uint8Array): string
}

export function encodePage(input: PageInput): Uint8Array {
  const { clusterId, epoch, ordinal, from, to, count, siteId, keep, rows, sign } = input
  const hello: Hello = { t: 'hello', epoch, schema: 1, ordinal, from, to, siteId, ...(keep === undefined ? {} : { keep }) }
  const lines = Buffer.from(rows.map(rowLine).join(''))
  const covered = { count, rows: createHash('sha256').update(lines).digest('hex') }
  const checkpoint: Checkpoint = { t: 'checkpoint', ...covered, signature: sign(checkpointBytes(clusterId, hello, covered)) }
  return Buffer.concat([Buffer.from(`${JSON.stringify(hello)}\n`), lines, Buffer.from(`${JSON.stringify(checkpoint)}\n`)])
}
