// Git over http: bounds on time and bytes of each answer, credentials for one host only, redirects that keep the
// request, and errors that name the host and nothing secret.
import git from 'isomorphic-git'
import type { GitHttpRequest, GitHttpResponse, HttpClient } from 'isomorphic-git/http/web'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import type { WebFetcher } from '../address/guard.ts'
import { collect, LargeTurn, once, Patience, partsOf, unreachable } from './answer.ts'
import { NO_ACCESS, type WebAccess, type WebTry } from './auth.ts'
import { askForRefs, GIT_AGENT, readRefs } from './ls-refs.ts'
import type { RemoteRef } from './objects.ts'

/** The library takes about five times as much memory while it works on one. */
export const GIT_ANSWER_BYTES_MAX = 96 * 1024 * 1024
/**
 * The next step when the server answers that there is no repository: forges answer so too for one that the caller may
 * not see.
 */
export const NO_REPOSITORY = 'Correct spec.git.url, or name a Config in spec.git.auth.secretRef.'
const REDIRECTS_MAX = 5
const NOTHING_SEEN = 'the repository does not exist, or needs a credential'
const REDIRECTS = [301, 302, 303, 307, 308]

export interface GitWebOptions {
  url: string
  fetcher: WebFetcher
  /** Read again for each request, so that a changed secret is used at once. Null means no credentials. */
  access: (() => Promise<WebAccess>) | null
  clock: Clock
  /** The source's folder: what is large waits beside it. */
  dir: string
  /** Without a byte. */
  stallMs?: number | undefined
  answerBytesMax?: number | undefined
}

export interface GitWeb {
  /** For isomorphic-git. What its answers hold of memory and connections goes when `act` is done. */
  use<T>(act: (http: HttpClient) => Promise<T>): Promise<T>
  refs(prefixes: readonly string[]): Promise<RemoteRef[]>
  /** The header that was taken last, and the CA; for the git program. */
  granted(): Promise<{ header: string | null; ca: string | null; what: string }>
}

interface Sent {
  method: string
  headers: Record<string, string>
  body: Uint8Array<ArrayBuffer> | null
}

interface Got {
  answer: Response
  url: string
}

interface Use {
  turn: LargeTurn
  ended: AbortSignal
}

export function createGitWeb(options: GitWebOptions): GitWeb {
  return new Web(options)
}

class Web implements GitWeb {
  private readonly options: GitWebOptions
  /** The attempt that succeeded last. */
  private liked = ''

  constructor(options: GitWebOptions) {
    this.options = options
  }

  use<T>(act: (http: HttpClient) => Promise<T>): Promise<T> {
    return this.within((use) => act({ request: (request) => this.request(request, use) }))
  }

  private async within<T>(act: (use: Use) => Promise<T>): Promise<T> {
    const turn = new LargeTurn()
    const ended = new AbortController()
    try {
      return await act({ turn, ended: ended.signal })
    } finally {
      turn.end()
      ended.abort()
    }
  }

  async refs(prefixes: readonly string[]): Promise<RemoteRef[]> {
    const { url } = this.options
    const service = 'application/x-git-upload-pack'
    const headers = { 'content-type': `${service}-request`, accept: `${service}-result`, 'git-protocol': 'version=2' }
    const refs = await this.within(async (use) => {
      const { status, parts } = await this.exchange(`${url}/git-upload-pack`, { method: 'POST', headers, body: askForRefs(prefixes) }, use)
      return status === 200 ? readRefs(await collect(parts)) : null
    })
    if (refs !== null) return refs
    // One that knows only the older protocol, or none: this request tells them apart.
    const listed = await this.use((http) => git.listServerRefs({ http, url, protocolVersion: 1, peelTags: true }))
    return listed
      .filter(({ ref }) => prefixes.some((prefix) => ref.startsWith(prefix)))
      .map(({ ref, oid, peeled }) => ({ name: ref, oid, commit: peeled ?? oid }))
  }

  async granted(): Promise<{ header: string | null; ca: string | null; what: string }> {
    const { ca, tries } = await this.access()
    const [first] = this.ordered(tries)
    return { ca, header: first === undefined ? null : await first.header(), what: first?.what ?? 'no credentials' }
  }

  private async request({ url, method = 'GET', headers = {}, body }: GitHttpRequest, use: Use): Promise<GitHttpResponse> {
    const sent = body === undefined ? null : await collect(body)
    const { status, statusText, parts, answer, at } = await this.exchange(url, { method, headers, body: sent }, use)
    if (status !== 200) throw await this.unfit(answer)
    return {
      url: at,
      method,
      statusCode: status,
      statusMessage: statusText,
      headers: Object.fromEntries(answer.headers),
      body: method === 'POST' ? parts : once(await collect(parts)),
    }
  }

  private async unfit({ status, body }: Response): Promise<AppError> {
    const { url } = this.options
    await body?.cancel().catch(() => {})
    return status === 404 || status === 410
      ? new AppError('git_failed', { detail: `${url}: ${NOTHING_SEEN} (HTTP ${status})`, remedy: NO_REPOSITORY })
      : new AppError('git_failed', { detail: `${url}: the Git server ${new URL(url).host} answers with HTTP ${status}` })
  }

