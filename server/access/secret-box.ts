// Seals what must not lie readable on a disk: secrets of Configs, and what was rendered with them. AES-256-GCM under the keys of one file of the server's keys folder, which is in
// backups with the other keys. A sealed text names its key, so that a new one can be put in front of the file and older texts still open.
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { readOrMake } from './server-keys.ts'

export interface SecretBox {
  seal(bytes: Uint8Array): Uint8Array
  /** Null: sealed under a key that is not here, or changed since. */
  open(sealed: Uint8Array): Uint8Array | null
  /** 16 hex digits that are equal for equal texts and say nothing else of them. Whoever may choose texts puts their place in front, else one secret could be guessed with the help of another. */
  macOf(text: string): string
}

const FORM = 1
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

export function isSecretsFile(text: string): boolean {
  try {
    return secretsFile.safeParse(JSON.parse(text)).success
  } catch {
    return false
  }
}

const newKey = (bytes = KEY_BYTES) => randomBytes(bytes).toString('base64url')
const newFile = () => JSON.stringify({ mac: newKey(), keys: [{ id: randomBytes(ID_BYTES).toString('hex'), key: newKey() }] })

export function loadSecretBox(folder: string): SecretBox {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const file = secretsFile.parse(JSON.parse(readOrMake(join(folder, 'secrets.json'), newFile)))
  const macKey = Buffer.from(file.mac, 'base64url')
  const keys = new Map(file.keys.map((one) => [one.id, Buffer.from(one.key, 'base64url')]))
  const [[sealingId, sealingKey] = ['', macKey]] = keys
  return {
    seal(bytes) {
      const head = Buffer.concat([Buffer.from([FORM]), Buffer.from(sealingId, 'hex')])
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', sealingKey, nonce).setAAD(head)
      return Buffer.concat([head, nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
    },
    open(sealed) {
      const text = Buffer.from(sealed)
      const held = keys.get(text.subarray(1, HEAD_BYTES).toString('hex'))
      if (text[0] !== FORM || held === undefined || text.length < HEAD_BYTES + NONCE_BYTES + TAG_BYTES) return null
      const nonce = text.subarray(HEAD_BYTES, HEAD_BYTES + NONCE_BYTES)
      const decipher = createDecipheriv('aes-256-gcm', held, nonce, { authTagLength: TAG_BYTES })
      decipher.setAAD(text.subarray(0, HEAD_BYTES)).setAuthTag(text.subarray(-TAG_BYTES))
      try {
        return Buffer.concat([decipher.update(text.subarray(HEAD_BYTES + NONCE_BYTES, -TAG_BYTES)), decipher.final()])
      } catch {
        return null // its tag is wrong
      }
    },
    macOf: (text) => createHmac('sha256', macKey).update(text).digest('hex').slice(0, 16),
  }
}
