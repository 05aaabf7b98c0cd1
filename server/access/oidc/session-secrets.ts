// Secrets of sessions: 256 random bits with a prefix that says what they are, and a checksum, as API tokens have them.
import { newSecret } from '../api-tokens.ts'

/** `access`: shown with each request. `refresh`: buys the next access token. `cookie`: of a browser. */
export type SecretKind = 'access' | 'refresh' | 'cookie'

const PREFIX: Readonly<Record<SecretKind, string>> = { access: 'sku_', refresh: 'skr_', cookie: 'skc_' }
const CHECKSUM_DIGITS = 8
const FORM = /^(sk[urc]_[A-Za-z0-9_-]{43})([0-9a-f]{8})$/

const checksum = (text: string): string => Bun.hash.crc32(text).toString(16).padStart(CHECKSUM_DIGITS, '0')

export function newSessionSecret(kind: SecretKind): string {
  const text = PREFIX[kind] + newSecret()
  return text + checksum(text)
}

/** A mistyped or foreign text is not looked up. */
export function isSessionSecret(kind: SecretKind, text: string): boolean {
  const [, body = '', sum = ''] = FORM.exec(text) ?? []
  return body.startsWith(PREFIX[kind]) && sum === checksum(body)
}
