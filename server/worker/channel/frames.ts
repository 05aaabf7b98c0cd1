// Messages as bytes on a stream: a head, JSON and data, each with its length in front. Pure.

export interface Frame {
  /** JSON: the kind of message and the call that it belongs to. */
  head: string
  /** JSON, or '' for none. */
  json: string
  data: Uint8Array
}

/** Largest frame that a reader takes. A larger one ends the stream before any of it is kept. */
export interface FrameLimits {
  headBytes: number
  jsonBytes: number
  dataBytes: number
}

const LENGTHS_BYTES = 12
const NOTHING = new Uint8Array()

/** The bytes of a frame in few pieces, without copying `data`. */
export function encodeFrame(head: string, json = '', data: Uint8Array = NOTHING): Uint8Array[] {
  const texts = Buffer.from(head + json)
  const headBytes = Buffer.byteLength(head)
  const lengths = Buffer.alloc(LENGTHS_BYTES)
  lengths.writeUInt32LE(headBytes, 0)
  lengths.writeUInt32LE(texts.byteLength - headBytes, 4)
  lengths.writeUInt32LE(data.byteLength, 8)
  const start = Buffer.concat([lengths, texts])
  return data.byteLength === 0 ? [start] : [start, data]
}

export class FrameTooLarge extends Error {}

/** Reads frames from chunks of any size. */
export class FrameReader {
  private readonly limits: FrameLimits
  private readonly lengths = Buffer.alloc(LENGTHS_BYTES)
  private lengthsHeld = 0
  private body: Buffer | null = null
  private bodyHeld = 0

  constructor(limits: FrameLimits) {
    this.limits = limits
  }

  /** The frames that this chunk completes. Throws FrameTooLarge. */
  *push(chunk: Uint8Array): Generator<Frame> {
    let rest = chunk
    while (rest.byteLength > 0) {
      if (this.body === null) {
        const taken = rest.subarray(0, LENGTHS_BYTES - this.lengthsHeld)
        this.lengths.set(taken, this.lengthsHeld)
        this.lengthsHeld += taken.byteLength
        rest = rest.subarray(taken.byteLength)
        if (this.lengthsHeld < LENGTHS_BYTES) return
        this.body = Buffer.allocUnsafe(this.checkedSize())
        this.bodyHeld = 0
      }
      const taken = rest.subarray(0, this.body.byteLength - this.bodyHeld)
      this.body.set(taken, this.bodyHeld)
      this.bodyHeld += taken.byteLength
      rest = rest.subarray(taken.byteLength)
      if (this.bodyHeld === this.body.byteLength) yield this.take(this.body)
    }
  }

  private checkedSize(): number {
    const [head, json, data] = this.sizes()
    const { headBytes, jsonBytes, dataBytes } = this.limits
    if (head > headBytes || json > jsonBytes || data > dataBytes)
      throw new FrameTooLarge(`a message of ${head} + ${json} + ${data} bytes; allowed are ${headBytes} + ${jsonBytes} + ${dataBytes}`)
    return head + json + data
  }

  private sizes(): [head: number, json: number, data: number] {
    return [this.lengths.readUInt32LE(0), this.lengths.readUInt32LE(4), this.lengths.readUInt32LE(8)]
  }

  private take(body: Buffer): Frame {
    const [head, json] = this.sizes()
    this.body = null
    this.lengthsHeld = 0
    return { head: body.toString('utf8', 0, head), json: body.toString('utf8', head, head + json), data: body.subarray(head + json) }
  }
}
