// The data folder itself: who can read it, whether the server's keys exist and are valid, how much space is left.
import { existsSync, lstatSync, readFileSync, statfsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { exhaustive } from '../../shared/runtime/assert.ts'
import { macKeyCount } from '../access/mac-keys.ts'
import { readSealingFile } from '../access/sealing.ts'
import { secretKeyIds } from '../access/secret-box.ts'
import { KEYS, mayBeMissing, STORE } from '../backup/manifest.ts'
import { RESTORE_MARK } from '../backup/restore-mark.ts'
import { signingFingerprint, trustedEarlier } from '../backup/signing-file.ts'
import type { Findings } from './findings.ts'

const GROUP = 0o070
const OTHERS = 0o007
/** Less is too little, or less than the fleet store again: a migration, or a backup beside it, needs that. */
const FREE_BYTES_MIN = 512 * 1_024 * 1_024

export function checkFolder(dataDir: string, findings: Findings): void {
  if ((statSync(dataDir).mode & OTHERS) !== 0) findings.tell('folder_open', dataDir)
  if (existsSync(join(dataDir, RESTORE_MARK))) findings.tell('restore_unfinished', join(dataDir, RESTORE_MARK))
  const { bavail, bsize } = statfsSync(dataDir)
  const free = bavail * bsize
  const store = statSync(join(dataDir, STORE), { throwIfNoEntry: false })?.size ?? 0
  findings.fact('freeBytes', free)
  if (store > 0) findings.fact('storeBytes', store)
  if (free < Math.max(FREE_BYTES_MIN, store)) findings.tell('disk_low', `${Math.floor(free / 1_000_000)} MB in ${dataDir}`)
}

export function checkKeys(dataDir: string, findings: Findings): void {
  for (const path of KEYS) {
    const found = lstatSync(join(dataDir, path), { throwIfNoEntry: false })
    if (found === undefined && mayBeMissing(path)) continue
    if (found === undefined) {
      findings.tell('key_missing', path)
      continue
    }
    const shown = `${path} has mode ${(found.mode & 0o777).toString(8)}`
    if ((found.mode & OTHERS) !== 0) findings.tell('key_open', shown)
    else if ((found.mode & GROUP) !== 0) findings.tell('key_group', shown)
    const why = whyNoKey(path, readFileSync(join(dataDir, path), 'utf8'), findings)
    if (why !== null) findings.tell('key_bad', `${path} ${why}`)
  }
}

function whyNoKey(path: (typeof KEYS)[number], text: string, findings: Findings): string | null {
  switch (path) {
    case 'keys/secrets.json': {
      const ids = secretKeyIds(text)
      if (ids === null) return 'has no keys of secrets, so secrets of Configs cannot be opened'
      if (ids.length > 1) findings.tell('rotation_open', `${path} holds ${ids.length} keys`)
      return null
    }
    case 'keys/mac.key': {
      const count = macKeyCount(text)
      if (count === null) return 'does not have 32 bytes'
      if (count > 1) findings.tell('mac_earlier', path)
      return null
    }
    case 'keys/sealing.json':
      return readSealingFile(text) === null ? 'holds no keys' : null
    case 'keys/signing.json': {
      const print = signingFingerprint(text)
      if (print === null) return 'has no key, or parts of two keys'
      findings.fact('fingerprint', print)
      const earlier = trustedEarlier(text)
      if (earlier > 0) findings.tell('keys_trusted', `${earlier} before ${print}`)
      return null
    }
    default:
      return exhaustive(path)
  }
}
