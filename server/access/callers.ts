// Identifies the caller of a request: the API token or access token in its Authorization header, or the session cookie
// of a browser.
import { AppError } from '../../shared/runtime/error.ts'
import { identifyCaller } from '../store/audit/caller.ts'
import type { ApiTokens } from './api-tokens.ts'
import type { UserSessions } from './oidc/user-sessions.ts'
import { actorOf, type Principal } from './principal.ts'

export interface Callers {
  /**
   * Null means no valid credential. Throws `cross_site` for a change that a browser sends from another site. `from`:
   * address of the caller.
   */
  authenticate(request: Request, from?: string | null): Promise<Principal | null>
  /** Aborts when the credential with this id ends. */
  ended(id: string): AbortSignal
  /** Whether it expired since it was let in. Sessions that expire are ended. */
  hasExpired(id: string): boolean
}

export interface CallersDeps {
  tokens: Pick<ApiTokens, 'authenticate' | 'ended' | 'hasExpired'>
  /** Null if sign-in is not configured. */
  sessions: Pick<UserSessions, 'authenticate' | 'ended'> | null
  /** URL under which browsers know this server. */
  url(): string
}

/** `__Host-`: browsers take it over https only, from this host only, for every path. On plain http, which is for a
 *  loopback address, it has another name. */
export const sessionCookie = (url: string): string => (url.startsWith('https://') ? '__Host-skerry' : 'skerry-loopback')

/** These change nothing. */
const SAFE: readonly string[] = ['GET', 'HEAD', 'OPTIONS']

export function createCallers({ tokens, sessions, url }: CallersDeps): Callers {
  return {
    async authenticate(request, from = null) {
      const header = request.headers.get('authorization')
      if (header !== null) {
        const principal = await tokens.authenticate(header, from)
        if (principal !== null || sessions === null) return known(principal)
        const secret = /^Bearer +(\S+)$/i.exec(header)?.[1]
        return secret === undefined ? null : known(await sessions.authenticate('access', secret, from))
      }
      const cookie = sessions === null ? null : cookieOf(request, sessionCookie(url()))
      if (cookie === null || sessions === null) return null
      const principal = known(await sessions.authenticate('cookie', cookie, from))
      if (principal !== null) refuseCrossSite(request, url())
      return principal
    },
    ended: (id) => (id.startsWith('s-') && sessions !== null ? sessions.ended(id) : tokens.ended(id)),
    hasExpired: (id) => tokens.hasExpired(id),
  }
}

/** From here on the audit log names the caller, also where the request is refused. */
function known(principal: Principal | null): Principal | null {
  if (principal !== null) identifyCaller(actorOf(principal))
  return principal
}

/** SI6: a browser adds its cookie to requests that other sites make; it also says which site makes them. Throws
 *  `cross_site`. */
export function refuseCrossSite(request: Request, url: string): void {
  if (SAFE.includes(request.method)) return
  const site = request.headers.get('sec-fetch-site')
  const isOwn = site === null ? request.headers.get('origin') === new URL(url).origin : site === 'same-origin' || site === 'none'
  if (!isOwn) throw new AppError('cross_site')
}

export function cookieOf(request: Request, name: string): string | null {
  for (const part of (request.headers.get('cookie') ?? '').split(';')) {
    const at = part.indexOf('=')
    if (at > 0 && part.slice(0, at).trim() === name) return part.slice(at + 1).trim()
  }
  return null
}
