// A client of the Skerry API: typed routes, pages, problems, preconditions, repeatable writes, and the stream of
// changes. It needs nothing but `fetch`, so that browsers, scripts and the command line use the same one.
import { EventReader, type StreamEvent } from './events.ts'
import type { Changes, ParamsOf, Route, Routes } from './routes.ts'

/** Header of the reason that the audit log keeps. */
export const REASON_HEADER = 'x-skerry-reason'
export const API = '/api/v1'

/** An answer that is no success (RFC 9457), or no answer at all (`status` 0, `code` `unreachable`). */
export class SkerryProblem extends Error {
  readonly status: number
  readonly code: string
  readonly detail: string
  readonly remedy: string
  readonly problems: ReadonlyArray<{ path: string; message: string }>
  readonly retryAfterMs: number | null
  /** The whole body; undefined where it is no JSON. */
  readonly body: unknown
  constructor(status: number, body: unknown, cause?: unknown) {
    const { code, detail, title, remedy, problems, retryAfterMs } = Object(body) as Record<string, unknown>
    const text = (value: unknown, other: string) => (typeof value === 'string' ? value : other)
    const said = text(detail, text(title, status === 0 ? 'the server does not answer' : `HTTP ${status}`))
    super(said, { cause })
    this.name = 'SkerryProblem'
    this.status = status
    this.code = text(code, status === 0 ? 'unreachable' : 'unknown')
    this.detail = said
    this.remedy = text(remedy, '')
    this.problems = Array.isArray(problems) ? problems : []
    this.retryAfterMs = typeof retryAfterMs === 'number' ? retryAfterMs : null
    this.body = body
  }
}

export type Query = Record<string, string | number | boolean | undefined | null>

export interface SendOptions {
  query?: Query | undefined
  body?: unknown
  headers?: Record<string, string> | undefined
  accept?: string | undefined
  signal?: AbortSignal | undefined
  /** For the audit log, of requests that change something. */
  reason?: string | undefined
}

export interface CallOptions<R extends Route> extends Omit<SendOptions, 'body'> {
  /** Parts of the path. Each is one segment, whatever is in it. */
  params?: ParamsOf<R>
  body?: Routes[R]['body']
  /** Changes this version only: the `etag` of an answer. */
  ifMatch?: string | null
  /** Creates, or fails. */
  ifNoneMatch?: '*'
  /** Performed once, however often it is sent. */
  idempotencyKey?: string
}

export interface Answer<T> {
  value: T
  /** Null where the answer has none. */
  etag: string | null
  /** The answer of an earlier request with the same key. */
  replayed: boolean
}

export interface ClientOptions {
  /** Sends parameters that are '', such as the namespace of an object that has none. */
  keepEmpty?: boolean
  /** Origin and base path of the server, without a slash at its end. '' means of the page. */
  url: string
  /** Value of the `authorization` header for each request. Null means none, as with a session cookie. */
  authorization?: () => Promise<string | null> | string | null
  fetch?: (url: string, init: RequestInit) => Promise<Response>
  /** Ends after so many ms, or with the signal. Default: a timer. */
  sleep?: (ms: number, signal: AbortSignal) => Promise<void>
}

export interface FollowOptions {
  topics?: readonly string[]
  /** Changes after this number. Default: from now on. */
  after?: string | null
  signal: AbortSignal
  /** The connection was lost, so many times in a row. */
  onLost?: (tries: number, error: unknown) => void
}

/** Two heartbeats of the server (15 s) and some. */
export const SILENCE_MS = 40_000
const [RETRY_MS_MIN, RETRY_MS_MAX] = [500, 10_000]

export interface SkerryClient {
  /** One request. Throws SkerryProblem for everything but a success. `path`: below the origin. */
  send(method: string, path: string, options?: SendOptions): Promise<Response>
  /** `call('GET /clusters/:name', {params: {name: 'ship-7'}})`. */
  call<R extends Route>(route: R, options?: CallOptions<R>): Promise<Routes[R]['answer']>
  /** The same with what belongs to the answer. */
  ask<R extends Route>(route: R, options?: CallOptions<R>): Promise<Answer<Routes[R]['answer']>>
  /** Items of all pages. An empty page may go on. */
  items<R extends Route>(route: R, options?: CallOptions<R>): AsyncGenerator<ItemOf<R>>
  /** Events of the stream of changes. Resumes where it was after a lost connection. Throws what no retry solves. */
  follow(options: FollowOptions): AsyncGenerator<StreamEvent>
}

export type ItemOf<R extends Route> = Routes[R]['answer'] extends { items: ReadonlyArray<infer Item> } ? Item : never

/** `pathOf('/clusters/:name', {name: 'a/b'})` is `/clusters/a%2Fb`. */
export const pathOf = (pattern: string, params: Readonly<Record<string, string>> = {}): string =>
  pattern.replace(/:(\w+)/g, (_, name: string) => {
    const value = params[name]
    if (value === undefined) throw new Error(`${pattern} needs ${name}`)
    return encodeURIComponent(value)
  })

/** '' without parameters. Those that are undefined or null are left out, and those that are '' unless `keepEmpty` is
 *  set. */
export function queryText(query: Query = {}, keepEmpty = false): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && (keepEmpty || value !== ''))
  return given.length === 0 ? '' : `?${new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)]))}`
}

