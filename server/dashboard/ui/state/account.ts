// Signing in and out: who the server says we are, which providers it offers, and what starts and stops with that.
import { ApiError, call } from './api.ts'
import { forgetFleet } from './fleet.ts'
import { startLive, stopLive } from './live.ts'
import { serverUrl } from './place.ts'
import { forgetResources } from './resource.ts'
import { authorization, forgetToken, keepToken, type Person, session } from './session.ts'

export interface Provider {
  name: string
  url: string
}

/** Null: signed in; else why not. */
export async function openSession(refused: string): Promise<string | null> {
  if (!('authorization' in authorization()) && (await providers()).length === 0) {
    session.value = { state: 'out', why: null }
    return null
  }
  try {
    const person = await call<Person>('GET', '/whoami')
    session.value = { state: 'in', person }
    startLive()
    return null
  } catch (error) {
    const isRefused = error instanceof ApiError && error.refusal.status === 401
    const hadToken = 'authorization' in authorization()
    if (isRefused) forgetToken()
    const why = isRefused ? (hadToken ? refused : null) : error instanceof Error ? error.message : String(error)
    session.value = { state: 'out', why }
    return why
  }
}

export async function signInWith(token: string, refused: string): Promise<string | null> {
  keepToken(token.trim())
  return openSession(refused)
}

export async function signOut(): Promise<void> {
  stopLive()
  const hadToken = 'authorization' in authorization()
  forgetToken()
  forgetResources()
  forgetFleet()
  if (!hadToken) await fetch(serverUrl('auth/logout'), { method: 'POST' }).catch(() => {})
  session.value = { state: 'out', why: null }
}

/** None: the server has no sign-in by a provider. */
export async function providers(): Promise<Provider[]> {
  try {
    const response = await fetch(serverUrl('auth/providers'), { headers: { accept: 'application/json' } })
    if (!response.ok || !(response.headers.get('content-type') ?? '').includes('json')) return []
    const { items } = (await response.json()) as { items?: Array<{ name: string }> }
    return (items ?? []).map(({ name }) => ({
      name,
      url: serverUrl(`auth/login?${new URLSearchParams({ provider: name, next: location.pathname + location.search })}`),
    }))
  } catch {
    return []
  }
}
