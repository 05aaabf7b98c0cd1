// Bytes of a page → rows that passed every check without a database (PL5): form, bounds, the digest and the signature.
// The bytes are untrusted: this code never throws on them, and nothing reaches cr-sqlite before these checks.
import { isUtf8 } from 'node:buffer'
import { hash } from 'node:crypto'
import { sealMarkOf } from '../../shared/model/sealed-object.ts'
import {
  type Checkpoint,
  checkpointBytes,
  checkpointSchema,
  type HeadProof,
  type Hello,
  helloSchema,
  parseRowLine,
  type Row,
} from '../../shared/protocol/frames.ts'
import { PAGE_BYTES_MAX, PAGE_ROWS_MAX } from '../../shared/protocol/routes.ts'
import { pageBinding, WRAP_CHARS } from '../../shared/protocol/sealed-keys.ts'
import { verifyBytes } from '../../shared/runtime/keys.ts'

export interface Page {
  hello: Hello
  rows: Row[]
  checkpoint: Checkpoint
  /** Wrapped keys of its sealed rows, by row id. */
  wraps: ReadonlyMap<string, Wrap>
}

/** The key of a sealed row, as the replica keeps it: wrapped for this agent. */
export interface Wrap {
  enc: string
  /** Fingerprint of the recipient key. */
  to: string
  wrapped: string
  /** Page that it is bound to; '': none (an earlier server). */
  bound: string
}

export type PageRead = { kind: 'page'; page: Page } | { kind: 'refused'; why: string }

const LF = 10
/** The one layout of rows that this version can read. */
const ROW_SCHEMA_VERSION = 1
/** Limit of hello and checkpoint each, which are parsed before the sender is known. */
const HEAD_BYTES_MAX = 4_096
/** Lines of about this many bytes are decoded together. */
const BLOCK_BYTES = 1_048_576

export function readPage(frames: Uint8Array, clusterId: string, serverKeys: readonly string[]): PageRead {
  try {
    return { kind: 'page', page: parsePage(frames, clusterId, serverKeys) }
  } catch (error) {
    if (error instanceof BadPage) return { kind: 'refused', why: error.message }
    throw error
  }
}

/** The reason for refusing a page. Meanwhile the server may have a key that follows from the pinned ones (RP7). */
export const NOT_SIGNED = 'not signed by a key of this server for this cluster'
/** SL15: the reason that ends the session, so that the agent announces its own key. */
export const SEALED_FOR_OTHER = 'sealed to a recipient key that this agent does not have'

class BadPage extends Error {}
const refuse = (why: string): never => {
  throw new BadPage(why)
}

export function isSigned({ hello, checkpoint }: HeadProof, clusterId: string, serverKeys: readonly string[]): boolean {
  const signed = checkpointBytes(clusterId, hello, checkpoint)
  return serverKeys.some((key) => verifyBytes(key, signed, checkpoint.signature))
}

function parsePage(frames: Uint8Array, clusterId: string, serverKeys: readonly string[]): Page {
  if (frames.length > PAGE_BYTES_MAX) refuse(`larger than ${PAGE_BYTES_MAX} bytes`)
  if (frames.length === 0 || frames[frames.length - 1] !== LF) refuse('cut short')
  const helloEnd = frames.indexOf(LF) + 1
  const checkpointStart = frames.lastIndexOf(LF, frames.length - 2) + 1
  if (checkpointStart < helloEnd) refuse('cut short')
  const hello = frame(helloSchema, frames.subarray(0, helloEnd), 'hello')
  const checkpoint = frame(checkpointSchema, frames.subarray(checkpointStart), 'checkpoint')
  const keysEnd = hello.seal === undefined ? helloEnd : frames.indexOf(LF, helloEnd) + 1
  if (keysEnd === 0 || keysEnd > checkpointStart) refuse('cut short')
  const keys = frames.subarray(helloEnd, Math.max(helloEnd, keysEnd - 1))
  if (hello.seal !== undefined && hash('sha256', keys, 'hex') !== hello.seal.keys) refuse('its keys differ from the digest in hello')
  const lines = frames.subarray(keysEnd, checkpointStart)
  if (hash('sha256', lines, 'hex') !== checkpoint.rows) refuse('its rows differ from the checkpoint’s digest')
  if (!isSigned({ hello, checkpoint }, clusterId, serverKeys)) refuse('not signed by a key of this server for this cluster')
  checkHello(hello, checkpoint)
  const rows = parseRows(lines, hello.from === null)
  return { hello, rows, checkpoint, wraps: wrapsOf(hello, rows, keys) }
}

