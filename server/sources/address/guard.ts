// SO1: every request of a source goes through here. A name is resolved, its addresses are checked, and the connection
// goes to the address that was checked: an answer of the resolver that changes in between changes nothing. Redirects
// are followed here, each with the same check.
import { AppError } from '../../../shared/runtime/error.ts'
import { authoritiesAt } from './authorities.ts'
import { type AddressRange, checkAddress, isNamed, parseIp } from './range.ts'

/** `tls` may bring a CA of the source's own. */
export type WebFetcher = (url: string, init: BunFetchRequestInit) => Promise<Response>

/** Every address of a name; throws when there is none. */
export type Resolver = (host: string) => Promise<readonly string[]>

export interface AddressGuard {
  /** Like fetch, for http: and https:. Bodies are bytes or text, so that they can be sent again. Throws
   *  `source_address_refused`; what fetch throws is passed on. */
  fetcher: WebFetcher
  /** The same, for addresses only that the operator named. */
  namedOnly: WebFetcher
  /** For programs of others: the address to connect to instead of the name. */
  allowedAddress(host: string): Promise<string>
  /** For programs of others: the outbound proxy to use for that URL, after the check that can be made then. Null means
   *  connect directly. */
  proxyOf(url: string): string | null
}

export interface AddressGuardDeps {
  allowed: readonly AddressRange[]
  resolve: Resolver
  fetcher: WebFetcher
  /** The outbound proxy for that URL. Null means none, connect directly. A proxy resolves names itself: then only
   *  addresses that are written as such can be checked. */
  proxyFor(url: URL): string | null
}

export const REDIRECTS_MAX = 5
/** The number of a name's addresses that are tried, one after the other. */
const ADDRESSES_TRIED_MAX = 4
const REDIRECTS = [301, 302, 303, 307, 308]
/** They are for the host that they were made for. */
const PRIVATE_HEADERS = ['authorization', 'cookie', 'proxy-authorization', 'private-token']
const NOT_CONNECTED = ['ECONNREFUSED', 'ConnectionRefused', 'ENETUNREACH', 'EHOSTUNREACH', 'FailedToOpenSocket', 'EADDRNOTAVAIL']

/** Checks every request of a source. Its fetcher throws `source_address_refused` for an address that is not allowed. */
export function createAddressGuard(deps: AddressGuardDeps): AddressGuard {
  return {
    fetcher: (url, init) => follow(deps, url, init, false),
    namedOnly: (url, init) => follow(deps, url, init, true),
    allowedAddress: async (host) => {
      const [first] = await addressesOf(deps, host, false)
      if (first === undefined) throw new Error(`${host} has no address`)
      return first
    },
    proxyOf: (url) => {
      const to = webUrl(url)
      const proxy = deps.proxyFor(to)
      if (proxy !== null) checkLiteral(deps, to.hostname)
      return proxy
    },
  }
}

async function follow(deps: AddressGuardDeps, start: string, init: BunFetchRequestInit, namedOnly: boolean): Promise<Response> {
  let url = webUrl(start)
  let request = { ...init, headers: new Headers(init.headers) }
  for (let redirects = 0; ; redirects++) {
    const answer = await send(deps, url, request, namedOnly)
    const to = REDIRECTS.includes(answer.status) ? answer.headers.get('location') : null
    if (to === null || init.redirect === 'manual') return withUrl(answer, url)
    await answer.body?.cancel()
    if (redirects === REDIRECTS_MAX) throw refused(`${url.host} redirects more than ${REDIRECTS_MAX} times`)
    const next = URL.canParse(to, url.href) ? webUrl(new URL(to, url.href).href) : null
    if (next === null) throw refused(`${url.host} redirects to an invalid URL`)
    if (url.protocol === 'https:' && next.protocol === 'http:') throw refused(`${url.host} redirects from https to http, ${next.host}`)
    request = redirected(request, answer.status, url, next)
    url = next
  }
}

function webUrl(text: string): URL {
  const url = new URL(text)
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw refused(`${url.protocol} is not supported for sources; expected http: or https:`)
  url.username = ''
  url.password = ''
  return url
}

type Request = BunFetchRequestInit & { headers: Headers }

function redirected(request: Request, status: number, from: URL, to: URL): Request {
  const headers = new Headers(request.headers)
  const isSame = from.origin === to.origin
  if (!isSame) for (const name of PRIVATE_HEADERS) headers.delete(name)
  const ca = request.tls?.ca
  const tls = isSame || typeof ca !== 'string' ? {} : { tls: { ...request.tls, ca: authoritiesAt(ca, false) } }
  const method = request.method ?? 'GET'
  const becomesGet = (status === 303 && method !== 'HEAD') || ((status === 301 || status === 302) && method === 'POST')
  if (!becomesGet) return { ...request, ...tls, headers }
  headers.delete('content-type')
  headers.delete('content-length')
  const { body: _, ...rest } = request
  return { ...rest, ...tls, method: 'GET', headers }
}

