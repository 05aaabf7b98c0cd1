// The lines of a page, written as the rows are read: a large cluster's rows are never all there as objects and as text
// at once.
import { type SealMark, sealMarkOf } from '../../shared/model/sealed-object.ts'
import { isBounded, type Row, rowLine } from '../../shared/protocol/frames.ts'
import { isSopsRow } from '../../shared/sops/parcel.ts'
import type { RecentLines } from './recent-lines.ts'

/** More than this is not read. */
export interface ReadBounds {
  rows: number
  bytes: number
}
export const UNBOUNDED: ReadBounds = { rows: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY }

/** A row whose key the agent needs. */
export interface SealedRow {
  id: string
  mark: SealMark
}

export interface RowLines {
  bytes: Buffer
  rows: number
  /** In the order of the lines. */
  sealed: readonly SealedRow[]
  /** How many services of them have bounds of a project. */
  bounded: number
  /** How many rows of them have SOPS documents. */
  sops: number
  /** Present where other clusters may get the same lines. */
  recent?: RecentLines
}

/**
 * The buffer in which small pages are written, one after the other: a buffer for each of ten thousand pages would be
 * garbage at once.
 */
const desk = Buffer.allocUnsafe(16 * 1_024)
/** UTF-8 needs at most this many for a unit of a string. */
const BYTES_OF_UNIT = 3

/** Null as soon as there is more than the bounds allow. */
export function writeLines(source: Iterable<Row>, bounds: ReadBounds): RowLines | null {
  let buffer = desk
  let [length, rows, bounded, sops] = [0, 0, 0, 0]
  const sealed: SealedRow[] = []
  for (const row of source) {
    const line = rowLine(row)
    const mark = row.doc === null ? null : sealMarkOf(row.doc)
    if (mark !== null) sealed.push({ id: row.id, mark })
    if (isBounded(row)) bounded += 1
    if (row.doc !== null && isSopsRow(row.doc)) sops += 1
    if (++rows > bounds.rows || length + line.length > bounds.bytes) return null
    const needed = length + line.length * BYTES_OF_UNIT
    if (needed > buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, buffer.length * 2))
      buffer.copy(larger, 0, 0, length)
      buffer = larger
    }
    length += buffer.write(line, length)
  }
  const written = buffer.subarray(0, length)
  return { bytes: buffer === desk ? Buffer.from(written) : written, rows, sealed, bounded, sops }
}