/** SL4: each sealed row has its key in the page that brings it. */
function wrapsOf(hello: Hello, rows: readonly Row[], keys: Uint8Array): ReadonlyMap<string, Wrap> {
  const { seal } = hello
  const bound = seal?.bound === true ? pageBinding(hello) : ''
  const wraps = new Map<string, Wrap>()
  const text = Buffer.from(keys.buffer, keys.byteOffset, keys.byteLength).toString('latin1')
  let at = 0
  for (const { id, doc } of rows) {
    if (doc === null || sealMarkOf(doc) === null) continue
    const wrapped = text.slice(at, at + WRAP_CHARS)
    at += WRAP_CHARS
    if (seal === undefined || wrapped.length < WRAP_CHARS) return refuse('a sealed row without a key')
    wraps.set(id, { enc: seal.enc, to: seal.to, wrapped, bound })
  }
  return at === text.length ? wraps : refuse('keys of no row')
}

function checkHello({ schema, from, to, keep }: Hello, { count }: Checkpoint): void {
  if (schema !== ROW_SCHEMA_VERSION) refuse(`rows have schema ${schema}; this version reads ${ROW_SCHEMA_VERSION}`)
  if (from !== null && (from.dbId !== to.dbId || to.dv <= from.dv)) refuse('a delta without a target position')
  if (from !== null && keep !== undefined) refuse('a delta with kept buckets')
  if (to.dv === 0 && count > 0) refuse('rows at version 0')
}

function parseRows(lines: Uint8Array, whole: boolean): Row[] {
  if (!isUtf8(lines)) return refuse('not UTF-8')
  const rows: Row[] = []
  const ids = new Set<string>()
  for (const text of blocks(lines)) {
    for (let start = 0; start < text.length; ) {
      if (rows.length === PAGE_ROWS_MAX) refuse(`more than ${PAGE_ROWS_MAX} rows`)
      const end = text.indexOf('\n', start)
      const row = parseRowLine(text.slice(start, end))
      if (typeof row === 'string') return refuse(`${row} in line ${rows.length + 2}`)
      if (whole && row.doc === null) refuse('a tombstone for a new file')
      if (ids.size === ids.add(row.id).size) refuse('a row twice')
      rows.push(row)
      start = end + 1
    }
  }
  return rows
}

/** Some lines at a time: one letter past Latin doubles the memory of the whole text around it. */
function* blocks(lines: Uint8Array): Iterable<string> {
  const bytes = Buffer.from(lines.buffer, lines.byteOffset, lines.byteLength)
  for (let start = 0; start < bytes.length; ) {
    const end = bytes.indexOf(LF, Math.min(start + BLOCK_BYTES, bytes.length - 1)) + 1
    yield bytes.toString('utf8', start, end)
    start = end
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true })

interface Schema<T> {
  safeParse(
    value: unknown,
  ): { success: true; data: T } | { success: false; error: { issues: ReadonlyArray<{ message: string; path: PropertyKey[] }> } }
}

function frame<T>(schema: Schema<T>, line: Uint8Array, name: string): T {
  if (line.length > HEAD_BYTES_MAX) refuse(`${name}: longer than ${HEAD_BYTES_MAX} bytes`)
  let value: unknown
  try {
    value = JSON.parse(decoder.decode(line))
  } catch {
    return refuse(`${name}: not JSON`)
  }
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  return refuse(`${name}: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`.trim())
}
