// Seals what must not lie readable on a disk: secrets of Configs, and what was rendered with them. AES-256-GCM under
// the keys of one file of the server's keys folder, which is in backups with the other keys. A sealed text names its
// key, so that a new one can be put in front of the file and older texts still open.
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { readOrMake, replaceSecret } from './secret-file.ts'

export interface SecretBox {
  /** `place`: where it is kept; it opens nowhere else. */
  seal(bytes: Uint8Array, place?: string): Uint8Array
  /** Null if it was sealed with a key that is not here or for another place, or if it was changed. */
  open(sealed: Uint8Array, place?: string): Uint8Array | null
  /**
   * 16 hex digits that are equal for equal texts and reveal nothing else of them. Callers with chosen texts prefix
   * their place, otherwise one secret could be guessed with the help of another.
   */
  macOf(text: string): string
  /** Whether it is sealed under the key that seals now, for its place. */
  isCurrent(sealed: Uint8Array): boolean
  /** CG7: a new key seals from now on, and marks are made with a new one; what is sealed still opens. Does nothing
   *  while an earlier rotation is not finished. Durable when it returns. */
  rotate(): void
  /** Keys that seal no more are destroyed: what was sealed under them does not open any more. */
  forgetEarlier(): void
}

/** Texts of form 1 are bound to no place. They open until a rotation destroys their key. */
const [FORM, UNBOUND] = [2, 1]
const ID_BYTES = 4
const NONCE_BYTES = 12
const TAG_BYTES = 16
const HEAD_BYTES = 1 + ID_BYTES
const KEY_BYTES = 32

const key = z.base64url().refine((text) => Buffer.from(text, 'base64url').length === KEY_BYTES, `expected ${KEY_BYTES} bytes`)
const secretsFile = z.object({
  mac: key,
  /** The first one seals, all of them open. */
  keys: z
    .array(z.object({ id: z.string().regex(/^[0-9a-f]{8}$/), key }))
    .min(1)
    .max(100),
})

type SecretsFile = z.infer<typeof secretsFile>

/** Ids of its keys, the one that seals first. Null means that it is no such file. */
export function secretKeyIds(text: string): string[] | null {
  try {
    return secretsFile.parse(JSON.parse(text)).keys.map(({ id }) => id)
  } catch {
    return null
  }
}

/** Id of the key that sealed these bytes. */
export const sealingKeyId = (sealed: Uint8Array): string => Buffer.from(sealed.subarray(1, HEAD_BYTES)).toString('hex')

const newKey = (bytes = KEY_BYTES) => randomBytes(bytes).toString('base64url')
const newSealingKey = () => ({ id: randomBytes(ID_BYTES).toString('hex'), key: newKey() })
const newFile = () => JSON.stringify({ mac: newKey(), keys: [newSealingKey()] } satisfies SecretsFile)

export function loadSecretBox(folder: string): SecretBox {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const path = join(folder, 'secrets.json')
  let file = secretsFile.parse(JSON.parse(readOrMake(path, newFile)))
  let { macKey, keys, sealingId, sealingKey } = keysOf(file)
  const replace = (next: SecretsFile) => {
    replaceSecret(path, JSON.stringify(next))
    file = next
    ;({ macKey, keys, sealingId, sealingKey } = keysOf(next))
  }
  return {
    seal(bytes, place = '') {
      const head = Buffer.concat([Buffer.from([FORM]), Buffer.from(sealingId, 'hex')])
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', sealingKey, nonce).setAAD(boundTo(head, place))
      return Buffer.concat([head, nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
    },
    open(sealed, place = '') {
      const text = Buffer.from(sealed)
      const held = keys.get(sealingKeyId(text))
      if ((text[0] !== FORM && text[0] !== UNBOUND) || held === undefined || text.length < HEAD_BYTES + NONCE_BYTES + TAG_BYTES) return null
      const nonce = text.subarray(HEAD_BYTES, HEAD_BYTES + NONCE_BYTES)
      const decipher = createDecipheriv('aes-256-gcm', held, nonce, { authTagLength: TAG_BYTES })
      const head = text.subarray(0, HEAD_BYTES)
      decipher.setAAD(text[0] === UNBOUND ? head : boundTo(head, place)).setAuthTag(text.subarray(-TAG_BYTES))
      try {
        return Buffer.concat([decipher.update(text.subarray(HEAD_BYTES + NONCE_BYTES, -TAG_BYTES)), decipher.final()])
      } catch {
        return null // its tag is wrong
      }
    },
    macOf: (text) => createHmac('sha256', macKey).update(text).digest('hex').slice(0, 16),
    isCurrent: (sealed) => sealed[0] === FORM && sealingKeyId(sealed) === sealingId,
    rotate() {
      if (file.keys.length === 1) replace({ mac: newKey(), keys: [newSealingKey(), ...file.keys] })
    },
    forgetEarlier: () => replace({ ...file, keys: file.keys.slice(0, 1) }),
  }
}

const boundTo = (head: Uint8Array, place: string): Uint8Array => Buffer.concat([head, Buffer.from(place)])

function keysOf(file: SecretsFile) {
  const macKey = Buffer.from(file.mac, 'base64url')
  const keys = new Map(file.keys.map((one) => [one.id, Buffer.from(one.key, 'base64url')]))
  const [[sealingId, sealingKey] = ['', macKey]] = keys
  return { macKey, keys, sealingId, sealingKey }
}
