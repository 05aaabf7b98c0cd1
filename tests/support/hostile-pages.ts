// Pages that a broken or hostile server could sign: every row of a good page can be bent, and the digest and signature still fit.
import { createHash } from 'node:crypto'
import type { Position } from '../../shared/crdt/position.ts'
import { checkpointBytes } from '../../shared/protocol/frames.ts'
import { signBytes } from '../../shared/runtime/keys.ts'
import { SERVER_KEY } from './sync-kit.ts'

export interface ForgedPage {
  clusterId: string
  epoch?: number
  hello?: Record<string, unknown>
  /** Lines between hello and checkpoint, as objects, raw text or raw bytes. */
  lines: readonly unknown[]
  from: Position | null
  to: Position
  count: number
  checkpoint?: Record<string, unknown>
  privateKey?: string
}

export function forgePage(page: ForgedPage): Uint8Array {
  const { clusterId, epoch = 1, from, to, count, privateKey = SERVER_KEY.privateKey } = page
  const covered = { epoch, schema: 1, ordinal: 3, from, to, siteId: 'ab'.repeat(16) }
  const hello = { t: 'hello', ...covered, ...page.hello }
  const line = (value: unknown) =>
    value instanceof Uint8Array ? value : Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))
  const lines = Buffer.concat(page.lines.flatMap((value) => [line(value), Buffer.from('\n')]))
  const sums = { count, rows: createHash('sha256').update(lines).digest('hex') }
  const signature = signBytes(privateKey, checkpointBytes(clusterId, covered, sums))
  const checkpoint = { t: 'checkpoint', ...sums, signature, ...page.checkpoint }
  return Buffer.concat([Buffer.from(`${JSON.stringify(hello)}\n`), lines, Buffer.from(`${JSON.stringify(checkpoint)}\n`)])
}
