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
  const hello = { t: 'hello', epoch, schema: 1, from, to, siteId: 'ab'.repeat(16), transfer: 't', parts: 1, ...page.hello }
  const line = (value: unknown) =>
    value instanceof Uint8Array ? value : Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))
  const body = Buffer.concat([hello, ...page.lines].flatMap((value) => [line(value), Buffer.from('\n')]))
  const covered = { from, to, count, sha256: createHash('sha256').update(body).digest('hex') }
  const signature = signBytes(privateKey, checkpointBytes(clusterId, epoch, covered))
  const checkpoint = { t: 'checkpoint', ...covered, signature, ...page.checkpoint }
  return Buffer.concat([body, Buffer.from(`${JSON.stringify(checkpoint)}\n`)])
}
