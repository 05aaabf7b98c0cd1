// Opens sealed rows when their service is read, and not before. What the HPKE encapsulations lead to is kept in memory
// only.
import { exportFrom } from '../../shared/adapters/hpke.ts'
import { openObject, sealMarkOf } from '../../shared/model/sealed-object.ts'
import { boundSecret, SEAL_INFO, sealContext, unwrapKey } from '../../shared/protocol/sealed-keys.ts'
import type { Wrap } from './page-reader.ts'

/** Recipient keys of this agent, by the fingerprints of their public keys. */
export interface Recipients {
  /** PKCS#8, base64url. Null means that this agent does not have it. */
  privateKey(fingerprint: string): string | null
  /** Keys of rows are wrapped for this one now; it may differ from those that the replica holds. */
  isCurrent(fingerprint: string): boolean
  /** All rows were fetched: other keys are of no use. */
  forget(isNeeded: (fingerprint: string) => boolean): void
}

/** No sealed row opens. */
export const NO_RECIPIENTS: Recipients = { privateKey: () => null, isCurrent: () => true, forget: () => {} }

/** A server makes one encapsulation each time that it starts. */
const SECRETS_MAX = 1_000

export class RowOpener {
  readonly #clusterId: string
  readonly #recipients: Recipients
  readonly #secrets = new Map<string, Uint8Array>()

  constructor(clusterId: string, recipients: Recipients) {
    this.#clusterId = clusterId
    this.#recipients = recipients
  }

  /** For `open`, which is synchronous. */
  async unlock(wraps: ReadonlyArray<Pick<Wrap, 'enc' | 'to'>>): Promise<void> {
    for (const { enc, to } of wraps) {
      if (this.#secrets.has(nameOf(enc, to))) continue
      const key = this.#recipients.privateKey(to)
      const secret = key === null ? null : await exportFrom(key, enc, SEAL_INFO, sealContext(this.#clusterId))
      if (secret === null) continue
      for (const oldest of this.#secrets.keys()) {
        if (this.#secrets.size < SECRETS_MAX) break
        this.#secrets.delete(oldest)
      }
      this.#secrets.set(nameOf(enc, to), secret)
    }
  }

  open(id: string, doc: string, wrap: Wrap | null): string | null {
    const mark = sealMarkOf(doc)
    const secret = wrap === null ? undefined : this.#secrets.get(nameOf(wrap.enc, wrap.to))
    if (mark === null || wrap === null || secret === undefined) return null
    const key = unwrapKey(boundSecret(secret, wrap.bound), this.#clusterId, id, mark, wrap.wrapped)
    return key === null ? null : openObject(key, id, doc)
  }
}

const nameOf = (enc: string, to: string): string => `${enc}/${to}`
