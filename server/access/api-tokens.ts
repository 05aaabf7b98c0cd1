// API tokens: 256 random bits for people and tools. The store holds their SHA-256: the time of a lookup by hash reveals
// nothing about a token.
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { open, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { syncPath } from '../../shared/adapters/sync-path.ts'
import { sha256Hex } from '../../shared/kube/canonical.ts'
import type { TokenRole } from '../../shared/model/access.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { ApiTokenRecord, NewApiToken } from '../fleet/records.ts'
import type { Store } from '../store/store.ts'
import { type Principal, tokenPrincipal } from './principal.ts'

export interface TokenOrder {
  name: string
  role: TokenRole
  /** It has no right outside of these. Null means no such limit. */
  projects?: readonly string[] | null
  /** Time of expiry in ms since the epoch; null for a token that does not expire. */
  expiresMs: number | null
}

export interface ApiTokens {
  /** AP2: on a store without a valid admin token makes one, which expires, and returns it. `save` gets it before the
   *  store does. */
  createFirst(save: (token: string) => Promise<void>): Promise<string | null>
  /** AP16: the text of the new token, which is kept nowhere. */
  create(order: TokenOrder, by: Pick<Principal, 'name'>): Promise<{ id: string; token: string }>
  /** AP12: a token in the place of the caller's, which ends when the new one is first used. */
  exchange(principal: Principal): Promise<string>
  /** AP16: false if there is none with that id. No request that begins afterwards is taken, and streams of that token
   *  end. */
  revoke(id: string): Promise<boolean>
  /** Answers whose token an `authorization` header has: null without a header, for another scheme, and for an unknown
   *  or expired token. `from` is the address of the caller. */
  authenticate(header: string | null, from?: string | null): Promise<Principal | null>
  /** Aborts when the token is revoked or replaced. */
  ended(id: string): AbortSignal
  /** Whether a token that was let in has expired since: its streams end. */
  hasExpired(id: string): boolean
}

const PREFIX = 'sk_'
/** AP2: by then a person has read the file. */
export const FIRST_TOKEN_MS = 24 * 60 * 60_000
/** How long a token that was found is not looked up again. */
const CACHE_MS = 30_000
const CACHE_MAX = 1_000
/** The time of the last use is exact to this much, so that few requests write. */
const USE_NOTED_MS = 60_000

export interface ApiTokensDeps {
  store: Pick<
    Store,
    'createApiToken' | 'apiTokenByHash' | 'countAdminTokens' | 'retireReplaced' | 'listApiTokens' | 'deleteApiToken' | 'noteApiTokenUse'
  >
  clock: Clock
  log?: Logger
}

export function createApiTokens({ store, clock, log }: ApiTokensDeps): ApiTokens {
  const known = new Map<string, { principal: Principal; untilMs: number }>()
  const streaming = new Map<string, AbortController>()
  /** By token that was let in and expires. */
  const expiries = new Map<string, number>()
  /** Grows with each token that ends: what was looked up before is not remembered after. */
  let endings = 0
  const end = (id: string) => {
    endings += 1
    known.clear()
    streaming.get(id)?.abort()
    streaming.delete(id)
    expiries.delete(id)
  }
  const make = async (
    record: Omit<NewApiToken, 'id' | 'tokenHash' | 'createdMs'>,
    save: (token: string) => Promise<void> = async () => {},
  ) => {
    const made = { id: newId('t'), createdMs: clock.nowMs() }
    const token = newApiToken()
    await save(token)
    await store.createApiToken({ ...record, ...made, tokenHash: sha256Hex(token) })
    return { id: made.id, token }
  }
  const noteUse = ({ id, lastUsedMs }: ApiTokenRecord, nowMs: number, from: string | null) => {
    if (lastUsedMs !== null && nowMs - lastUsedMs < USE_NOTED_MS) return
    // A store that cannot be written (a full disk) still answers readers.
    store
      .noteApiTokenUse(id, nowMs, from)
      .catch((error: unknown) => log?.warn('cannot record the use of a token', { error: String(error) }))
  }
  return {
    async createFirst(save) {
      const nowMs = clock.nowMs()
      if ((await store.countAdminTokens(nowMs)) > 0) return null
      const first = { name: 'admin', role: 'admin', createdBy: null, expiresMs: nowMs + FIRST_TOKEN_MS, replaces: null } as const
      return (await make(first, save)).token
    },
    create: ({ name, role, projects = null, expiresMs }, by) =>
      make({ name, role, projects, expiresMs, createdBy: by.name, replaces: null }),
    async exchange({ id }) {
      const held = (await store.listApiTokens()).find((token) => token.id === id)
      if (held === undefined) throw new AppError('unauthorized') // it was revoked after the request was let in
      // Only the first admin token expires for a reason that its successor does not have.
      const expiresMs = held.createdBy === null ? null : held.expiresMs
      return (await make({ name: held.name, role: held.role, projects: held.projects, createdBy: held.createdBy, expiresMs, replaces: id }))
        .token
    },
    async revoke(id) {
      const deleted = await store.deleteApiToken(id)
      end(id)
      return deleted
    },
    async authenticate(header, from = null) {
      const token = /^Bearer +(\S+)$/i.exec(header ?? '')?.[1]
      if (token === undefined || !isApiToken(token)) return null
      const tokenHash = sha256Hex(token)
      const nowMs = clock.nowMs()
      const held = known.get(tokenHash)
      if (held !== undefined && held.untilMs > nowMs) return held.principal
      known.delete(tokenHash)
      const endingsBefore = endings
      const found = await store.apiTokenByHash(tokenHash)
      if (found === null || (found.expiresMs !== null && found.expiresMs <= nowMs)) return null
      const { id, name, role, projects, expiresMs, replaces } = found
      if (replaces !== null) {
        await store.retireReplaced(id)
        end(replaces)
      }
      noteUse(found, nowMs, from)
      if (expiresMs !== null) expiries.set(id, expiresMs)
      const principal = tokenPrincipal(id, name, role, projects)
      if (endings !== endingsBefore) return principal
      if (known.size >= CACHE_MAX) known.clear()
      known.set(tokenHash, { principal, untilMs: Math.min(nowMs + CACHE_MS, expiresMs ?? Number.POSITIVE_INFINITY) })
      return principal
    },
    ended(id) {
      const held = streaming.get(id) ?? new AbortController()
      streaming.set(id, held)
      return held.signal
    },
    hasExpired: (id) => (expiries.get(id) ?? Number.POSITIVE_INFINITY) <= clock.nowMs(),
  }
}

const CHECKSUM_DIGITS = 8
const checksum = (text: string): string => Bun.hash.crc32(text).toString(16).padStart(CHECKSUM_DIGITS, '0')

/** AP16: `sk_`, 43 characters of 256 random bits, and a CRC-32 of both in 8 hex digits: scanners find it, and a
 *  mistyped one is not looked up. */
export function newApiToken(): string {
  const text = PREFIX + newSecret()
  return text + checksum(text)
}

const TOKEN = /^(sk_[A-Za-z0-9_-]{43})([0-9a-f]{8})?$/

/** Tokens of earlier versions have no checksum. */
export function isApiToken(text: string): boolean {
  const [, body = '', sum] = TOKEN.exec(text) ?? []
  return body !== '' && (sum === undefined || sum === checksum(body))
}

/** 256 bits, base64url, 43 characters. */
export const newSecret = (): string => randomBytes(32).toString('base64url')
/** `<prefix>-` and 8 hex digits: a name for a row, no secret. */
export const newId = (prefix: string): string => `${prefix}-${randomBytes(4).toString('hex')}`

/**
 * Before there is a token: throws `bad_options` for a file that could not be written. Leaves an existing one unchanged.
 */
export async function checkTokenFile(path: string): Promise<void> {
  try {
    const isThere = existsSync(path)
    await (await open(path, 'a', 0o600)).close()
    if (!isThere) await rm(path)
  } catch (error) {
    const detail = `cannot write --admin-token-file ${path}`
    throw new AppError(
      'bad_options',
      { detail, remedy: 'Name a file in an existing folder that the server can write to.' },
      { cause: error },
    )
  }
}

/** Readable by its user only from its first byte on, also if there was another file of that name; durable when it
 *  returns. */
export async function writeTokenFile(path: string, token: string): Promise<void> {
  const staged = `${path}.new`
  await rm(staged, { force: true })
  await writeFile(staged, `${token}\n`, { mode: 0o600, flag: 'wx' })
  syncPath(staged)
  await rename(staged, path)
  syncPath(dirname(path))
}
