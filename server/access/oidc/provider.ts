// One identity provider, through openid-client: discovery, sign-in by code and by device, refresh, logout. The
// signature of every ID token is checked.
import * as client from 'openid-client'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import { claimAt, type Identity, identityOf, refused } from './claims.ts'
import { createIdpFetch, reasonOf } from './idp-fetch.ts'
import type { ProviderSettings } from './settings.ts'

/** Kept by the server between the start and the end of a sign-in. */
export interface LoginChecks {
  state: string
  nonce: string
  verifier: string
}

export interface ProviderGrant {
  identity: Identity
  /** Null if the provider gave none. */
  refreshToken: string | null
  idToken: string | null
}

export interface DeviceLogin {
  userCode: string
  verificationUri: string
  /** With the code in it. Null means that the provider has none. */
  verificationUriComplete: string | null
  expiresInMs: number
  intervalMs: number
  /** Settles when the person has decided. */
  granted: Promise<ProviderGrant>
}

export interface IdentityProvider {
  readonly name: string
  /** Why it cannot be used at the moment. Null means that nothing is known to be wrong. */
  problem(): string | null
  /** Throws `provider_unavailable`. */
  discover(): Promise<void>
  startLogin(redirectUri: string): Promise<{ url: URL; checks: LoginChecks }>
  /** `currentUrl`: with the answer of the provider. */
  finishLogin(currentUrl: URL, checks: LoginChecks): Promise<ProviderGrant>
  startDevice(signal: AbortSignal): Promise<DeviceLogin>
  /** Throws `sign_in_refused` if the provider ended the grant, `provider_unavailable` if the answer is unknown. */
  refresh(held: { refreshToken: string; idToken: string | null; subject: string }): Promise<ProviderGrant>
  /** Best effort: the provider forgets the grant. */
  revoke(refreshToken: string): Promise<void>
  /** Page of the provider that ends its own session. Null means that it has none. */
  endSessionUrl(idToken: string | null, back: string): string | null
}

export interface ProviderDeps {
  /** Null for a public client. */
  clientSecret: string | null
  ca: string | null
  clock: Clock
  log: Logger
}

/** A provider that does not answer is not asked again by every sign-in. */
const DISCOVERY_PAUSE_MS = 5_000
/** Endpoints and algorithms change seldom. */
const DISCOVERY_AGE_MS = 24 * 60 * 60_000

