// Which address a request comes from. Behind a proxy every connection has the proxy's address, so the header that the
// proxy adds counts, and only from proxies that the operator named: anybody else could write any address into it.
import { type AddressRange, isNamed, parseIp } from '../sources/address/range.ts'

/** `peer`: the address of the connection; `forwardedFor`: the value of `x-forwarded-for`. Null means not known. */
type CallerAddress = (peer: string | null, forwardedFor: string | null) => string | null

/** `trustsSocket`: a connection without an address, which is one of a Unix socket, is a trusted proxy's. The nearest
 *  address that is not a trusted proxy. What stands left of it in the header was written by the caller. */
export function createCallerAddress(trusted: readonly AddressRange[], trustsSocket = false): CallerAddress {
  const isTrusted = (address: string): boolean => {
    const ip = parseIp(asIpv4(address))
    return ip !== null && isNamed(ip, trusted)
  }
  return (peer, forwardedFor) => {
    if (forwardedFor === null || !(peer === null ? trustsSocket : isTrusted(peer))) return peer
    const hops = forwardedFor.split(',').map((hop) => hop.trim())
    for (const hop of hops.toReversed()) {
      if (parseIp(asIpv4(hop)) === null) return peer
      if (!isTrusted(hop)) return hop
    }
    return peer
  }
}

/** A socket that listens on IPv6 shows IPv4 addresses in this form. */
const asIpv4 = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '')

const HOST_BITS = 64n
const MAPPED_V4 = 0xffffn

/** The owner of an IPv6 address usually has the whole /64 network, so such callers are counted by network. */
export function networkOf(address: string): string {
  const ip = parseIp(address)
  if (ip === null || ip.family === 4 || ip.value >> 32n === MAPPED_V4) return asIpv4(address)
  return `${(ip.value >> HOST_BITS).toString(16)}/64`
}
