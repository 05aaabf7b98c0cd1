// HTTP to the server: few header bytes, zstd both ways, every answer bounded while it is read, every failure an
// AppError that names the operation.

import { HEAD_HEADER } from '../../shared/protocol/head.ts'
import { COMPRESS_BYTES_MIN } from '../../shared/protocol/routes.ts'
import { PROTOCOL_HEADER } from '../../shared/protocol/version.ts'
import { type Clock, OVER } from '../../shared/runtime/clock.ts'
import { AppError, errorFromProblem } from '../../shared/runtime/error.ts'
import { unzstd, zstd } from '../../shared/runtime/zstd.ts'
import { linkFailure, plainCause, proxyWantsCredentials, wasSent } from './link-failure.ts'
import { commonVersion, OWN_VERSIONS, type VersionRange } from './protocol-choice.ts'
import { retryAfterMsOf } from './retry-after.ts'

/** `fetch`, or a test's. TLS and proxy belong to it. */
export type Fetcher = (url: string, init: BunFetchRequestInit) => Promise<Response>

export interface ServerCall {
  /** For errors: "pull", "push status". */
  doing: string
  method: 'GET' | 'POST'
  path: string
  query?: Record<string, string>
  token?: string
  /** The version of the protocol below which this call cannot be made. */
  lowestVersion?: number
  json?: unknown
  /** Replaces `json`; sent unchanged. */
  bytes?: Uint8Array
  /** `bytes` are compressed with zstd. */
  isZstd?: boolean
  /** Largest answer, inflated. */
  answerBytesMax: number
  /** Until the answer begins; then only silence counts (STALL_MS). A frozen link is cut by us, a kernel would wait for
   *  hours. */
  timeoutMs: number
  /** The answer is returned unchanged; otherwise it is inflated. */
  raw?: boolean
  /** An answer with this header is returned unchanged, too. */
  pieceHeader?: string
  signal: AbortSignal
}

export interface ServerAnswer {
  status: number
  body: Uint8Array
  /** Value of `pieceHeader`, if the answer has it. */
  piece: string | null
  /** The server's head, if the answer has it (PL14). */
  headSignature: string | null
}

/** Bytes as they stand on the wire, request lines and headers included; without TLS and TCP. */
export interface Traffic {
  requests: number
  sentBytes: number
  receivedBytes: number
}

export interface ServerClient {
  call(call: ServerCall): Promise<ServerAnswer>
  traffic(): Traffic
}

export interface ServerClientOptions {
  /** After every call, successful or not. */
  onTraffic?: (sentBytes: number, receivedBytes: number) => void
  versions?: VersionRange
}

/** How far a call got that ended without a whole answer; `extra.cut` of its error. */
export interface Cut {
  /** The request may have reached a server. */
  sent: boolean
  /** The head of an answer arrived. */
  begun: boolean
  bodyBytes: number
}

/** Null for another failure, or for an answer from another program than the server. */
export const cutOf = (error: unknown): Cut | null =>
  error instanceof AppError && error.code === 'server_unreachable' ? ((error.data.extra?.['cut'] as Cut | undefined) ?? null) : null

/** `detail` of the AppError when our own patience ended, not the connection. */
export const TIMED_OUT = 'no answer in time'
/** A slow link is waited for as long as it moves, but not for ever: one byte now and then is no link. */
export const STALL_MS = 30_000
export const BODY_MS_MAX = 600_000
const PROBLEM_BYTES_MAX = 64 * 1_024
const ZSTD_MAGIC = 0xfd2fb528
/** Gateways answer with these if the server behind them was silent for longer than they wait: the same as an
 *  interrupted connection. */
const GATEWAY_TIMEOUTS: ReadonlySet<number> = new Set([408, 504, 524])
export const isGatewayTimeout = (error: AppError): boolean => error.data.extra?.['gateway'] === true

