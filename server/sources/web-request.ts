// One request of a chart repository or registry: a deadline, a bound on bytes, credentials, and errors that name the
// host and never what was answered.
import { AppError } from '../../shared/runtime/error.ts'
import type { WebFetcher } from './address/guard.ts'
import { unresolvedText } from './address/resolve.ts'

export interface WebDeadlines {
  /** From the request to the last byte of its answer. */
  wholeMs: number
  /** Without a byte: until the answer begins, and between its pieces. */
  silentMs: number
}
export const DEADLINES: WebDeadlines = { wholeMs: 120_000, silentMs: 30_000 }

/** Read again for each request: a Config may change at any time. */
export interface WebCredential {
  /** Null if the repository names no Config. */
  secretRef: string | null
  /** `tokenServer`: host of another server that gets them, too, which the repository named. Throws `source_refused` for
   *  a host that they are not for. */
  read(tokenServer?: string): Promise<Readonly<Record<string, string>>>
}

export interface WebRequest {
  fetcher: WebFetcher
  url: string
  /** For messages: `the index of the Helm repository charts.example.com`. */
  what: string
  method?: 'GET' | 'HEAD'
  headers?: Readonly<Record<string, string>>
  /** PEM of the authorities that the other side's certificate may be from. Absent means those that this server trusts.
   */
  ca?: string | string[] | undefined
  bytesMax: number
  /** Takes the bytes that came before the transfer broke off, so that it can resume. */
  onPart?: (bytes: Uint8Array) => Promise<void>
}

export interface WebAnswer {
  /** After redirects. */
  url: string
  status: number
  headers: Headers
  bytes: Uint8Array
}

/** One request; its answer whatever the status is, with at most `bytesMax` of it. Throws `source_refused` when there is
 *  more, `source_unreachable` when the other side cannot be reached, is silent or breaks off, and what the address
 *  guard throws. */
export async function askWeb(request: WebRequest, deadlines: WebDeadlines = DEADLINES): Promise<WebAnswer> {
  const { fetcher, url, what, method = 'GET', headers = {}, ca, bytesMax } = request
  const pieces: Uint8Array[] = []
  const watch = watchOver(deadlines)
  try {
    const tls = ca === undefined ? {} : { tls: { ca } }
    const answer = await fetcher(url, { method, headers: { ...headers }, signal: watch.signal, ...tls })
    watch.heard()
    const size = answer.status === 200 && method === 'GET' ? Number(answer.headers.get('content-length') ?? 0) : 0
    if (size > bytesMax) {
      await answer.body?.cancel()
      throw tooLarge(what, bytesMax)
    }
    let held = 0
    for await (const piece of (answer.body ?? []) as AsyncIterable<Uint8Array>) {
      watch.heard()
      held += piece.byteLength
      if (held > bytesMax) throw tooLarge(what, bytesMax)
      pieces.push(piece)
    }
    return { url: answer.url === '' ? url : answer.url, status: answer.status, headers: answer.headers, bytes: joined(pieces) }
  } catch (error) {
    if (error instanceof AppError) throw error
    if (pieces.length > 0) await request.onPart?.(joined(pieces))
    const why = watch.passed() ?? reasonOf(error)
    throw new AppError('source_unreachable', { detail: `${what}: ${new URL(url).host} ${why}`, ...tlsRemedy(error, url) }, { cause: error })
  } finally {
    watch.end()
  }
}

/**
 * A silent host must not hold one of the few places for as long as a large archive may take. Silence after the first
 * bytes may be noticed a second period later.
 */
function watchOver({ wholeMs, silentMs }: WebDeadlines) {
  const abort = new AbortController()
  const whole = AbortSignal.timeout(wholeMs)
  let period: AbortSignal
  let isHeard = false
  let passed: string | null = null
  const pass = (why: string) => {
    passed ??= why
    abort.abort()
  }
  const listen = () => {
    isHeard = false
    period = AbortSignal.timeout(silentMs)
    period.addEventListener('abort', turn)
  }
  const turn = () => (isHeard ? listen() : pass(`sent nothing for ${silentMs / 1000} s`))
  const late = () => pass(`did not answer within ${wholeMs / 1000} s`)
  whole.addEventListener('abort', late)
  listen()
  return {
    signal: abort.signal,
    heard() {
      isHeard = true
    },
    /** Which deadline has. */
    passed: () => passed,
    end() {
      whole.removeEventListener('abort', late)
      period.removeEventListener('abort', turn)
    },
  }
}

const MIB = 1024 * 1024
const joined = (pieces: Uint8Array[]): Uint8Array => new Uint8Array(Buffer.concat(pieces))
const tooLarge = (what: string, bytesMax: number): AppError =>
  new AppError('source_refused', {
    detail: `${what} is larger than ${bytesMax % MIB === 0 ? `${bytesMax / MIB} MiB` : `the ${bytesMax} bytes that were announced`}`,
  })

function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  const unresolved = unresolvedText(code)
  if (unresolved !== null) return unresolved
  if (/CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ISSUER/i.test(code))
    return `shows a certificate that is not trusted (${code}); set caCert in the Config of auth.secretRef to its certificate authority`
  if (isTlsFailure(code)) return `does not speak TLS (${code})`
  return 'cannot be reached'
}

/** As Bun names what comes of a plain HTTP answer to a TLS handshake, and of a handshake that breaks off. */
const isTlsFailure = (code: string): boolean => /SSL|TLS|EPROTO/i.test(code) && !/CERT/i.test(code)
function tlsRemedy(error: unknown, url: string): { remedy?: string } {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (!isTlsFailure(code) || !url.startsWith('https:')) return {}
  return {
    remedy:
      'If it speaks plain HTTP: use an http:// URL for charts and Git, or `insecure: true` in spec.oci for a test registry; otherwise check its certificate and port.',
  }
}

/** The error for a status other than the expected one. */
export function statusError(what: string, { url, status, headers }: WebAnswer, { secretRef }: WebCredential): AppError {
  const { host } = new URL(url)
  if (status === 401 || status === 403) {
    const why = secretRef === null ? 'requires a credential, and none is configured' : `refuses the credential of the Config ${secretRef}`
    const remedy =
      secretRef === null
        ? 'Set auth.secretRef to a Config with token, or username and password; or correct the URL: some registries ask for credentials if the repository does not exist.'
        : `Set a valid credential in the Config ${secretRef}; if the token is used as a password, also set username.`
    const code = secretRef === null ? 'credential_missing' : 'credential_refused'
    return new AppError(code, { detail: `${what}: ${host} ${why} (HTTP ${status})`, remedy })
  }
  const retryAfter = Number(headers.get('retry-after'))
  const wait = Number.isInteger(retryAfter) && retryAfter > 0 ? { retryAfterMs: Math.min(retryAfter, 3_600) * 1_000 } : {}
  // A host that answers is not a silent one: its other repositories are asked as before.
  if (status === 404 || status === 410)
    return new AppError('source_not_found', { detail: `${what}: ${host} does not have it (HTTP ${status})`, ...wait })
  return new AppError('source_unreachable', { detail: `${what}: ${host} returns an error (HTTP ${status})`, ...wait })
}
