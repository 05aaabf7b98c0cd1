// The address guard as a server has it whose sources may be on this machine.
import { type AddressGuard, type AddressGuardDeps, createAddressGuard } from '../../server/sources/address/guard.ts'
import { parseRanges } from '../../server/sources/address/range.ts'
import { systemResolver } from '../../server/sources/address/resolve.ts'

export const loopbackGuard = (change: Partial<AddressGuardDeps> = {}): AddressGuard =>
  createAddressGuard({
    allowed: parseRanges('127.0.0.0/8').ranges,
    resolve: systemResolver,
    fetcher: (to, init) => fetch(to, init),
    proxyFor: () => null,
    ...change,
  })
