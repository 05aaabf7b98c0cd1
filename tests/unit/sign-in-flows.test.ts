// Sign-ins under way: what strangers may hold of them.
import { expect, test } from 'bun:test'
import { createFlows, DEVICES_OF_ONE_MAX } from '../../server/access/oidc/flows.ts'
import type { IdentityProvider, ProviderGrant } from '../../server/access/oidc/provider.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const GRANT = { identity: {}, refreshToken: null, idToken: null } as unknown as ProviderGrant

function flowsOf(finish: (code: string | null) => Promise<ProviderGrant>) {
  const provider = {
    name: 'corp',
    startLogin: async () => ({ url: new URL('https://idp.example'), checks: { state: crypto.randomUUID(), nonce: 'n', verifier: 'v' } }),
    finishLogin: (url: URL) => finish(url.searchParams.get('code')),
    startDevice: async () => ({ expiresInMs: 60_000, intervalMs: 1, granted: new Promise<ProviderGrant>(() => {}) }),
  } as unknown as IdentityProvider
  const secrets = { seal: (bytes: Uint8Array) => bytes, open: (bytes: Uint8Array) => bytes }
  const clock = createVirtualClock()
  const flows = createFlows({
    providers: new Map([['corp', provider]]),
    redirectUri: () => 'https://skerry.example/auth/callback',
    secrets: secrets as never,
    clock,
    stopping: new AbortController().signal,
  })
  return { flows, provider, clock }
}
const codeOf = async (work: Promise<unknown>) =>
  (
    await work.then(
      () => null,
      (error: { code: string }) => error,
    )
  )?.code ?? 'done'

test('SI13 sign-ins by device code of one network leave room for others, also when they come at once', async () => {
  const { flows, provider } = flowsOf(async () => GRANT)
  const asked = await Promise.all(Array.from({ length: DEVICES_OF_ONE_MAX + 5 }, () => codeOf(flows.startDevice(provider, 'a'))))
  expect(asked.filter((code) => code === 'done')).toHaveLength(DEVICES_OF_ONE_MAX)
  expect(await codeOf(flows.startDevice(provider, 'a'))).toBe('too_many_requests')
  expect(await codeOf(flows.startDevice(provider, 'b'))).toBe('done')
})

test('SI3 an answer counts once; one that the provider refuses takes no room', async () => {
  const { flows, provider } = flowsOf((code) => (code === 'good' ? Promise.resolve(GRANT) : Promise.reject(new Error('no such code'))))
  const begin = async () => {
    const { sealed } = await flows.start(provider, { kind: 'browser', next: '/' })
    const { checks } = JSON.parse(Buffer.from(sealed, 'base64url').toString()) as { checks: { state: string } }
    return (code: string) => codeOf(flows.finish(sealed, `?code=${code}&state=${checks.state}`))
  }
  for (let attempt = 0; attempt < 10_050; attempt++) expect(await (await begin())('invented')).not.toBe('too_many_requests')
  const answer = await begin()
  expect([await answer('good'), await answer('good')]).toEqual(['done', 'sign_in_expired'])
})
