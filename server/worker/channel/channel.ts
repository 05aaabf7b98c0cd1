// Calls in both directions over one stream of bytes, such as the pipes of a process. Each side answers calls with its
// handlers. A call can belong to another call: a worker asks for what its job needs. Only the handlers that were given
// with that job answer such a call. A writer waits until the other side has read.
import { z } from 'zod'
import { encodeFrame, type FrameLimits, FrameReader } from './frames.ts'
import { fromWire, toWire } from './wire-error.ts'

export interface ByteStream {
  readonly incoming: AsyncIterable<Uint8Array>
  /** Resolves when more can be written. */
  write(bytes: Uint8Array): Promise<void>
  /** Closes the stream for writing. */
  end(): void
}

export interface Reply {
  value: unknown
  data: Uint8Array
}

export interface CallContext {
  /** Aborts when the caller cancelled the call, or is gone. */
  signal: AbortSignal
  /** Asks the side that called, as part of this call. */
  ask(method: string, value: unknown, data?: Uint8Array): Promise<Reply>
}

/** Answers a value that JSON can hold, and bytes. */
export type Handler = (value: unknown, data: Uint8Array, context: CallContext) => Promise<{ value?: unknown; data?: Uint8Array }>
export type Handlers = Readonly<Record<string, Handler>>

export interface CallOptions {
  data?: Uint8Array
  signal?: AbortSignal
  /** Answers what the other side asks as part of this call. */
  serve?: Handlers
  /** Called once, when the other side no longer works on the call. For a call that was cancelled, that is after its end
   *  here. */
  ended?(): void
}

export interface ChannelOptions {
  stream: ByteStream
  /** Answer calls that belong to no other call. */
  handlers: Handlers
  /** The largest message that the other side may send. */
  limits: FrameLimits
  /** Most open calls of the other side; one more ends the channel. */
  callsMax: number
  /** Called for each chunk, also for signs of life. */
  onHeard?(): void
}

/** The stream ended, or brought a malformed message. */
export class ChannelEnded extends Error {}

const headSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('call'), id: z.int().nonnegative(), method: z.string().max(64), of: z.int().nonnegative().optional() }),
  z.strictObject({ kind: z.literal('done'), id: z.int().nonnegative() }),
  z.strictObject({ kind: z.literal('failed'), id: z.int().nonnegative() }),
  z.strictObject({ kind: z.literal('cancel'), id: z.int().nonnegative() }),
  z.strictObject({ kind: z.literal('beat') }),
])
type Head = z.infer<typeof headSchema>

/** Size of one write; after it the other side gets time to read. */
const WRITE_BYTES = 256 * 1024

interface Open {
  resolve(reply: Reply): void
  reject(error: unknown): void
  serve: Handlers
  ended(): void
}

export class Channel {
  private readonly options: ChannelOptions
  private readonly mine = new Map<number, Open>()
  private readonly theirs = new Map<number, AbortController>()
  private calls = 0
  private writing: Promise<void> = Promise.resolve()
  private ended: ChannelEnded | null = null

  constructor(options: ChannelOptions) {
    this.options = options
  }

  /** Number of open calls of the other side. */
  get answering(): number {
    return this.theirs.size
  }

  /** Throws what the handler of the other side threw, ChannelEnded, or the reason of the signal. */
  call(method: string, value: unknown, options: CallOptions = {}): Promise<Reply> {
    return this.callAs(undefined, method, value, options)
  }

  /** Sends a sign of life. */
  beat(): void {
    void this.send({ kind: 'beat' }).catch(() => {})
  }

  /** Reads until the stream ends. Then all open calls fail. */
  async run(): Promise<void> {
    const { stream, limits, onHeard } = this.options
    const reader = new FrameReader(limits)
    try {
      for await (const chunk of stream.incoming) {
        onHeard?.()
        for (const { head, json, data } of reader.push(chunk)) this.take(headSchema.parse(JSON.parse(head)), json, data)
        if (this.ended !== null) break
      }
      this.end('the other side ended')
    } catch (error) {
      this.end(error instanceof Error ? error.message : String(error))
    }
  }

