// RP7: how a server changes its signing key. Each new key is signed by the one before it; an agent that pins any of
// them follows the links to the newest. RP9: how it revokes the keys before one of them, so that an agent that received
// the revocation no longer accepts a stolen old key.
import { z } from 'zod'
import { verifyBytes } from '../runtime/keys.ts'
import { publicKeySchema, signatureSchema } from '../runtime/signatures.ts'

/** As many rotations as are remembered: an agent that pins an older key joins again. */
export const KEY_LINKS_MAX = 16

export const keyLinkSchema = z.object({
  key: publicKeySchema,
  /** The key before it, whose signature over `keyLinkBytes` this is. */
  by: publicKeySchema,
  signature: signatureSchema,
})
export type KeyLink = z.infer<typeof keyLinkSchema>
export const keyLinksSchema = z.array(keyLinkSchema).max(KEY_LINKS_MAX)

export const keyLinkBytes = (key: string, by: string): Uint8Array => new TextEncoder().encode(['skerry-server-key-v1', key, by].join('\n'))

/** All keys that follow from the pinned ones, oldest first: links are in order, each signed by a key that is trusted by
 *  then. Others are left out. */
export function followLinks(pinned: readonly string[], links: readonly KeyLink[]): string[] {
  const trusted = [...pinned]
  for (const { key, by, signature } of links)
    if (!trusted.includes(key) && trusted.includes(by) && verifyBytes(by, keyLinkBytes(key, by), signature)) trusted.push(key)
  return trusted
}

export const keyRevocationSchema = z.object({
  /** The oldest key that is trusted still. */
  oldest: publicKeySchema,
  /** Over `keyRevocationBytes`, by that key or by one that follows from it. */
  signature: signatureSchema,
})
export type KeyRevocation = z.infer<typeof keyRevocationSchema>

export const keyRevocationBytes = (oldest: string): Uint8Array => new TextEncoder().encode(['skerry-key-revocation-v1', oldest].join('\n'))

/**
 * The pinned keys, oldest first, without the revoked ones; all of them if no valid key signed the revocation. Only the
 * first link of each key counts here: a second one could be made with a stolen key, and would let the thief revoke the
 * server's own keys.
 */
export function withoutRevoked(pinned: readonly string[], links: readonly KeyLink[], revocation: KeyRevocation | undefined): string[] {
  if (revocation === undefined) return [...pinned]
  const { oldest, signature } = revocation
  const first = links.filter(({ by }, index) => links.findIndex((other) => other.by === by) === index)
  const kept = followLinks([oldest], first).filter((key) => pinned.includes(key))
  const isKnown = followLinks(pinned.slice(0, 1), first).includes(oldest)
  const isSigned = kept.some((key) => verifyBytes(key, keyRevocationBytes(oldest), signature))
  return isKnown && isSigned ? kept : [...pinned]
}
