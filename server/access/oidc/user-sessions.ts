// Sessions of people and pipelines: made at sign-in, carried by a cookie or a short access token, checked with the
// provider every few minutes, revocable.
import { randomBytes } from 'node:crypto'
import { sha256Hex } from '../../../shared/kube/canonical.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import { fleetEvent, type SaidEvent } from '../../fleet/fleet-event.ts'
import type { SessionRecord } from '../../fleet/records.ts'
import { news, warning } from '../../messages/event-messages.ts'
import { actAsSystem } from '../../store/audit/caller.ts'
import type { Store } from '../../store/store.ts'
import type { Principal } from '../principal.ts'
import type { SecretBox } from '../secret-box.ts'
import type { Identity } from './claims.ts'
import type { IdentityProvider, ProviderGrant } from './provider.ts'
import { isSessionSecret, newSessionSecret } from './session-secrets.ts'
import type { SessionSettings } from './settings.ts'
import type { VerifiedJwt } from './workload.ts'

/** Place of the tokens of sessions in the secret box. */
const PLACE = 'session'

/** A session of the CLI, which renews its token. */
export const ACCESS_MS = 15 * 60_000
/** How long a refresh token is still good after it was used: the answer may have been lost. */
export const REUSE_GRACE_MS = 60_000
/** How long a session that was found is not looked up again. */
const CACHE_MS = 30_000
const CACHE_MAX = 2_000
/** The time of the last use is exact to this much, so that few requests write. */
const USE_NOTED_MS = 60_000
/** A provider that does not answer is not asked by every request. */
const CHECK_PAUSE_MS = 15_000
const SWEEP_MS = 60_000

export interface CliTokens {
  token: string
  expiresInMs: number
  refreshToken: string
}

export interface UserSessions {
  /** Answers the value of the cookie. */
  openBrowser(grant: ProviderGrant, from: string | null): Promise<{ id: string; cookie: string; maxAgeMs: number }>
  openCli(grant: ProviderGrant, from: string | null): Promise<CliTokens>
  /** Throws `unauthorized` for a JWT that was exchanged before. */
  openWorkload(jwt: VerifiedJwt, from: string | null): Promise<{ token: string; expiresInMs: number }>
  /** Throws `unauthorized` for a refresh token that is not good; one that was used before ends its session. */
  renewCli(refreshToken: string, from: string | null): Promise<CliTokens>
  /** The caller with this secret. Null means none. `from`: address of the caller. */
  authenticate(kind: 'access' | 'cookie', secret: string, from: string | null): Promise<Principal | null>
  list(): Promise<SessionRecord[]>
  /** False if there is none with that id. Effective at once; `by`: the person who ended it. */
  revoke(id: string, by: string): Promise<boolean>
  /** Ends a session in whose place its browser got another one. The provider's tokens stay: those of the new session
   *  may depend on them. */
  replace(id: string): Promise<void>
  /**
   * Ends the session of a person who signs out, also at the provider. Returns the page that ends the provider's own
   * session. Null means that there is none.
   */
  signOut(id: string, back: string): Promise<string | null>
  /** Aborts when the session ends. */
  ended(id: string): AbortSignal
  /** Deletes what has expired, and checks the sessions of open streams with their providers. */
  run(signal: AbortSignal): Promise<void>
}

export interface UserSessionsDeps {
  store: Pick<
    Store,
    | 'createSession'
    | 'sessionByAccess'
    | 'sessionByRefresh'
    | 'listSessions'
    | 'changeSession'
    | 'deleteSession'
    | 'deleteExpiredSessions'
    | 'appendEvents'
    | 'useOnce'
  >
  /** By name. */
  providers: ReadonlyMap<string, IdentityProvider>
  /** Names of issuers that are trusted; sessions of others are worth nothing. */
  workloads: ReadonlySet<string>
  settings: SessionSettings
  secrets: Pick<SecretBox, 'seal' | 'open'>
  clock: Clock
  log: Logger
}

interface Held {
  session: SessionRecord
  principal: Principal
  untilMs: number
}

/** For texts. */
const named = ({ id, name, provider }: SessionRecord) => ({ session: id, name, provider })

