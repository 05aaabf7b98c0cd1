// API tokens over the admin API: who gets one, what its role allows, and how it ends.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { FIRST_TOKEN_MS, isApiToken } from '../../server/access/api-tokens.ts'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'

let admin: TestAdmin
beforeEach(async () => {
  admin = await createTestAdmin()
})
afterEach(() => admin.store.close())

test('AP2 the first token is made once', async () => {
  expect(await admin.store.countAdminTokens(admin.clock.nowMs)).toBe(1)
  expect(admin.token).toMatch(/^sk_[A-Za-z0-9_-]{43}[0-9a-f]{8}$/)
  expect((await admin.call('GET', '/api/v1/whoami')).body).toMatchObject({ name: 'admin', role: 'admin' })
})

const statusWith = async (token: string) =>
  (await admin.call('GET', '/api/v1/whoami', undefined, { authorization: `Bearer ${token}` })).status

test('AP2 the first token expires after 24 hours, also while it is in use', async () => {
  admin.clock.nowMs += FIRST_TOKEN_MS - 1
  expect(await statusWith(admin.token)).toBe(200)
  admin.clock.nowMs += 1
  expect(await statusWith(admin.token)).toBe(401)
})

test('AP12 a token that is exchanged ends when the new one is first used, and the new one does not expire', async () => {
  const exchanged = await admin.call('POST', '/api/v1/token/exchange')
  expect([exchanged.status, exchanged.headers.get('cache-control')]).toEqual([200, 'no-store'])
  const { token } = exchanged.body as { token: string }
  expect(await statusWith(admin.token)).toBe(200) // an answer that was lost locks nobody out
  expect([await statusWith(token), await statusWith(admin.token)]).toEqual([200, 401])
  admin.clock.nowMs += 2 * FIRST_TOKEN_MS
  expect(await statusWith(token)).toBe(200)
  expect((await admin.store.listEvents({ limit: 9 })).map(({ reason }) => reason)).toEqual(['ApiTokenExchanged'])
})

test('AP12 the tokens of one name are exchanged ten times at once, then once a minute', async () => {
  let token = admin.token
  const exchange = async () => {
    const { status, headers, body } = await admin.call('POST', '/api/v1/token/exchange', undefined, { authorization: `Bearer ${token}` })
    token = (body as { token?: string }).token ?? token
    return `${status} ${headers.get('retry-after')}`
  }
  for (let times = 0; times < 10; times++) expect(await exchange()).toBe('200 null')
  expect(await exchange()).toBe('429 60')
  admin.clock.nowMs += 60_000
  expect([await exchange(), await exchange()]).toEqual(['200 null', '429 60'])
})

const createToken = async (spec: Record<string, unknown>) => {
  const created = await admin.call('POST', '/api/v1/tokens', spec)
  return { ...created, body: created.body as { id: string; token: string } }
}
const as = (token: string) => ({ authorization: `Bearer ${token}` })

test('AP15 a refusal names the verb and the object', async () => {
  const { body } = await createToken({ name: 'ci' })
  const refused = await admin.call('PUT', '/api/v1/projects/shop/services/web', serviceDoc('web'), as(body.token))
  expect(refused).toMatchObject({
    status: 403,
    body: { code: 'forbidden', detail: expect.stringMatching(/token ci .*write Service web in project shop/) },
  })
})

test('AP16 a token is shown once, listed without its secret, and refused from its revocation on', async () => {
  admin.clock.nowMs += 1
  const created = await createToken({ name: 'ci', role: 'operator', expires: '30d' })
  expect([created.status, created.headers.get('cache-control')]).toEqual([201, 'no-store'])
  const { id, token } = created.body
  expect(token).toMatch(/^sk_[A-Za-z0-9_-]{43}[0-9a-f]{8}$/)
  expect(await statusWith(token)).toBe(200)
  await admin.store.deleteApiToken('none') // the use is noted by a write before this one
  const listed = await admin.call('GET', '/api/v1/tokens')
  expect(JSON.stringify(listed.body)).not.toContain(token.slice(3, 20))
  expect(listed.body).toMatchObject({
    items: [
      { name: 'admin', role: 'admin', createdBy: null },
      { id, name: 'ci', role: 'operator', createdBy: 'admin', state: 'valid', lastUsedMs: admin.clock.nowMs },
    ],
  })
  expect((await admin.call('DELETE', `/api/v1/tokens/${id}`)).status).toBe(204)
  expect([await statusWith(token), await statusWith(admin.token)]).toEqual([401, 200])
  expect((await admin.call('DELETE', `/api/v1/tokens/${id}`)).status).toBe(404)
  expect((await admin.store.listEvents({ limit: 9 })).map(({ reason }) => reason)).toEqual(['ApiTokenCreated', 'ApiTokenRevoked'])
})

test('AP16 a token that is revoked while it is looked up is refused from the next request on, and cannot be exchanged', async () => {
  const { id, token } = (await createToken({ name: 'ci' })).body
  const look = admin.store.apiTokenByHash.bind(admin.store)
  admin.store.apiTokenByHash = async (hash) => {
    const found = await look(hash)
    admin.store.apiTokenByHash = look
    await admin.call('DELETE', `/api/v1/tokens/${id}`)
    return found
  }
  const exchanged = await admin.call('POST', '/api/v1/token/exchange', undefined, as(token))
  expect([exchanged.status, await statusWith(token)]).toEqual([401, 401])
})

