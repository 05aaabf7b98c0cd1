// The URL of a fleet store on PostgreSQL: what it may say, and what of it may be shown. Parsed here, so that what a
// library makes of an odd URL, or of an option that it does not know, is no question; and so that one way of TLS is the
// way it is.

import { resolve } from 'node:path'
import { AppError } from '../../../shared/runtime/error.ts'
import { isLoopback } from '../../../shared/runtime/loopback.ts'

const TLS_MODES = ['disable', 'verify-ca', 'verify-full'] as const
type TlsMode = (typeof TLS_MODES)[number]

export interface PostgresTarget {
  /** A name, an address, or the folder of a socket. */
  host: string
  port: number
  user: string
  database: string
  /** Null if it comes from another place, or if none is needed. */
  password: string | null
  tls: TlsMode
  /** Files, with their whole paths. */
  rootCert: string | null
  cert: string | null
  key: string | null
}

const KNOWN = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'host', 'port']

export const isPostgresUrl = (text: string): boolean => /^postgres(ql)?:\/\//.test(text)

/** Throws `bad_options` with what is wrong, and never with the password. */
export function parsePostgresUrl(text: string): PostgresTarget {
  const refuse = (detail: string): never => {
    throw new AppError('bad_options', {
      doing: 'read the URL of the fleet store',
      detail,
      remedy: 'Expected postgres://user@host:5432/database?sslmode=verify-full&sslrootcert=FILE.',
    })
  }
  if (!isPostgresUrl(text)) return refuse('it does not begin with postgres://')
  const url = parseUrl(text) ?? refuse('it is not a URL; special characters in a password must be percent-encoded')
  const option = (name: string) => url.searchParams.get(name)
  const host = option('host') ?? (url.hostname === NO_HOST ? '' : url.hostname.replace(/^\[|\]$/g, ''))
  const port = Number(option('port') ?? (url.port || 5432))
  const user = decode(url.username)
  const database = decode(url.pathname.slice(1))
  if (host === '') return refuse('it has no host; for a socket use ?host=/folder')
  if (user === '') return refuse('it has no user')
  if (database === '' || database.includes('/')) return refuse('it has no database')
  for (const name of url.searchParams.keys()) {
    // An unknown option may be the rest of a password with a `?` in it.
    if (!KNOWN.includes(name)) refuse(`it has an unknown option${/^[a-z_]+$/.test(name) ? `: ${name}` : ''}`)
  }
  if (!Number.isInteger(port) || port < 1 || port > 65_535) return refuse('its port is invalid')
  const tls = tlsMode(option('sslmode'), host)
  if (tls === null) {
    // `prefer` and `allow` use no encryption if the other side asks so; `require` of other programs accepts every
    // certificate.
    return refuse(`sslmode may be ${TLS_MODES.join(', ')} or require (which here is verify-full)`)
  }
  if (tls === 'verify-ca' && option('sslrootcert') === null) return refuse('sslmode=verify-ca needs sslrootcert=FILE')
  const file = (name: string) => option(name) && resolve(option(name) ?? '')
  const files = { rootCert: file('sslrootcert'), cert: file('sslcert'), key: file('sslkey') }
  return { host, port, user, database, password: url.password === '' ? null : decode(url.password), tls, ...files }
}

/** On this machine without encryption, on others never by default. */
function tlsMode(given: string | null, host: string): TlsMode | null {
  if (given === null) return host.startsWith('/') || isLoopback(host) ? 'disable' : 'verify-full'
  if (given === 'require') return 'verify-full'
  return TLS_MODES.find((mode) => mode === given) ?? null
}

/** For logs, errors and people. */
export const shownTarget = ({ host, port, user, database }: Pick<PostgresTarget, 'host' | 'port' | 'user' | 'database'>): string =>
  host.startsWith('/') ? `postgres://${user}@/${database}?host=${host}` : `postgres://${user}@${host}:${port}/${database}`

/** `postgres://user@/db?host=/folder` has no host, and a URL needs one. */
const NO_HOST = 'none.invalid'
/** Without the error of `new URL`, which shows all of its text. */
const parseUrl = (text: string): URL | null => URL.parse(text.replace('@/', `@${NO_HOST}/`))

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The password that a file in the form of PostgreSQL's own programs has for the target:
 *  `host:port:database:user:password` a line, `*` for any, `\` before `:` and `\`. */
export function passwordOf(file: string, target: PostgresTarget): string | null {
  const wanted = [target.host, String(target.port), target.database, target.user]
  for (const line of file.split('\n')) {
    if (line.startsWith('#')) continue
    const [host, port, database, user, password] = fieldsOf(line)
    if (password === undefined) continue
    if ([host, port, database, user].every((value, index) => value === '*' || value === wanted[index])) return password
  }
  return null
}

/** The last one may have colons in it. */
function fieldsOf(line: string): string[] {
  const fields: string[] = []
  let field = ''
  for (let at = 0; at < line.length; at++) {
    const sign = line.charAt(at)
    if (sign === '\\') field += line.charAt(++at)
    else if (sign === ':' && fields.length < 4) {
      fields.push(field)
      field = ''
    } else field += sign
  }
  return [...fields, field]
}
