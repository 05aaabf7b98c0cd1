// A secret that only the holder of an X25519 key can derive: HPKE in base mode (RFC 9180), used for its export alone.
// One encapsulation serves many wrapped keys, because the exported secret is kept by both sides (sealed-keys.ts).
import { createPrivateKey } from 'node:crypto'
import { AEAD_ChaCha20Poly1305, CipherSuite, KDF_HKDF_SHA256, KEM_DHKEM_X25519_HKDF_SHA256 } from 'hpke'

/** DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, ChaCha20-Poly1305: the suite of RFC 9180, A.2. */
const suite = new CipherSuite(KEM_DHKEM_X25519_HKDF_SHA256, KDF_HKDF_SHA256, AEAD_ChaCha20Poly1305)
const SECRET_BYTES = 32

export interface Encapsulated {
  /** 32 bytes, base64url. */
  enc: string
  secret: Uint8Array
}

/** `recipient`: a raw public key, base64url. Throws for a key that is none. */
export async function exportTo(recipient: string, info: Uint8Array, context: Uint8Array): Promise<Encapsulated> {
  const key = await suite.DeserializePublicKey(bytesOf(recipient))
  const { encapsulatedSecret, exportedSecret } = await suite.SendExport(key, context, SECRET_BYTES, { info })
  return { enc: Buffer.from(encapsulatedSecret).toString('base64url'), secret: exportedSecret }
}

/** `privateKey`: PKCS#8, base64url. Null means that `enc` is not a key. */
export async function exportFrom(privateKey: string, enc: string, info: Uint8Array, context: Uint8Array): Promise<Uint8Array | null> {
  const der = Buffer.from(privateKey, 'base64url')
  const jwk = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }).export({ format: 'jwk' })
  try {
    const key = await suite.DeserializePrivateKey(bytesOf(jwk.d ?? ''))
    return await suite.ReceiveExport(
      { privateKey: key, publicKey: await suite.DeserializePublicKey(bytesOf(jwk.x ?? '')) },
      bytesOf(enc),
      context,
      SECRET_BYTES,
      { info },
    )
  } catch {
    return null
  }
}

const bytesOf = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'base64url'))
