// The server's own secrets, made once: the Ed25519 key that signs checkpoints and answers (its fingerprint is in every join token) and the key of the MACs
// over sessions and nonces. They leave this folder only as a backup. A rotation (RP7) replaces the signing key and keeps of the old one only its public
// half, in the link that it signed last.
import { createHmac, randomBytes } from 'node:crypto'
import { closeSync, fstatSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { syncPath } from '../../shared/adapters/sync-path.ts'
import { KEY_LINKS_MAX, type KeyLink, keyLinkBytes, keyLinkSchema } from '../../shared/protocol/key-links.ts'
import { publicKeySchema } from '../../shared/protocol/signatures.ts'
import { fingerprint, forgetPrivateKey, generateKey, type SigningKey, signBytes } from '../../shared/runtime/keys.ts'

export interface KeyHistory {
  publicKey: string
  /** When it began to sign; null for the first one. */
  sinceMs: number | null
}

export interface ServerKeys {
  /** The one that signs. */
  readonly publicKeys: readonly [string]
  /** Of the signing key, 32 hex digits. */
  readonly fingerprint: string
  /** Oldest first: from the oldest key that is remembered to the one that signs. */
  readonly links: readonly KeyLink[]
  /** All that are remembered, oldest first; the last one signs. */
  readonly history: readonly KeyHistory[]
  sign(bytes: Uint8Array): string
  /** 16 bytes; `purpose` keeps MACs of one kind from serving as another. */
  mac(purpose: 'session' | 'nonce' | 'webhook' | 'render', bytes: Uint8Array): Buffer
  /** RP7: a new key signs from now on, vouched for by the one before, which is destroyed. Durable when it returns; a crash in between leaves one of the two. */
  rotate(nowMs: number): void
}

const signingFile = z.object({
  publicKey: publicKeySchema,
  privateKey: z.string().min(1),
  /** Absent before the first rotation. */
  links: z
    .array(keyLinkSchema.extend({ atMs: z.number().int() }))
    .max(KEY_LINKS_MAX)
    .default([]),
})
type SigningFile = z.infer<typeof signingFile>
const MAC_BYTES = 16

/** `newKey`: what the first start and each rotation sign with; a simulation draws it from its seed. */
export function loadServerKeys(folder: string, newKey: () => SigningKey = () => generateKey('ed25519')): ServerKeys {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const path = join(folder, 'signing.json')
  rmSync(stagedPath(path), { force: true }) // of a rotation that a crash cut off
  let signing = signingFile.parse(JSON.parse(readOrMake(path, () => JSON.stringify(newKey()))))
  let [links, print] = [linksOf(signing), fingerprint(signing.publicKey)]
  const macKey = Buffer.from(
    readOrMake(join(folder, 'mac.key'), () => randomBytes(32).toString('base64url')),
    'base64url',
  )
  return {
    get publicKeys() {
      return [signing.publicKey] as const
    },
    get fingerprint() {
      return print // asked at every request
    },
    get links() {
      return links
    },
    get history() {
      return historyOf(signing)
    },
    sign: (bytes) => signBytes(signing.privateKey, bytes),
    mac: (purpose, bytes) => createHmac('sha256', macKey).update(purpose).update('\0').update(bytes).digest().subarray(0, MAC_BYTES),
    rotate(nowMs) {
      const next = nextSigning(signing, newKey(), nowMs)
      replaceSecret(path, JSON.stringify(next))
      forgetPrivateKey(signing.privateKey)
      signing = next
      links = linksOf(next)
      print = fingerprint(next.publicKey)
    },
  }
}

function nextSigning({ publicKey: by, privateKey, links }: SigningFile, made: SigningKey, nowMs: number): SigningFile {
  const link = { key: made.publicKey, by, signature: signBytes(privateKey, keyLinkBytes(made.publicKey, by)), atMs: nowMs }
  return { ...made, links: [...links, link].slice(-KEY_LINKS_MAX) }
}

const linksOf = ({ links }: SigningFile): KeyLink[] => links.map(({ key, by, signature }) => ({ key, by, signature }))

function historyOf({ publicKey, links }: SigningFile): KeyHistory[] {
  const first = { publicKey: links[0]?.by ?? publicKey, sinceMs: null }
  return [first, ...links.map(({ key, atMs }) => ({ publicKey: key, sinceMs: atMs }))]
}

/** Durable and whole before it is used: a half-written key would lock out every agent. */
export function readOrMake(path: string, make: () => string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
  const text = make()
  writeWhole(path, text)
  return text
}

const stagedPath = (path: string) => `${path}.new`

function writeWhole(path: string, text: string): void {
  const staged = stagedPath(path)
  writeFileSync(staged, text, { mode: 0o600 })
  syncPath(staged)
  renameSync(staged, path)
  syncPath(dirname(path))
}

/** The new file takes the name in one step; then what the old one held is overwritten, so that its blocks give nothing away either. */
function replaceSecret(path: string, text: string): void {
  const old = openSync(path, 'r+')
  try {
    writeWhole(path, text)
    writeSync(old, Buffer.alloc(fstatSync(old).size), 0, null, 0)
    fsyncSync(old)
  } finally {
    closeSync(old)
  }
}