test('AP12 AP16 a revoked token takes along those that were got in exchange for it and not used yet', async () => {
  const { body } = await createToken({ name: 'root', role: 'admin' })
  const first = (await admin.store.listApiTokens()).find(({ name }) => name === 'admin')
  const exchange = async () =>
    ((await admin.call('POST', '/api/v1/token/exchange', undefined, as(body.token))).body as { token: string }).token
  const held = [await exchange(), await exchange()]
  expect((await admin.call('DELETE', `/api/v1/tokens/${body.id}`)).status).toBe(204)
  expect(await Promise.all([body.token, ...held].map(statusWith))).toEqual([401, 401, 401])
  // AZ9: they are no way in of their own, either.
  await admin.call('POST', '/api/v1/token/exchange')
  expect((await admin.call('DELETE', `/api/v1/tokens/${first?.id}`)).status).toBe(409)
})

test('AP12 a token that was revoked meanwhile is not exchanged', async () => {
  const { body } = await createToken({ name: 'ci' })
  const held = (await admin.store.listApiTokens()).find(({ id }) => id === body.id)
  await admin.call('DELETE', `/api/v1/tokens/${body.id}`)
  const successor = { id: 't-0000', tokenHash: 'h', name: 'ci', role: 'viewer', createdMs: 1, createdBy: null, expiresMs: null } as const
  await expect(admin.store.createApiToken({ ...successor, replaces: held?.id ?? '' })).rejects.toMatchObject({ code: 'unauthorized' })
})

test('AP16 a stream of changes ends when its token is revoked', async () => {
  const { body } = await createToken({ name: 'ci' })
  const request = new Request('http://localhost/api/v1/changes', { headers: { accept: 'text/event-stream', ...as(body.token) } })
  const stream = await admin.app.fetch(request)
  const reading = stream.text()
  await admin.call('DELETE', `/api/v1/tokens/${body.id}`)
  expect(await reading).toContain('event: ready')
})

test('AP16 a stream of changes ends when its token has expired, before anything more is told', async () => {
  const { body } = await createToken({ name: 'ci', role: 'viewer', expires: '1h' })
  const request = new Request('http://localhost/api/v1/changes', { headers: { accept: 'text/event-stream', ...as(body.token) } })
  const reader = (await admin.app.fetch(request)).body?.getReader()
  const texts: string[] = []
  const next = async () => {
    const { value } = (await reader?.read()) ?? {}
    if (value !== undefined) texts.push(new TextDecoder().decode(value))
    return value !== undefined
  }
  await next()
  admin.clock.nowMs += 2 * 3_600_000
  const following = next()
  await admin.call('POST', '/api/v1/apply', { resources: [repositoryDoc('later')] })
  expect(await following).toBe(false)
  expect(texts.join('')).not.toContain('later')
})

test('AP16 a token with a wrong checksum is refused, one of an earlier version without a checksum is taken', async () => {
  const { body } = await createToken({ name: 'ci' })
  const last = body.token.at(-1) === '0' ? '1' : '0'
  expect(await statusWith(body.token.slice(0, -1) + last)).toBe(401)
  expect([isApiToken(body.token), isApiToken(body.token.slice(0, -8)), isApiToken(body.token.slice(0, -1) + last)]).toEqual([
    true,
    true,
    false,
  ])
})

test('AP12 AP16 a token that is exchanged keeps its role and its expiry', async () => {
  const { body } = await createToken({ name: 'ci', role: 'viewer', expires: '1h' })
  const { token } = (await admin.call('POST', '/api/v1/token/exchange', undefined, as(body.token))).body as { token: string }
  expect((await admin.call('GET', '/api/v1/whoami', undefined, as(token))).body).toMatchObject({ name: 'ci', role: 'viewer' })
  admin.clock.nowMs += 3_600_000
  expect(await statusWith(token)).toBe(401)
})

test.each([
  [{ name: 'ci', role: 'owner' }, 'role'],
  [{ name: 'no such name!' }, 'name'],
  [{ name: 'ci', expires: 'soon' }, 'expires'],
  [{ name: 'ci', scope: 'all' }, 'scope'],
])('AP4 AP16 a wrong order of a token names its field: %j', async (spec, path) => {
  const { status, body } = await createToken(spec)
  expect([status, JSON.stringify(body)]).toEqual([422, expect.stringContaining(`"path":"${path}"`)])
})

test('AP6 tokens and join tokens are listed in pages, oldest first', async () => {
  for (const name of ['a', 'b', 'c']) {
    admin.clock.nowMs += 1
    await createToken({ name })
    await admin.call('POST', '/api/v1/join-tokens', { labels: { name } })
  }
  const all = async (path: string) => {
    const pages: Array<Array<{ name?: string; labels?: { name: string } }>> = []
    for (let next: string | null = ''; next !== null; ) {
      const { body } = await admin.call('GET', `/api/v1${path}?limit=2&continue=${next}`)
      const page = body as { items: (typeof pages)[number]; continue: string | null }
      pages.push(page.items)
      next = page.continue
    }
    return pages.map((page) => page.map(({ name, labels }) => name ?? labels?.name))
  }
  expect(await all('/tokens')).toEqual([
    ['admin', 'a'],
    ['b', 'c'],
  ])
  expect(await all('/join-tokens')).toEqual([['a', 'b'], ['c']])
  expect((await admin.call('GET', '/api/v1/tokens?limit=501')).status).toBe(400)
})
