// The listening socket: which handler answers a request, and how many requests may be open at once. Bun itself closes a connection whose request head is not complete
// within 12 seconds, or that is idle between requests for IDLE_TIMEOUT_SECONDS.
import { readFileSync } from 'node:fs'
import { AppError } from '../../shared/protocol/error.ts'
import type { AddressRange } from '../sources/address/range.ts'
import type { AgentRoutes } from './agent-routes.ts'
import { createCallerAddress } from './caller-address.ts'
import { IDLE_TIMEOUT_SECONDS } from './desired-routes.ts'
import { problemResponse } from './problem.ts'

/** Above every limit of the routes, so that a body that is too large gets their answer and not a closed connection. */
const REQUEST_BYTES_MAX = 16 * 1_024 * 1_024
const RETRY_AFTER_MS = 5_000
/** Part of the process's open files that connections may use; the rest is for the store, shards, sources and renders. */
const SHARE_OF_OPEN_FILES = 0.8
/** Where the limit of open files cannot be read. */
const OPEN_FILES_DEFAULT = 1_024

export interface ListenerOptions {
  hostname: string
  port: number
  trustedProxies: readonly AddressRange[]
  /** AR5: requests that may be open at once. Default: a share of the open files that this process may have. */
  openMax?: number
}

export interface Listener {
  hostname: string
  port: number
  /** Of a request that is being answered; null: not known. */
  addressOf(request: Request): string | null
  /** Stops accepting connections and waits for open ones; `atOnce` closes them. */
  stop(atOnce?: boolean): Promise<void>
}

export interface Handlers {
  agents: AgentRoutes
  /** Of every other path. */
  others(request: Request): Promise<Response>
}

export function listen({ hostname, port, trustedProxies, openMax = openRequestsMax() }: ListenerOptions, handlers: Handlers): Listener {
  const callerAddress = createCallerAddress(trustedProxies)
  const addressOf = (request: Request): string | null =>
    callerAddress(http.requestIP(request)?.address ?? null, request.headers.get('x-forwarded-for'))
  const http: Bun.Server<undefined> = Bun.serve({
    hostname,
    port,
    idleTimeout: IDLE_TIMEOUT_SECONDS,
    maxRequestBodySize: REQUEST_BYTES_MAX,
    development: false,
    reusePort: false, // the default with `development: false` shares the port with another server
    // Without this handler Bun answers with a page of its own: the error, the stack and the working directory.
    error: () => problemResponse(new AppError('internal')),
    fetch: async (request, bun) => {
      if (bun.pendingRequests > openMax) return overloaded()
      if (!URL.canParse(request.url)) return withoutUrl()
      const context = { setIdleTimeout: (seconds: number) => bun.timeout(request, seconds), address: () => addressOf(request) }
      return (await handlers.agents(request, context)) ?? handlers.others(request)
    },
  })
  return { hostname: http.hostname ?? hostname, port: http.port ?? port, addressOf, stop: (atOnce) => http.stop(atOnce) }
}

function overloaded(): Response {
  const detail = 'too many requests are open'
  const response = problemResponse(new AppError('unavailable', { doing: 'take a request', detail, retryAfterMs: RETRY_AFTER_MS }))
  response.headers.set('connection', 'close')
  return response
}

/** Without a Host header, as HTTP/1.0 allows, or with one that is no host, Bun tells a URL that cannot be parsed. */
const withoutUrl = (): Response => problemResponse(new AppError('bad_request', { detail: 'the Host header is missing or no host' }))

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
