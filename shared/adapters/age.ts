// Opens what was encrypted to an age recipient; age-streams.ts does both for streams. Loaded at the first use, because
// most sites and most servers have no age key.

/** A private key of age with its public key. */
export interface AgeKey {
  /** `age1…`, also of a post-quantum key (`age1pq1…`). */
  recipient: string
  identity: string
}

/** Lines of a key file; `age-keygen` writes the public key as a comment above. */
const IDENTITY = /^AGE-SECRET-KEY-(?:1|PQ-1)[0-9A-Z]+$/
const KEYS_MAX = 64

/** Keys of a file of age-keygen. Null means that it has a line that is neither a key nor a comment, no key, or too
 *  many. */
export async function readAgeKeys(text: string): Promise<AgeKey[] | null> {
  const lines = text.split(/\r?\n/).map((line) => line.trim())
  const identities = lines.filter((line) => line !== '' && !line.startsWith('#'))
  if (identities.length === 0 || identities.length > KEYS_MAX || !identities.every((line) => IDENTITY.test(line))) return null
  const { identityToRecipient } = await import('age-encryption')
  try {
    return await Promise.all(identities.map(async (identity) => ({ identity, recipient: await identityToRecipient(identity) })))
  } catch {
    return null
  }
}

/** `armored`: an age file. Null means that the key does not open it. */
export async function openAge(key: AgeKey, armored: string): Promise<Uint8Array | null> {
  const { armor, Decrypter } = await import('age-encryption')
  try {
    const decrypter = new Decrypter()
    decrypter.addIdentity(key.identity)
    return await decrypter.decrypt(armor.decode(armored))
  } catch {
    return null
  }
}
