// The server's signing key in a folder, read without creating one (loadServerKeys creates missing ones).
import { z } from 'zod'
import { fingerprint, signBytes, verifyBytes } from '../../shared/runtime/keys.ts'
import { publicKeySchema } from '../../shared/runtime/signatures.ts'

const signingSchema = z.object({ publicKey: publicKeySchema, privateKey: z.string().min(1) })
const linksSchema = z.object({
  links: z.array(z.object({ by: publicKeySchema })).default([]),
  revocation: z.object({ oldest: publicKeySchema }).optional(),
})

/** Null if it is not a key, or if its halves do not belong together. */
export function signingFingerprint(text: string): string | null {
  try {
    const { publicKey, privateKey } = signingSchema.parse(JSON.parse(text))
    const probe = Buffer.from('skerry')
    return verifyBytes(publicKey, probe, signBytes(privateKey, probe)) ? fingerprint(publicKey) : null
  } catch {
    return null
  }
}

/** How many earlier keys agents trust still (RP9). */
export function trustedEarlier(text: string): number {
  const { links, revocation } = linksSchema.parse(JSON.parse(text))
  if (revocation === undefined) return links.length
  const from = links.findIndex(({ by }) => by === revocation.oldest)
  return from < 0 ? 0 : links.length - from
}
