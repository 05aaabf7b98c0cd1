// SI30: what a sign-in link is worth, and when it is worth nothing.
import { expect, test } from 'bun:test'
import { LINK_MS, LINK_TOKEN_MS } from '../../server/access/sign-in-links.ts'
import { createTestAdmin, type TestAdmin } from '../support/admin-app.ts'

const linkOf = async (admin: TestAdmin, headers: Record<string, string> = {}): Promise<string> => {
  const { status, body } = await admin.call('POST', '/api/v1/sign-in-links', undefined, headers)
  expect(status).toBe(201)
  return /#sign-in=([\w-]+)$/.exec((body as { url: string }).url)?.[1] ?? ''
}
const redeem = async (admin: TestAdmin, code: string) => {
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ code })
  const answer = await admin.app.fetch(new Request('http://localhost/auth/link', { method: 'POST', headers, body }))
  return { status: answer.status, body: (await answer.json()) as { token?: string; expiresMs?: number; code?: string } }
}

test('SI30 a link becomes a token with the rights of its creator, once', async () => {
  const admin = await createTestAdmin()
  const code = await linkOf(admin)
  const { status, body } = await redeem(admin, code)
  expect([status, body.expiresMs]).toEqual([200, admin.clock.nowMs + LINK_TOKEN_MS])
  const who = await admin.call('GET', '/api/v1/whoami', undefined, { authorization: `Bearer ${body.token}` })
  expect(who.body).toMatchObject({ kind: 'token', name: 'admin' })
  expect((await redeem(admin, code)).body.code).toBe('sign_in_refused')
})

test('SI30 a link works for ten minutes', async () => {
  const admin = await createTestAdmin()
  const code = await linkOf(admin)
  admin.clock.nowMs += LINK_MS
  expect((await redeem(admin, code)).status).toBe(403)
  expect((await redeem(admin, 'a'.repeat(43))).status).toBe(403)
})

test('SI30 a link ends with the token that created it, and needs the right to create tokens', async () => {
  const admin = await createTestAdmin()
  const made = (await admin.call('POST', '/api/v1/tokens', { name: 'other', role: 'admin', expires: '24h' })).body as {
    id: string
    token: string
  }
  const code = await linkOf(admin, { authorization: `Bearer ${made.token}` })
  expect((await admin.call('DELETE', `/api/v1/tokens/${made.id}`)).status).toBe(204)
  expect((await redeem(admin, code)).status).toBe(403)
  const viewer = (await admin.call('POST', '/api/v1/tokens', { name: 'looker', role: 'viewer', expires: '24h' })).body as { token: string }
  expect((await admin.call('POST', '/api/v1/sign-in-links', undefined, { authorization: `Bearer ${viewer.token}` })).status).toBe(403)
})
