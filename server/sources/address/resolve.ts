// Names to addresses as the host does it: its hosts file, its resolvers.
import { lookup } from 'node:dns/promises'
import type { Resolver } from './guard.ts'

/** The words for a failed request whose name has no address. Null if the code is about something else. */
export function unresolvedText(code: string): string | null {
  if (code === 'EAI_AGAIN' || code === 'DNS_ETIMEOUT' || code === 'DNS_ESERVFAIL')
    return 'cannot be resolved: the name server of this machine did not answer'
  if (code === 'ENOTFOUND' || code.startsWith('DNS_')) return 'cannot be resolved: unknown name; correct the URL'
  return null
}

/** The system may ask several name servers several times. */
export const RESOLVE_MS = 10_000

/** A running lookup cannot be stopped; after the time the caller continues without it. */
export const resolverWithin =
  (ms: number, look: Resolver): Resolver =>
  async (host) => {
    const { promise, reject } = Promise.withResolvers<never>()
    const deadline = AbortSignal.timeout(ms)
    const late = () => reject(Object.assign(new Error(`no answer for ${host}`), { code: 'DNS_ETIMEOUT' }))
    deadline.addEventListener('abort', late)
    try {
      return await Promise.race([look(host), promise])
    } finally {
      deadline.removeEventListener('abort', late)
    }
  }

/** The words for an error of a resolver or a request. */
export const unreachedText = (error: unknown): string =>
  unresolvedText(error instanceof Error && 'code' in error ? String(error.code) : '') ?? 'cannot be reached'

export const systemResolver: Resolver = resolverWithin(RESOLVE_MS, async (host) =>
  (await lookup(host, { all: true })).map(({ address }) => address),
)