export function createUserSessions(deps: UserSessionsDeps): UserSessions {
  const { store, providers, workloads, settings, secrets, clock, log } = deps
  const known = new Map<string, Held>()
  const streaming = new Map<string, AbortController>()
  const checking = new Map<string, Promise<SessionRecord | null>>()
  /** By session: when the provider did not answer. */
  const unanswered = new Map<string, number>()
  /** Grows with each session that ends: what was looked up before is not remembered after. */
  let endings = 0

  const tell = (said: SaidEvent) => store.appendEvents([fleetEvent(clock.nowMs(), said, {})])
  const forget = (id: string) => {
    endings += 1
    for (const [hash, { session }] of known) if (session.id === id) known.delete(hash)
  }
  const end = async (session: SessionRecord, verb: 'sign-out' | 'revoke' | 'end', detail?: string): Promise<boolean> => {
    const deleted = await store.deleteSession(session.id, { verb, ...(detail === undefined ? {} : { detail }) })
    forget(session.id)
    unanswered.delete(session.id)
    streaming.get(session.id)?.abort()
    streaming.delete(session.id)
    return deleted
  }
  const endBecause = async (session: SessionRecord, why: string, said: SaidEvent): Promise<null> => {
    if (await actAsSystem('session check', () => end(session, 'end', why))) await tell(said)
    return null
  }

  const seal = ({ refreshToken, idToken }: ProviderGrant): string | null =>
    refreshToken === null && idToken === null
      ? null
      : Buffer.from(secrets.seal(Buffer.from(JSON.stringify({ refreshToken, idToken })), PLACE)).toString('base64')
  /** Null if it was sealed with a key that was destroyed since. */
  const unseal = ({ sealed }: SessionRecord): { refreshToken: string | null; idToken: string | null } | null => {
    if (sealed === null) return { refreshToken: null, idToken: null }
    const opened = secrets.open(Buffer.from(sealed, 'base64'), PLACE)
    return opened === null ? null : JSON.parse(Buffer.from(opened).toString())
  }

  const open = async (
    kind: SessionRecord['kind'],
    identity: Identity,
    from: string | null,
    times: { accessMs: number; maxMs: number },
    more: Pick<SessionRecord, 'accessHash' | 'refreshHash' | 'sealed'>,
  ): Promise<SessionRecord> => {
    const nowMs = clock.nowMs()
    const { provider, subject, name, email, groups } = identity
    const session: SessionRecord = {
      ...{ id: newSessionId(), kind, provider, subject, name, email, groups, ...more },
      accessExpiresMs: nowMs + times.accessMs,
      earlierRefreshHash: null,
      rotatedMs: nowMs,
      createdMs: nowMs,
      expiresMs: nowMs + times.maxMs,
      checkedMs: nowMs,
      lastUsedMs: nowMs,
      lastUsedFrom: from,
    }
    await store.createSession(session)
    await tell(news('SignedIn', { ...named(session), from: from ?? '', kind }))
    return session
  }
  /** A session whose provider cannot say whether the person still belongs to it is short. */
  const maxOf = (grant: ProviderGrant, ms: number) => (grant.refreshToken === null ? Math.min(ms, settings.unchecked) : ms)
  const idleMsOf = ({ kind }: SessionRecord) =>
    kind === 'browser' ? settings.idle : kind === 'cli' ? settings.cliIdle : Number.POSITIVE_INFINITY
  const isOver = (session: SessionRecord, nowMs: number) => session.expiresMs <= nowMs || session.lastUsedMs + idleMsOf(session) <= nowMs
  const isTrusted = ({ kind, provider }: SessionRecord) => (kind === 'workload' ? workloads.has(provider) : providers.has(provider))

  /** The session with recent groups. Null means that it has ended, or the provider has not confirmed it for too long.
   */
  const check = async (session: SessionRecord): Promise<SessionRecord | null> => {
    const held = unseal(session)
    if (held === null) return endBecause(session, 'the key for secrets was replaced', news('SignInEnded.key', named(session)))
    const { refreshToken, idToken } = held
    const provider = providers.get(session.provider)
    if (refreshToken === null || provider === undefined) return session
    try {
      const grant = await provider.refresh({ refreshToken, idToken, subject: session.subject })
      const { name, email, groups } = grant.identity
      const change = { name, email, groups, checkedMs: clock.nowMs(), sealed: seal(grant) }
      await actAsSystem('session check', () => store.changeSession(session.id, change))
      forget(session.id)
      unanswered.delete(session.id)
      return { ...session, ...change }
    } catch (error) {
      if (error instanceof AppError && error.code === 'sign_in_refused')
        return endBecause(session, error.message, warning('SignInEnded', { ...named(session), why: error.message }))
      unanswered.set(session.id, clock.nowMs())
      const { message } = error instanceof Error ? error : { message: String(error) }
      log.warn('identity provider could not confirm a session', { session: session.id, provider: session.provider, error: message })
      return outlasts(session)
    }
  }
  const outlasts = (session: SessionRecord) => (clock.nowMs() - session.checkedMs <= settings.recheck + settings.outage ? session : null)
  const checked = (session: SessionRecord): Promise<SessionRecord | null> | SessionRecord | null => {
    const nowMs = clock.nowMs()
    if (session.kind === 'workload' || session.sealed === null || nowMs - session.checkedMs < settings.recheck) return session
    if (nowMs - (unanswered.get(session.id) ?? Number.NEGATIVE_INFINITY) < CHECK_PAUSE_MS) return outlasts(session)
    const held = checking.get(session.id)
    if (held !== undefined) return held
    const mine = check(session).finally(() => checking.delete(session.id))
    checking.set(session.id, mine)
    return mine
  }

  const noteUse = (held: Held, from: string | null, nowMs: number) => {
    const { session } = held
    if (nowMs - session.lastUsedMs < USE_NOTED_MS) return
    held.session = { ...session, lastUsedMs: nowMs, lastUsedFrom: from }
    // A store that cannot be written (a full disk) still answers readers.
    store
      .changeSession(session.id, { lastUsedMs: nowMs, lastUsedFrom: from })
      .catch((error: unknown) => log.warn('cannot record the use of a session', { error: String(error) }))
  }
  /** SI17: whoever uses the new tokens has them, so that nobody needs the earlier refresh token any more. */
  const isSuccessor = ({ earlierRefreshHash, rotatedMs }: SessionRecord) => earlierRefreshHash !== null && rotatedMs > 0
  const settleRotation = async (held: Held) => {
    const { session } = held
    held.session = { ...session, rotatedMs: 0 }
    await store
      .changeSession(session.id, { rotatedMs: 0 })
      .catch((error: unknown) => log.warn('cannot end an earlier refresh token', { session: session.id, error: String(error) }))
  }
  const cliTokens = () => ({ token: newSessionSecret('access'), refreshToken: newSessionSecret('refresh'), expiresInMs: ACCESS_MS })
  const notGood = (detail: string) => new AppError('unauthorized', { detail, remedy: 'Sign in again with `skerry login`.' })

  return {
    async openBrowser(grant, from) {
      const cookie = newSessionSecret('cookie')
      const maxAgeMs = maxOf(grant, settings.max)
      const secret = { accessHash: sha256Hex(cookie), refreshHash: null, sealed: seal(grant) }
      const { id } = await open('browser', grant.identity, from, { accessMs: maxAgeMs, maxMs: maxAgeMs }, secret)
      return { id, cookie, maxAgeMs }
    },
    async openCli(grant, from) {
      const tokens = cliTokens()
      const secret = { accessHash: sha256Hex(tokens.token), refreshHash: sha256Hex(tokens.refreshToken), sealed: seal(grant) }
      await open('cli', grant.identity, from, { accessMs: ACCESS_MS, maxMs: maxOf(grant, settings.cliMax) }, secret)
      return tokens
    },
    async openWorkload({ identity, lifetimeMs, once }, from) {
      if (once !== null && !(await store.useOnce(once.id, { untilMs: once.untilMs, nowMs: clock.nowMs() })))
        throw new AppError('unauthorized', {
          doing: 'exchange a JWT',
          detail: 'the JWT was exchanged before',
          remedy: 'Request a new JWT from the platform, or set reusable for its issuer in --oidc-config.',
        })
      const token = newSessionSecret('access')
      const secret = { accessHash: sha256Hex(token), refreshHash: null, sealed: null }
      await open('workload', identity, from, { accessMs: lifetimeMs, maxMs: lifetimeMs }, secret)
      return { token, expiresInMs: lifetimeMs }
    },
    async renewCli(refreshToken, from) {
      if (!isSessionSecret('refresh', refreshToken)) throw notGood('not a refresh token')
      const hash = sha256Hex(refreshToken)
      const session = await store.sessionByRefresh(hash)
      const nowMs = clock.nowMs()
      if (session === null || isOver(session, nowMs) || !isTrusted(session)) throw notGood('the login has ended')
      if (session.refreshHash !== hash && nowMs - session.rotatedMs > REUSE_GRACE_MS) {
        const why = 'the refresh token was used twice and may have been copied'
        await endBecause(session, why, warning('RefreshTokenReused', named(session)))
        throw notGood('the refresh token was used before; the login has ended')
      }
      const current = await checked(session)
      if (current === null) throw notGood('the identity provider no longer confirms the login')
      const tokens = cliTokens()
      await store.changeSession(session.id, {
        accessHash: sha256Hex(tokens.token),
        accessExpiresMs: nowMs + ACCESS_MS,
        refreshHash: sha256Hex(tokens.refreshToken),
        earlierRefreshHash: hash,
        // Repetitions do not prolong the time in which the earlier token is good.
        rotatedMs: session.refreshHash === hash ? nowMs : session.rotatedMs,
        lastUsedMs: nowMs,
        lastUsedFrom: from,
      })
      forget(session.id)
      return tokens
    },
    async authenticate(kind, secret, from) {
      if (!isSessionSecret(kind, secret)) return null
      const hash = sha256Hex(secret)
      const nowMs = clock.nowMs()
      const endingsBefore = endings
      let held = known.get(hash)
      if (held === undefined || held.untilMs <= nowMs) {
        const session = await store.sessionByAccess(hash)
        if (session === null || (session.kind === 'browser') !== (kind === 'cookie')) return null
        held = {
          session,
          principal: held?.principal !== undefined && isSame(held.session, session) ? held.principal : principalOf(session),
          untilMs: nowMs + CACHE_MS,
        }
        if (endings === endingsBefore) {
          if (known.size >= CACHE_MAX) known.clear()
          known.set(hash, held)
        }
      }
      const { session } = held
      if (isSuccessor(session)) await settleRotation(held)
      if (isOver(session, nowMs) || session.accessExpiresMs <= nowMs || !isTrusted(session)) return null
      const current = await checked(session)
      if (current === null) return null
      noteUse(held, from, nowMs)
      return current === session ? held.principal : principalOf(current)
    },
    list: () => store.listSessions(),
    async revoke(id, by) {
      const session = (await store.listSessions()).find((one) => one.id === id)
      if (session === undefined) return false
      const deleted = await end(session, 'revoke')
      if (deleted) await tell(news('SessionRevoked', { ...named(session), by }))
      const refreshToken = unseal(session)?.refreshToken
      if (refreshToken != null) await providers.get(session.provider)?.revoke(refreshToken)
      return deleted
    },
    async replace(id) {
      const session = (await store.listSessions()).find((one) => one.id === id)
      if (session !== undefined) await end(session, 'sign-out', 'replaced by another sign-in')
    },
    async signOut(id, back) {
      const session = (await store.listSessions()).find((one) => one.id === id)
      if (session === undefined) return null
      await end(session, 'sign-out')
      await tell(news('SignedOut', named(session)))
      const { refreshToken, idToken } = unseal(session) ?? { refreshToken: null, idToken: null }
      const provider = providers.get(session.provider)
      if (refreshToken !== null) await provider?.revoke(refreshToken)
      return session.kind === 'browser' ? (provider?.endSessionUrl(idToken, back) ?? null) : null
    },
    ended(id) {
      const held = streaming.get(id) ?? new AbortController()
      streaming.set(id, held)
      return held.signal
    },
    async run(signal) {
      for (;;) {
        await clock.sleep(SWEEP_MS, signal)
        if (signal.aborted) return
        await store.deleteExpiredSessions(clock.nowMs())
        if (streaming.size === 0) continue
        const sessions = new Map((await store.listSessions()).map((session) => [session.id, session]))
        for (const [id, stream] of streaming) {
          const session = sessions.get(id)
          if (session !== undefined && !isOver(session, clock.nowMs()) && (await checked(session)) !== null) continue
          stream.abort()
          streaming.delete(id)
        }
      }
    },
  }
}

/** A name for a row, no secret. Pipelines make many of them. */
const newSessionId = () => `s-${randomBytes(8).toString('hex')}`

const isSame = (a: SessionRecord, b: SessionRecord): boolean =>
  a.name === b.name && a.email === b.email && a.groups.length === b.groups.length && a.groups.every((group, i) => group === b.groups[i])

/** A principal is compared by identity where its rights are remembered. */
const principalOf = ({ id, kind, name, provider, subject, email, groups }: SessionRecord): Principal => ({
  id,
  kind: kind === 'workload' ? 'workload' : 'user',
  ...{ name, provider, subject, email, groups, role: null, projects: null },
})
