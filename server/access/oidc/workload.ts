// JWTs of pipelines (GitHub Actions, GitLab CI, Kubernetes), checked by jose: issuer, audience, times, and whether a
// rule names the caller.
import { createRemoteJWKSet, customFetch, decodeJwt, errors, type JWTPayload, jwtVerify } from 'jose'
import { z } from 'zod'
import { sha256Hex } from '../../../shared/kube/canonical.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import { claimAt, type Identity } from './claims.ts'
import { createIdpFetch, reasonOf } from './idp-fetch.ts'
import type { WorkloadSettings } from './settings.ts'

/** GitLab's are about 2 KB. */
export const JWT_BYTES_MAX = 16 * 1_024

export interface VerifiedJwt {
  identity: Identity
  lifetimeMs: number
  /** Null means that the JWT may be exchanged several times. */
  once: { id: string; untilMs: number } | null
}

export interface Workloads {
  /** Throws `unauthorized` for a JWT that is not right, and `sign_in_refused` for one that no rule names. */
  verify(jwt: string): Promise<VerifiedJwt>
  /** Why keys of an issuer cannot be read, by the name of the issuer. */
  problems(): ReadonlyMap<string, string>
}

/** Clocks of issuers and of this server differ. */
const LEEWAY_S = 30
/**
 * An unknown key makes the server read the keys again, at most once in this time; so does an issuer that does not
 * answer.
 */
const REFETCH_MS = 30_000
const FAILED_PAUSE_MS = 10_000
const KEYS_AGE_MS = 10 * 60_000

const discoverySchema = z.looseObject({ issuer: z.string(), jwks_uri: z.url() })

export interface WorkloadDeps {
  caOf(settings: WorkloadSettings): string | null
  clock: Clock
  log: Logger
}

export function createWorkloads(settings: readonly WorkloadSettings[], { caOf, clock, log }: WorkloadDeps): Workloads {
  const issuers = settings.map((one) => createIssuer(one, caOf(one), clock, log))
  const problems = new Map<string, string>()
  return {
    problems: () => problems,
    async verify(jwt) {
      const issuer = issuerOf(jwt)
      // Several entries may trust one issuer, for several audiences.
      const candidates = issuers.filter((one) => one.settings.issuer === issuer)
      if (candidates.length === 0) throw unauthorized('the server does not trust this issuer')
      let last: unknown
      for (const candidate of candidates) {
        try {
          const payload = await candidate.verify(jwt)
          problems.delete(candidate.settings.name)
          const { reusable, lifetime: lifetimeMs } = candidate.settings
          return { identity: workloadIdentity(payload, candidate.settings), lifetimeMs, once: reusable ? null : onceOf(jwt, payload) }
        } catch (error) {
          if (error instanceof AppError && error.code === 'provider_unavailable') problems.set(candidate.settings.name, error.message)
          last = error
        }
      }
      throw last
    },
  }
}

/** SI16. Not by the signature: some algorithms allow several for the same claims. */
function onceOf(jwt: string, { iss = '', jti, exp = 0 }: JWTPayload): { id: string; untilMs: number } {
  const named = jti === undefined ? ['claims', jwt.split('.')[1] ?? ''] : ['jti', jti]
  return { id: sha256Hex(JSON.stringify([iss, ...named])), untilMs: (exp + 2 * LEEWAY_S) * 1_000 }
}

function issuerOf(jwt: string): string {
  if (Buffer.byteLength(jwt) > JWT_BYTES_MAX) throw unauthorized(`a JWT has at most ${JWT_BYTES_MAX} bytes`)
  try {
    return String(decodeJwt(jwt).iss)
  } catch (error) {
    throw unauthorized('the token is not a JWT', error)
  }
}

interface Issuer {
  settings: WorkloadSettings
  verify(jwt: string): Promise<JWTPayload>
}

