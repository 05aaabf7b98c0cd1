// HTTP to one API server on its own Bun.FetchSession, with rotating credentials, deadlines and a limit of requests in
// flight. It knows nothing of resources. It verifies certificates unless the kubeconfig turns that off.

import { type Clock, OVER } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import { failureSays, failureText } from '../messages/object-messages.ts'
import { failureOf, unreachable } from './api-failure.ts'
import type { About, ApiFailure } from './cluster.ts'
import type { KubeAccess, KubeCredentials } from './kube-credentials.ts'
import { parseJson } from './watch-stream.ts'

/** Bun runs at most 256 requests at once in a process; further ones wait without an error. Both limits stay below
 *  that. */
export const REQUESTS_IN_FLIGHT_MAX = 32
export const WATCHES_MAX = 192
/** Streams beside those, for lists, which end: an agent with the maximum number of watches can still begin new ones. */
export const LISTS_MAX = 16
/** Above the limit of the API server, 60 s, whose answer tells what was slow. */
const REQUEST_TIMEOUT_MS = 65_000
/** Credentials are read again at this age. Kubelets rotate tokens hours before they expire. */
const ACCESS_AGE_MAX_MS = 60_000

export interface KubeRequest extends About {
  method: 'GET' | 'PATCH' | 'DELETE'
  /** Path and query. */
  path: string
  /** Plural of the requested resource, by which a refusal is classified. */
  plural: string
  accept?: string
  body?: { type: string; json: unknown }
  /** Impersonated user, in place of the one of the credentials. */
  as?: string | undefined
  signal?: AbortSignal
  /** The body of a success is text, not JSON. */
  plain?: true
}

/** `answer` is a success. `body` of a failure is that of the answer. `warning` is the Warning header. */
export type KubeAnswer =
  | { kind: 'answer'; status: number; body: unknown; warning?: string | null }
  | { kind: 'failed'; failure: ApiFailure; body: unknown; warning?: string | null }
export type KubeStream = { kind: 'stream'; body: ReadableStream<Uint8Array>; release: () => void } | { kind: 'failed'; failure: ApiFailure }

export interface KubeHttp {
  request(request: KubeRequest): Promise<KubeAnswer>
  /** A request with an open answer. The caller detects silence, and calls `release` when the stream has ended. */
  stream(request: KubeRequest & { signal: AbortSignal; isList?: boolean }): Promise<KubeStream>
  close(): void
}

interface Connection {
  access: KubeAccess
  session: Bun.FetchSession
  readAtMs: number
}

export function createKubeHttp(
  credentials: KubeCredentials,
  { clock, log, userAgent }: { clock: Clock; log: Logger; userAgent: string },
): KubeHttp {
  const connections = new Connections(credentials, clock, log)
  const slots = new Slots(REQUESTS_IN_FLIGHT_MAX)
  let watches = 0

  async function send({ method, path, accept, body, as, signal }: KubeRequest, connection: Connection): Promise<Response> {
    const { access, session } = connection
    const headers: Record<string, string> = { 'user-agent': userAgent, accept: accept ?? 'application/json' }
    if (access.authorization !== null) headers['authorization'] = access.authorization
    const user = as ?? access.impersonateUser
    if (user !== undefined) headers['impersonate-user'] = user
    if (body !== undefined) headers['content-type'] = body.type
    // No redirect is followed: the credentials are for this server alone. No timeout of Bun, which would cut idle
    // watches: the deadlines are ours.
    const init = { method, headers, redirect: 'manual' as const, timeout: false, ...(signal === undefined ? {} : { signal }) }
    return session.fetch(credentials.server + path, body === undefined ? init : { ...init, body: JSON.stringify(body.json) })
  }

  /** KA8: after a 401 the credentials are read again, and the request is repeated only if they changed. */
  async function sendAuthorized(request: KubeRequest, ageMaxMs: number): Promise<Response> {
    const connection = await connections.get(ageMaxMs)
    const response = await send(request, connection)
    if (response.status !== 401) return response
    const renewed = await connections.renew(connection)
    if (renewed === null) return response
    await response.body?.cancel()
    return send(request, renewed)
  }

  async function refused(response: Response, { plural, body: request, about }: KubeRequest) {
    const text = await response.text()
    const body = parseJson(text)
    const retryAfter = response.headers.get('retry-after')
    const failure = failureOf({ status: response.status, body, text, retryAfter, plural, sent: request?.json, about: about?.() ?? [] })
    return { failure, body, warning: response.headers.get('warning') }
  }

  function noAnswer(error: unknown): ApiFailure {
    if (error instanceof AppError) return { kind: 'unauthorized', status: 0, reason: error.code, message: describeError(error) }
    connections.suspect()
    return unreachable(credentials.server, error)
  }

  return {
    request: (request) =>
      slots.run(async () => {
        const deadline = startDeadline(clock, REQUEST_TIMEOUT_MS, request.signal)
        try {
          const response = await sendAuthorized({ ...request, signal: deadline.signal }, ACCESS_AGE_MAX_MS)
          if (!response.ok) return { kind: 'failed', ...(await refused(response, request)) }
          const text = await response.text()
          const warning = response.headers.get('warning')
          return { kind: 'answer', status: response.status, body: request.plain ? text : parseJson(text), warning }
        } catch (error) {
          return { kind: 'failed', failure: noAnswer(error), body: undefined }
        } finally {
          deadline.end()
        }
      }),

    async stream(request) {
      if (watches >= WATCHES_MAX + (request.isList === true ? LISTS_MAX : 0)) {
        return { kind: 'failed', failure: { kind: 'throttled', status: 0, ...failureSays('TooManyWatches', { watches }) } }
      }
      watches += 1
      // The deadline is for the head of the answer only.
      const deadline = startDeadline(clock, REQUEST_TIMEOUT_MS, request.signal)
      let held = true
      const release = () => {
        if (held) watches -= 1
        held = false
        deadline.end()
      }
      try {
        // Age 0: a watch is opened rarely and stays open for long, so it starts with the present files.
        const response = await sendAuthorized({ ...request, signal: deadline.signal }, 0)
        if (response.ok && response.body !== null) {
          deadline.keepOpen()
          return { kind: 'stream', body: response.body, release }
        }
        const { failure } = await refused(response, request)
        release()
        return { kind: 'failed', failure }
      } catch (error) {
        release()
        return { kind: 'failed', failure: noAnswer(error) }
      }
    },

    close: () => connections.close(),
  }
}

