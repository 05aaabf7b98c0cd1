// Signatures of a release with one ECDSA key (P-256), in the forms that cosign reads: of a file, of an attestation
// (DSSE), of an image in an OCI layout.
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'

export interface Signer {
  /** Base64 of the signature over the SHA-256 of these bytes. */
  sign(bytes: Uint8Array): string
  publicPem: string
  /** True for a key that was made for this run. */
  isThrowaway: boolean
}

/** `given`: a private key in PEM (PKCS#8), or the path of a file with one. */
export function openSigner(given: string | undefined, password: string | undefined): Signer {
  const key = given === undefined || given === '' ? null : readKey(given, password)
  const privateKey = key ?? generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  return {
    isThrowaway: key === null,
    publicPem: createPublicKey(privateKey).export({ type: 'spki', format: 'pem' }).toString(),
    sign: (bytes) => sign('sha256', bytes, privateKey).toString('base64'),
  }
}

function readKey(given: string, password: string | undefined): KeyObject {
  const pem = !given.includes('-----BEGIN') && existsSync(given) ? readFileSync(given, 'utf8') : given
  if (!pem.includes('-----BEGIN')) throw new Error('SKERRY_SIGNING_KEY is neither a PEM text nor the path of a file')
  if (pem.includes('ENCRYPTED SIGSTORE PRIVATE KEY') || pem.includes('ENCRYPTED COSIGN PRIVATE KEY'))
    throw new Error('SKERRY_SIGNING_KEY has the format of cosign: export a PKCS#8 key, or make one with `openssl genpkey`')
  const key = createPrivateKey({ key: pem, ...(password === undefined ? {} : { passphrase: password }) })
  if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1')
    throw new Error(
      'SKERRY_SIGNING_KEY is no ECDSA key of the curve P-256: make one with `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256`',
    )
  return key
}

/** A bundle as cosign 3 verifies it: `cosign verify-blob --bundle`. */
export const signatureBundle = (bytes: Uint8Array, signer: Signer): object => ({
  mediaType: 'application/vnd.dev.sigstore.bundle.v0.3+json',
  verificationMaterial: { publicKey: { hint: createHash('sha256').update(signer.publicPem).digest('base64') } },
  messageSignature: {
    messageDigest: { algorithm: 'SHA2_256', digest: createHash('sha256').update(bytes).digest('base64') },
    signature: signer.sign(bytes),
  },
})

const IN_TOTO = 'application/vnd.in-toto+json'

/** An in-toto statement in a DSSE envelope: the signature covers the type of the payload, too. */
export function envelopeOf(statement: object, signer: Signer): object {
  const payload = Buffer.from(JSON.stringify(statement))
  const signed = Buffer.concat([Buffer.from(`DSSEv1 ${IN_TOTO.length} ${IN_TOTO} ${payload.byteLength} `), payload])
  return { payloadType: IN_TOTO, payload: payload.toString('base64'), signatures: [{ sig: signer.sign(signed) }] }
}

/** The document about an image that cosign verifies: the digest counts, not the name. */
export const imagePayload = (reference: string, digest: string): Uint8Array =>
  new TextEncoder().encode(
    JSON.stringify({
      critical: {
        identity: { 'docker-reference': reference },
        image: { 'docker-manifest-digest': digest },
        type: 'cosign container image signature',
      },
      optional: null,
    }),
  )