  end(why: string): void {
    if (this.ended !== null) return
    this.ended = new ChannelEnded(why)
    for (const id of [...this.mine.keys()]) this.settle(id, ({ reject }) => reject(this.ended))
    for (const controller of this.theirs.values()) controller.abort(this.ended)
    this.theirs.clear()
    this.options.stream.end()
  }

  private async callAs(of: number | undefined, method: string, value: unknown, options: CallOptions): Promise<Reply> {
    const { data, signal, serve = {}, ended = () => {} } = options
    if (signal?.aborted === true || this.ended !== null) {
      ended()
      throw signal?.aborted === true ? signal.reason : this.ended
    }
    const id = this.calls++
    const { promise, ...waiter } = Promise.withResolvers<Reply>()
    const open: Open = { ...waiter, serve, ended }
    this.mine.set(id, open)
    let isCancelled = false
    const onAbort = () => {
      isCancelled = true
      open.serve = {}
      open.reject(signal?.reason)
      void this.send({ kind: 'cancel', id }).catch(() => {})
    }
    signal?.addEventListener('abort', onAbort, { once: true })
    try {
      await Promise.race([
        promise,
        this.send({ kind: 'call', id, method, ...(of === undefined ? {} : { of }) }, JSON.stringify(value), data),
      ])
      return await promise
    } finally {
      signal?.removeEventListener('abort', onAbort)
      // A cancelled call stays until the other side has ended it.
      if (!isCancelled) this.settle(id, () => {})
    }
  }

  private settle(id: number, how: (open: Open) => void): void {
    const open = this.mine.get(id)
    if (open === undefined) return
    this.mine.delete(id)
    how(open)
    open.ended()
  }

  private take(head: Head, json: string, data: Uint8Array): void {
    if (head.kind === 'call') this.answer(head, json, data)
    else if (head.kind === 'cancel') this.theirs.get(head.id)?.abort(new Error('cancelled'))
    else if (head.kind === 'done') {
      const value: unknown = json === '' ? undefined : JSON.parse(json)
      this.settle(head.id, ({ resolve }) => resolve({ value, data }))
    } else if (head.kind === 'failed') this.settle(head.id, ({ reject }) => reject(fromWire(json)))
  }

  private answer({ id, method, of }: Extract<Head, { kind: 'call' }>, json: string, data: Uint8Array): void {
    if (this.theirs.size >= this.options.callsMax || this.theirs.has(id))
      throw new ChannelEnded(`more than ${this.options.callsMax} calls at once`)
    // A call that belongs to a call which has ended finds no handler.
    const handlers = of === undefined ? this.options.handlers : (this.mine.get(of)?.serve ?? {})
    const handler = Object.hasOwn(handlers, method) ? handlers[method] : undefined
    const controller = new AbortController()
    this.theirs.set(id, controller)
    const context: CallContext = {
      signal: controller.signal,
      ask: (asked, value, more) =>
        this.callAs(id, asked, value, { signal: controller.signal, ...(more === undefined ? {} : { data: more }) }),
    }
    void this.handle(handler, method, json, data, context)
      .then(
        ({ value, data: more }) => this.send({ kind: 'done', id }, value === undefined ? '' : JSON.stringify(value), more),
        (error: unknown) => this.send({ kind: 'failed', id }, toWire(error)),
      )
      .catch(() => {}) // nobody is there to hear it
      .finally(() => this.theirs.delete(id))
  }

  private async handle(
    handler: Handler | undefined,
    method: string,
    json: string,
    data: Uint8Array,
    context: CallContext,
  ): ReturnType<Handler> {
    if (handler === undefined) throw new Error(`no method ${method}`)
    return handler(json === '' ? undefined : JSON.parse(json), data, context)
  }

  /** Writes one message after the other, each in pieces. */
  private send(head: Head, json = '', data?: Uint8Array): Promise<void> {
    const written = this.writing.then(async () => {
      for (const part of encodeFrame(JSON.stringify(head), json, data))
        for (let from = 0; from < part.byteLength; from += WRITE_BYTES) {
          if (this.ended !== null) throw this.ended
          await this.options.stream.write(part.subarray(from, from + WRITE_BYTES))
        }
    })
    this.writing = written.catch(() => {})
    return written
  }
}
