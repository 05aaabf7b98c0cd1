// JWTs of pipelines: which are exchanged for a token, and for whose.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { workloadIdentity } from '../../server/access/oidc/workload.ts'
import { type LyingIssuer, startLyingIssuer } from '../support/lying-issuer.ts'
import { naming } from '../support/naming.ts'
import { type SignInSite, startSignInSite } from '../support/sign-in-site.ts'

let issuer: LyingIssuer
let site: SignInSite

beforeAll(async () => {
  issuer = await startLyingIssuer()
  const rules = [{ claims: { repository: 'acme/*', ref: 'refs/heads/main' }, name: 'ci:{repository}', groups: ['deployers'] }]
  site = await startSignInSite({ settings: () => ({ workloads: [{ name: 'forge', issuer: issuer.url, audience: 'skerry', rules }] }) })
})
afterAll(async () => {
  await site?.stop()
  await issuer?.stop()
})

const post = async (path: string, body: unknown, headers: Record<string, string> = { 'content-type': 'application/json' }) => {
  const response = await fetch(`${site.url}${path}`, {
    method: 'POST',
    headers,
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}
const exchange = (token: string) => post('/auth/exchange', { token })
const whoami = async (token: unknown) => {
  const response = await fetch(`${site.url}/api/v1/whoami`, { headers: { authorization: `Bearer ${token}` } })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

test('SI11 a JWT of a trusted issuer is exchanged for a token of the caller that a rule names', async () => {
  const { status, body } = await exchange(await issuer.jwt())
  expect([status, body]).toMatchObject([200, { name: 'ci:acme/apps', expiresInMs: 15 * 60_000 }])
  expect(body['token']).toMatch(/^sku_[\w-]{43}[0-9a-f]{8}$/)
  expect(await whoami(body['token'])).toMatchObject({
    body: { kind: 'workload', name: 'ci:acme/apps', provider: 'forge', email: null, groups: ['deployers'], role: null },
  })
})

test('SI11 the token ends after its lifetime, and at once when it is revoked', async () => {
  const [first, second] = [await exchange(await issuer.jwt()), await exchange(await issuer.jwt())]
  const { id } = (await whoami(second.body['token'])).body
  expect((await site.admin.call('DELETE', `/api/v1/sessions/${id}`)).status).toBe(204)
  expect((await whoami(second.body['token'])).status).toBe(401)
  site.admin.clock.nowMs += 15 * 60_000 - 1
  expect((await whoami(first.body['token'])).status).toBe(200)
  site.admin.clock.nowMs += 1
  expect((await whoami(first.body['token'])).status).toBe(401)
  site.admin.clock.nowMs = Date.now()
})

test('SI16 a JWT is exchanged once', async () => {
  for (const change of [{}, { jti: undefined, sub: 'without-id' }]) {
    const jwt = await issuer.jwt(change)
    const both = await Promise.all([exchange(jwt), exchange(jwt)])
    expect(both.map(({ status }) => status).sort()).toEqual([200, 401])
    // Another signature of the same claims is the same JWT.
    expect((await exchange(jwt)).body['code']).toBe('unauthorized')
  }
})

const nowS = () => Math.floor(Date.now() / 1_000)

test('SI11 a JWT that is wrong in any way is refused', async () => {
  const bad: Record<string, Promise<string> | string> = {
    'of another audience': issuer.jwt({ aud: 'other' }),
    'of an unknown issuer': issuer.jwt({ iss: 'https://evil.example' }),
    'without a signature': issuer.jwt({}, { alg: 'none' }),
    'with the public key as a secret': issuer.jwt({}, { alg: 'HS256' }),
    'by another key': issuer.jwt({}, { key: 'other' }),
    expired: issuer.jwt({ exp: nowS() - 60 }),
    'from the future': issuer.jwt({ nbf: nowS() + 120 }),
    'issued in the future': issuer.jwt({ iat: nowS() + 120 }),
    'too old, whatever its expiry': issuer.jwt({ iat: nowS() - 7_200, exp: nowS() + 7_200 }),
    'without expiry': issuer.jwt({ exp: undefined }),
    'without a time of issue': issuer.jwt({ iat: undefined }),
    'without a subject': issuer.jwt({ sub: undefined }),
    'no JWT': 'a.b.c',
    'not even that': 'x',
  }
  for (const [what, jwt] of Object.entries(bad)) {
    const { status, body } = await exchange(await jwt)
    expect([what, status, body['code']]).toEqual([what, 401, 'unauthorized'])
  }
})

test('SI11 claims that no rule matches are refused, and so are odd bodies', async () => {
  expect(await exchange(await issuer.jwt({ repository: 'evil/apps' }))).toMatchObject({ status: 403, body: { code: 'sign_in_refused' } })
  expect(await exchange(await issuer.jwt({ repository: 'acme/apps/evil' }))).toMatchObject({ status: 403 })
  expect(await exchange(await issuer.jwt({ ref: 'refs/heads/other' }))).toMatchObject({ status: 403 })
  expect(await post('/auth/exchange', { token: 'x', role: 'admin' })).toMatchObject({ status: 422 })
  expect(await post('/auth/exchange', 'token=x', { 'content-type': 'application/x-www-form-urlencoded' })).toMatchObject({ status: 400 })
  expect(await post('/auth/exchange', { token: 'x'.repeat(40_000) })).toMatchObject({ status: 413 })
})

test('SI12 keys are cached; an unknown key makes them be read again, at most once in 30 s', async () => {
  const before = issuer.requests.keys
  for (let i = 0; i < 20; i++) expect((await exchange(await issuer.jwt({}, { kid: `unknown-${i}` }))).status).toBe(401)
  expect(issuer.requests.keys - before).toBeLessThanOrEqual(1)
})

test('SI13 an address whose attempts fail too often is refused for a time; others are not', async () => {
  const statuses: number[] = []
  for (let i = 0; i < 70; i++) statuses.push((await exchange('x')).status)
  expect(statuses.at(-1)).toBe(429)
  site.admin.clock.nowMs += 120_000
  expect((await exchange('x')).status).toBe(401)
  site.admin.clock.nowMs = Date.now()
})

const rule = (claims: Record<string, string | boolean | number>, name = 'ci') => ({ name: 'w', rules: [{ claims, name, groups: [] }] })
test.each([
  [{ a: 'x*' }, { a: 'xyz' }, true],
  [{ a: 'x*' }, { a: 'x/y' }, false],
  [{ a: '*/main' }, { a: 'b/main' }, true],
  [{ a: '*/main' }, { a: 'b/c/main' }, false],
  [{ a: 'refs/*/v*.0' }, { a: 'refs/tags/v1.0' }, true],
  [{ a: 'acme/apps' }, { a: 'acme/apps-evil' }, false],
  [{ a: 'main' }, { a: ['dev', 'main'] }, true],
  [{ a: true }, { a: 'true' }, false],
  [{ a: 'true' }, { a: true }, true],
  [{ '/n/m': 'x' }, { n: { m: 'x' } }, true],
  [{ constructor: '*a*' }, {}, false],
] as const)('SI11 claims %j of %j: %p', (claims, given, expected) => {
  const matches = () => workloadIdentity({ sub: 's', ...given }, rule(claims as Record<string, string>))
  if (expected) expect(matches().name).toBe('ci')
  else expect(matches).toThrow(expect.objectContaining({ code: 'sign_in_refused', message: naming('no rule of w') }))
})

test('SI11 a name is made of claims, and none that could be taken for several', () => {
  const settings = rule({ r: 'a*' }, 'ci:{r}')
  expect(workloadIdentity({ sub: 's', r: 'ab' }, settings).name).toBe('ci:ab')
  expect(() => workloadIdentity({ sub: 's', r: 'a b' }, settings)).toThrow(
    expect.objectContaining({ code: 'sign_in_refused', message: naming('valid name') }),
  )
  expect(() => workloadIdentity({ sub: 's', r: 'a\nadmin' }, settings)).toThrow(
    expect.objectContaining({ code: 'sign_in_refused', message: naming('valid name') }),
  )
})
