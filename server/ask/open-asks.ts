// One question under way: the parts of its answer, which wait here until the reader takes them. An agent gets no reply
// to a part while there is no room, so a slow reader slows the agent and fills no memory.

import type { AskFrame, AskRequest } from '../../shared/protocol/ask.ts'
import type { AppError } from '../../shared/runtime/error.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'

/** A frame before a poll takes it, which decides over the signature. */
export type UnsignedFrame = Pick<AskFrame, 't' | 'id' | 'epoch' | 'within' | 'who' | 'bytesMax' | 'msMax'> & Pick<AskRequest, 'question'>

/** Bytes of an answer that wait for the reader. */
export const ROOM_BYTES = 1_024 * 1_024

export class OpenAsk {
  readonly clusterId: ClusterId
  readonly frame: UnsignedFrame
  /** When a poll took it; null means that no poll has. */
  sentMs: number | null = null
  /** Parts that came. */
  parts = 0
  bytes = 0
  #waiting: Uint8Array<ArrayBuffer>[] = []
  #waitingBytes = 0
  #end: { error: AppError | null } | null = null
  #changed = Promise.withResolvers<void>()

  constructor(clusterId: ClusterId, frame: UnsignedFrame) {
    this.clusterId = clusterId
    this.frame = frame
  }

  get hasEnded(): boolean {
    return this.#end !== null
  }
  hasRoom(): boolean {
    return this.#waitingBytes < ROOM_BYTES
  }

  add(bytes: Uint8Array<ArrayBuffer>): void {
    this.parts += 1
    this.bytes += bytes.length
    if (bytes.length > 0) this.#waiting.push(bytes)
    this.#waitingBytes += bytes.length
    this.#tell()
  }

  /** Reads the earlier parts first, then throws the error, if any. */
  end(error: AppError | null = null): void {
    this.#end ??= { error }
    this.#tell()
  }

  /** Resolves at the next change of anything. */
  changed(): Promise<void> {
    return this.#changed.promise
  }

  /** The next bytes; null at the end. */
  async read(): Promise<Uint8Array<ArrayBuffer> | null> {
    for (;;) {
      const next = this.#waiting.shift()
      if (next !== undefined) {
        this.#waitingBytes -= next.length
        this.#tell()
        return next
      }
      if (this.#end?.error != null) throw this.#end.error
      if (this.#end !== null) return null
      await this.changed()
    }
  }

  #tell(): void {
    const { resolve } = this.#changed
    this.#changed = Promise.withResolvers()
    resolve()
  }
}
