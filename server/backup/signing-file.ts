// The server's signing key as it lies in a folder, looked at without making one (loadServerKeys makes what is missing).
import { z } from 'zod'
import { publicKeySchema } from '../../shared/protocol/signatures.ts'
import { fingerprint, signBytes, verifyBytes } from '../../shared/runtime/keys.ts'

const signingSchema = z.object({ publicKey: publicKeySchema, privateKey: z.string().min(1) })

/** Null: it is no key, or its halves do not belong together. */
export function signingFingerprint(text: string): string | null {
  try {
    const { publicKey, privateKey } = signingSchema.parse(JSON.parse(text))
    const probe = Buffer.from('skerry')
    return verifyBytes(publicKey, probe, signBytes(privateKey, probe)) ? fingerprint(publicKey) : null
  } catch {
    return null
  }
}