async function send(deps: AddressGuardDeps, url: URL, request: Request, namedOnly: boolean): Promise<Response> {
  const proxy = deps.proxyFor(url)
  if (proxy !== null) {
    checkLiteral(deps, url.hostname)
    const literal = parseIp(bare(url.hostname))
    if (namedOnly && (literal === null || !isNamed(literal, deps.allowed)))
      throw addressRefused(
        bare(url.hostname),
        'plain HTTP is not sent through a proxy, which resolves names itself; add the host to NO_PROXY',
      )
    return deps.fetcher(url.href, { ...request, redirect: 'manual', proxy })
  }
  const addresses = await addressesOf(deps, url.hostname, namedOnly)
  let failure: unknown
  for (const address of addresses.slice(0, ADDRESSES_TRIED_MAX)) {
    try {
      return await deps.fetcher(atAddress(url, address), { ...request, ...named(url, request), redirect: 'manual', proxy: false })
    } catch (error) {
      failure = error
      if (!NOT_CONNECTED.includes(codeOf(error))) break
    }
  }
  throw failure
}

function atAddress(url: URL, address: string): string {
  const direct = new URL(url.href)
  direct.hostname = address.includes(':') ? `[${address}]` : address
  return direct.href
}

/** The remote still gets the name: in the Host header, and in TLS, where its certificate has to match it. */
function named(url: URL, request: Request): BunFetchRequestInit {
  const headers = new Headers(request.headers)
  headers.set('host', url.host)
  if (url.protocol !== 'https:' || parseIp(bare(url.hostname)) !== null) return { headers }
  return { headers, tls: { ...request.tls, serverName: url.hostname } }
}

/** Those that may be connected to, in the resolver's order. A name that leads to refused ones as well is used at the
 *  others. */
async function addressesOf(deps: AddressGuardDeps, host: string, namedOnly: boolean): Promise<string[]> {
  const name = bare(host)
  const isLiteral = checkSpelling(name)
  const found = isLiteral ? [name] : await deps.resolve(name)
  const checked = found.map((text) => {
    const address = parseIp(text)
    if (address === null) return { text, why: 'not a plain address' }
    const why = checkAddress(address, deps.allowed)
    return {
      text,
      why: why ?? (namedOnly && !isNamed(address, deps.allowed) ? 'plain HTTP is not allowed for this address' : null),
    }
  })
  const usable = checked.flatMap(({ text, why }) => (why === null ? [text] : []))
  const [first] = checked
  if (usable.length === 0 && first !== undefined) throw addressRefused(name, first.why ?? '', first.text)
  return usable
}

function checkLiteral({ allowed }: AddressGuardDeps, host: string): void {
  const name = bare(host)
  const address = checkSpelling(name) ? parseIp(name) : null
  const why = address === null ? (isThisHost(name) ? 'this host' : null) : checkAddress(address, allowed)
  if (why !== null) throw addressRefused(name, why)
}

/** Whether it is an address. Refuses numbers that resolvers take for one: 2130706433, 0x7f.1, 0177.0.0.1. */
function checkSpelling(name: string): boolean {
  if (parseIp(name) !== null) return true
  const last = name.replace(/\.$/, '').split('.').at(-1) ?? ''
  if (/^(0x[0-9a-f]*|[0-9]+)$/i.test(last) || name.includes(':') || name.includes('%'))
    throw addressRefused(name, 'not a canonical address')
  return false
}

const isThisHost = (name: string): boolean => /^(.*\.)?localhost\.?$/i.test(name)
const bare = (host: string): string => host.replace(/^\[|\]$/g, '')
const codeOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '')
const refused = (detail: string): AppError => new AppError('source_refused', { detail })
/**
 * `at`: the address of the name. The hint names that address alone, so that nobody allows a network for the sake of one
 * host.
 */
function addressRefused(name: string, what: string, at = name): AppError {
  const address = parseIp(at)
  const remedy = `If this is intended, the operator of the server can allow the address: \`skerry server --source-addresses ${at}/${at.includes(':') ? 128 : 32}\`.`
  return new AppError('source_address_refused', { detail: `${name}: ${what}`, ...(address === null ? {} : { remedy }) })
}

/** fetch returns the address of the connection; callers use names. */
function withUrl(answer: Response, url: URL): Response {
  Object.defineProperty(answer, 'url', { value: url.href })
  return answer
}
