// RP7: how a server changes its signing key. Each new key is signed by the one before it; an agent that pins any of them follows the links to the newest.
import { z } from 'zod'
import { verifyBytes } from '../runtime/keys.ts'
import { publicKeySchema, signatureSchema } from './signatures.ts'

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

/** All keys that follow from the pinned ones, oldest first: links are in order, each signed by a key that is trusted by then. Others are left out. */
export function followLinks(pinned: readonly string[], links: readonly KeyLink[]): string[] {
  const trusted = [...pinned]
  for (const { key, by, signature } of links)
    if (!trusted.includes(key) && trusted.includes(by) && verifyBytes(by, keyLinkBytes(key, by), signature)) trusted.push(key)
  return trusted
}
