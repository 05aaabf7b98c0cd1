// The listening socket: which handler answers a request, and how many requests and connections may be open at once. Bun
// itself closes a connection whose request head is not complete within 12 seconds, or that is idle between requests for
// IDLE_TIMEOUT_SECONDS.

import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { type Logger, silentLogger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import type { AddressRange } from '../sources/address/range.ts'
import type { AgentRoutes } from './agent-routes.ts'
import { createCallerAddress } from './caller-address.ts'
import { IDLE_TIMEOUT_SECONDS } from './desired-routes.ts'
import { bindWithMode, clearSocket, type ListenPlace } from './listen-place.ts'
import { type OpenFiles, ownOpenFiles } from './open-files.ts'
import { problemResponse } from './problem.ts'
import type { TlsPair } from './tls-files.ts'

/** Above every limit of the routes, so that a body that is too large gets their answer and not a closed connection. */
const REQUEST_BYTES_MAX = 16 * 1_024 * 1_024
const RETRY_AFTER_MS = 5_000
/** Part of the process's open files that requests may use; the rest is for the store, shards, sources and renders. */
const SHARE_OF_OPEN_FILES = 0.8
/** With more of its files open the server accepts no connection, and closes idle ones, until it has less than the share
 *  above. */
const SHARE_WHEN_FULL = 0.9
const CHECK_EVERY_MS = 1_000

export interface ListenerOptions {
  place: ListenPlace
  /** Absent means plain HTTP. */
  tls?: TlsPair | null
  trustedProxies: readonly AddressRange[]
  /** The peer of a Unix socket is a trusted proxy. */
  trustsSocket?: boolean
  /** AR5: requests that may be open at once. Default: a share of the open files that this process may have. */
  openMax?: number
  /** Default: those of this process. */
  files?: OpenFiles
  log?: Logger
}

export interface Listener {
  /** Without a path, such as https://127.0.0.1:8443; `unix:/run/skerry.sock` for a socket. */
  origin: string
  /** 0 of a socket. */
  port: number
  /** The address of a request that is being answered. Null if it is not known. */
  addressOf(request: Request): string | null
  /** HT1: new connections get this certificate. Requests that are open are answered on the connection that they came
   *  on. */
  useTls(pair: TlsPair): void
  /** AR5: refuses new connections while too many files are open. */
  checkFiles(): void
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
  const { place, trustedProxies, trustsSocket = false, files = ownOpenFiles(), log = silentLogger } = options
  const { openMax = Math.floor(files.max * SHARE_OF_OPEN_FILES) } = options
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
    // Bun takes the idle timeout for sockets, too, which its types deny; its default of 10 s is shorter than the
    // silence of a stream.
    if ('unix' in place) {
      const onSocket: object = { ...serving, unix: place.unix }
      return bindWithMode(place, () => Bun.serve(onSocket as Bun.Serve.Options<undefined>))
    }
    const secured = tls === null ? {} : { tls: { cert: tls.cert, key: tls.key } }
    // `reusePort`: the default with `development: false` shares the port with another server.
    return Bun.serve({ ...serving, ...secured, hostname: place.hostname, port, reusePort: false })
  }
  if ('unix' in place) await clearSocket(place.unix)
  let tls = options.tls ?? null
  let http = bind(tls)
  port = http.port ?? port
  const before = new Set<Http>()
  /** Accepts no more connections and closes idle ones; requests that are open go on. */
  const retire = () => {
    const old = http
    before.add(old)
    return old.stop(false).finally(() => before.delete(old))
  }
  let isFull = false
  const checkFiles = () => {
    const open = files.count()
    if (open === null) return
    if (!isFull && open > files.max * SHARE_WHEN_FULL) {
      isFull = true
      log.warn('too many open files: new connections are refused', { open, max: files.max })
      void retire()
    } else if (isFull && open < files.max * SHARE_OF_OPEN_FILES) {
      try {
        http = bind(tls)
      } catch (error) {
        return log.warn('cannot listen again; retrying', { error: describeError(error) })
      }
      isFull = false
      log.info('new connections are accepted again', { open, max: files.max })
    }
  }
  const origin = 'unix' in place ? `unix:${place.unix}` : `${options.tls == null ? 'http' : 'https'}://${http.hostname}:${port}`
  return {
    origin,
    port,
    addressOf,
    checkFiles,
    useTls(pair) {
      tryOut(pair) // a server that stopped for a pair that cannot be used would serve nobody
      tls = pair
      if (isFull) return
      // `reload` of Bun keeps the certificate of the start. Between the two calls nothing else runs.
      void retire()
      http = bind(pair)
    },
    stop: async (atOnce) => {
      await Promise.all([...before, http].map((one) => one.stop(atOnce)))
    },
  }
}

/** Runs until the signal aborts. */
export async function followOpenFiles({ checkFiles }: Pick<Listener, 'checkFiles'>, clock: Clock, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await clock.sleep(CHECK_EVERY_MS, signal)
    if (!signal.aborted) checkFiles()
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