/** One session at a time. A changed certificate, key or authority needs a new session, whose TLS options are fixed. */
class Connections {
  #current: Connection | null = null
  #reading: Promise<Connection> | null = null
  #closed = false
  readonly #credentials: KubeCredentials
  readonly #clock: Clock
  readonly #log: Logger
  constructor(credentials: KubeCredentials, clock: Clock, log: Logger) {
    this.#credentials = credentials
    this.#clock = clock
    this.#log = log
  }

  async get(ageMaxMs: number): Promise<Connection> {
    const current = this.#current
    if (current !== null && this.#clock.monotonicMs() - current.readAtMs < ageMaxMs) return current
    return this.#read(false)
  }

  /** Null when the credentials are still those that were refused. */
  async renew(refused: Connection): Promise<Connection | null> {
    const newer = this.#current !== null && this.#current.readAtMs > refused.readAtMs ? this.#current : await this.#read(true)
    return JSON.stringify(newer.access) === JSON.stringify(refused.access) ? null : newer
  }

  /** After a request without an answer, the files are read again: the authority may have been replaced. */
  suspect(): void {
    if (this.#current !== null) this.#current.readAtMs = Number.NEGATIVE_INFINITY
  }

  close(): void {
    this.#closed = true
    this.#current?.session.close()
  }

  #read(refused: boolean): Promise<Connection> {
    this.#reading ??= this.#readOnce(refused).finally(() => {
      this.#reading = null
    })
    return this.#reading
  }

  async #readOnce(refused: boolean): Promise<Connection> {
    const old = this.#current
    const readAtMs = this.#clock.monotonicMs()
    let access: KubeAccess
    try {
      access = await this.#credentials.read({ refused })
    } catch (error) {
      // A file may be missing for a moment during a rotation, while the old token still works.
      if (old === null) throw error
      this.#log.warn('cannot read credentials again, using the old ones', { error: describeError(error) })
      old.readAtMs = readAtMs
      return old
    }
    const kept = old !== null && JSON.stringify(old.access.tls) === JSON.stringify(access.tls)
    const session = kept ? old.session : openSession(access, this.#credentials.proxyUrl)
    if (old !== null && !kept) {
      this.#log.info('TLS credentials changed, opening a new connection')
      old.session.close()
    }
    this.#current = { access, session, readAtMs }
    if (this.#closed) session.close()
    return this.#current
  }
}

function openSession({ tls }: KubeAccess, proxyUrl: string | undefined): Bun.FetchSession {
  const { ca, cert, key, serverName, insecure } = tls
  return new Bun.FetchSession({
    tls: {
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
      ...(serverName === undefined ? {} : { serverName }),
      rejectUnauthorized: !insecure,
    },
    // `false`, because Bun would use HTTP_PROXY and HTTPS_PROXY, which are for the Skerry server. The proxy of an API
    // server is in its kubeconfig.
    proxy: proxyUrl ?? false,
  })
}

interface Deadline {
  signal: AbortSignal
  /** The head of the answer is there: from now on, only the signal of the caller aborts. */
  keepOpen(): void
  end(): void
}

function startDeadline(clock: Clock, timeoutMs: number, outer: AbortSignal | undefined): Deadline {
  const request = new AbortController()
  const timer = new AbortController()
  const abort = () => request.abort(outer?.reason)
  if (outer?.aborted) abort()
  outer?.addEventListener('abort', abort, { once: true })
  void clock.sleep(timeoutMs, timer.signal).then(() => {
    if (!timer.signal.aborted) request.abort(new Error(failureText('no_answer_in_time', { seconds: timeoutMs / 1000 })))
  })
  return {
    signal: request.signal,
    keepOpen: () => timer.abort(OVER),
    end: () => {
      timer.abort(OVER)
      outer?.removeEventListener('abort', abort)
    },
  }
}

/** Runs at most `limit` at once; the others wait in order. */
class Slots {
  #free: number
  readonly #waiting: Array<() => void> = []
  constructor(limit: number) {
    this.#free = limit
  }
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#free += 1
      else next()
    }
  }
}
