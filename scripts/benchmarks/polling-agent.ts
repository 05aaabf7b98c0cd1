// One simulated agent on a bare socket: it polls, and checks every page's digest and signature with the agent's own
// reader. No replica and no HTTP library, so that thousands of them fit beside the server that is measured.
import type { Socket } from 'bun'
import { readPage } from '../../agent/replica/page-reader.ts'
import { cursorText, type Position } from '../../shared/crdt/position.ts'
import { PAGE_BYTES_MAX, ROUTES, WAIT_SECONDS_DEFAULT } from '../../shared/protocol/routes.ts'
import { unzstd } from '../../shared/runtime/zstd.ts'

export interface PollingAgentOptions {
  port: number
  clusterId: string
  serverKeys: readonly string[]
  token: string
  /** Every page that was checked, with the time of the machine's clock, ms. */
  onPage(atMs: number, rows: number): void
  onFailure(why: string): void
  /** Absent means that each poll waits for news. Else each poll is answered at once, and the next one follows after
   *  this time. */
  everyMs?: number
  /** An answer without news, so long after the request. */
  onEmpty?(tookMs: number): void
}

const HEAD_END = Buffer.from('\r\n\r\n')
const ZSTD_MAGIC = 0xfd2fb528
export const machineMs = (): number => performance.timeOrigin + performance.now()

/** A page as it came. */
export function readBody(body: Buffer, clusterId: string, serverKeys: readonly string[]): ReturnType<typeof readPage> {
  const frames = body.length >= 4 && body.readUInt32LE(0) === ZSTD_MAGIC ? unzstd(body, PAGE_BYTES_MAX) : body
  return readPage(frames, clusterId, serverKeys)
}

export class PollingAgent {
  readonly #options: PollingAgentOptions
  #socket: Socket<undefined> | null = null
  #position: Position | null = null
  #received: Buffer = Buffer.alloc(0)
  #stopped = false
  #askedMs = 0
  /** A poll is under way that waits for news. */
  waiting = false

  constructor(options: PollingAgentOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    this.#socket = await Bun.connect<undefined>({
      hostname: '127.0.0.1',
      port: this.#options.port,
      socket: {
        data: (_, chunk) => this.#take(chunk),
        close: () => this.#failed('the connection was closed'),
        error: (_, error) => this.#failed(error.message),
      },
    })
    this.#ask()
  }

  stop(): void {
    this.#stopped = true
    this.#socket?.terminate()
  }

  #ask(): void {
    const query =
      this.#position === null
        ? ''
        : `?cursor=${cursorText(this.#position)}&wait=${this.#options.everyMs === undefined ? WAIT_SECONDS_DEFAULT : 0}`
    this.#askedMs = performance.now()
    this.waiting = this.#position !== null
    this.#socket?.write(
      `GET ${ROUTES.desired}${query} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${this.#options.token}\r\naccept-encoding: zstd\r\n\r\n`,
    )
  }

  #take(chunk: Uint8Array): void {
    this.#received = this.#received.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#received, chunk])
    const headEnd = this.#received.indexOf(HEAD_END)
    if (headEnd < 0) return
    const head = this.#received.toString('latin1', 0, headEnd)
    const status = Number(head.slice(9, 12))
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
    const bodyStart = headEnd + HEAD_END.length
    if (this.#received.length < bodyStart + length) return
    const body = this.#received.subarray(bodyStart, bodyStart + length)
    this.#received = Buffer.alloc(0)
    if (status === 200) this.#check(body)
    else if (status === 204) this.#again()
    else this.#failed(`HTTP ${status} ${body.toString().slice(0, 200)}`)
  }

  #again(): void {
    const { everyMs, onEmpty } = this.#options
    onEmpty?.(performance.now() - this.#askedMs)
    if (everyMs === undefined) this.#ask()
    else setTimeout(() => void (this.#stopped || this.#ask()), everyMs)
  }

  #check(body: Buffer): void {
    const { clusterId, serverKeys, onPage } = this.#options
    const read = readBody(body, clusterId, serverKeys)
    if (read.kind === 'refused') {
      this.#failed(read.why)
      return
    }
    onPage(machineMs(), read.page.rows.length)
    this.#position = read.page.hello.to
    this.#ask()
  }

  #failed(why: string): void {
    if (this.#stopped) return
    this.stop()
    this.waiting = false
    this.#options.onFailure(why)
  }
}
