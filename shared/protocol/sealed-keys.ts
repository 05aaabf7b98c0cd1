// How the keys of sealed rows reach one cluster: in the head of each page, one wrapped key for each sealed row of the
// page, in the order of the rows. Sender and agent derive the same secret by HPKE from `enc` and the recipient key pair
// of the agent; the server keeps an `enc` for a cluster as long as it runs.
import { createCipheriv, createDecipheriv, createHmac, hash } from 'node:crypto'
import { z } from 'zod'
import type { Position } from '../crdt/position.ts'
import type { SealMark } from '../model/sealed-object.ts'

/** Feature bit: a query parameter of GET desired and POST desired/buckets by which an agent says that it opens sealed
 *  rows. */
export const SEAL_PARAM = 'seal'
/** Feature bit beside it: the agent opens keys that are bound to their page. An earlier server leaves it out. */
export const BOUND_PARAM = 'bound'

const utf8 = new TextEncoder()
/** HPKE `info`. */
export const SEAL_INFO = utf8.encode('skerry dk v1')
/** HPKE exporter context. */
export const sealContext = (clusterId: string): Uint8Array => utf8.encode(`skerry-wrap-v1\n${clusterId}`)

/** Member `seal` of hello. */
export const sealHeadSchema = z.object({
  /** HPKE encapsulation, base64url of 32 bytes. */
  enc: z.string().regex(/^[A-Za-z0-9_-]{43}$/),
  /** Fingerprint of the recipient key to which it is sealed. */
  to: z.string().regex(/^[0-9a-f]{32}$/),
  /** SHA-256 in hex of the line of wrapped keys after hello. */
  keys: z.string().regex(/^[0-9a-f]{64}$/),
  /** The keys are bound to the page (`pageBinding`). Absent means an earlier server, or for an earlier agent. */
  bound: z.literal(true).optional(),
})
export type SealHead = z.infer<typeof sealHeadSchema>

const KEY_BYTES = 32
const TAG_BYTES = 16
/** Characters of one wrapped key. */
export const WRAP_CHARS = ((KEY_BYTES + TAG_BYTES) * 4) / 3

/** A nonce is used for one plaintext only: the same row with the same mac has the same key. */
const nonceOf = (id: string, { key, mac }: SealMark): Uint8Array =>
  Buffer.from(hash('sha256', `skerry-wrap-nonce\n${id}\n${key}\n${mac}`, 'hex').slice(0, 24), 'hex')
const aadOf = (clusterId: string, id: string, { key, mac }: SealMark): Uint8Array =>
  utf8.encode(['skerry-wrap-v1', clusterId, id, key, mac].join('\n'))

/**
 * SL13: names one revision of the rows of one cluster: `to.hash` covers each of them, with the set digest of each
 * service. A row that is moved to another page needs a key that nobody has.
 */
export const pageBinding = ({ epoch, to }: { epoch: number; to: Position }): string =>
  hash('sha256', ['skerry-page-v1', epoch, to.dbId, to.term, to.dv, to.hash].join('\n'), 'base64url')

/** The secret that wraps the keys of one page. `binding` '': of a page that is not bound. */
export const boundSecret = (secret: Uint8Array, binding: string): Uint8Array =>
  binding === '' ? secret : createHmac('sha256', secret).update(`skerry-wrap-v2\n${binding}`).digest()

export function wrapKey(secret: Uint8Array, clusterId: string, id: string, mark: SealMark, key: Uint8Array): string {
  const cipher = createCipheriv('aes-256-gcm', secret, nonceOf(id, mark)).setAAD(aadOf(clusterId, id, mark))
  return Buffer.concat([cipher.update(key), cipher.final(), cipher.getAuthTag()]).toString('base64url')
}

/** Null means that it was not wrapped for this row of this cluster. */
export function unwrapKey(secret: Uint8Array, clusterId: string, id: string, mark: SealMark, wrapped: string): Uint8Array | null {
  const bytes = Buffer.from(wrapped, 'base64url')
  if (bytes.length !== KEY_BYTES + TAG_BYTES) return null
  const decipher = createDecipheriv('aes-256-gcm', secret, nonceOf(id, mark), { authTagLength: TAG_BYTES })
  decipher.setAAD(aadOf(clusterId, id, mark)).setAuthTag(bytes.subarray(-TAG_BYTES))
  try {
    return Buffer.concat([decipher.update(bytes.subarray(0, -TAG_BYTES)), decipher.final()])
  } catch {
    return null
  }
}
