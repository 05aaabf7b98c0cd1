// Rate limits of the API: the arithmetic, and what a client sees of it.
import { expect, test } from 'bun:test'
import { createRateLimits } from '../../server/http/rate-limits.ts'
import { createTestAdmin } from '../support/admin-app.ts'

test('HT5 a caller has five seconds of requests at once, then so many a second', () => {
  const limits = createRateLimits(10)
  const taken = (nowMs: number) => limits.take('a', nowMs)
  for (let i = 49; i >= 0; i -= 1) expect(taken(0)).toMatchObject({ allowed: true, remaining: i })
  expect(taken(0)).toEqual({ allowed: false, limit: 50, remaining: 0, resetMs: 5_000, retryAfterMs: 100 })
  expect(taken(99)?.allowed).toBe(false)
  expect(taken(100)?.allowed).toBe(true)
  expect(limits.take('b', 100)).toMatchObject({ allowed: true, remaining: 49 })
  expect(taken(60_000)).toMatchObject({ allowed: true, remaining: 49 })
})

test('HT5 a clock that is set back locks nobody out, and what is remembered is bounded', () => {
  const limits = createRateLimits(1, 2)
  for (let i = 0; i < 5; i += 1) limits.take('a', 1_000_000)
  expect(limits.take('a', 1_000_000)?.allowed).toBe(false)
  expect(limits.take('a', 0)?.allowed).toBe(true)
  for (let i = 0; i < 5; i += 1) limits.take('b', 0)
  limits.take('c', 0)
  limits.take('d', 0)
  expect(limits.take('b', 0)?.remaining).toBe(4)
  expect(createRateLimits(0).take('a', 0)).toBeNull()
})

test('HT5 answers say what is left, and one request too many is 429 with Retry-After; another credential is not held up', async () => {
  const admin = await createTestAdmin({ requestsPerSecond: 1 })
  const names = ['ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset', 'ratelimit-policy', 'retry-after']
  const ask = async (headers = {}) => {
    const answer = await admin.call('GET', '/api/v1/version', undefined, headers)
    return [answer.status, ...names.map((name) => answer.headers.get(name))]
  }
  const { body } = await admin.call('POST', '/api/v1/tokens', { name: 'other', role: 'viewer' })
  const { token } = body as { token: string }
  expect(await ask()).toEqual([200, '5', '3', '2', '5;w=5', null])
  for (let i = 0; i < 3; i += 1) await ask()
  expect(await ask()).toEqual([429, '5', '0', '5', '5;w=5', '1'])
  expect((await ask({ authorization: `Bearer ${token}` }))[0]).toBe(200)
  admin.clock.nowMs += 1_000
  expect((await ask())[0]).toBe(200)
})

test('HT5 callers without a credential are limited by their network, and only they', async () => {
  const addresses = ['2001:db8::1', '2001:db8::2', '203.0.113.1']
  let address = addresses[0]
  const admin = await createTestAdmin({ requestsPerSecond: 100, addressOf: () => address ?? null })
  const stranger = async () => (await admin.call('GET', '/api/v1/version', undefined, { authorization: 'Bearer sk_no' })).status
  for (let i = 0; i < 100; i += 1) expect(await stranger()).toBe(401)
  address = addresses[1] // of the same network
  expect(await stranger()).toBe(429)
  expect((await admin.call('GET', '/api/v1/version')).status).toBe(200)
  address = addresses[2]
  expect(await stranger()).toBe(401)
})
