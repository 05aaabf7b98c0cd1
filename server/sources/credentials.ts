// SO46: what the secrets of a Config mean over http, the same to Git, Helm repositories and registries. Never logged,
// never in a message.
import { AppError } from '../../shared/runtime/error.ts'

export type Login =
  | { kind: 'none' }
  /** `what`: for messages. */
  | { kind: 'basic'; what: string; header: string }
  /** Alone: how it is sent is the protocol's matter. */
  | { kind: 'token'; token: string }

export const basicHeader = (user: string, password: string): string => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

/** `host`: for messages. Throws `credential_missing` for unusable secrets. */
export function readLogin(secrets: Readonly<Record<string, string>>, host: string): Login {
  const { token, username, password } = {
    token: secrets['token']?.trim(),
    username: withoutLineEnd(secrets['username']),
    password: withoutLineEnd(secrets['password']),
  }
  const missing = (detail: string) => new AppError('credential_missing', { detail: `${host}: ${detail}` })
  if (token !== undefined && /[^\x21-\x7e]/.test(token)) throw missing('the token has spaces or line ends')
  if (username === undefined && token !== undefined) return { kind: 'token', token }
  if (username === undefined && password === undefined) return { kind: 'none' }
  if (username === undefined) throw missing('the Config has a password but no username')
  const secret = password ?? token
  if (secret === undefined) throw missing('the Config has a username but no password or token')
  if (username.includes(':')) throw missing('a username must not have a colon')
  return { kind: 'basic', what: `username and ${password === undefined ? 'token' : 'password'}`, header: basicHeader(username, secret) }
}

/** Files end with one, and people put files into Configs. */
const withoutLineEnd = (text: string | undefined): string | undefined => text?.replace(/\r?\n$/, '')

/** The header for Helm repositories and registries. Null if there is nothing to send. */
export function authorizationOf(secrets: Readonly<Record<string, string>>, host: string): string | null {
  const login = readLogin(secrets, host)
  if (login.kind === 'none') return null
  return login.kind === 'basic' ? login.header : `Bearer ${login.token}`
}
