// The listening socket: which handler answers a request, and how many requests may be open at once. Bun itself closes a connection whose request head is not complete
// within 12 seconds, or that is idle between requests for IDLE_TIMEOUT_SECONDS.
import { readFileSync } from 'node:fs'
import { AppError } from '../../shared/protocol/error.ts'
import type { AddressRange } from '../sources/address/range.ts'
import type { AgentRoutes } from './agent-routes.ts'
import { createCallerAddress } from './caller-address.ts'
import { IDLE_TIMEOUT_SECONDS } from './desired-routes.ts'
import { bindWithMode, clearSocket, type ListenPlace } from './listen-place.ts'
import { problemResponse } from './problem.ts'
import type { TlsPair } from './tls-files.ts'

/** Above every limit of the routes, so that a body that is too large gets their answer and not a closed connection. */
const REQUEST_BYTES_MAX = 16 * 1_024 * 1_024
const RETRY_AFTER_MS = 5_000
/** Part of the process's open files that connections may use; the rest is for the store, shards, sources and renders. */
const SHARE_OF_OPEN_FILES = 0.8
/** Where the limit of open files cannot be read. */
const OPEN_FILES_DEFAULT = 1_024

export interface ListenerOptions {
  place: ListenPlace
  /** Absent: plain HTTP. */
  tls?: TlsPair | null
  trustedProxies: readonly AddressRange[]
  /** The peer of a Unix socket is a trusted proxy. */
  trustsSocket?: boolean
  /** AR5: requests that may be open at once. Default: a share of the open files that this process may have. */
  openMax?: number
}

export interface Listener {
  /** Without a path, such as https://127.0.0.1:8443; `unix:/run/skerry.sock` for a socket. */
  origin: string
  /** 0 of a socket. */
  port: number
  /** The address of a request that is being answered. Null if it is not known. */
  addressOf(request: Request): string | null
  /** HT1: new connections get this certificate. Requests that are open are answered on the connection that they came on. */
  useTls(pair: TlsPair): void
  /** Stops accepting connections and waits for open ones; `atOnce` closes them. */
  stop(atOnce?: boolean): Promise<void>
}

export interface Handlers {
  agents: AgentRoutes
  /** Answers every other path. */
  others(request: Request): Promise<Response>
}

type Http = Bun.Server<undefined>

export async function listen(options: ListenerOptions, handlers: Handlers): Promise<Listener> {
  const { place, trustedProxies, trustsSocket = false, openMax = openRequestsMax() } = options
  const callerAddress = createCallerAddress(trustedProxies, trustsSocket && 'unix' in place)
  let port = 'unix' in place ? 0 : place.port
  const addressOf = (request: Request): string | null =>
    callerAddress(http.requestIP(request)?.address ?? null, request.headers.get('x-forwarded-for'))
  const serving = {
    idleTimeout: IDLE_TIMEOUT_SECONDS,
    maxRequestBodySize: REQUEST_BYTES_MAX,
    development: false,
    // Without this handler Bun answers with a page of its own: the error, the stack and the working directory.
    error: () => problemResponse(new AppError('internal')),
    fetch: async (request: Request, bun: Http) => {
      if (bun.pendingRequests > openMax) return overloaded()
      if (!URL.canParse(request.url)) return withoutUrl()
      const context = { setIdleTimeout: (seconds: number) => bun.timeout(request, seconds), address: () => addressOf(request) }
      return (await handlers.agents(request, context)) ?? handlers.others(request)
    },
  }
  const bind = (tls: TlsPair | null): Http => {
    // Bun takes the idle timeout for sockets, too, which its types deny; its default of 10 s is shorter than the silence of a stream.
    if ('unix' in place) {
      const onSocket: object = { ...serving, unix: place.unix }
      return bindWithMode(place, () => Bun.serve(onSocket as Bun.Serve.Options<undefined>))
    }
    const secured = tls === null ? {} : { tls: { cert: tls.cert, key: tls.key } }
    // `reusePort`: the default with `development: false` shares the port with another server.
    return Bun.serve({ ...serving, ...secured, hostname: place.hostname, port, reusePort: false })
  }
  if ('unix' in place) await clearSocket(place.unix)
  let http = bind(options.tls ?? null)
  port = http.port ?? port
  const before = new Set<Http>()
  const origin = 'unix' in place ? `unix:${place.unix}` : `${options.tls == null ? 'http' : 'https'}://${http.hostname}:${port}`
  return {
    origin,
    port,
    addressOf,
    useTls(pair) {
      tryOut(pair) // a server that stopped for a pair that cannot be used would serve nobody
      // `reload` of Bun keeps the certificate of the start. Between the two calls nothing else runs.
      const old = http
      before.add(old)
      void old.stop(false).finally(() => before.delete(old))
      http = bind(pair)
    },
    stop: async (atOnce) => {
      await Promise.all([...before, http].map((one) => one.stop(atOnce)))
    },
  }
}

/** Throws for a certificate or key that the TLS library does not take. */
function tryOut({ cert, key }: TlsPair): void {
  void Bun.serve({ hostname: '127.0.0.1', port: 0, tls: { cert, key }, fetch: () => new Response() }).stop(true)
}

function overloaded(): Response {
  const detail = 'too many requests are open'
  const response = problemResponse(new AppError('unavailable', { doing: 'take a request', detail, retryAfterMs: RETRY_AFTER_MS }))
  response.headers.set('connection', 'close')
  return response
}

/** Without a Host header, as HTTP/1.0 allows, or with one that is no host, Bun tells a URL that cannot be parsed. */
const withoutUrl = (): Response => problemResponse(new AppError('bad_request', { detail: 'the Host header is missing or invalid' }))

function openRequestsMax(): number {
  return Math.floor(openFilesMax() * SHARE_OF_OPEN_FILES)
}

function openFilesMax(): number {
  try {
    const found = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
    return found === undefined ? OPEN_FILES_DEFAULT : Number(found)
  } catch {
    return OPEN_FILES_DEFAULT
  }
}
