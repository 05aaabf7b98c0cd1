// The admin API over HTTP, as the command line needs it. Answers are checked by their schemas; problems become the
// errors that the server meant.
import { z } from 'zod'
import {
  API,
  createSkerryClient,
  type FollowOptions,
  type Query,
  type SendOptions,
  SILENCE_MS,
  type SkerryClient,
  SkerryProblem,
} from '../../client/client.ts'
import type { StreamEvent } from '../../client/events.ts'
import { LIST_LIMIT_MAX } from '../../shared/model/constants.ts'
import { listOf } from '../../shared/model/list-page.ts'
import { logoutAnswerSchema } from '../../shared/model/sign-in.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError, errorFromProblem, problemBodySchema } from '../../shared/runtime/error.ts'
import type { CliIo } from './io.ts'

const TIMEOUT_MS = 60_000
const SERVER_REMEDY = 'Check --server (SKERRY_SERVER) or the context (`skerry config get-contexts`), and that the server runs.'
const TOKEN_REMEDY = 'Set SKERRY_TOKEN, or save a context with a token: skerry config set-context NAME --server URL --token-file FILE.'
/** Statuses of an answer that is not in the form of this server: no proxy before one sends these. */
const NOT_OURS: readonly number[] = [400, 404, 405, 501]

/** Why there was no answer, in words that do not depend on the HTTP client. */
function silenceText(base: string, cause: unknown): string {
  const { code, message } =
    cause instanceof Error ? { code: undefined, ...cause, message: cause.message } : { code: undefined, message: String(cause) }
  const said = `${String(code ?? '')} ${message}`
  if (/ECONNREFUSED|ConnectionRefused|connection refused/i.test(said)) return `connection refused at ${base}`
  if (/CERT|certificate|SELF_SIGNED|ISSUER/i.test(said))
    return `the certificate of ${base} is not trusted (${String(code ?? message)}); set --server-ca FILE to its certificate authority`
  if (/ENOTFOUND|EAI_AGAIN|getaddrinfo/i.test(said)) return `the host ${new URL(base).hostname} cannot be resolved`
  return `${base} does not answer (${message})`
}

export interface Pages {
  /** The limit of all pages together. */
  limit?: number | undefined
  chunkSize?: number | undefined
}

export interface Client {
  url: string
  /** A route below /auth/, without a credential. */
  signIn<T extends z.ZodType>(path: string, schema: T, body?: unknown): Promise<z.infer<T>>
  /** Ends the session of the credential. */
  signOut(): Promise<void>
  /** Names of the path are encoded by `path`. */
  get<T extends z.ZodType>(path: string, schema: T, query?: Query): Promise<z.infer<T>>
  /** All pages, or as many items; an empty page also continues. */
  list<T extends z.ZodType>(path: string, item: T, query?: Query, pages?: Pages): Promise<z.infer<T>[]>
  send<T extends z.ZodType>(method: 'POST' | 'PUT' | 'DELETE', path: string, schema: T, body?: unknown): Promise<z.infer<T>>
  /** Events of the stream of changes, from now on. It resumes after a lost connection, and throws errors of the start
   *  and those that no retry solves. */
  follow(options: Omit<FollowOptions, 'after'>): AsyncGenerator<StreamEvent>
  /** The body of an answer as it comes. It is cut when nothing comes for a minute or so. */
  streamPost(path: string, body: unknown, signal: AbortSignal | undefined): Promise<AsyncIterable<Uint8Array>>
}

/** `path\`/clusters/${name}\``: every value is one segment, whatever is in it. */
export const path = (parts: TemplateStringsArray, ...values: string[]): string =>
  parts.reduce((text, part, i) => text + encodeURIComponent(values[i - 1] ?? '') + part)

export interface ClientOptions {
  /** An URL, or `unix:PATH` for a server on a socket of this machine. */
  server: string
  token: string | undefined
  /** Token of a login, new if need be; in place of `token`. */
  renewed?: (() => Promise<string>) | undefined
  /** PEM of the authorities that are trusted in place of the system's. */
  ca?: string | undefined
  /** Reason for the audit log, of requests that change something. */
  reason?: string | undefined
}

