// Bytes of a page → frames that passed every check which needs no database (PL5): forms, bounds, counts, the digest and the signature. The bytes
// come from outside: nothing in here may throw at them, and nothing reaches cr-sqlite before it has been here.
import { createHash } from 'node:crypto'
import { samePosition } from '../../shared/crdt/position.ts'
import {
  type Checkpoint,
  checkpointBytes,
  checkpointSchema,
  type Hello,
  helloSchema,
  type Row,
  rowSchema,
  txSchema,
} from '../../shared/protocol/frames.ts'
import { PAGE_BYTES_MAX } from '../../shared/protocol/routes.ts'
import { verifyBytes } from '../../shared/runtime/keys.ts'

export interface Change {
  dv: number
  id: string
  doc: string | null
  colVersion: number
  cl: number
  seq: number
}

export interface Page {
  hello: Hello
  changes: Change[]
  checkpoint: Checkpoint
}

export type PageRead = { kind: 'page'; page: Page } | { kind: 'refused'; why: string }

const LF = 10
/** The one layout of rows that this version can read. */
const ROW_SCHEMA_VERSION = 1

export function readPage(frames: Uint8Array, clusterId: string, serverKeys: readonly string[]): PageRead {
  try {
    return { kind: 'page', page: parsePage(frames, clusterId, serverKeys) }
  } catch (error) {
    if (error instanceof BadPage) return { kind: 'refused', why: error.message }
    throw error
  }
}

class BadPage extends Error {}
const refuse = (why: string): never => {
  throw new BadPage(why)
}

function parsePage(frames: Uint8Array, clusterId: string, serverKeys: readonly string[]): Page {
  if (frames.length > PAGE_BYTES_MAX) refuse(`larger than ${PAGE_BYTES_MAX} bytes`)
  if (frames.length === 0 || frames[frames.length - 1] !== LF) refuse('cut short')
  const lastStart = frames.lastIndexOf(LF, frames.length - 2) + 1
  if (lastStart === 0) refuse('cut short')
  const body = frames.subarray(0, lastStart)
  const checkpoint = frame(checkpointSchema, decode(frames.subarray(lastStart)), 'checkpoint')
  if (createHash('sha256').update(body).digest('hex') !== checkpoint.sha256) refuse('its bytes differ from the checkpoint’s digest')

  const lines = decode(body).split('\n')
  lines.pop() // after the last line feed
  const hello = frame(helloSchema, lines[0] ?? '', 'hello')
  if (hello.schema !== ROW_SCHEMA_VERSION) refuse(`rows of layout ${hello.schema}, this version reads ${ROW_SCHEMA_VERSION}`)
  const sameStart =
    hello.from === null || checkpoint.from === null ? hello.from === checkpoint.from : samePosition(hello.from, checkpoint.from)
  if (!sameStart || !samePosition(hello.to, checkpoint.to)) refuse('its first and last frame name different positions')
  const { from, to, count, sha256, signature } = checkpoint
  const signed = checkpointBytes(clusterId, hello.epoch, { from, to, count, sha256 })
  if (!serverKeys.some((key) => verifyBytes(key, signed, signature))) refuse('not signed by a key of this server for this cluster')
  return { hello, changes: parseChanges(lines, checkpoint), checkpoint }
}

function parseChanges(lines: readonly string[], { from, to }: Checkpoint): Change[] {
  if (from !== null && from.dbId !== to.dbId) refuse('a delta between two files')
  const changes: Change[] = []
  let dv = from?.dv ?? 0
  for (let next = 1; next < lines.length; ) {
    const tx = frame(txSchema, lines[next] ?? '', 'tx')
    if (tx.dv <= dv || tx.dv > to.dv) refuse(`version ${tx.dv} is out of order`)
    if (next + tx.n >= lines.length) refuse(`version ${tx.dv} has fewer rows than it says`)
    dv = tx.dv
    for (let row = 1; row <= tx.n; row++) {
      const [id, doc, colVersion, cl, seq]: Row = frame(rowSchema, lines[next + row] ?? '', 'row')
      changes.push({ dv, id, doc, colVersion, cl, seq })
    }
    next += tx.n + 1
  }
  return changes
}

const decoder = new TextDecoder('utf-8', { fatal: true })

function decode(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes)
  } catch {
    return refuse('not UTF-8')
  }
}

interface Schema<T> {
  safeParse(
    value: unknown,
  ): { success: true; data: T } | { success: false; error: { issues: ReadonlyArray<{ message: string; path: PropertyKey[] }> } }
}

function frame<T>(schema: Schema<T>, line: string, name: string): T {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return refuse(`${name}: not JSON`)
  }
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  return refuse(`${name}: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`.trim())
}
