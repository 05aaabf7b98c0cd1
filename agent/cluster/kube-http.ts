// HTTP to one API server on its own Bun.FetchSession: credentials that rotate, a cap on what is in flight, deadlines. Knows nothing of
// resources. Certificates are verified unless the kubeconfig itself says otherwise.
import { AppError } from '../../shared/protocol/error.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import { failureOf, unreachable } from './api-failure.ts'
import type { ApiFailure } from './cluster.ts'
import type { KubeAccess, KubeCredentials } from './kube-credentials.ts'
import { parseJson } from './watch-stream.ts'

/** Bun answers at most 256 requests at once in one process, and the 257th waits in silence: both limits together stay below. */
export const REQUESTS_IN_FLIGHT_MAX = 32
export const WATCHES_MAX = 192
/** Above the API server's own limit of 60 s, so that its answer, which says what was slow, arrives first. */
const REQUEST_TIMEOUT_MS = 65_000
/** How old credentials may get before files are read again; kubelets rotate tokens hours before they expire. */
const ACCESS_AGE_MAX_MS = 60_000

export interface KubeRequest {
  method: 'GET' | 'PATCH' | 'DELETE'
  /** Path and query. */
  path: string
  /** Plural of the resource asked for, for reading a refusal. */
  plural: string
  accept?: string
  body?: { type: string; json: unknown }
  /** Whom the request is made as, instead of the credentials' own user. */
  as?: string | undefined
  signal?: AbortSignal
  /** The body of a good answer is text, not JSON. */
  plain?: true
}

/** `answer`: success only; everything else is a failure, with the body it came with. */
export type KubeAnswer = { kind: 'answer'; status: number; body: unknown } | { kind: 'failed'; failure: ApiFailure; body: unknown }
export type KubeStream = { kind: 'stream'; body: ReadableStream<Uint8Array>; release: () => void } | { kind: 'failed'; failure: ApiFailure }

export interface KubeHttp {
  request(request: KubeRequest): Promise<KubeAnswer>
  /** A request whose answer goes on; the caller watches for silence and calls `release` at its end, whatever that was. */
  stream(request: KubeRequest & { signal: AbortSignal }): Promise<KubeStream>
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
    // Never follows a redirect: the credentials are for this server alone. `timeout: false`: Bun would cut idle watches; deadlines are ours.
    const init = { method, headers, redirect: 'manual' as const, timeout: false, ...(signal === undefined ? {} : { signal }) }
    return session.fetch(credentials.server + path, body === undefined ? init : { ...init, body: JSON.stringify(body.json) })
  }

  /** KA8: after a 401 the credentials are read again, and only others are tried. */
  async function sendAuthorized(request: KubeRequest, ageMaxMs: number): Promise<Response> {
    const connection = await connections.get(ageMaxMs)
    const response = await send(request, connection)
    if (response.status !== 401) return response
    const renewed = await connections.renew(connection)
    if (renewed === null) return response
    await response.body?.cancel()
    return send(request, renewed)
  }

  async function refused(response: Response, plural: string): Promise<{ failure: ApiFailure; body: unknown }> {
    const text = await response.text()
    const body = parseJson(text)
    return { failure: failureOf({ status: response.status, body, text, retryAfter: response.headers.get('retry-after'), plural }), body }
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
          if (!response.ok) return { kind: 'failed', ...(await refused(response, request.plural)) }
          const text = await response.text()
          return { kind: 'answer', status: response.status, body: request.plain ? text : parseJson(text) }
        } catch (error) {
          return { kind: 'failed', failure: noAnswer(error), body: undefined }
        } finally {
          deadline.end()
        }
      }),

    async stream(request) {
      if (watches >= WATCHES_MAX) {
        const message = `this agent already holds ${WATCHES_MAX} watches; more kinds than that cannot be watched by one process`
        return { kind: 'failed', failure: { kind: 'throttled', status: 0, reason: 'TooManyWatches', message } }
      }
      watches += 1
      // The deadline covers the time to the answer's head only.
      const deadline = startDeadline(clock, REQUEST_TIMEOUT_MS, request.signal)
      let held = true
      const release = () => {
        if (held) watches -= 1
        held = false
        deadline.end()
      }
      try {
        // Age 0: a watch opens seldom and stays for long, so it always starts with what the files hold now.
        const response = await sendAuthorized({ ...request, signal: deadline.signal }, 0)
        if (response.ok && response.body !== null) {
          deadline.keepOpen()
          return { kind: 'stream', body: response.body, release }
        }
        const { failure } = await refused(response, request.plural)
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

/** One session at a time; a new one when certificate, key or authority changed, because a session's TLS is fixed when it is made. */
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
    if (current !== null && this.#clock.nowMs() - current.readAtMs < ageMaxMs) return current
    return this.#read(false)
  }

  /** Other credentials than the refused ones, or null when there are none. */
  async renew(refused: Connection): Promise<Connection | null> {
    const newer = this.#current !== null && this.#current.readAtMs > refused.readAtMs ? this.#current : await this.#read(true)
    return JSON.stringify(newer.access) === JSON.stringify(refused.access) ? null : newer
  }

  /** After a request without an answer: the authority may have been replaced, so the files are read before the next one. */
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
    const readAtMs = this.#clock.nowMs()
    let access: KubeAccess
    try {
      access = await this.#credentials.read({ refused })
    } catch (error) {
      // A file that is missing for a moment during a rotation must not stop an agent whose old token still works.
      if (old === null) throw error
      this.#log.warn('credentials could not be read again, using the old ones', { error: describeError(error) })
      old.readAtMs = readAtMs
      return old
    }
    const kept = old !== null && JSON.stringify(old.access.tls) === JSON.stringify(access.tls)
    const session = kept ? old.session : openSession(access, this.#credentials.proxyUrl)
    if (old !== null && !kept) {
      this.#log.info('tls credentials changed, connecting anew')
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
    // `false`, because Bun would take HTTP_PROXY and HTTPS_PROXY, which are for the way to the server: what leads to an API server stands in its kubeconfig.
    proxy: proxyUrl ?? false,
  })
}

/** A reason of our own: without one, each abort makes a DOMException with a stack that nobody reads. */
const OVER = 'over'

interface Deadline {
  signal: AbortSignal
  /** The answer has begun: from now on only the caller's signal aborts. */
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
    if (!timer.signal.aborted) request.abort(new Error(`no answer within ${timeoutMs / 1000} s`))
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

/** At most `limit` at once; the others wait in the order they came. */
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
