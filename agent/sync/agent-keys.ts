// The agent's identity: an Ed25519 key that signs and an X25519 key that will be sealed to. Made here, mode 0600, never sent anywhere.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { syncPath } from '../../shared/adapters/sync-path.ts'
import { publicKeySchema } from '../../shared/protocol/signatures.ts'
import { generateKey } from '../../shared/runtime/keys.ts'

const keySchema = z.object({ publicKey: publicKeySchema, privateKey: z.string().min(1) })
const keysSchema = z.object({ signing: keySchema, recipient: keySchema })
export type AgentKeys = z.infer<typeof keysSchema>

const FILE = 'agent-keys.json'

/** A file that is there and cannot be read is an error: a new key would be another agent. */
export function loadAgentKeys(folder: string): AgentKeys {
  const path = join(folder, FILE)
  try {
    return keysSchema.parse(JSON.parse(readFileSync(path, 'utf8')))
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const keys = { signing: generateKey('ed25519'), recipient: generateKey('x25519') }
  writeFileSync(`${path}.new`, JSON.stringify(keys), { mode: 0o600 })
  syncPath(`${path}.new`)
  renameSync(`${path}.new`, path)
  syncPath(dirname(path))
  return keys
}