export function createProvider(settings: ProviderSettings, { clientSecret, ca, clock, log }: ProviderDeps): IdentityProvider {
  const idpFetch = createIdpFetch(ca)
  const scope = settings.scopes.includes('openid') ? settings.scopes.join(' ') : ['openid', ...settings.scopes].join(' ')
  const isPlain = settings.issuer.startsWith('http://') // the settings allow it on a loopback address only
  let found: { config: client.Configuration; atMs: number } | null = null
  let asking: Promise<client.Configuration> | null = null
  let failed: { reason: string; atMs: number } | null = null

  const unavailable = (reason: string, cause?: unknown) =>
    new AppError(
      'provider_unavailable',
      { doing: `ask the identity provider ${settings.name}`, detail: reason, retryAfterMs: DISCOVERY_PAUSE_MS },
      { cause },
    )

  const ask = async (): Promise<client.Configuration> => {
    const authentication = clientSecret === null ? client.None() : undefined
    const config = await client.discovery(new URL(settings.issuer), settings.clientId, clientSecret ?? {}, authentication, {
      [client.customFetch]: idpFetch,
      timeout: 10,
      execute: [client.enableNonRepudiationChecks, ...(isPlain ? [client.allowInsecureRequests] : [])],
    })
    return config
  }
  const configuration = async (): Promise<client.Configuration> => {
    const nowMs = clock.nowMs()
    if (found !== null && nowMs - found.atMs < DISCOVERY_AGE_MS) return found.config
    if (failed !== null && nowMs - failed.atMs < DISCOVERY_PAUSE_MS) {
      if (found !== null) return found.config
      throw unavailable(failed.reason)
    }
    asking ??= ask().finally(() => {
      asking = null
    })
    try {
      const config = await asking
      if (failed !== null) log.info('identity provider answers again', { provider: settings.name })
      found = { config, atMs: clock.nowMs() }
      failed = null
      return config
    } catch (error) {
      const reason = reasonOf(error)
      if (failed?.reason !== reason)
        log.warn('identity provider not available', { provider: settings.name, issuer: settings.issuer, error: reason })
      failed = { reason, atMs: clock.nowMs() }
      if (found !== null) return found.config
      throw unavailable(reason, error)
    }
  }

  /** Separates a refusal of the provider from a missing answer. */
  const told = (error: unknown): AppError => {
    if (error instanceof AppError) return error
    if (error instanceof client.AuthorizationResponseError)
      return refused(
        `the provider ${settings.name} answered ${error.error}${error.error_description === undefined ? '' : `: ${error.error_description.slice(0, 200)}`}`,
      )
    if (
      error instanceof client.ResponseBodyError &&
      error.status < 500 &&
      error.error !== 'temporarily_unavailable' &&
      error.status !== 429
    )
      return refused(
        `the provider ${settings.name} answered ${error.error}${error.error_description === undefined ? '' : `: ${error.error_description.slice(0, 200)}`}`,
      )
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    // A token or an answer that fails a check.
    if (
      [
        'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
        'OAUTH_INVALID_RESPONSE',
        'OAUTH_JWT_TIMESTAMP_CHECK_FAILED',
        'OAUTH_KEY_SELECTION_FAILED',
        'OAUTH_UNSUPPORTED_OPERATION',
      ].includes(code)
    )
      return refused(`the answer of the provider ${settings.name} failed a check: ${reasonOf(error)}`)
    return unavailable(reasonOf(error), error)
  }

  const grantOf = async (
    config: client.Configuration,
    tokens: client.TokenEndpointResponse & client.TokenEndpointResponseHelpers,
    held: { refreshToken: string | null; idToken: string | null; subject: string | null },
  ): Promise<ProviderGrant> => {
    let claims: Record<string, unknown> | undefined = tokens.claims()
    const subject = claims?.['sub'] ?? held.subject
    const lacks = (path: string) => claims === undefined || claimAt(claims, path) === undefined
    if (config.serverMetadata().userinfo_endpoint !== undefined && (lacks(settings.claims.groups) || lacks(settings.claims.username)))
      claims = { ...(await client.fetchUserInfo(config, tokens.access_token, String(subject))), ...claims }
    if (claims === undefined) throw refused(`the provider ${settings.name} sent no ID token`)
    return {
      identity: identityOf({ ...claims, sub: subject }, settings),
      refreshToken: tokens.refresh_token ?? held.refreshToken,
      idToken: tokens.id_token ?? held.idToken,
    }
  }
  const none = { refreshToken: null, idToken: null, subject: null }

  return {
    name: settings.name,
    problem: () => failed?.reason ?? null,
    discover: async () => void (await configuration()),
    async startLogin(redirectUri) {
      const config = await configuration()
      const checks = { state: client.randomState(), nonce: client.randomNonce(), verifier: client.randomPKCECodeVerifier() }
      const url = client.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope,
        state: checks.state,
        nonce: checks.nonce,
        code_challenge: await client.calculatePKCECodeChallenge(checks.verifier),
        code_challenge_method: 'S256',
      })
      return { url, checks }
    },
    async finishLogin(currentUrl, { state, nonce, verifier }) {
      const config = await configuration()
      try {
        const checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true }
        return await grantOf(config, await client.authorizationCodeGrant(config, currentUrl, checks), none)
      } catch (error) {
        throw told(error)
      }
    },
    async startDevice(signal) {
      const config = await configuration()
      if (config.serverMetadata().device_authorization_endpoint === undefined)
        throw refused(`the provider ${settings.name} does not support sign-in by device code`)
      try {
        const asked = await client.initiateDeviceAuthorization(config, { scope })
        const expiresInMs = Math.min(asked.expires_in, 1_800) * 1_000
        const over = AbortSignal.any([signal, AbortSignal.timeout(expiresInMs)])
        const granted = client
          .pollDeviceAuthorizationGrant(config, asked, undefined, { signal: over })
          .then((tokens) => grantOf(config, tokens, none))
          .catch((error: unknown) => {
            throw over.aborted ? new AppError('sign_in_expired', {}, { cause: error }) : told(error)
          })
        granted.catch(() => {}) // somebody may never ask for it
        return {
          userCode: asked.user_code,
          verificationUri: asked.verification_uri,
          verificationUriComplete: asked.verification_uri_complete ?? null,
          expiresInMs,
          intervalMs: (asked.interval ?? 5) * 1_000,
          granted,
        }
      } catch (error) {
        throw told(error)
      }
    },
    async refresh({ refreshToken, idToken, subject }) {
      const config = await configuration()
      try {
        const tokens = await client.refreshTokenGrant(config, refreshToken)
        const grant = await grantOf(config, tokens, { refreshToken, idToken, subject })
        if (grant.identity.subject !== subject) throw refused(`the provider ${settings.name} answered for another person`)
        return grant
      } catch (error) {
        throw told(error)
      }
    },
    async revoke(refreshToken) {
      try {
        const config = await configuration()
        if (config.serverMetadata().revocation_endpoint === undefined) return
        await client.tokenRevocation(config, refreshToken, { token_type_hint: 'refresh_token' })
      } catch (error) {
        log.warn('identity provider did not revoke a refresh token', { provider: settings.name, error: reasonOf(error) })
      }
    },
    endSessionUrl(idToken, back) {
      if (found?.config.serverMetadata().end_session_endpoint === undefined) return null
      const hint: Record<string, string> = idToken === null ? {} : { id_token_hint: idToken }
      return client.buildEndSessionUrl(found.config, { post_logout_redirect_uri: back, ...hint }).href
    },
  }
}
