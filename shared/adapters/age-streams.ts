// Streams that are encrypted to age recipients. Loaded at the first use, because most servers and all agents need none.
// The library is JavaScript: about 100 MB/s.

const X25519 = /^age1[02-9ac-hj-np-z]{58}$/
const HYBRID = /^age1pq1[02-9ac-hj-np-z]{100,4000}$/
const IDENTITY = /^AGE-SECRET-KEY-(?:1|PQ-1)[0-9A-Z]+$/

export const isRecipient = (text: string): boolean => X25519.test(text) || HYBRID.test(text)
export const isIdentity = (text: string): boolean => IDENTITY.test(text)

/** Recipients of both kinds cannot be mixed: one that a quantum computer opens would open the file. */
export const areOfOneKind = (recipients: readonly string[]): boolean => new Set(recipients.map((one) => HYBRID.test(one))).size <= 1

export interface AgeWriter {
  encrypt(plain: ReadableStream<Uint8Array>): Promise<ReadableStream<Uint8Array>>
  /** Opens what this writer encrypted, by a key that is in memory alone and goes with it. */
  decrypt(encrypted: ReadableStream<Uint8Array>): Promise<ReadableStream<Uint8Array>>
}

/** Throws for a recipient that is none. */
export async function createAgeWriter(recipients: readonly string[]): Promise<AgeWriter> {
  const { Encrypter, generateHybridIdentity, generateX25519Identity, identityToRecipient } = await import('age-encryption')
  const own = await (recipients.every((one) => HYBRID.test(one)) ? generateHybridIdentity() : generateX25519Identity())
  const encrypter = new Encrypter()
  for (const recipient of [...recipients, await identityToRecipient(own)]) encrypter.addRecipient(recipient)
  return {
    encrypt: (plain) => encrypter.encrypt(plain),
    decrypt: (encrypted) => decryptAge(encrypted, [own]),
  }
}

/** Throws if no identity opens it; its stream fails if it was changed or cut off. */
export async function decryptAge(
  encrypted: ReadableStream<Uint8Array>,
  identities: readonly string[],
): Promise<ReadableStream<Uint8Array>> {
  const { Decrypter } = await import('age-encryption')
  const decrypter = new Decrypter()
  for (const identity of identities) decrypter.addIdentity(identity)
  return decrypter.decrypt(encrypted)
}
