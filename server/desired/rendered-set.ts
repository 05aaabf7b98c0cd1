// A service's object rows as immutable content: zstd over NDJSON of [row id, doc], sorted by id, so that equal sets are
// one file in the content store.
import { z } from 'zod'
import { badRowDoc, badRowId } from '../../shared/protocol/frames.ts'
import { PAGE_BYTES_MAX } from '../../shared/protocol/routes.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { unzstd, zstd } from '../../shared/runtime/zstd.ts'

const lineSchema = z.tuple([z.string(), z.string()])

export function encodeRenderedSet(objects: ReadonlyMap<string, string>): Uint8Array {
  const lines = [...objects].sort(([a], [b]) => (a < b ? -1 : 1)).map((row) => `${JSON.stringify(row)}\n`)
  return zstd(Buffer.from(lines.join('')))
}

export function decodeRenderedSet(bytes: Uint8Array): Map<string, string> {
  const text = Buffer.from(unzstd(bytes, PAGE_BYTES_MAX)).toString()
  const lines = text.split('\n').slice(0, -1)
  return new Map(lines.map((line) => lineSchema.parse(JSON.parse(line))))
}

/** A row that breaks a rule of the page would be refused by the agent with its whole page, and again at every try: it
 *  must not get into a shard. */
export function checkRows(rows: Iterable<readonly [id: string, doc: string]>): void {
  for (const [id, doc] of rows) {
    const bad = badRowId(id) ?? badRowDoc(doc)
    if (bad !== null) throw new AppError('too_large', { doing: 'publish', detail: `${JSON.stringify(id.slice(0, 200))} is ${bad}` })
  }
}