export function createServerClient(baseUrl: string, fetcher: Fetcher, clock: Clock, options: ServerClientOptions = {}): ServerClient {
  const { onTraffic = () => {}, versions = OWN_VERSIONS } = options
  const base = new URL(baseUrl.replace(/\/+$/, ''))
  const prefix = base.pathname === '/' ? '' : base.pathname
  const traffic: Traffic = { requests: 0, sentBytes: 0, receivedBytes: 0 }
  let version = versions.max

  const attempt = async (call: ServerCall): Promise<ServerAnswer> => {
    const path = prefix + call.path + (call.query === undefined ? '' : `?${new URLSearchParams(call.query)}`)
    const { headers, body } = encode(call, Math.max(version, call.lowestVersion ?? 0))
    const sent = requestBytes(call.method, path, base.host, headers, body)
    const meter = { sent, received: 0 }
    const cut: Cut = { sent: true, begun: false, bodyBytes: 0 }
    const patience = new Patience(clock)
    patience.last(call.timeoutMs)
    try {
      const response = await fetcher(base.origin + path, {
        method: call.method,
        headers,
        ...(body === null ? {} : { body: body as Uint8Array<ArrayBuffer> }),
        redirect: 'error', // a credential goes to the server that was named
        decompress: false, // else an answer could grow without bound before it can be counted
        timeout: false,
        signal: AbortSignal.any([call.signal, patience.over]),
      } as BunFetchRequestInit)
      cut.begun = true
      patience.whole(BODY_MS_MAX)
      patience.last(STALL_MS)
      meter.received += headBytes(response)
      const limit = response.ok ? call.answerBytesMax : PROBLEM_BYTES_MAX
      const raw = await readBounded(response, limit, (count) => {
        meter.received += count
        cut.bodyBytes += count
        patience.last(STALL_MS)
      })
      if (!response.ok) throw problem(response, inflated(raw, limit), call.doing, clock)
      const piece = call.pieceHeader === undefined ? null : response.headers.get(call.pieceHeader)
      const bytes = piece === null && call.raw !== true ? inflated(raw, limit) : raw
      return { status: response.status, body: bytes, piece, headSignature: response.headers.get(HEAD_HEADER) }
    } catch (error) {
      if (error instanceof AppError) throw error
      cut.sent = wasSent(error)
      if (!cut.sent) meter.sent = 0
      const detail = patience.over.aborted && !call.signal.aborted ? { detail: TIMED_OUT } : linkFailure(error)
      throw new AppError('server_unreachable', { doing: call.doing, ...detail, extra: { cut } }, { cause: plainCause(error) })
    } finally {
      patience.end()
      traffic.requests++
      traffic.sentBytes += meter.sent
      traffic.receivedBytes += meter.received
      onTraffic(meter.sent, meter.received)
    }
  }

  return {
    traffic: () => ({ ...traffic }),
    async call(call) {
      try {
        return await attempt(call)
      } catch (error) {
        // PL11: the server names its range. The highest common version is used from now on.
        const common = commonVersion(error, { ...versions, min: Math.max(versions.min, call.lowestVersion ?? 0) })
        if (common === null || common === version) throw error
        version = common
        return attempt(call)
      }
    },
  }
}

/** Compression makes a day's reports a tenth smaller for 10 ms of work; larger bodies would delay enforcement. */
const SQUEEZE_LEVEL = 12
const SQUEEZE_BYTES_MAX = 512 * 1_024

/** Empty values stand in for headers that Bun would fill in with longer ones; HTTP/1.1 keeps connections open without
 *  being asked. */
const THIN_HEADERS = { accept: '', 'user-agent': '', connection: '', 'accept-encoding': 'zstd' }

function encode({ json, bytes, isZstd, token }: ServerCall, version: number): { headers: Record<string, string>; body: Uint8Array | null } {
  const headers: Record<string, string> = { ...THIN_HEADERS }
  if (token !== undefined) headers['authorization'] = `Bearer ${token}`
  else if (version !== 1) headers[PROTOCOL_HEADER] = String(version) // absent means 1
  if (isZstd) headers['content-encoding'] = 'zstd'
  if (bytes !== undefined) return { headers, body: bytes }
  if (json === undefined) return { headers, body: null }
  const plain = Buffer.from(JSON.stringify(json))
  if (plain.length < COMPRESS_BYTES_MIN) return { headers, body: plain }
  headers['content-encoding'] = 'zstd'
  return { headers, body: zstd(plain, plain.length <= SQUEEZE_BYTES_MAX ? SQUEEZE_LEVEL : undefined) }
}

/** Ends a call without progress. Each piece of an answer moves the end, so a moved end costs no timer and no abort: a
 *  timer that comes too early sleeps again. */
