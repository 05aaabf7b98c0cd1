// The row lines of recent writes, held once for all clusters that got the same rows. A commit that reaches a thousand
// clusters writes one set of lines a thousand times: they are made, hashed and compressed once, and no page of that
// commit reads the shard file.
import { sha256Hex } from '../../shared/kube/canonical.ts'
import { sealMarkOf } from '../../shared/model/sealed-object.ts'
import { isBounded, type Row, rowLine } from '../../shared/protocol/frames.ts'
import { isSopsRow } from '../../shared/sops/parcel.ts'
import type { SealedRow } from './row-lines.ts'

export class RecentLines {
  /** Emptied when it is dropped; code that still refers to it reads the shard file. */
  bytes: Buffer | null
  readonly rows: number
  readonly sealed: readonly SealedRow[]
  readonly bounded: number
  readonly sops: number
  /** In hex, of the bytes. */
  readonly sha256: string
  /** Writes that led to these lines. */
  writes = 0
  /** A zstd frame of the bytes, after the first request for it. */
  frame: Uint8Array | null = null

  constructor(text: string, rows: readonly Row[]) {
    this.bytes = Buffer.from(text)
    this.rows = rows.length
    this.sealed = rows.flatMap(({ id, doc }) => {
      const mark = doc === null ? null : sealMarkOf(doc)
      return mark === null ? [] : [{ id, mark }]
    })
    this.bounded = rows.filter(isBounded).length
    this.sops = rows.filter(({ doc }) => doc !== null && isSopsRow(doc)).length
    this.sha256 = sha256Hex(this.bytes)
  }

  drop(): void {
    this.bytes = null
    this.frame = null
  }
}

/** Longer lines are read from the shard file. */
const CHARS_MAX = 64 * 1_024
/** Agents fetch a page within seconds of the write, so this much is enough for a commit with other rows in each
 *  cluster. */
const ALL_CHARS_MAX = 4 * 1_024 * 1_024

/** One for all shard files of a server. */
export class RecentLinesCache {
  /** The lines that were used last are at the end. */
  readonly #lines = new Map<string, RecentLines>()
  readonly #charsMax: number
  #chars = 0

  constructor(charsMax: number = ALL_CHARS_MAX) {
    this.#charsMax = charsMax
  }

  /** Null for lines that are too long to be held. */
  of(rows: readonly Row[]): RecentLines | null {
    const text = rows.map(rowLine).join('')
    if (text.length > CHARS_MAX) return null
    const held = this.#lines.get(text)
    const lines = held ?? new RecentLines(text, rows)
    if (held === undefined) this.#chars += text.length
    this.#lines.delete(text)
    this.#lines.set(text, lines)
    lines.writes += 1
    for (const [oldest, dropped] of this.#lines) {
      if (this.#chars <= this.#charsMax) break
      this.#lines.delete(oldest)
      this.#chars -= oldest.length
      dropped.drop()
    }
    return lines
  }
}
