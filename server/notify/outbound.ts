// The address guard of the server itself, for sinks: the same rules as for sources, because whoever writes a sink
// chooses where the server connects to.
import { type AddressGuard, createAddressGuard } from '../sources/address/guard.ts'
import { outboundProxy } from '../sources/address/proxy.ts'
import { parseRanges } from '../sources/address/range.ts'
import { systemResolver } from '../sources/address/resolve.ts'

/** `allowed`: as `--source-addresses` has it. */
export const createOutboundGuard = (allowed: string, env: Readonly<Record<string, string | undefined>>): AddressGuard =>
  createAddressGuard({
    allowed: parseRanges(allowed).ranges,
    resolve: systemResolver,
    fetcher: (to, init) => fetch(to, init),
    proxyFor: outboundProxy(env),
  })
