// Identity providers that are wrong, absent or lie, and the file that names them.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { identityOf } from '../../server/access/oidc/claims.ts'
import { oidcSettingsSchema, type ProviderSettings } from '../../server/access/oidc/settings.ts'
import { readSignInPlace } from '../../server/sign-in-place.ts'
import { type LyingIssuer, startLyingIssuer } from '../support/lying-issuer.ts'
import { naming } from '../support/naming.ts'
import { type SignInSite, startSignInSite } from '../support/sign-in-site.ts'
import { tempDir } from '../support/temp-dir.ts'

let issuer: LyingIssuer
let site: SignInSite

beforeAll(async () => {
  issuer = await startLyingIssuer()
  site = await startSignInSite({ settings: () => ({ providers: [{ name: 'idp', issuer: issuer.url, clientId: 'skerry' }] }) })
})
afterAll(async () => {
  await site?.stop()
  await issuer?.stop()
})

const ready = async () => (await site.admin.call('GET', '/readyz')).body

/** A whole sign-in, with the ID token that the test makes. */
async function signIn(make: (nonce: string) => Promise<string>): Promise<Response> {
  issuer.idToken(make)
  const start = await fetch(`${site.url}/auth/login`, { redirect: 'manual' })
  const url = new URL(start.headers.get('location') ?? '')
  issuer.nonce = url.searchParams.get('nonce') ?? ''
  const back = new URL(`${site.url}/auth/callback`)
  back.searchParams.set('code', 'c')
  back.searchParams.set('state', url.searchParams.get('state') ?? '')
  const cookie = (start.headers.getSetCookie()[0] ?? '').split(';')[0] ?? ''
  return fetch(back, { redirect: 'manual', headers: { cookie } })
}

test('SI1 a provider that is down stops nothing; it is named in /readyz and asked again', async () => {
  issuer.down = true
  const response = await fetch(`${site.url}/auth/login`, { redirect: 'manual' })
  expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([503, 'provider_unavailable'])
  expect(await ready()).toEqual(naming('provider idp'))
  issuer.down = false
  site.admin.clock.nowMs += 5_000
  expect((await fetch(`${site.url}/auth/login`, { redirect: 'manual' })).status).toBe(302)
  expect(await ready()).toBe('ok')
})

test('SI2 an ID token that is wrong in any way signs nobody in', async () => {
  const bad: Record<string, (nonce: string) => Promise<string>> = {
    'of another audience': (nonce) => issuer.jwt({ nonce, aud: 'other' }),
    'of another issuer': (nonce) => issuer.jwt({ nonce, iss: 'https://evil.example' }),
    'with another nonce': () => issuer.jwt({ nonce: 'other' }),
    'without a nonce': () => issuer.jwt(),
    'without a signature': (nonce) => issuer.jwt({ nonce }, { alg: 'none' }),
    'with the public key as a secret': (nonce) => issuer.jwt({ nonce }, { alg: 'HS256' }),
    'by another key': (nonce) => issuer.jwt({ nonce }, { key: 'other' }),
    expired: (nonce) => issuer.jwt({ nonce, exp: 1_000 }),
  }
  for (const [what, make] of Object.entries(bad)) {
    const response = await signIn(make)
    expect([what, response.status, response.headers.getSetCookie()]).toEqual([what, response.status === 503 ? 503 : 403, []])
  }
  const good = await signIn((nonce) => issuer.jwt({ nonce, preferred_username: 'eve' }))
  expect(good.status).toBe(303)
})

test('SI9 without a refresh token of the provider a session lasts an hour', async () => {
  const response = await signIn((nonce) => issuer.jwt({ nonce }))
  expect(response.headers.getSetCookie().at(-1)).toContain('Max-Age=3600')
})

test('SI8 signing out leads to the page of the provider that ends its session', async () => {
  const response = await signIn((nonce) => issuer.jwt({ nonce }))
  const cookie = (response.headers.getSetCookie().at(-1) ?? '').split(';')[0] ?? ''
  const out = await fetch(`${site.url}/auth/logout`, {
    method: 'POST',
    headers: { cookie, origin: site.url, accept: 'text/html' },
    redirect: 'manual',
  })
  const page = new URL(out.headers.get('location') ?? '')
  expect([page.origin + page.pathname, page.searchParams.get('post_logout_redirect_uri')]).toEqual([`${issuer.url}/logout`, `${site.url}/`])
  expect(page.searchParams.get('id_token_hint')).toMatch(/^eyJ/)
})

