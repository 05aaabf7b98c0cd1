// The answers of `git cat-file --batch`, as they come in pieces: a head line, then as many bytes as it says, then a
// line end.
export interface BatchObject {
  oid: string
  type: string
  bytes: Buffer
}

const HEAD = /^([0-9a-f]{40}) (commit|tree|blob|tag) (\d{1,15})$/
const HEAD_BYTES_MAX = 1_024

export class BatchReader {
  readonly missing: string[] = []
  private readonly onHead: (oid: string, type: string, bytes: number) => void
  private readonly onObject: (object: BatchObject) => void
  private head: Buffer = Buffer.alloc(0)
  private body: BatchObject | null = null
  private filled = 0

  /** `onHead` may throw before any byte of it is kept. */
  constructor(onHead: (oid: string, type: string, bytes: number) => void, onObject: (object: BatchObject) => void) {
    this.onHead = onHead
    this.onObject = onObject
  }

  push(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    let at = 0
    while (at < bytes.length) at = this.body === null ? this.takeHead(bytes, at) : this.takeBody(this.body, bytes, at)
  }

  private takeHead(bytes: Buffer, at: number): number {
    const end = bytes.indexOf(0x0a, at)
    const part = bytes.subarray(at, end < 0 ? bytes.length : end)
    this.head = this.head.length === 0 ? Buffer.from(part) : Buffer.concat([this.head, part])
    if (this.head.length > HEAD_BYTES_MAX) throw new Error('git cat-file answers with a line that is too long')
    if (end < 0) return bytes.length
    const line = this.head.toString('latin1')
    this.head = Buffer.alloc(0)
    const [, oid = '', type = '', size = ''] = HEAD.exec(line) ?? []
    if (oid === '') {
      if (!line.endsWith(' missing')) throw new Error('git cat-file answers with what is no object')
      this.missing.push(line.slice(0, -' missing'.length))
      return end + 1
    }
    this.onHead(oid, type, Number(size))
    this.body = { oid, type, bytes: Buffer.allocUnsafeSlow(Number(size)) }
    this.filled = 0
    return end + 1
  }

  private takeBody(body: BatchObject, bytes: Buffer, at: number): number {
    const taken = bytes.copy(body.bytes, this.filled, at, Math.min(bytes.length, at + body.bytes.length - this.filled))
    this.filled += taken
    // The line end behind it belongs to it.
    if (this.filled < body.bytes.length || at + taken >= bytes.length) return at + taken
    this.body = null
    this.onObject(body)
    return at + taken + 1
  }
}
