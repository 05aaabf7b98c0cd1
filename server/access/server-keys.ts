// The server's own secrets: the Ed25519 key that signs checkpoints and answers (its fingerprint is in every join token)
// and the keys of its MACs (`mac-keys.ts`). They leave this folder only as a backup. A rotation (RP7) replaces the
// signing key and keeps of the old one only its public half, in the link that it signed last. A revocation (RP9) is the
// word of the key that signs by then that the keys before one of them are trusted no more.
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import {
  KEY_LINKS_MAX,
  type KeyLink,
  type KeyRevocation,
  keyLinkBytes,
  keyLinkSchema,
  keyRevocationBytes,
  keyRevocationSchema,
} from '../../shared/protocol/key-links.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { fingerprint, forgetPrivateKey, generateKey, type SigningKey, signBytes } from '../../shared/runtime/keys.ts'
import { publicKeySchema } from '../../shared/runtime/signatures.ts'
import { loadMacKeys, type MacKeys } from './mac-keys.ts'
import { readOrMake, replaceSecret, stagedPath } from './secret-file.ts'

export interface KeyHistory {
  publicKey: string
  /** When it began to sign; null for the first one. */
  sinceMs: number | null
  isRevoked: boolean
}

export interface ServerKeys extends Omit<MacKeys, 'rotate'> {
  /** The one that signs. */
  readonly publicKeys: readonly [string]
  /** The fingerprint of the signing key, 32 hex digits. */
  readonly fingerprint: string
  /** Oldest first: from the oldest key that is remembered to the one that signs. */
  readonly links: readonly KeyLink[]
  /** All that are remembered, oldest first; the last one signs. */
  readonly history: readonly KeyHistory[]
  /** Undefined if no key is revoked. */
  readonly revocation: KeyRevocation | undefined
  /** Another one after each change of these keys: sessions end with it. */
  readonly generation: string
  sign(bytes: Uint8Array): string
  /** RP7: a new key signs from now on, vouched for by the one before, which is destroyed. Durable when it returns; a
   *  crash in between leaves one of the two. */
  rotate(nowMs: number): void
  /** RP9: the keys before this one are trusted no more. Null means before the one that signs. Throws `not_found` for a
   *  key that is not remembered, and `conflict` where the keys before it are revoked already. Durable when it returns.
   */
  revoke(before: string | null, nowMs: number): void
  /** Ends every session. Secrets of webhooks are other ones from now on; those before count until the next time. */
  rotateMac(): void
}

const signingFile = z.object({
  publicKey: publicKeySchema,
  privateKey: z.string().min(1),
  /** Absent before the first rotation. */
  links: z
    .array(keyLinkSchema.extend({ atMs: z.number().int() }))
    .max(KEY_LINKS_MAX)
    .default([]),
  revocation: keyRevocationSchema.extend({ atMs: z.number().int() }).optional(),
})
type SigningFile = z.infer<typeof signingFile>

/** `newKey`: what the first start and each rotation sign with; a simulation draws it from its seed. */
export function loadServerKeys(folder: string, newKey: () => SigningKey = () => generateKey('ed25519')): ServerKeys {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const path = join(folder, 'signing.json')
  rmSync(stagedPath(path), { force: true }) // of a rotation that a crash cut off
  let signing = signingFile.parse(JSON.parse(readOrMake(path, () => JSON.stringify(newKey()))))
  let [links, print] = [linksOf(signing), fingerprint(signing.publicKey)]
  const macs = loadMacKeys(folder)
  let macRotations = 0
  const replace = (next: SigningFile) => {
    replaceSecret(path, JSON.stringify(next))
    signing = next
    links = linksOf(next)
    print = fingerprint(next.publicKey)
  }
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
    get revocation() {
      const { revocation } = signing
      return revocation && { oldest: revocation.oldest, signature: revocation.signature }
    },
    get generation() {
      return `${print}.${signing.revocation?.oldest ?? ''}.${macRotations}`
    },
    sign: (bytes) => signBytes(signing.privateKey, bytes),
    mac: macs.mac,
    earlierMac: macs.earlierMac,
    rotate(nowMs) {
      const { privateKey } = signing
      replace(nextSigning(signing, newKey(), nowMs))
      forgetPrivateKey(privateKey)
    },
    revoke(before, nowMs) {
      const oldest = oldestAfter(signing, before ?? print)
      replace({ ...signing, revocation: { oldest, signature: signBytes(signing.privateKey, keyRevocationBytes(oldest)), atMs: nowMs } })
    },
    rotateMac() {
      macs.rotate()
      macRotations++
    },
  }
}

/** The key with that fingerprint, if keys before it are trusted still. */
function oldestAfter(signing: SigningFile, print: string): string {
  const history = historyOf(signing)
  const index = history.findIndex(({ publicKey }) => fingerprint(publicKey) === print)
  const found = history[index]
  if (found === undefined)
    throw new AppError('not_found', { detail: `unknown key ${print}`, remedy: '`skerry server-key list` lists them.' })
  if (found.isRevoked || history.slice(0, index).every(({ isRevoked }) => isRevoked))
    throw new AppError('conflict', {
      detail: `no trusted key is older than ${print}`,
      remedy: 'Nothing to do. To revoke the current signing key, rotate it first: `skerry server-key rotate`.',
    })
  return found.publicKey
}

function nextSigning({ publicKey: by, privateKey, links, revocation }: SigningFile, made: SigningKey, nowMs: number): SigningFile {
  const link = { key: made.publicKey, by, signature: signBytes(privateKey, keyLinkBytes(made.publicKey, by)), atMs: nowMs }
  return { ...made, links: [...links, link].slice(-KEY_LINKS_MAX), ...(revocation === undefined ? {} : { revocation }) }
}

const linksOf = ({ links }: SigningFile): KeyLink[] => links.map(({ key, by, signature }) => ({ key, by, signature }))

function historyOf({ publicKey, links, revocation }: SigningFile): KeyHistory[] {
  const first = { publicKey: links[0]?.by ?? publicKey, sinceMs: null }
  const all = [first, ...links.map(({ key, atMs }) => ({ publicKey: key, sinceMs: atMs }))]
  const oldest = all.findIndex((one) => one.publicKey === revocation?.oldest)
  return all.map((one, index) => ({ ...one, isRevoked: index < oldest }))
}