const settings = (change: object = {}): ProviderSettings =>
  oidcSettingsSchema.parse({ providers: [{ name: 'idp', issuer: 'https://idp.example', clientId: 'c', ...change }] })
    .providers[0] as ProviderSettings

test('SI2 an address counts only if it is verified, and is no name otherwise', () => {
  const claims = { sub: '1', email: 'Eve@Corp.example' }
  expect(identityOf(claims, settings())).toMatchObject({ email: null, name: '1' })
  expect(identityOf({ ...claims, email_verified: 'true' }, settings())).toMatchObject({ email: null })
  expect(identityOf({ ...claims, email_verified: true }, settings())).toMatchObject({ email: 'eve@corp.example', name: 'eve@corp.example' })
  expect(identityOf(claims, settings({ claims: { username: 'email' } }))).toMatchObject({ name: '1' })
  expect(identityOf(claims, settings({ claims: { emailVerified: 'assumed' } }))).toMatchObject({ email: 'eve@corp.example' })
})

test.each(['corp:boss@corp.example', 'oo\u212a@corp.example', 'a b@corp.example'])(
  'SI2 an address that a binding could take for somebody else does not count: %s',
  (email) => expect(identityOf({ sub: '1', email, email_verified: true }, settings())).toMatchObject({ email: null, name: '1' }),
)

test('SI2 groups come from the claim that the settings name; with allowedGroups only members sign in', () => {
  const claims = { sub: '1', groups: ['a', 'b', 'a', 7], realm_access: { roles: ['r'] } }
  expect(identityOf(claims, settings()).groups).toEqual(['a', 'b'])
  expect(identityOf(claims, settings({ claims: { groups: '/realm_access/roles' } })).groups).toEqual(['r'])
  expect(identityOf(claims, settings({ allowedGroups: ['b'] })).groups).toEqual(['a', 'b'])
  expect(() => identityOf(claims, settings({ allowedGroups: ['c'] }))).toThrow(expect.objectContaining({ code: 'sign_in_refused' }))
  expect(() => identityOf({ sub: '1', _claim_names: { groups: 'src1' } }, settings())).toThrow('too many groups')
  expect(() => identityOf({ groups: [] }, settings())).toThrow('sub')
})

test('SI1 every wrong field of the file is named with file and path', () => {
  const dir = tempDir()
  const file = join(dir, 'oidc.yaml')
  const problemsOf = (text: string): string => {
    writeFileSync(file, text)
    try {
      readSignInPlace(file)
      return ''
    } catch (error) {
      return String(error)
    }
  }
  expect(problemsOf('providers: [{name: idp, isuer: "https://a", clientId: c}]')).toEqual(naming('providers[0].isuer:', '"issuer"'))
  expect(problemsOf('providers: [{name: idp, issuer: "http://idp.example", clientId: c}]')).toContain(
    `${file}: providers[0].issuer: expected an https:// URL`,
  )
  expect(problemsOf('providers: [{name: idp, issuer: "https://a.example", clientId: c, clientSecretFile: none}]')).toContain(
    'providers[0].clientSecretFile: ENOENT',
  )
  const workload = (rule: string) => `workloads: [{name: ci, issuer: "https://a.example", audience: s, rules: [${rule}]}]`
  expect(problemsOf(workload('{claims: {}, name: ci}'))).toEqual(naming('workloads[0].rules[0].claims:', 'at least one'))
  expect(problemsOf(workload('{claims: {repository: "*"}, name: ci}'))).toContain('workloads[0].rules[0].claims.repository')
  expect(problemsOf('a: [')).toContain(file)
  writeFileSync(join(dir, 'secret'), ' s3cret \n')
  expect(problemsOf('providers: [{name: idp, issuer: "https://a.example", clientId: c, clientSecretFile: secret}]')).toBe('')
})
