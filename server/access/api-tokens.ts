// API tokens: 256 random bits that people and tools show. The store holds SHA-256 of them: a look-up by hash leaks nothing by its timing, because whoever
// guesses cannot steer the hash. No passwords anywhere.
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, open, rm, writeFile } from 'node:fs/promises'
import { sha256Hex } from '../../shared/kube/canonical.ts'
import { AppError } from '../../shared/protocol/error.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Store } from '../store/store.ts'

export interface Principal {
  id: string
  /** What `by` says in orders and confirmations. */
  name: string
}

export interface ApiTokens {
  /** AP2: on a store without any token makes the admin's and returns it, once and never again. */
  createFirst(): Promise<string | null>
  /** Of an `authorization` header; null for none, another scheme and an unknown token. */
  authenticate(header: string | null): Promise<Principal | null>
}

const PREFIX = 'sk_'
/** How long a token that was found is not looked up again. */
const CACHE_MS = 30_000
const CACHE_MAX = 1_000

export function createApiTokens(store: Pick<Store, 'createApiToken' | 'apiTokenByHash' | 'countApiTokens'>, clock: Clock): ApiTokens {
  const known = new Map<string, { principal: Principal; untilMs: number }>()
  return {
    async createFirst() {
      if ((await store.countApiTokens()) > 0) return null
      const token = PREFIX + newSecret()
      await store.createApiToken({ id: newId('t'), tokenHash: sha256Hex(token), name: 'admin', createdMs: clock.nowMs() })
      return token
    },
    async authenticate(header) {
      const token = /^Bearer +(sk_[A-Za-z0-9_-]{43})$/i.exec(header ?? '')?.[1]
      if (token === undefined) return null
      const tokenHash = sha256Hex(token)
      const held = known.get(tokenHash)
      if (held !== undefined && held.untilMs > clock.nowMs()) return held.principal
      known.delete(tokenHash)
      const principal = await store.apiTokenByHash(tokenHash)
      if (principal === null) return null
      if (known.size >= CACHE_MAX) known.clear()
      known.set(tokenHash, { principal, untilMs: clock.nowMs() + CACHE_MS })
      return principal
    },
  }
}

/** 256 bits, base64url, 43 characters. */
export const newSecret = (): string => randomBytes(32).toString('base64url')
/** `<prefix>-` and 8 hex digits: a name for a row, no secret. */
export const newId = (prefix: string): string => `${prefix}-${randomBytes(4).toString('hex')}`

/** Before there is a token, which is told once only: throws `bad_options` for a file that could not be written. Leaves one that is there as it is. */
export async function checkTokenFile(path: string): Promise<void> {
  try {
    const isThere = existsSync(path)
    await (await open(path, 'a', 0o600)).close()
    if (!isThere) await rm(path)
  } catch (error) {
    const detail = `--admin-token-file ${path} cannot be written`
    throw new AppError(
      'bad_options',
      { detail, remedy: 'Name a file in a folder that is there and that the server may write to.' },
      { cause: error },
    )
  }
}

/** For whoever starts the server: readable by its user only, also if the file was there before. */
export async function writeTokenFile(path: string, token: string): Promise<void> {
  await writeFile(path, `${token}\n`, { mode: 0o600 })
  await chmod(path, 0o600)
}