class Patience {
  readonly #clock: Clock
  readonly #over = new AbortController()
  readonly #ended = new AbortController()
  #lastMs = Number.POSITIVE_INFINITY
  #wholeMs = Number.POSITIVE_INFINITY
  /** The earliest timer. */
  #wakesMs = Number.POSITIVE_INFINITY
  constructor(clock: Clock) {
    this.#clock = clock
  }
  get over(): AbortSignal {
    return this.#over.signal
  }
  /** From now on; the rest of the former time is dropped. */
  last(ms: number): void {
    this.#lastMs = this.#clock.monotonicMs() + ms
    this.#wake()
  }
  whole(ms: number): void {
    this.#wholeMs = this.#clock.monotonicMs() + ms
    this.#wake()
  }
  end(): void {
    this.#ended.abort(OVER)
  }
  #wake(): void {
    const dueMs = Math.min(this.#lastMs, this.#wholeMs)
    if (dueMs >= this.#wakesMs) return
    this.#wakesMs = dueMs
    const { signal } = this.#ended
    void this.#clock.sleep(dueMs - this.#clock.monotonicMs(), signal).then(() => {
      // A later call may have made an earlier timer, which then decides.
      if (signal.aborted || this.#wakesMs !== dueMs) return
      this.#wakesMs = Number.POSITIVE_INFINITY
      if (this.#clock.monotonicMs() >= Math.min(this.#lastMs, this.#wholeMs)) this.#over.abort()
      else this.#wake()
    })
  }
}

const REQUEST_LINE = '  HTTP/1.1\r\n'.length
const STATUS_LINE = 'HTTP/1.1 200 \r\n'.length
const BLANK_LINE = 2

/** The bytes of the request as Bun writes it; tests/contract/server-client.test.ts compares them with a socket. */
function requestBytes(method: string, path: string, host: string, headers: Record<string, string>, body: Uint8Array | null): number {
  const own: Array<[string, string]> = [...Object.entries(headers), ['host', host]]
  if (body !== null) own.push(['content-length', String(body.length)])
  return method.length + path.length + REQUEST_LINE + headerBytes(own) + BLANK_LINE + (body?.length ?? 0)
}

const headBytes = (response: Response): number =>
  STATUS_LINE + response.statusText.length + headerBytes(response.headers as Iterable<[string, string]>) + BLANK_LINE

function headerBytes(headers: Iterable<[string, string]>): number {
  let bytes = 0
  for (const [name, value] of headers) bytes += name.length + value.length + 4
  return bytes
}

async function readBounded(response: Response, limit: number, count: (bytes: number) => void): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let length = 0
  const reader = response.body?.getReader()
  for (let chunk = await reader?.read(); chunk?.value !== undefined; chunk = await reader?.read()) {
    length += chunk.value.length
    count(chunk.value.length)
    if (length > limit) {
      await reader?.cancel()
      throw new AppError('bad_page', { detail: `the answer is larger than ${limit} bytes` })
    }
    chunks.push(chunk.value)
  }
  return Buffer.concat(chunks)
}

/** Some fetchers inflate by themselves and leave the header: the bytes tell. JSON never begins like zstd. */
export function inflated(bytes: Uint8Array, limit: number): Uint8Array {
  if (bytes.length < 4 || new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true) !== ZSTD_MAGIC) return bytes
  try {
    return unzstd(bytes, limit)
  } catch (error) {
    throw new AppError('bad_page', { detail: `the answer does not inflate, or inflates to more than ${limit} bytes` }, { cause: error })
  }
}

function problem(response: Response, bytes: Uint8Array, doing: string, clock: Clock): AppError {
  const body = parseJson(bytes)
  if (GATEWAY_TIMEOUTS.has(response.status) && !isOurs(body))
    return new AppError('server_unreachable', {
      doing,
      detail: `a gateway timed out waiting for the server (HTTP ${response.status})`,
      extra: { gateway: true },
    })
  if (response.status === 407) return new AppError('server_unreachable', { doing, ...proxyWantsCredentials })
  const error = errorFromProblem(response.status, body, doing)
  const retryAfterMs = retryAfterMsOf(error.retryAfterMs, response.headers.get('retry-after'), clock.nowMs())
  const detail = isOurs(body) ? {} : { detail: `HTTP ${response.status}, not from a Skerry server` }
  return new AppError(error.code, { ...error.data, ...detail, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) })
}

const isOurs = (body: unknown): boolean => typeof body === 'object' && body !== null && 'code' in body

export function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    return null
  }
}
