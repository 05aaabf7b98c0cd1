// Rows of a shard → the NDJSON of one page, signed. Pure: what is in it was read before, in one transaction with its head (PL2).
import { createHash } from 'node:crypto'
import type { Position } from '../../shared/crdt/position.ts'
import type { ClusterId } from '../../shared/model/ids.ts'
import { type Checkpoint, checkpointBytes, type Hello, type Row } from '../../shared/protocol/frames.ts'

/** A row as it travels, with the db_version that wrote it last. */
export interface PageRow {
  dv: number
  id: string
  /** Null: deleted. */
  doc: string | null
  colVersion: number
  /** Causal length: odd is alive, even is deleted. */
  cl: number
  seq: number
}

export interface PageInput {
  clusterId: ClusterId
  epoch: number
  /** Null for a bootstrap. */
  from: Position | null
  to: Position
  /** Live rows of the cluster at `to`. */
  count: number
  siteId: string
  transfer: string
  /** In order of dv, then seq. */
  rows: readonly PageRow[]
  sign(bytes: Uint8Array): string
}

export function encodePage(input: PageInput): Uint8Array {
  const { clusterId, epoch, from, to, count, siteId, transfer, rows, sign } = input
  const hello: Hello = { t: 'hello', epoch, schema: 1, from, to, siteId, transfer, parts: 1 }
  const lines = [JSON.stringify(hello)]
  for (let start = 0; start < rows.length; ) {
    const dv = rows[start]?.dv
    let end = start
    while (rows[end]?.dv === dv && end < rows.length) end++
    lines.push(JSON.stringify({ t: 'tx', dv, n: end - start }))
    for (const { id, doc, colVersion, cl, seq } of rows.slice(start, end)) {
      const row: Row = [id, doc, colVersion, cl, seq]
      lines.push(JSON.stringify(row))
    }
    start = end
  }
  const body = Buffer.from(`${lines.join('\n')}\n`)
  const covered = { from, to, count, sha256: createHash('sha256').update(body).digest('hex') }
  const checkpoint: Checkpoint = { t: 'checkpoint', ...covered, signature: sign(checkpointBytes(clusterId, epoch, covered)) }
  return Buffer.concat([body, Buffer.from(`${JSON.stringify(checkpoint)}\n`)])
}
