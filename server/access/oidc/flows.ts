// Sign-ins under way: from the request of a browser or a CLI to the answer of the provider. What a browser carries
// meanwhile is sealed; the rest is in memory and bounded, so a restart of the server makes people sign in again.
import { createHash, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { sha256Hex } from '../../../shared/kube/canonical.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { newSecret } from '../api-tokens.ts'
import type { SecretBox } from '../secret-box.ts'
import type { DeviceLogin, IdentityProvider, ProviderGrant } from './provider.ts'

/** Place of a sign-in under way in the secret box. */
const PLACE = 'sign-in'

/** Where a CLI listens for the end of its sign-in. */
export interface CliTarget {
  port: number
  /** PKCE, S256: only the CLI that began can redeem the code. */
  challenge: string
  state: string
}

export type LoginTarget = { kind: 'browser'; next: string } | { kind: 'cli'; cli: CliTarget }

export interface Flows {
  /** Answers the page of the provider, and what the browser shall carry. */
  start(provider: IdentityProvider, target: LoginTarget): Promise<{ url: URL; sealed: string }>
  /** Throws `sign_in_expired` without the browser that began, or a second time. `search`: the query that the provider
   *  sent. */
  finish(sealed: string | null, search: string): Promise<{ grant: ProviderGrant; target: LoginTarget }>
  /** A code for the CLI, good for a minute and once. */
  codeFor(grant: ProviderGrant, cli: CliTarget): string
  redeem(code: string, verifier: string): ProviderGrant
  /** Each holds a place until it expires: `network` is whose it is. Throws `too_many_requests`. */
  startDevice(provider: IdentityProvider, network: string): Promise<{ device: string; login: DeviceLogin }>
  /** Throws `sign_in_pending` until the person has decided. */
  pollDevice(device: string): ProviderGrant
}

export const LOGIN_MS = 10 * 60_000
const CODE_MS = 60_000
/** Sign-ins under way at one time, of each sort. */
const PENDING_MAX = 10_000
const DEVICES_MAX = 500
/** A stranger must not take all of them, nor make the server poll the provider for each. */
export const DEVICES_OF_ONE_MAX = 20

const carriedSchema = z.strictObject({
  purpose: z.literal('login'),
  provider: z.string(),
  startedMs: z.number(),
  checks: z.strictObject({ state: z.string(), nonce: z.string(), verifier: z.string() }),
  target: z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('browser'), next: z.string() }),
    z.strictObject({ kind: z.literal('cli'), cli: z.strictObject({ port: z.number(), challenge: z.string(), state: z.string() }) }),
  ]),
})

export interface FlowsDeps {
  providers: ReadonlyMap<string, IdentityProvider>
  /** URL of this server, the base of the redirect URI. */
  redirectUri(): string
  secrets: Pick<SecretBox, 'seal' | 'open'>
  clock: Clock
  stopping: AbortSignal
}

interface PendingDevice {
  network: string
  login: DeviceLogin
  outcome: { grant: ProviderGrant } | { error: unknown } | null
  untilMs: number
}

