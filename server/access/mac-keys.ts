// The key of the MACs over sessions, nonces, webhook secrets and marks of renders: `mac.key`, one key a line, the
// newest first. The key before it is kept for webhooks alone, because forges hold secrets that were made with it; the
// next rotation drops it.
import { createHmac, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { AppError } from '../../shared/runtime/error.ts'
import { readOrMake, replaceSecret } from './secret-file.ts'

export type MacPurpose = 'session' | 'nonce' | 'webhook' | 'render'

export interface MacKeys {
  /** 16 bytes; `purpose` keeps MACs of one kind from serving as another. */
  mac(purpose: MacPurpose, bytes: Uint8Array): Buffer
  /** By the key before. Null means that there is none. */
  earlierMac(purpose: 'webhook', bytes: Uint8Array): Buffer | null
  /** Durable when it returns. */
  rotate(): void
}

const MAC_BYTES = 16
const KEY_BYTES = 32
const newKey = () => randomBytes(KEY_BYTES).toString('base64url')

/** How many keys the text holds. Null means that it is no file of them. */
export function macKeyCount(text: string): number | null {
  const keys = keysIn(text)
  return keys.length >= 1 && keys.length <= 2 && keys.every((key) => key.length === KEY_BYTES) ? keys.length : null
}

const keysIn = (text: string): Buffer[] =>
  text
    .trim()
    .split('\n')
    .map((line) => Buffer.from(line, 'base64url'))

/** Throws `data_unusable` for a file that holds no key: MACs by an empty one could be made by anybody. */
export function loadMacKeys(folder: string): MacKeys {
  const path = join(folder, 'mac.key')
  const text = readOrMake(path, newKey)
  if (macKeyCount(text) === null)
    throw new AppError('data_unusable', {
      doing: 'read the keys',
      detail: `${path} does not hold one or two keys of ${KEY_BYTES} bytes`,
      remedy:
        'Restore it from a backup. Or remove it: the server then creates a new key, all sessions end, and each webhook needs its new secret.',
    })
  let [current = Buffer.alloc(0), earlier] = keysIn(text)
  const macBy = (key: Buffer, purpose: MacPurpose, bytes: Uint8Array) =>
    createHmac('sha256', key).update(purpose).update('\0').update(bytes).digest().subarray(0, MAC_BYTES)
  return {
    mac: (purpose, bytes) => macBy(current, purpose, bytes),
    earlierMac: (purpose, bytes) => (earlier === undefined ? null : macBy(earlier, purpose, bytes)),
    rotate() {
      const made = newKey()
      replaceSecret(path, `${made}\n${current.toString('base64url')}\n`)
      earlier = current
      current = Buffer.from(made, 'base64url')
    },
  }
}