  /** IN14: errors name host and status, never the answer. */
  private async exchange(url: string, sent: Sent, { turn, ended }: Use) {
    const { clock, dir, stallMs, answerBytesMax: bytesMax = GIT_ANSWER_BYTES_MAX } = this.options
    // The work for an earlier large answer is done: no fetch waits for a server while others wait for the turn.
    turn.end()
    const patience = new Patience(clock, ended, stallMs)
    const { host } = new URL(url)
    try {
      const { answer, url: at } = await this.authorized(url, sent, patience)
      return {
        status: answer.status,
        statusText: answer.statusText,
        parts: partsOf(answer, { host, patience, turn, clock, bytesMax, beside: dir }),
        answer,
        at,
      }
    } catch (error) {
      throw unreachable(host, patience, error)
    }
  }

  private async authorized(url: string, sent: Sent, patience: Patience): Promise<Got> {
    const { ca, tries } = await this.access()
    const tried: string[] = []
    let got: Got | null = null
    for (const one of tries.length === 0 ? [null] : this.ordered(tries)) {
      await got?.answer.body?.cancel()
      got = await this.follow(url, sent, { header: one === null ? null : await one.header(), ca, patience })
      const { status } = got.answer
      if (status !== 401 && status !== 403) {
        this.liked = one?.what ?? ''
        return got
      }
      if (one !== null) tried.push(one.what)
      if (status === 403) break
    }
    await got?.answer.body?.cancel()
    throw refusal(url, got, tried)
  }

  private async follow(
    start: string,
    sent: Sent,
    { header, ca, patience }: { header: string | null; ca: string | null; patience: Patience },
  ): Promise<Got> {
    const { signal } = patience
    const { origin } = new URL(start)
    let url = start
    for (let redirects = 0; ; redirects++) {
      const isHome = new URL(url).origin === origin
      const headers = { 'user-agent': GIT_AGENT, ...sent.headers, ...(header === null || !isHome ? {} : { authorization: header }) }
      const tls = ca === null || !isHome ? {} : { tls: { ca } }
      const init = { method: sent.method, headers, body: sent.body, redirect: 'manual', signal, ...tls } as const
      const answer = await patience.wait(() => this.options.fetcher(url, init))
      const to = REDIRECTS.includes(answer.status) ? answer.headers.get('location') : null
      if (to === null) return { answer, url }
      await answer.body?.cancel()
      url = nextUrl(url, to, redirects)
    }
  }

  private access(): Promise<WebAccess> {
    return this.options.access?.() ?? Promise.resolve(NO_ACCESS)
  }

  private ordered(tries: readonly WebTry[]): WebTry[] {
    return [...tries].sort((a, b) => Number(b.what === this.liked) - Number(a.what === this.liked))
  }
}

function nextUrl(from: string, to: string, redirects: number): string {
  const { host, protocol } = new URL(from)
  if (redirects === REDIRECTS_MAX) throw new AppError('git_failed', { detail: `${host} redirects more than ${REDIRECTS_MAX} times` })
  const next = URL.canParse(to, from) ? new URL(to, from) : null
  if (next === null || (next.protocol !== 'https:' && next.protocol !== 'http:'))
    throw new AppError('git_failed', { detail: `${host} redirects to an invalid http address` })
  if (protocol === 'https:' && next.protocol === 'http:')
    throw new AppError('git_failed', { detail: `${host} redirects from https to http, at ${next.host}` })
  next.username = ''
  next.password = ''
  return next.href
}

function shownUrl(url: string): string {
  const { origin, pathname } = new URL(url)
  return origin + pathname.replace(/\/(info\/refs|git-upload-pack)$/, '')
}

function refusal(url: string, got: Got | null, tried: readonly string[]): AppError {
  const { host, origin } = new URL(url)
  const status = got?.answer.status ?? 0
  const other = got === null || new URL(got.url).origin === origin ? null : new URL(got.url).host
  const detail =
    other !== null
      ? `the Git server ${host} redirects to ${other}, which refuses with HTTP ${status}; credentials of one host are not sent to another`
      : tried.length === 0
        ? status === 403
          ? `the Git server ${host} refuses with HTTP 403: ${NOTHING_SEEN}`
          : `the Git server ${host} requires credentials (HTTP ${status}) for ${shownUrl(url)}, and none are configured`
        : `the Git server ${host} refused with HTTP ${status}; tried: ${tried.join(', ')}`
  const remedy =
    other !== null
      ? 'Set spec.git.url to the URL that it redirects to.'
      : tried.length === 0
        ? status === 403
          ? NO_REPOSITORY
          : 'Set spec.git.auth.secretRef to a Config with a token, or username and password; or correct spec.git.url: some forges ask for credentials if the repository does not exist.'
        : 'Set a valid credential that can read this repository in the Config of spec.git.auth.secretRef.'
  return new AppError(other === null && tried.length > 0 ? 'credential_refused' : 'credential_missing', { detail, remedy })
}
