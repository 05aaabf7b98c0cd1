// AR2: what callers without a credential may hold while their bodies come in: all of them together, each address, and
// for how long.
import { type BodyReading, createBodyShares } from './body.ts'
import { networkOf } from './caller-address.ts'

export interface StrangerLimits {
  /** Bytes of all bodies that are being read. */
  bytesMax: number
  /** The limit of one address; for IPv6, of one network. */
  ofOneBytesMax: number
  /** Milliseconds until a body has to be complete. */
  bodyMs: number
}

/** A connection that sent no byte of its body still costs memory: each body counts for this many bytes more than it
 *  has. */
const BODY_OVERHEAD_BYTES = 4 * 1_024

/** The routes below /auth/, all together. */
export const SIGN_IN_BODIES: StrangerLimits = { bytesMax: 4 * 1_024 * 1_024, ofOneBytesMax: 1_024 * 1_024, bodyMs: 10_000 }

/** `address`: null when it is not known; such callers share one address. */
export type StrangerBodies = (address: string | null) => BodyReading

export function createStrangerBodies({ bytesMax, ofOneBytesMax, bodyMs }: StrangerLimits): StrangerBodies {
  const shares = createBodyShares(bytesMax, ofOneBytesMax)
  return (address) => {
    const budget = shares(networkOf(address ?? ''))
    return { budget, overheadBytes: BODY_OVERHEAD_BYTES, signal: AbortSignal.timeout(bodyMs) }
  }
}
