// HTTP to the server: few header bytes, zstd both ways, every answer bounded while it is read, every failure an AppError that says what was being done.
import { AppError, errorFromProblem } from '../../shared/protocol/error.ts'
import { COMPRESS_BYTES_MIN } from '../../shared/protocol/routes.ts'
import { PROTOCOL_HEADER, PROTOCOL_VERSION } from '../../shared/protocol/version.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { unzstd, zstd } from '../../shared/runtime/zstd.ts'

/** `fetch`, or a test's. TLS and proxy belong to it. */
export type Fetcher = (url: string, init: BunFetchRequestInit) => Promise<Response>

export interface ServerCall {
  /** For errors: "pull", "push status". */
  doing: string
  method: 'GET' | 'POST'
  path: string
  query?: Record<string, string>
  token?: string
  json?: unknown
  /** Largest answer, inflated. */
  answerBytesMax: number
  /** How long the whole call may take: a frozen link is cut by us, a kernel would wait for hours. */
  timeoutMs: number
  signal: AbortSignal
}

export interface ServerAnswer {
  status: number
  body: Uint8Array
}

/** Bytes of bodies, request lines and headers as far as they can be seen; without TLS and TCP. */
export interface Traffic {
  requests: number
  sentBytes: number
  receivedBytes: number
}

export interface ServerClient {
  call(call: ServerCall): Promise<ServerAnswer>
  traffic(): Traffic
}

/** `detail` of the AppError when our own patience ended, not the connection. */
export const TIMED_OUT = 'no answer in time'
const PROBLEM_BYTES_MAX = 64 * 1_024
const ZSTD_MAGIC = 0xfd2fb528

export function createServerClient(baseUrl: string, fetcher: Fetcher, clock: Clock): ServerClient {
  const base = baseUrl.replace(/\/+$/, '')
  const traffic: Traffic = { requests: 0, sentBytes: 0, receivedBytes: 0 }
  return {
    traffic: () => ({ ...traffic }),
    async call(call) {
      const url = base + call.path + (call.query === undefined ? '' : `?${new URLSearchParams(call.query)}`)
      const { headers, body } = encode(call)
      traffic.requests++
      traffic.sentBytes += url.length + headerBytes(Object.entries(headers)) + (body?.length ?? 0)
      const patience = new AbortController()
      const over = new AbortController()
      void clock.sleep(call.timeoutMs, over.signal).then(() => patience.abort())
      try {
        const response = await fetcher(url, {
          method: call.method,
          headers,
          ...(body === null ? {} : { body: body as Uint8Array<ArrayBuffer> }),
          redirect: 'error', // a credential goes to the server that was named
          decompress: false, // else an answer could grow without bound before it can be counted
          timeout: false,
          signal: AbortSignal.any([call.signal, patience.signal]),
        } as BunFetchRequestInit)
        traffic.receivedBytes += headerBytes(response.headers)
        const limit = response.ok ? call.answerBytesMax : PROBLEM_BYTES_MAX
        const bytes = await readBounded(response, limit, (count) => {
          traffic.receivedBytes += count
        })
        if (!response.ok) throw problem(response, bytes, call.doing)
        return { status: response.status, body: bytes }
      } catch (error) {
        if (error instanceof AppError) throw error
        const detail = patience.signal.aborted && !call.signal.aborted ? { detail: TIMED_OUT } : {}
        throw new AppError('server_unreachable', { doing: call.doing, ...detail }, { cause: error })
      } finally {
        over.abort()
      }
    },
  }
}

function encode({ json, token }: ServerCall): { headers: Record<string, string>; body: Uint8Array | null } {
  const headers: Record<string, string> = { 'accept-encoding': 'zstd' }
  if (PROTOCOL_VERSION !== 1) headers[PROTOCOL_HEADER] = String(PROTOCOL_VERSION) // absent means 1
  if (token !== undefined) headers['authorization'] = `Bearer ${token}`
  if (json === undefined) return { headers, body: null }
  headers['content-type'] = 'application/json'
  const plain = Buffer.from(JSON.stringify(json))
  if (plain.length < COMPRESS_BYTES_MIN) return { headers, body: plain }
  headers['content-encoding'] = 'zstd'
  return { headers, body: zstd(plain) }
}

/** Some fetchers inflate by themselves and leave the header: the bytes tell. JSON never begins like zstd. */
async function readBounded(response: Response, limit: number, count: (bytes: number) => void): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  const reader = response.body?.getReader()
  for (let chunk = await reader?.read(); chunk?.value !== undefined; chunk = await reader?.read()) {
    length += chunk.value.length
    count(chunk.value.length)
    if (length > limit) {
      await reader?.cancel()
      throw new AppError('bad_page', { detail: `an answer larger than ${limit} bytes` })
    }
    chunks.push(chunk.value)
  }
  const bytes = Buffer.concat(chunks)
  if (bytes.length < 4 || bytes.readUInt32LE(0) !== ZSTD_MAGIC) return bytes
  try {
    return unzstd(bytes, limit)
  } catch (error) {
    throw new AppError('bad_page', { detail: `an answer that does not inflate to at most ${limit} bytes` }, { cause: error })
  }
}

function problem(response: Response, bytes: Uint8Array, doing: string): AppError {
  const error = errorFromProblem(response.status, parseJson(bytes), doing)
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
  if (error.retryAfterMs !== undefined || !Number.isFinite(seconds) || seconds < 0) return error
  return new AppError(error.code, { ...error.data, retryAfterMs: Math.min(seconds, RETRY_AFTER_SECONDS_MAX) * 1000 })
}

/** A wrong header must not silence an agent for a year. */
const RETRY_AFTER_SECONDS_MAX = 3_600

export function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    return null
  }
}

function headerBytes(headers: Iterable<[string, string]>): number {
  let bytes = 0
  for (const [name, value] of headers) bytes += name.length + value.length + 4
  return bytes
}
