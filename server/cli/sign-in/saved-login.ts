// The login of a context: written by `skerry login`, renewed by every command before its access token expires, removed
// by `skerry logout`.
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { exchangeAnswerSchema, tokenAnswerSchema } from '../../../shared/model/sign-in.ts'
import { systemClock } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import type { Client } from '../client.ts'
import { changeContexts, contextsPath, readContexts, type SavedContext } from '../contexts/file.ts'
import { type CliIo, UsageError } from '../io.ts'

export type SavedLogin = NonNullable<SavedContext['login']>

/** A token is renewed this long before it expires, so that it is good for the request that it was fetched for. */
const EARLY_MS = 30_000
const LOCK_LOOK_MS = 100
const LOCK_WAIT_MS = 20_000
/** A lock this old was left by a program that was killed. */
const LOCK_STALE_MS = 60_000

const REMEDY = 'Sign in again with `skerry login`.'

export interface Renewal {
  io: Pick<CliIo, 'env' | 'clock'>
  /** Name of the context that has the login. */
  context: string
  /** Without a token. */
  client: Pick<Client, 'signIn'>
  /** How long another program may take that renews it; default 20 s. */
  waitMs?: number
}

/** Answers the access token of the context, a new one if it is about to expire. Programs at the same time renew it
 *  once. */
export function createRenewal({ io, context, client, waitMs = LOCK_WAIT_MS }: Renewal): () => Promise<string> {
  const path = contextsPath(io.env) ?? ''
  const nowMs = () => io.clock.nowMs()
  const isFresh = ({ token, login }: SavedContext) => token !== undefined && (login?.expiresMs ?? 0) - EARLY_MS > nowMs()
  const read = (): SavedContext => {
    const saved = readContexts(path).contexts[context]
    if (saved?.login === undefined) throw new AppError('unauthorized', { detail: `the context ${context} was signed out`, remedy: REMEDY })
    return saved
  }
  let held: SavedContext | null = null
  return async () => {
    if (held === null || !isFresh(held)) held = read()
    if (!isFresh(held)) {
      const unlock = await lock(`${path}.login`, io.clock, waitMs)
      try {
        held = read() // another program may have renewed it meanwhile
        if (!isFresh(held)) held = await renew(held, client, (saved) => saveLogin(path, context, saved), nowMs)
      } finally {
        unlock()
      }
    }
    return held.token ?? ''
  }
}

async function renew(
  { login = {}, ...saved }: SavedContext,
  client: Renewal['client'],
  save: (saved: Pick<SavedContext, 'token' | 'login'>) => void,
  nowMs: () => number,
): Promise<SavedContext> {
  try {
    const { jwtFile } = login
    const next = typeof jwtFile === 'string' ? await exchangeJwt(client, jwtFile, login, nowMs) : await refresh(client, login, nowMs)
    save(next)
    return { ...saved, ...next }
  } catch (error) {
    if (error instanceof AppError && error.code === 'unauthorized')
      throw new AppError('unauthorized', { detail: 'the login has ended', remedy: REMEDY }, { cause: error })
    throw error
  }
}

async function refresh(client: Renewal['client'], login: SavedLogin, nowMs: () => number) {
  const { token, refreshToken, expiresInMs } = await client.signIn('/token', tokenAnswerSchema, {
    grant: 'refresh',
    refreshToken: login.refreshToken ?? '',
  })
  return { token, login: { ...login, refreshToken, expiresMs: nowMs() + expiresInMs } }
}

/** `jwtFile`: read each time, because platforms put a new JWT into it. */
export async function exchangeJwt(client: Renewal['client'], jwtFile: string, login: SavedLogin, nowMs: () => number) {
  let jwt: string
  try {
    jwt = readFileSync(jwtFile, 'utf8').trim()
  } catch (error) {
    throw new UsageError(`cannot read the JWT in ${jwtFile}: ${error instanceof Error ? error.message : String(error)}`)
  }
  const { token, expiresInMs, name } = await client.signIn('/exchange', exchangeAnswerSchema, { token: jwt })
  return { token, login: { ...login, user: name, jwtFile, expiresMs: nowMs() + expiresInMs } }
}

function saveLogin(path: string, context: string, { token, login }: Pick<SavedContext, 'token' | 'login'>): void {
  changeContexts(path, (file) => {
    const saved = file.contexts[context]
    return saved === undefined ? file : { ...file, contexts: { ...file.contexts, [context]: { ...saved, token, login } } }
  })
}

/** Held over a request, unlike that of the contexts file. */
async function lock(path: string, clock: CliIo['clock'], waitMs: number): Promise<() => void> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  for (let waitedMs = 0; ; waitedMs += LOCK_LOOK_MS) {
    try {
      closeSync(openSync(path, 'wx', 0o600))
      return () => rmSync(path, { force: true })
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
      if (isStale(path)) rmSync(path, { force: true })
      else if (waitedMs >= waitMs)
        throw new AppError('bad_options', {
          detail: `${path} exists: another skerry is renewing the login`,
          remedy: `If no other skerry runs, delete ${path}.`,
        })
      else await clock.sleep(LOCK_LOOK_MS)
    }
  }
}

function isStale(path: string): boolean {
  try {
    return systemClock.nowMs() - statSync(path).mtimeMs > LOCK_STALE_MS
  } catch {
    return false
  }
}