export function createFlows({ providers, redirectUri, secrets, clock, stopping }: FlowsDeps): Flows {
  /** States that came back: a sign-in ends once. */
  const used = new Map<string, { untilMs: number }>()
  const codes = new Map<string, { grant: ProviderGrant; challenge: string; untilMs: number }>()
  const devices = new Map<string, PendingDevice>()

  const tooMany = () => new AppError('too_many_requests', { doing: 'sign in', detail: 'too many sign-ins at once', retryAfterMs: CODE_MS })
  const makeRoom = (pending: Map<string, { untilMs: number }>, max: number) => {
    const nowMs = clock.nowMs()
    for (const [key, { untilMs }] of pending) if (untilMs <= nowMs) pending.delete(key)
    if (pending.size >= max) throw tooMany()
  }
  /** Asked for, and not answered by the provider yet. */
  const asking = new Map<string, number>()
  const carriedIn = (sealed: string | null) => {
    const opened = sealed === null ? null : secrets.open(Buffer.from(sealed, 'base64url'), PLACE)
    if (opened === null) return null
    try {
      return carriedSchema.parse(JSON.parse(Buffer.from(opened).toString()))
    } catch {
      return null
    }
  }

  return {
    async start(provider, target) {
      const { url, checks } = await provider.startLogin(redirectUri())
      const carried: z.infer<typeof carriedSchema> = { purpose: 'login', provider: provider.name, startedMs: clock.nowMs(), checks, target }
      return { url, sealed: Buffer.from(secrets.seal(Buffer.from(JSON.stringify(carried)), PLACE)).toString('base64url') }
    },
    async finish(sealed, search) {
      const carried = carriedIn(sealed)
      const nowMs = clock.nowMs()
      const provider = providers.get(carried?.provider ?? '')
      if (carried === null || provider === undefined || nowMs - carried.startedMs > LOGIN_MS || nowMs < carried.startedMs - LOGIN_MS)
        throw new AppError('sign_in_expired')
      const { checks, target } = carried
      // Before anything is awaited, so that of two equal answers one gets through.
      if (used.has(checks.state)) throw new AppError('sign_in_expired', { detail: 'this sign-in was completed before' })
      if (new URLSearchParams(search).get('state') !== checks.state)
        throw new AppError('sign_in_expired', { detail: 'the answer of the provider belongs to another sign-in' })
      makeRoom(used, PENDING_MAX)
      used.set(checks.state, { untilMs: nowMs + 2 * LOGIN_MS })
      try {
        return { grant: await provider.finishLogin(new URL(redirectUri() + search), checks), target }
      } catch (error) {
        used.delete(checks.state) // strangers with invented codes would leave no room for anybody
        throw error
      }
    },
    codeFor(grant, { challenge }) {
      makeRoom(codes, PENDING_MAX)
      const code = newSecret()
      codes.set(sha256Hex(code), { grant, challenge, untilMs: clock.nowMs() + CODE_MS })
      return code
    },
    redeem(code, verifier) {
      const key = sha256Hex(code)
      const held = codes.get(key)
      codes.delete(key)
      if (held === undefined || held.untilMs <= clock.nowMs()) throw new AppError('sign_in_expired')
      const shown = createHash('sha256').update(verifier).digest()
      const wanted = Buffer.from(held.challenge, 'base64url')
      if (wanted.length !== shown.length || !timingSafeEqual(wanted, shown)) throw new AppError('sign_in_expired')
      return held.grant
    },
    async startDevice(provider, network) {
      makeRoom(devices, DEVICES_MAX)
      const waiting = asking.get(network) ?? 0
      const held = devices.values().reduce((sum, one) => sum + (one.network === network ? 1 : 0), 0)
      if (held + waiting >= DEVICES_OF_ONE_MAX) throw tooMany()
      asking.set(network, waiting + 1)
      const login = await provider.startDevice(stopping).finally(() => {
        const left = (asking.get(network) ?? 1) - 1
        if (left === 0) asking.delete(network)
        else asking.set(network, left)
      })
      const device = newSecret()
      const pending: PendingDevice = { network, login, outcome: null, untilMs: clock.nowMs() + login.expiresInMs + CODE_MS }
      login.granted.then(
        (grant) => {
          pending.outcome = { grant }
        },
        (error: unknown) => {
          pending.outcome = { error }
        },
      )
      devices.set(sha256Hex(device), pending)
      return { device, login }
    },
    pollDevice(device) {
      const key = sha256Hex(device)
      const pending = devices.get(key)
      if (pending === undefined || pending.untilMs <= clock.nowMs()) throw new AppError('sign_in_expired')
      const { outcome, login } = pending
      if (outcome === null) throw new AppError('sign_in_pending', { retryAfterMs: login.intervalMs })
      devices.delete(key)
      if ('error' in outcome) throw outcome.error
      return outcome.grant
    },
  }
}
