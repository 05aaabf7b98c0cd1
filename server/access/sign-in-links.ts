// One-time links that sign a browser in: whoever runs the server opens the dashboard without copying a token. The code
// of a link is kept as its hash, in memory only.
import { sha256Hex } from '../../shared/kube/canonical.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { type ApiTokens, newSecret } from './api-tokens.ts'
import type { Principal } from './principal.ts'

/** Time to open a link. */
export const LINK_MS = 10 * 60_000
/** Lifetime of the token that a link becomes. */
export const LINK_TOKEN_MS = 12 * 60 * 60_000
const LINKS_MAX = 100

export interface SignInLinks {
  /** A code for a link, worth a token with the rights of the caller. */
  offer(by: Principal): { code: string; expiresMs: number }
  /** The token, once. `onCaller` is told on whose behalf before it is created. Throws `sign_in_refused`. */
  redeem(code: string, onCaller: (by: Principal) => void): Promise<{ token: string; expiresMs: number }>
}

export function createSignInLinks(tokens: Pick<ApiTokens, 'create' | 'hasExpired' | 'ended'>, clock: Clock): SignInLinks {
  const offered = new Map<string, { by: Principal; untilMs: number; ended: AbortSignal }>()
  return {
    offer(by) {
      if (by.kind !== 'token' || by.role === null)
        throw new AppError('bad_request', {
          doing: 'create a sign-in link',
          detail: 'only an API token can create one',
          remedy: 'Open the dashboard and sign in with the identity provider.',
        })
      const nowMs = clock.nowMs()
      for (const [hash, { untilMs }] of offered) if (untilMs <= nowMs || offered.size >= LINKS_MAX) offered.delete(hash)
      const code = newSecret()
      const untilMs = nowMs + LINK_MS
      offered.set(sha256Hex(code), { by, untilMs, ended: tokens.ended(by.id) })
      return { code, expiresMs: untilMs }
    },
    async redeem(code, onCaller) {
      const hash = sha256Hex(code)
      const held = offered.get(hash)
      offered.delete(hash) // before anything is awaited: two browsers do not get one each
      const nowMs = clock.nowMs()
      if (held === undefined || held.untilMs <= nowMs || held.ended.aborted || tokens.hasExpired(held.by.id))
        throw new AppError('sign_in_refused', {
          detail: 'the sign-in link was used before, or has expired',
          remedy: 'Create another one with `skerry dashboard`.',
        })
      const { name, role, projects } = held.by
      onCaller(held.by)
      const expiresMs = nowMs + LINK_TOKEN_MS
      const { token } = await tokens.create({ name, role: role ?? 'none', projects, expiresMs }, held.by)
      return { token, expiresMs }
    },
  }
}