export function createSkerryClient(options: ClientOptions): SkerryClient {
  const { url, authorization = () => null, fetch: fetcher = (to, init) => fetch(to, init), sleep = timer } = options

  const send: SkerryClient['send'] = async (method, path, { query, body, headers, accept, signal, reason } = {}) => {
    const credential = await authorization()
    const all: Record<string, string> = { accept: accept ?? 'application/json', ...headers }
    if (credential !== null) all['authorization'] = credential
    if (body !== undefined) all['content-type'] = 'application/json'
    if (reason !== undefined && reason !== '' && method !== 'GET') all[REASON_HEADER] = encodeURIComponent(reason)
    const init: RequestInit = { method, headers: all, cache: 'no-store' }
    if (body !== undefined) init.body = JSON.stringify(body)
    if (signal !== undefined) init.signal = signal
    const response = await fetcher(`${url}${path}${queryText(query, options.keepEmpty)}`, init).catch((error: unknown) => {
      throw signal?.aborted ? error : new SkerryProblem(0, undefined, error)
    })
    if (response.ok) return response
    throw new SkerryProblem(response.status, await response.json().catch(() => undefined))
  }

  const ask: SkerryClient['ask'] = async (route, { params, ifMatch, ifNoneMatch, idempotencyKey, headers, ...more } = {}) => {
    const [method = '', pattern = ''] = route.split(' ')
    const own: Record<string, string> = { ...headers }
    if (ifMatch != null) own['if-match'] = ifMatch
    if (ifNoneMatch !== undefined) own['if-none-match'] = ifNoneMatch
    if (idempotencyKey !== undefined) own['idempotency-key'] = idempotencyKey
    const response = await send(method, `${API}${pathOf(pattern, params)}`, { ...more, headers: own })
    const text = await response.text()
    const isJson = (response.headers.get('content-type') ?? '').startsWith('application/json')
    return {
      value: text === '' ? null : isJson ? JSON.parse(text) : text,
      etag: response.headers.get('etag'),
      replayed: response.headers.get('idempotency-replayed') === 'true',
    }
  }

  const call: SkerryClient['call'] = async (route, given) => (await ask(route, given)).value

  async function* items<R extends Route>(route: R, given: CallOptions<R> = {}): AsyncGenerator<ItemOf<R>> {
    let next: string | null = null
    do {
      const query: Query = { ...given.query, ...(next === null ? {} : { continue: next }) }
      const page = (await call(route, { ...given, query })) as { items: ItemOf<R>[]; continue: string | null }
      yield* page.items
      next = page.continue
    } while (next !== null)
  }

  async function* follow({ topics = [], after = null, signal, onLost }: FollowOptions): AsyncGenerator<StreamEvent> {
    let last = after
    let isConnected = false
    for (let tries = 0; !signal.aborted; ) {
      const ended = new AbortController()
      const stop = () => ended.abort()
      signal.addEventListener('abort', stop, { once: true })
      let waitMs = RETRY_MS_MIN
      let isAnswered = false
      try {
        const headers = last === null ? {} : { 'last-event-id': last }
        const asked = { accept: 'text/event-stream', query: { topic: topics.join(',') }, headers, signal: ended.signal }
        const response = await send('GET', `${API}${'/changes' satisfies Changes}`, asked)
        if (!(response.headers.get('content-type') ?? '').startsWith('text/event-stream'))
          throw new SkerryProblem(response.status, { code: 'bad_page', detail: 'the server answers without a stream' })
        const events = new EventReader()
        isAnswered = true
        isConnected = true
        for await (const piece of pieces(response, ended, sleep)) {
          tries = 0
          for (const event of events.take(piece)) {
            last = event.id ?? last
            yield event
          }
        }
      } catch (error) {
        if (signal.aborted) return
        // A stream that breaks is asked for again. What prevents the request from being sent or answered is passing
        // only if the server says so.
        if (!isAnswered && !(isConnected && error instanceof SkerryProblem && isPassing(error))) throw error
        tries += 1
        onLost?.(tries, error)
        waitMs = Math.max(error instanceof SkerryProblem ? (error.retryAfterMs ?? 0) : 0, Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** tries))
      } finally {
        ended.abort()
        signal.removeEventListener('abort', stop)
      }
      await sleep(waitMs, signal)
    }
  }

  return { send, call, ask, items, follow }
}

/** No answer, or a server that stops or has too much to do. */
const isPassing = ({ status }: SkerryProblem): boolean => status === 0 || status === 429 || status >= 500

/** Text of the body as it comes. Fails when nothing comes for SILENCE_MS: a frozen link looks like one on which nothing
 *  happens. */
async function* pieces(response: Response, ended: AbortController, sleep: NonNullable<ClientOptions['sleep']>): AsyncGenerator<string> {
  if (response.body === null) return
  const reader = response.body.getReader()
  const decoder = new TextDecoder()
  try {
    for (;;) {
      const heard = new AbortController()
      const silence = sleep(SILENCE_MS, heard.signal).then(() => (heard.signal.aborted ? undefined : ended.abort()))
      const { done, value } = await reader.read().finally(() => heard.abort())
      await silence
      if (done) return
      yield decoder.decode(value, { stream: true })
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

const timer = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const end = () => {
      clearTimeout(running)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const running = setTimeout(end, ms)
    signal.addEventListener('abort', end, { once: true })
  })
