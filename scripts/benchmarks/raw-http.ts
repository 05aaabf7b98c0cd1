// One HTTP connection on a bare socket, one request at a time: ten thousand of them must not cost more than the server
// that is measured.
import type { Socket } from 'bun'

export interface RawAnswer {
  status: number
  /** Names in lower case. */
  header(name: string): string | null
  body: Buffer
}

const HEAD_END = Buffer.from('\r\n\r\n')

export class RawConnection {
  readonly #port: number
  #socket: Socket<undefined> | null = null
  #received: Buffer = Buffer.alloc(0)
  #answer: { resolve(answer: RawAnswer): void; reject(error: Error): void } | null = null

  constructor(port: number) {
    this.#port = port
  }

  /** Connects if it has to. Rejects when the connection ends, or no answer came in time. */
  async ask(method: string, path: string, headers: Record<string, string>, body: Uint8Array | null, timeoutMs: number): Promise<RawAnswer> {
    let timer: ReturnType<typeof setTimeout> | undefined
    const answer = new Promise<RawAnswer>((resolve, reject) => {
      this.#answer = { resolve, reject }
      timer = setTimeout(() => {
        this.close()
        reject(new RawTimeout(`${method} ${path}: no answer within ${timeoutMs / 1_000} s`))
      }, timeoutMs)
    })
    answer.catch(() => {}) // awaited below, after the connection is there
    try {
      const socket = this.#socket ?? (await this.#connect())
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
      const length = body === null ? '' : `content-length: ${body.length}\r\n`
      const head = Buffer.from(`${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${lines.join('')}${length}\r\n`)
      const message = body === null ? head : Buffer.concat([head, body])
      const written = socket.write(message)
      if (written < message.length) throw new Error(`${method} ${path}: only ${written} of ${message.length} bytes went out`)
      return await answer
    } finally {
      clearTimeout(timer)
      this.#answer = null
    }
  }

  close(): void {
    const socket = this.#socket
    this.#socket = null
    socket?.terminate()
  }

  async #connect(): Promise<Socket<undefined>> {
    this.#received = Buffer.alloc(0)
    const ended = (socket: Socket<undefined>, why: string) => {
      if (this.#socket === socket) this.#socket = null
      this.#answer?.reject(new Error(why))
    }
    this.#socket = await Bun.connect<undefined>({
      hostname: '127.0.0.1',
      port: this.#port,
      socket: {
        data: (_, chunk) => this.#take(chunk),
        close: (socket) => ended(socket, 'the connection was closed'),
        error: (socket, error) => ended(socket, error.message),
      },
    })
    return this.#socket
  }

  #take(chunk: Uint8Array): void {
    this.#received = this.#received.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#received, chunk])
    const headEnd = this.#received.indexOf(HEAD_END)
    if (headEnd < 0) return
    const head = this.#received.toString('latin1', 0, headEnd)
    const header = (name: string) => new RegExp(`\\r\\n${name}: *([^\\r]*)`, 'i').exec(head)?.[1] ?? null
    const bodyStart = headEnd + HEAD_END.length
    const length = Number(header('content-length') ?? 0)
    if (this.#received.length < bodyStart + length) return
    const body = this.#received.subarray(bodyStart, bodyStart + length)
    this.#received = Buffer.alloc(0)
    this.#answer?.resolve({ status: Number(head.slice(9, 12)), header, body })
  }
}

export class RawTimeout extends Error {}
