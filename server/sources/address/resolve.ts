// Names to addresses as the host does it: its hosts file, its resolvers.
import { lookup } from 'node:dns/promises'
import type { Resolver } from './guard.ts'

/** What the code of a failed request says of a name that has no address; null: it is about something else. */
export function unresolvedText(code: string): string | null {
  if (code === 'EAI_AGAIN' || code === 'DNS_ETIMEOUT' || code === 'DNS_ESERVFAIL')
    return 'cannot be looked up: the name server of this machine did not answer'
  if (code === 'ENOTFOUND' || code.startsWith('DNS_')) return 'cannot be looked up: DNS knows no such name; correct the URL'
  return null
}

export const systemResolver: Resolver = async (host) => (await lookup(host, { all: true })).map(({ address }) => address)