export function createClient(io: Pick<CliIo, 'fetch' | 'clock'>, { server, token, renewed, ca, reason }: ClientOptions): Client {
  const socket = /^unix:(.+)$/s.exec(server)?.[1]
  const base = socket === undefined ? server.replace(/\/+$/, '') : 'http://localhost'
  const link = {
    ...(socket === undefined ? {} : { unix: socket }),
    ...(ca === undefined ? {} : { tls: { ca } }),
  }
  const shown = socket === undefined ? base : server
  if (!/^https?:\/\//.test(base) || !URL.canParse(base))
    throw new AppError('bad_request', {
      doing: `use the server ${server}`,
      detail: 'expected an address that begins with https://, http:// or unix:/, such as https://skerry.example',
      remedy: /^[^/:]+(:\d+)?(\/|$)/.test(base)
        ? `Write http://${base} or https://${base} in --server (SKERRY_SERVER).`
        : 'Correct --server (SKERRY_SERVER).',
    })

  const credential = async () => {
    const bearer = renewed === undefined ? token : await renewed()
    if (bearer === undefined || bearer === '')
      throw new AppError('unauthorized', { detail: `no API token was given for ${shown}`, remedy: TOKEN_REMEDY })
    return `Bearer ${bearer}`
  }
  const transport = { url: base, fetch: (to: string, init: RequestInit) => io.fetch(to, { ...init, ...link }) }
  const sleep = (ms: number, signal: AbortSignal) => io.clock.sleep(ms, signal)
  const signedIn = createSkerryClient({ ...transport, keepEmpty: true, authorization: credential, sleep })
  const open = createSkerryClient(transport)

  /** An answer that is no success is thrown, as the error that the server meant. */
  async function send(skerry: SkerryClient, method: string, to: string, options: SendOptions): Promise<Response> {
    return skerry.send(method, to, options).catch((error: unknown) => {
      throw error instanceof AppError ? error : errorOf(error, `${method} ${base}${to}`)
    })
  }

  function errorOf(error: unknown, doing: string): AppError {
    if (!(error instanceof SkerryProblem) || error.status === 0) {
      const cause = error instanceof SkerryProblem ? error.cause : error
      return new AppError('server_unreachable', { detail: silenceText(shown, cause), remedy: SERVER_REMEDY }, { cause })
    }
    const { status, body } = error
    const ours = problemBodySchema.safeParse(body).success
    if (!ours && NOT_OURS.includes(status))
      return new AppError('bad_page', { detail: `the server at ${shown} is not a Skerry server (HTTP ${status})`, remedy: SERVER_REMEDY })
    // The server's own words say what they are about; what stands between us and it may say nothing.
    return errorFromProblem(status, body, ours ? '' : doing)
  }

  async function request(method: string, address: string, query: Query, body?: unknown): Promise<unknown> {
    const options = { query, body, reason, signal: AbortSignal.timeout(TIMEOUT_MS) }
    const response = await send(signedIn, method, `${API}${address}`, options)
    const text = await response.text()
    return text === '' ? null : parseJson(text)
  }

  const checked = <T extends z.ZodType>(schema: T, answer: unknown): z.infer<T> => {
    const parsed = schema.safeParse(answer)
    if (parsed.success) return parsed.data
    throw new AppError('bad_page', {
      detail: `the server at ${shown} is not a Skerry server, or has an unsupported version`,
      remedy: `Check --server (SKERRY_SERVER); \`skerry version\` compares versions.`,
    })
  }

  /** Below /auth/. */
  async function signIn(skerry: SkerryClient, address: string, body?: unknown): Promise<unknown> {
    const method = body === undefined && address === '/providers' ? 'GET' : 'POST'
    const headers = { 'content-type': 'application/json' }
    return parseJson(
      await (await send(skerry, method, `/auth${address}`, { body, headers, signal: AbortSignal.timeout(TIMEOUT_MS) })).text(),
    )
  }

  return {
    url: shown,
    signIn: async (address, schema, body) => checked(schema, await signIn(open, address, body)),
    signOut: async () => void checked(logoutAnswerSchema, await signIn(signedIn, '/logout')),
    get: async (address, schema, query = {}) => checked(schema, await request('GET', address, query)),
    list: async (address, item, query = {}, { limit = Number.POSITIVE_INFINITY, chunkSize = LIST_LIMIT_MAX } = {}) => {
      const schema = listOf(item)
      const items: z.infer<typeof item>[] = []
      let next: string | null = null
      do {
        const size = Math.min(chunkSize, limit - items.length)
        const answer = await request('GET', address, { limit: size, ...query, ...(next === null ? {} : { continue: next }) })
        const page = checked(schema, answer)
        items.push(...page.items)
        next = page.continue
      } while (next !== null && items.length < limit)
      // Lists without pages answer all at once.
      return items.length > limit ? items.slice(0, limit) : items
    },
    send: async (method, address, schema, body) => checked(schema, await request(method, address, {}, body)),
    streamPost: async (address, body, signal) => {
      const silence = createSilence(io.clock)
      const over = signal === undefined ? silence.signal : AbortSignal.any([signal, silence.signal])
      try {
        return heard(
          (await send(signedIn, 'POST', `${API}${address}`, { body, reason, accept: '*/*', signal: over })).body ?? new ReadableStream(),
          silence,
        )
      } catch (error) {
        silence.end()
        throw error
      }
    },
    follow: async function* (options) {
      try {
        yield* signedIn.follow(options)
      } catch (error) {
        throw error instanceof AppError ? error : errorOf(error, `GET ${base}${API}/changes`)
      }
    },
  }
}

interface Silence {
  /** Aborts when nothing was heard for SILENCE_MS to twice that: a body that comes slowly is heard of. */
  signal: AbortSignal
  heard(): void
  end(): void
}

function createSilence(clock: Clock): Silence {
  const over = new AbortController()
  const ended = new AbortController()
  let wasHeard = false
  const listen = async () => {
    do {
      wasHeard = false
      await clock.sleep(SILENCE_MS, ended.signal)
    } while (wasHeard && !ended.signal.aborted)
    if (!ended.signal.aborted) over.abort()
  }
  void listen()
  const heard = () => {
    wasHeard = true
  }
  return { signal: over.signal, heard, end: () => ended.abort() }
}

/** A link that is frozen looks like one on which nothing happens. */
async function* heard(body: AsyncIterable<Uint8Array>, silence: Silence): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of body) {
      silence.heard()
      yield chunk
    }
  } finally {
    silence.end()
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export const noContent = z.null()
