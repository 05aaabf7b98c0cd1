// Pages that a broken or hostile server could sign: every row and every word of a good page can be bent, and digest and
// signature still fit.
import { createHash } from 'node:crypto'
import type { Position } from '../../shared/crdt/position.ts'
import { checkpointBytes, type Hello } from '../../shared/protocol/frames.ts'
import { signBytes } from '../../shared/runtime/keys.ts'
import { SERVER_KEY } from './sync-kit.ts'

export interface ForgedPage {
  clusterId: string
  from: Position | null
  to: Position
  count: number
  /** Row lines without their line feeds, as text or raw bytes. */
  lines: ReadonlyArray<string | Uint8Array>
  /** Members of hello that are signed as they are here. */
  signed?: Record<string, unknown>
  /** Bent after the signature. */
  hello?: Record<string, unknown>
  checkpoint?: Record<string, unknown>
  privateKey?: string
}

export function forgePage(page: ForgedPage): Uint8Array {
  const { clusterId, from, to, count, privateKey = SERVER_KEY.privateKey } = page
  const covered = { epoch: 1, schema: 1, ordinal: 3, from, to, siteId: 'ab'.repeat(16), ...page.signed } as Omit<Hello, 't'>
  const lines = Buffer.concat(page.lines.flatMap((line) => [Buffer.from(line), Buffer.from('\n')]))
  const sums = { count, rows: createHash('sha256').update(lines).digest('hex') }
  const signature = signBytes(privateKey, checkpointBytes(clusterId, covered, sums))
  const hello = JSON.stringify({ t: 'hello', ...covered, ...page.hello })
  const checkpoint = JSON.stringify({ t: 'checkpoint', ...sums, signature, ...page.checkpoint })
  return Buffer.concat([Buffer.from(`${hello}\n`), lines, Buffer.from(`${checkpoint}\n`)])
}
