// The server's own secrets, made once: the Ed25519 key that signs checkpoints (its fingerprint is in every join token) and the key of the MACs over
// sessions and nonces. They leave this folder only as a backup.
import { createHmac, randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { syncPath } from '../../shared/adapters/sync-path.ts'
import { publicKeySchema } from '../../shared/protocol/signatures.ts'
import { fingerprint, generateKey, signBytes } from '../../shared/runtime/keys.ts'

export interface ServerKeys {
  /** The one that signs comes first. */
  publicKeys: readonly string[]
  /** Of the signing key, 32 hex digits. */
  fingerprint: string
  sign(bytes: Uint8Array): string
  /** 16 bytes; `purpose` keeps MACs of one kind from serving as another. */
  mac(purpose: 'session' | 'nonce' | 'webhook', bytes: Uint8Array): Buffer
}

const signingFile = z.object({ publicKey: publicKeySchema, privateKey: z.string().min(1) })
const MAC_BYTES = 16

export function loadServerKeys(folder: string): ServerKeys {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const signing = signingFile.parse(JSON.parse(readOrMake(join(folder, 'signing.json'), () => JSON.stringify(generateKey('ed25519')))))
  const macKey = Buffer.from(
    readOrMake(join(folder, 'mac.key'), () => randomBytes(32).toString('base64url')),
    'base64url',
  )
  return {
    publicKeys: [signing.publicKey],
    fingerprint: fingerprint(signing.publicKey),
    sign: (bytes) => signBytes(signing.privateKey, bytes),
    mac: (purpose, bytes) => createHmac('sha256', macKey).update(purpose).update('\0').update(bytes).digest().subarray(0, MAC_BYTES),
  }
}

/** Durable and whole before it is used: a half-written key would lock out every agent. */
function readOrMake(path: string, make: () => string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
  const staged = `${path}.new`
  const text = make()
  writeFileSync(staged, text, { mode: 0o600 })
  syncPath(staged)
  renameSync(staged, path)
  syncPath(dirname(path))
  return text
}