function createIssuer(settings: WorkloadSettings, ca: string | null, clock: Clock, log: Logger): Issuer {
  const idpFetch = createIdpFetch(ca)
  let keys: ReturnType<typeof createRemoteJWKSet> | null = null
  let failedMs: number | null = null

  const keysOf = async () => {
    if (keys !== null) return keys
    const uri = settings.jwksUri ?? (await discoverKeys(settings.issuer, idpFetch))
    keys = createRemoteJWKSet(new URL(uri), {
      cooldownDuration: REFETCH_MS,
      cacheMaxAge: KEYS_AGE_MS,
      [customFetch]: async (url, options) => {
        // jose waits between two reads that succeed, but not after one that failed.
        if (failedMs !== null && clock.nowMs() - failedMs < FAILED_PAUSE_MS)
          throw new Error('the keys could not be read; the next attempt is in a moment')
        try {
          const answer = await idpFetch(url, options)
          failedMs = answer.ok ? null : clock.nowMs()
          return answer
        } catch (error) {
          failedMs = clock.nowMs()
          throw error
        }
      },
    })
    return keys
  }

  return {
    settings,
    async verify(jwt) {
      try {
        if (keys === null && failedMs !== null && clock.nowMs() - failedMs < FAILED_PAUSE_MS)
          throw new Error('the issuer could not be read; the next attempt is in a moment')
        const { payload } = await jwtVerify(jwt, await keysOf(), {
          issuer: settings.issuer,
          audience: settings.audience,
          algorithms: settings.algorithms,
          clockTolerance: LEEWAY_S,
          maxTokenAge: settings.maxAge / 1_000,
          requiredClaims: ['exp', 'iat', 'sub'],
          currentDate: new Date(clock.nowMs()),
        })
        return payload
      } catch (error) {
        if (error instanceof errors.JOSEError && !(error instanceof errors.JWKSTimeout) && error.code !== 'ERR_JOSE_GENERIC')
          throw unauthorized(reasonOf(error), error)
        if (keys === null) failedMs = clock.nowMs()
        log.warn('keys of an issuer cannot be read', { issuer: settings.issuer, error: reasonOf(error) })
        throw new AppError(
          'provider_unavailable',
          { doing: `read the keys of ${settings.name}`, detail: reasonOf(error), retryAfterMs: FAILED_PAUSE_MS },
          { cause: error },
        )
      }
    },
  }
}

async function discoverKeys(issuer: string, idpFetch: ReturnType<typeof createIdpFetch>): Promise<string> {
  const answer = await idpFetch(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, {
    headers: { accept: 'application/json' },
  })
  if (!answer.ok) throw new Error(`the discovery document of ${issuer} returns HTTP ${answer.status}`)
  const document = discoverySchema.parse(await answer.json())
  if (document.issuer !== issuer) throw new Error(`the discovery document names another issuer than ${issuer}`)
  const uri = new URL(document.jwks_uri)
  if (uri.protocol !== 'https:' && new URL(issuer).protocol === 'https:') throw new Error('the URL of the keys is not https')
  return document.jwks_uri
}

const unauthorized = (detail: string, cause?: unknown): AppError =>
  new AppError(
    'unauthorized',
    { doing: 'exchange a JWT', detail, remedy: 'Check issuer, audience and expiry of the JWT against --oidc-config.' },
    { cause },
  )

/** Throws `sign_in_refused` for a JWT that no rule names. */
export function workloadIdentity(claims: Readonly<Record<string, unknown>>, settings: Pick<WorkloadSettings, 'name' | 'rules'>): Identity {
  const rule = settings.rules.find(({ claims: wanted }) =>
    Object.entries(wanted).every(([path, pattern]) => matches(claimAt(claims, path), pattern)),
  )
  if (rule === undefined)
    throw new AppError('sign_in_refused', { doing: 'exchange a JWT', detail: `no rule of ${settings.name} matches its claims` })
  const name = rule.name.replace(/\{([^{}]+)\}/g, (_, path: string) => String(claimAt(claims, path) ?? ''))
  if (!/^[\x21-\x7e]{1,256}$/.test(name))
    throw new AppError('sign_in_refused', {
      doing: 'exchange a JWT',
      detail: `the rule of ${settings.name} does not produce a valid name from its claims`,
    })
  return { provider: settings.name, subject: String(claims['sub']), name, email: null, groups: rule.groups }
}

function matches(value: unknown, pattern: string | number | boolean): boolean {
  if (Array.isArray(value)) return value.some((one) => matches(one, pattern))
  if (typeof pattern !== 'string') return value === pattern
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') return false
  const given = String(value)
  return pattern.includes('*') ? matchesGlob(pattern.split('*'), given) : given === pattern
}

/** The parts in their order, with anything but a slash between them; no regular expression, whose time could grow with
 *  the claim. */
function matchesGlob([first = '', ...rest]: readonly string[], text: string): boolean {
  if (!text.startsWith(first)) return false
  let at = first.length
  for (const [i, part] of rest.entries()) {
    const isLast = i === rest.length - 1
    const next = isLast ? text.length - part.length : text.indexOf(part, at)
    if (next < at || !text.startsWith(part, next) || text.slice(at, next).includes('/')) return false
    at = next + part.length
  }
  return at === text.length
}
