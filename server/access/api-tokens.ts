// API tokens: 256 random bits that people and tools show. The store holds SHA-256 of them: a look-up by hash leaks nothing by its timing, because whoever
// guesses cannot steer the hash. No passwords anywhere.
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { open, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { syncPath } from '../../shared/adapters/sync-path.ts'
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
  /** AP2: on a store without a valid token makes the first one, which expires, and returns it. `save` gets it before the store does. */
  createFirst(save: (token: string) => Promise<void>): Promise<string | null>
  /** AP12: a token in the place of the caller's, which ends when the new one is first used. */
  exchange(principal: Principal): Promise<string>
  /** Of an `authorization` header; null for none, another scheme and a token that is unknown or has expired. */
  authenticate(header: string | null): Promise<Principal | null>
}

const PREFIX = 'sk_'
/** AP2: by then a person has read the file. */
export const FIRST_TOKEN_MS = 24 * 60 * 60_000
/** How long a token that was found is not looked up again. */
const CACHE_MS = 30_000
const CACHE_MAX = 1_000

export interface ApiTokensDeps {
  store: Pick<Store, 'createApiToken' | 'apiTokenByHash' | 'countApiTokens' | 'retireReplaced'>
  clock: Clock
}

export function createApiTokens({ store, clock }: ApiTokensDeps): ApiTokens {
  const known = new Map<string, { principal: Principal; untilMs: number }>()
  return {
    async createFirst(save) {
      const createdMs = clock.nowMs()
      if ((await store.countApiTokens(createdMs)) > 0) return null
      const token = PREFIX + newSecret()
      await save(token)
      const expiresMs = createdMs + FIRST_TOKEN_MS
      await store.createApiToken({ id: newId('t'), tokenHash: sha256Hex(token), name: 'admin', createdMs, expiresMs, replaces: null })
      return token
    },
    async exchange({ id, name }) {
      const token = PREFIX + newSecret()
      const made = { id: newId('t'), tokenHash: sha256Hex(token), createdMs: clock.nowMs() }
      await store.createApiToken({ ...made, name, expiresMs: null, replaces: id })
      return token
    },
    async authenticate(header) {
      const token = /^Bearer +(sk_[A-Za-z0-9_-]{43})$/i.exec(header ?? '')?.[1]
      if (token === undefined) return null
      const tokenHash = sha256Hex(token)
      const nowMs = clock.nowMs()
      const held = known.get(tokenHash)
      if (held !== undefined && held.untilMs > nowMs) return held.principal
      known.delete(tokenHash)
      const found = await store.apiTokenByHash(tokenHash)
      if (found === null || (found.expiresMs !== null && found.expiresMs <= nowMs)) return null
      const { id, name, expiresMs, replaces } = found
      if (replaces !== null) {
        await store.retireReplaced(id)
        known.clear()
      }
      if (known.size >= CACHE_MAX) known.clear()
      const principal = { id, name }
      known.set(tokenHash, { principal, untilMs: Math.min(nowMs + CACHE_MS, expiresMs ?? Number.POSITIVE_INFINITY) })
      return principal
    },
  }
}

/** 256 bits, base64url, 43 characters. */
export const newSecret = (): string => randomBytes(32).toString('base64url')
/** `<prefix>-` and 8 hex digits: a name for a row, no secret. */
export const newId = (prefix: string): string => `${prefix}-${randomBytes(4).toString('hex')}`

/** Before there is a token: throws `bad_options` for a file that could not be written. Leaves one that is there as it is. */
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

/** Readable by its user only from its first byte on, also if there was another file of that name; durable when it returns. */
export async function writeTokenFile(path: string, token: string): Promise<void> {
  const staged = `${path}.new`
  await rm(staged, { force: true })
  await writeFile(staged, `${token}\n`, { mode: 0o600, flag: 'wx' })
  syncPath(staged)
  await rename(staged, path)
  syncPath(dirname(path))
}
