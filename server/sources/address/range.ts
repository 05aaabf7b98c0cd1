// IP addresses as numbers, and which of them a source may be at: what lies inside a network is refused unless the
// operator allows it. Text in, answers out.

export interface Address {
  family: 4 | 6
  value: bigint
}
/** `bits`: length of the prefix. */
export interface AddressRange {
  family: 4 | 6
  value: bigint
  bits: number
}

/** `never`: only a range that lies inside it allows it; 0.0.0.0/0 does not. */
interface RefusedRange {
  range: AddressRange
  what: string
  never?: true
}

const width = (family: 4 | 6): number => (family === 4 ? 32 : 128)

/** Dotted decimals, or IPv6 without a zone. Null means that it is neither, which octal, hexadecimal and short forms are
 *  not either. */
export function parseIp(text: string): Address | null {
  if (text.includes(':')) return parseIpv6(text)
  const parts = text.split('.')
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9][0-9]{0,2})$/.test(part) && Number(part) <= 255)) return null
  return { family: 4, value: parts.reduce((value, part) => value * 256n + BigInt(part), 0n) }
}

function parseIpv6(text: string): Address | null {
  const tail = /^(.*:)([0-9]+\.[0-9.]+)$/.exec(text)
  const embedded = tail === null ? null : parseIp(tail[2] ?? '')
  if (tail !== null && embedded?.family !== 4) return null
  const hex =
    tail === null || embedded === null
      ? text
      : `${tail[1]}${(embedded.value >> 16n).toString(16)}:${(embedded.value & 0xffffn).toString(16)}`
  const halves = hex.split('::')
  if (halves.length > 2) return null
  const [head = [], rest = []] = halves.map((half) => (half === '' ? [] : half.split(':')))
  const missing = 8 - head.length - rest.length
  if (halves.length === 2 ? missing < 1 : missing !== 0) return null
  const groups = [...head, ...Array.from({ length: missing }, () => '0'), ...rest]
  if (!groups.every((group) => /^[0-9a-fA-F]{1,4}$/.test(group))) return null
  return { family: 6, value: groups.reduce((value, group) => value * 65_536n + BigInt(`0x${group}`), 0n) }
}

/** `10.0.0.0/8`, `fd00::/8`, or one address. Null means that it is none, or has bits set behind its prefix. */
export function parseRange(text: string): AddressRange | null {
  const [ip = '', prefix, ...more] = text.split('/')
  const address = parseIp(ip)
  if (address === null || more.length > 0) return null
  const bits = prefix === undefined ? width(address.family) : /^\d{1,3}$/.test(prefix) ? Number(prefix) : Number.NaN
  if (!(bits <= width(address.family))) return null
  const hostBits = BigInt(width(address.family) - bits)
  return (address.value >> hostBits) << hostBits === address.value ? { ...address, bits } : null
}

/** Parses `--source-addresses`: ranges with commas between them. */
export function parseRanges(text: string): { ranges: AddressRange[]; wrong: string[] } {
  const parts = text.split(',').flatMap((part) => (part.trim() === '' ? [] : [part.trim()]))
  const parsed = parts.map((part) => ({ part, range: parseRange(part) }))
  return {
    ranges: parsed.flatMap(({ range }) => (range === null ? [] : [range])),
    wrong: parsed.flatMap(({ part, range }) => (range === null ? [part] : [])),
  }
}

const holds = (range: AddressRange, address: Address): boolean => {
  const hostBits = BigInt(width(range.family) - range.bits)
  return range.family === address.family && address.value >> hostBits === range.value >> hostBits
}
const liesIn = (inner: AddressRange, outer: AddressRange): boolean => inner.bits >= outer.bits && holds(outer, inner)

function known(text: string): AddressRange {
  const range = parseRange(text)
  if (range === null) throw new Error(`${text} is not an address range`)
  return range
}
const refused = (text: string, what: string, never?: true): RefusedRange => ({
  range: known(text),
  what: `${what} (${text})`,
  ...(never === undefined ? {} : { never }),
})

/** In the order of the checks: of two that contain an address the narrower one first. */
const REFUSED: readonly RefusedRange[] = [
  refused('169.254.0.0/16', 'a link-local or metadata address', true),
  refused('168.63.129.16/32', 'a metadata address', true),
  refused('100.100.100.200/32', 'a metadata address', true),
  refused('192.0.0.192/32', 'a metadata address', true),
  refused('fd00:ec2::/32', 'a metadata address', true),
  refused('fd20:ce::/32', 'a metadata address', true),
  refused('fe80::/10', 'a link-local address', true),
  refused('0.0.0.0/8', 'an address of this host'),
  refused('127.0.0.0/8', 'a loopback address'),
  refused('10.0.0.0/8', 'a private address'),
  refused('172.16.0.0/12', 'a private address'),
  refused('192.168.0.0/16', 'a private address'),
  refused('100.64.0.0/10', 'an address behind a carrier’s NAT'),
  refused('192.0.0.0/24', 'a reserved address'),
  refused('192.0.2.0/24', 'a reserved address'),
  refused('192.88.99.0/24', 'a reserved address'),
  refused('198.18.0.0/15', 'a reserved address'),
  refused('198.51.100.0/24', 'a reserved address'),
  refused('203.0.113.0/24', 'a reserved address'),
  refused('224.0.0.0/4', 'a multicast address'),
  refused('240.0.0.0/4', 'a reserved address'),
  refused('::1/128', 'a loopback address'),
  refused('fc00::/7', 'a unique local address'),
  refused('ff00::/8', 'a multicast address'),
  refused('2001::/23', 'a reserved address'),
  refused('2001:db8::/32', 'a reserved address'),
  refused('3fff::/20', 'a reserved address'),
]
const GLOBAL_V6 = known('2000::/3')
/** IPv6 that stands for an IPv4 address, and how far to the right of it that is: mapped, compatible, NAT64, 6to4. */
const EMBEDDING: ReadonlyArray<{ range: AddressRange; shift: bigint }> = [
  { range: known('::ffff:0:0/96'), shift: 0n },
  { range: known('64:ff9b::/96'), shift: 0n },
  { range: known('2002::/16'), shift: 80n },
]

/** Null if a source may be there. Otherwise what the address is, for a message. */
export function checkAddress(address: Address, allowed: readonly AddressRange[]): string | null {
  const embedding = EMBEDDING.find(({ range }) => holds(range, address))
  const outer = embedding === undefined ? refusalOf(address) : null
  const inner = embedding === undefined ? null : refusalOf({ family: 4, value: (address.value >> embedding.shift) & 0xffff_ffffn })
  const found = outer ?? inner
  if (found === null) return null
  const real: Address = embedding === undefined ? address : { family: 4, value: (address.value >> embedding.shift) & 0xffff_ffffn }
  return isAllowed(real, allowed, found) ? null : found.what
}

/** Whether the operator named it, and not only that no rule refuses it. */
export const isNamed = (address: Address, allowed: readonly AddressRange[]): boolean => allowed.some((range) => holds(range, address))

const isAllowed = (address: Address, allowed: readonly AddressRange[], { range: refusedRange, never }: RefusedRange): boolean =>
  allowed.some((range) => holds(range, address) && (never !== true || liesIn(range, refusedRange)))

function refusalOf(address: Address): RefusedRange | null {
  const found = REFUSED.find(({ range }) => holds(range, address))
  if (found !== undefined) return found
  const isOther = address.family === 6 && !holds(GLOBAL_V6, address)
  return isOther ? { range: { family: 6, value: 0n, bits: 0 }, what: 'not a public address' } : null
}
