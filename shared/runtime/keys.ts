// Ed25519 and X25519 keys as raw base64url text, synchronous (node:crypto): a page is verified between reading and
// BEGIN without an await.
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  timingSafeEqual,
  verify,
} from 'node:crypto'

export interface SigningKey {
  /** Raw public key, base64url. */
  publicKey: string
  /** PKCS#8, base64url: goes to disk with mode 0600 and nowhere else. */
  privateKey: string
}

export function generateKey(type: 'ed25519' | 'x25519'): SigningKey {
  const pair = type === 'ed25519' ? generateKeyPairSync('ed25519') : generateKeyPairSync('x25519')
  const jwk = pair.publicKey.export({ format: 'jwk' })
  return { publicKey: jwk.x ?? '', privateKey: pair.privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64url') }
}

const privateKeys = new Map<string, KeyObject>()
const publicKeys = new Map<string, KeyObject>()

export function signBytes(privateKey: string, bytes: Uint8Array): string {
  let key = privateKeys.get(privateKey)
  if (key === undefined) {
    key = createPrivateKey({ key: Buffer.from(privateKey, 'base64url'), format: 'der', type: 'pkcs8' })
    if (privateKeys.size < 16) privateKeys.set(privateKey, key)
  }
  return sign(null, bytes, key).toString('base64url')
}

/** A key that signs no more leaves nothing in memory. */
export const forgetPrivateKey = (privateKey: string): void => void privateKeys.delete(privateKey)

/** False for a wrong signature and for a key or signature that is none. */
export function verifyBytes(publicKey: string, bytes: Uint8Array, signature: string): boolean {
  try {
    let key = publicKeys.get(publicKey)
    if (key === undefined) {
      key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: publicKey }, format: 'jwk' })
      if (publicKeys.size < 16) publicKeys.set(publicKey, key)
    }
    return verify(null, bytes, key, Buffer.from(signature, 'base64url'))
  } catch {
    return false
  }
}

/** The fingerprint of a public key, 32 hex digits: join tokens carry it, and people compare it. */
export const fingerprint = (publicKey: string): string =>
  createHash('sha256').update(Buffer.from(publicKey, 'base64url')).digest('hex').slice(0, 32)

/** Constant-time for inputs of equal length; lengths are no secret. */
export function equalSecrets(a: string, b: string): boolean {
  const [x, y] = [Buffer.from(a), Buffer.from(b)]
  return x.length === y.length && timingSafeEqual(x, y)
}
