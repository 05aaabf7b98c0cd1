// The importer of openpgp: whether a detached signature is by one of the keys, and that key is still good today. A
// signature that was made before its key expired is refused as well: the time in it is the signer's own word.
import { createMessage, enums, type PublicKey, readKeys, readSignature, verify } from 'openpgp'

export interface OpenPgpKey {
  key: PublicKey
  fingerprint: string
}

/** `againMs`: from then on it may be good. */
export type OpenPgpCheck = { kind: 'good'; fingerprint: string } | { kind: 'bad'; signer: string | null; why: string; againMs?: number }

/** Null if it is no armored public key, or holds a private one. */
export async function readOpenPgpKeys(armored: string): Promise<OpenPgpKey[] | null> {
  try {
    const keys = await readKeys({ armoredKeys: armored })
    if (keys.length === 0 || keys.some((key) => key.isPrivate())) return null
    return keys.map((key) => ({ key, fingerprint: key.getFingerprint().toUpperCase() }))
  } catch {
    return null
  }
}

/** `payload`: the commit or tag without its signature, which is `armored`. */
export async function checkOpenPgpSignature(
  armored: string,
  payload: Uint8Array,
  keys: readonly OpenPgpKey[],
  nowMs: number,
): Promise<OpenPgpCheck> {
  const signature = await readSignature({ armoredSignature: armored }).catch(() => null)
  const ids = signature?.getSigningKeyIDs() ?? []
  const [id] = ids
  if (signature === null || id === undefined || ids.length !== 1)
    return { kind: 'bad', signer: null, why: 'it is not a valid OpenPGP signature' }
  const signer = id.toHex().toUpperCase()
  const bad = (why: string): OpenPgpCheck => ({ kind: 'bad', signer, why })
  const types = signature.packets.map(({ signatureType }) => signatureType)
  if (!types.every((type) => type === enums.signature.binary || type === enums.signature.text))
    return bad('it is not a signature of a document')
  const owner = keys.find(({ key }) => key.getKeys(id).length > 0)
  if (owner === undefined) return bad('it belongs to another key')
  const date = new Date(nowMs)
  const madeMs = Math.max(...signature.packets.map(({ created }) => created?.getTime() ?? 0))
  const coming = [madeMs, ...madeTimes(owner.key)].filter((ms) => ms > nowMs)
  const mayPass = coming.length === 0 ? {} : { againMs: Math.min(...coming) }
  const why = await unusable(owner.key, id, date)
  if (why !== null) return { ...bad(why), ...mayPass }
  if (madeMs > nowMs) return { ...bad('its time is in the future: the clock of the signer or of this server is wrong'), ...mayPass }
  const message = await createMessage({ binary: new Uint8Array(payload) })
  const { signatures } = await verify({ message, signature, verificationKeys: owner.key, date, format: 'binary' })
  const isGood = await (signatures[0]?.verified ?? Promise.resolve(false)).catch(() => false)
  return isGood ? { kind: 'good', fingerprint: owner.fingerprint } : bad('it does not match the commit')
}

/** The times at which a key says that its parts were made. */
const madeTimes = (key: PublicKey): number[] =>
  key.toPacketList().flatMap((packet) => ('created' in packet && packet.created instanceof Date ? [packet.created.getTime()] : []))

async function unusable(key: PublicKey, id: Parameters<PublicKey['getKeys']>[0], date: Date): Promise<string | null> {
  if (key.getKeys(id).some((one) => one.getCreationTime() > date)) return 'the key is not valid yet'
  if (await key.isRevoked(undefined, undefined, date)) return 'the key is revoked'
  const expires = await key.getExpirationTime().catch(() => null)
  if (expires instanceof Date && expires <= date) return 'the key has expired'
  return key.getSigningKey(id, date).then(
    () => null,
    () => 'the key is expired, revoked, or may not sign',
  )
}
