// Signing in and out: the signed-in person, the offered providers, and the work that starts and stops with it.
import { effect } from '@preact/signals'
import type { logoutAnswerSchema, signInLinkTokenSchema } from '../../../../shared/model/sign-in.ts'
import { text } from '../words/first.ts'
import { call, send } from './api.ts'
import { authorization, forgetToken, hasCredential, keepToken, takeCode } from './credential.ts'
import { followFleet, forgetFleet, hurryFleet } from './fleet.ts'
import { startLive, stopLive } from './live.ts'
import { serverUrl } from './place.ts'
import { forgetResources, openResources, refusalOf } from './resource.ts'
import { session } from './session.ts'

/** `redirect`: the page of the provider that ends its own session. */
type SignInLinkToken = (typeof signInLinkTokenSchema)['_output']
type LogoutAnswer = Partial<(typeof logoutAnswerSchema)['_output']>

/** Answers belong to the person whose session ended, however it ended. */
effect(() => {
  if (session.value.state === 'in') return
  stopLive()
  forgetResources()
  forgetFleet()
})

export interface Provider {
  name: string
  url: string
}

/** Resolves to null when signed in, otherwise to the reason for the refusal. */
export async function openSession(refused: string): Promise<string | null> {
  const code = takeCode()
  if (code !== null) {
    const why = await redeem(code)
    if (why !== null && !('authorization' in authorization())) {
      session.value = { state: 'out', why }
      return why
    }
  }
  if (!hasCredential()) {
    session.value = { state: 'out', why: null }
    return null
  }
  hurryFleet()
  try {
    const person = await call('GET /whoami')
    openResources()
    session.value = { state: 'in', person }
    followFleet()
    startLive()
    return null
  } catch (error) {
    const refusal = refusalOf(error)
    if (refusal.status !== 401) {
      session.value = { state: 'failed', refusal }
      return refusal.detail
    }
    const why = 'authorization' in authorization() ? refused : null
    forgetToken()
    session.value = { state: 'out', why }
    return why
  }
}

/** Resolves to null when the code of the link was exchanged for the token of this tab, otherwise to the reason. */
async function redeem(code: string): Promise<string | null> {
  try {
    const response = await send('POST', serverUrl('auth/link'), { code })
    keepToken(((await response.json()) as SignInLinkToken).token)
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

export async function signInWith(token: string, refused: string): Promise<string | null> {
  keepToken(token.trim())
  return openSession(refused)
}

export async function signOut(): Promise<void> {
  const hadToken = 'authorization' in authorization()
  forgetToken()
  session.value = { state: 'out', why: null }
  if (hadToken) return
  try {
    const response = await fetch(serverUrl('auth/logout'), { method: 'POST', headers: { accept: 'application/json' } })
    if (!response.ok && response.status !== 401) throw new Error(String(response.status))
    const { redirect = null } = response.ok ? ((await response.json()) as LogoutAnswer) : {}
    if (redirect !== null) location.assign(redirect)
  } catch {
    session.value = { state: 'out', why: text.signIn.notEnded }
  }
}

/** Empty if the server has no sign-in by a provider. */
export async function signInOffer(): Promise<Provider[]> {
  try {
    const response = await fetch(serverUrl('auth/providers'), { headers: { accept: 'application/json' } })
    if (!response.ok || !(response.headers.get('content-type') ?? '').includes('json')) return []
    const { items = [] } = (await response.json()) as { items?: Array<{ name: string }> }
    return items.map(({ name }) => ({
      name,
      url: serverUrl(`auth/login?${new URLSearchParams({ provider: name, next: location.pathname + location.search })}`),
    }))
  } catch {
    return []
  }
}
