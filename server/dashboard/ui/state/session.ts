// The credential of the person at the screen, in one file: an API token kept for this tab, or the cookie session of a
// sign-in. Everything else asks `authorization()`.
import { signal } from '@preact/signals'
import type { WhoamiAnswer } from '../../../../shared/model/views.ts'
import type { Refusal } from './api.ts'

const KEY = 'skerry-token'

export type Person = WhoamiAnswer

/** `failed`: there is a credential, and nobody could say whose it is. */
type Session =
  | { state: 'starting' }
  | { state: 'out'; why: string | null }
  | { state: 'failed'; refusal: Refusal }
  | { state: 'in'; person: Person }

export const session = signal<Session>({ state: 'starting' })

const CODE = /^#sign-in=([\w-]+)$/

/** Code of a one-time link, which is taken out of the address at once: nobody copies it with the address. */
export function takeCode(): string | null {
  const code = CODE.exec(location.hash)?.[1] ?? null
  if (code !== null) history.replaceState(history.state, '', location.pathname + location.search)
  return code
}

/** Headers of every request: empty with a cookie session. */
export function authorization(): Record<string, string> {
  const token = sessionStorage.getItem(KEY)
  return token === null ? {} : { authorization: `Bearer ${token}` }
}

export const keepToken = (token: string): void => sessionStorage.setItem(KEY, token)
export const forgetToken = (): void => sessionStorage.removeItem(KEY)
