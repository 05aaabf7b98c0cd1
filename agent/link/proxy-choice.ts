// Chooses the proxy for the server from the usual environment variables. Pure. Bun would read them itself, but it knows
// no CIDR and would use the proxy for the Kubernetes link too. So the choice is made here and passed to Bun.
import { AppError } from '../../shared/runtime/error.ts'

/** Null for a direct connection. The lower-case variable wins where both are set, as in curl. */
export function proxyFor(url: URL, env: Readonly<Record<string, string | undefined>>): string | null {
  const names = url.protocol === 'https:' ? ['https_proxy', 'HTTPS_PROXY'] : ['http_proxy', 'HTTP_PROXY']
  const name = names.find((each) => (env[each] ?? '').trim() !== '')
  if (name === undefined || bypasses(url, env['no_proxy'] ?? env['NO_PROXY'] ?? '')) return null
  return proxyUrl((env[name] ?? '').trim(), name)
}

/** Never with its credentials: a message ends in a log. */
export const proxyName = (proxy: string): string => new URL(proxy).host

function proxyUrl(text: string, name: string): string {
  const withScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`
  const url = URL.canParse(withScheme) ? new URL(withScheme) : null
  if (url !== null && url.hostname !== '' && (url.protocol === 'http:' || url.protocol === 'https:')) return url.href
  throw new AppError('bad_options', {
    doing: 'read the proxy',
    detail: `${name} is not an http:// or https:// URL`,
    remedy: `Set ${name} to http://[USER:PASSWORD@]HOST:PORT, or unset it.`,
  })
}

/** NO_PROXY: `*`, hosts (and what is below them), `.suffix` or `*.suffix` (only what is below), addresses, CIDR ranges,
 *  each with a port if it is for one. */
export function bypasses(url: URL, noProxy: string): boolean {
  const host = bare(url.hostname.toLowerCase()).replace(/\.$/, '')
  const port = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port
  return noProxy
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .some((entry) => matches(entry.toLowerCase(), host, port))
}

const bare = (host: string): string => host.replace(/^\[|\]$/g, '')

function matches(entry: string, host: string, port: string): boolean {
  if (entry === '*') return true
  const range = cidr(entry)
  if (range !== null) return inRange(host, range)
  // A bare IPv6 address has colons of its own: only brackets or a single colon separate a port.
  const parts = /^(\[[^\]]*\]|[^:]*):(\d{1,5})$/.exec(entry)
  if (parts !== null && parts[2] !== port) return false
  const name = bare(parts?.[1] ?? entry)
  const address = addressBits(host)
  if (address !== null) return addressBits(name)?.bits === address.bits && addressBits(name)?.value === address.value
  if (name.startsWith('*.') || name.startsWith('.')) return host.endsWith(name.replace(/^\*/, ''))
  return host === name || host.endsWith(`.${name}`)
}

interface Address {
  bits: 32 | 128
  value: bigint
}

function cidr(entry: string): { address: Address; prefix: number } | null {
  const parts = /^(.+)\/(\d{1,3})$/.exec(entry)
  const address = parts?.[1] === undefined ? null : addressBits(bare(parts[1]))
  const prefix = Number(parts?.[2])
  return address === null || prefix > address.bits ? null : { address, prefix }
}

function inRange(host: string, { address, prefix }: { address: Address; prefix: number }): boolean {
  const own = addressBits(host)
  if (own === null || own.bits !== address.bits) return false
  const shift = BigInt(own.bits - prefix)
  return own.value >> shift === address.value >> shift
}

function addressBits(text: string): Address | null {
  const four = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text)
  if (four !== null) {
    const bytes = four.slice(1).map(Number)
    return bytes.some((byte) => byte > 255) ? null : { bits: 32, value: bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n) }
  }
  if (!text.includes(':') || !URL.canParse(`http://[${text}]/`)) return null
  const [head = '', tail] = bare(new URL(`http://[${text}]/`).hostname).split('::')
  const groups = (part: string) => (part === '' ? [] : part.split(':'))
  const missing = 8 - groups(head).length - groups(tail ?? '').length
  const all = [...groups(head), ...Array<string>(tail === undefined ? 0 : missing).fill('0'), ...groups(tail ?? '')]
  return { bits: 128, value: all.reduce((sum, group) => (sum << 16n) | BigInt(`0x${group}`), 0n) }
}
