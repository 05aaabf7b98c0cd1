// Addresses in texts of others. A password may hold any character, so everything up to the last `@` of an address is
// its user, and what is left must look like a host. Pure.
import { isSafeToken } from './words.ts'

type IsName = (text: string) => boolean

export interface Address {
  /** Text in front of it in the same token, such as `url=`. */
  before: string
  scheme: string
  hasUser: boolean
  /** Returns null for a host that may not be shown. */
  host: string | null
  path: string
  /** From the first `?` or `#` on. */
  query: string
}

const ADDRESS = /^(|.*?[^a-z0-9+.-])((?:jdbc:)?[a-z][a-z0-9+.-]{0,31}:\/\/)(\S*@)?([^\s/?#]*)([^\s?#]*)(\S*)$/isu
const V6 = /^\[[0-9a-f:.]{2,45}\](?::\d{1,5})?$/i
const V4 = /^\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?$/
const NAMED = /^([-A-Za-z0-9._~]+)(?::\d{1,5})?$/
/** A Service, whose labels are names of objects. */
const SERVICE = /^[a-z][-a-z0-9]{0,62}\.[a-z0-9][-a-z0-9]{0,62}\.svc(?:\.cluster\.local)?$/

/** Null when the token holds no address. */
export function addressIn(token: string, isName: IsName): Address | null {
  const parts = ADDRESS.exec(token)
  if (parts === null) return null
  const [, before = '', scheme = '', user = '', host = '', path = '', query = ''] = parts
  return { before, scheme, hasUser: user !== '', host: (host === '' && user === '') || isHost(host, isName) ? host : null, path, query }
}

function isHost(host: string, isName: IsName): boolean {
  if (V6.test(host) || V4.test(host)) return true
  const name = NAMED.exec(host)?.[1]
  return (
    name !== undefined &&
    (isName(name) || SERVICE.test(name) || name.split('.').every((label) => label === '' || isSafeToken(label, isName)))
  )
}
