// The agent's identity: an Ed25519 key that signs and an X25519 key that will be sealed to. Made here, mode 0600, never
// sent anywhere.
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { syncPath } from '../../shared/adapters/sync-path.ts'
import { fingerprint, generateKey } from '../../shared/runtime/keys.ts'
import { publicKeySchema } from '../../shared/runtime/signatures.ts'
import type { Recipients } from '../replica/row-opener.ts'

const keySchema = z.object({ publicKey: publicKeySchema, privateKey: z.string().min(1) })
const keysSchema = z.object({
  signing: keySchema,
  recipient: keySchema,
  /** Earlier recipient keys, to which keys of rows may still be sealed. */
  former: z.array(keySchema).max(16).optional(),
  /** Seals documents in the state file: 32 bytes, base64url. */
  state: z.base64url().length(43).optional(),
})
export type AgentKeys = z.infer<typeof keysSchema>
/** As they are on the disk. */
export type StoredAgentKeys = AgentKeys & { state: string }

const FILE = 'agent-keys.json'

/** A file that is there and cannot be read is an error: a new key would be another agent. */
export function loadAgentKeys(folder: string): StoredAgentKeys {
  const path = join(folder, FILE)
  try {
    const { state, ...held } = keysSchema.parse(JSON.parse(readFileSync(path, 'utf8')))
    return state === undefined ? writeKeys(path, { ...held, state: newStateKey() }) : { ...held, state }
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  return writeKeys(path, { signing: generateKey('ed25519'), recipient: generateKey('x25519'), state: newStateKey() })
}

const newStateKey = (): string => randomBytes(32).toString('base64url')

function writeKeys(path: string, keys: StoredAgentKeys): StoredAgentKeys {
  writeFileSync(`${path}.new`, JSON.stringify(keys), { mode: 0o600 })
  syncPath(`${path}.new`)
  renameSync(`${path}.new`, path)
  syncPath(dirname(path))
  return keys
}

/** `keys` may be replaced by `rotateRecipient`. */
export const recipientsOf = (folder: string, keys: StoredAgentKeys): Recipients => ({
  privateKey: (of) => [keys.recipient, ...(keys.former ?? [])].find(({ publicKey }) => fingerprint(publicKey) === of)?.privateKey ?? null,
  isCurrent: (of) => fingerprint(keys.recipient.publicKey) === of,
  forget: (isNeeded) => forgetFormer(folder, keys, isNeeded),
})

const FORMER_MAX = 16

/** Other code holds `keys`, so the object is changed in place. Former keys open what was wrapped for them. */
export function rotateRecipient(folder: string, keys: StoredAgentKeys): void {
  const { recipient, former = [] } = keys
  Object.assign(
    keys,
    writeKeys(join(folder, FILE), { ...keys, recipient: generateKey('x25519'), former: [recipient, ...former].slice(0, FORMER_MAX) }),
  )
}

/** `isNeeded`: whether a row is still wrapped for the key with that fingerprint. */
function forgetFormer(folder: string, keys: StoredAgentKeys, isNeeded: (fingerprint: string) => boolean): void {
  const kept = (keys.former ?? []).filter(({ publicKey }) => isNeeded(fingerprint(publicKey)))
  if (kept.length === (keys.former ?? []).length) return
  Object.assign(keys, writeKeys(join(folder, FILE), { ...keys, former: kept }))
}

/** Null means that there are no keys, or none that can be read. */
export function recipientFingerprint(folder: string): string | null {
  try {
    return fingerprint(keysSchema.parse(JSON.parse(readFileSync(join(folder, FILE), 'utf8'))).recipient.publicKey)
  } catch {
    return null
  }
}
