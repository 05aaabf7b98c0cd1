// Headers of answers to people.
import { expect, test } from 'bun:test'
import { createTestAdmin } from '../support/admin-app.ts'

const NAMES = [
  'x-content-type-options',
  'referrer-policy',
  'x-frame-options',
  'content-security-policy',
  'cache-control',
  'strict-transport-security',
]

test.each([
  ['an answer', '/api/v1/services', 'no-store'],
  ['a problem', '/api/v1/nothing', 'no-store'],
  ['a probe', '/healthz', null],
])('HT4 %s carries the headers that browsers heed', async (_, path, caching) => {
  const { call } = await createTestAdmin()
  const { headers } = await call('GET', path)
  expect(NAMES.map((name) => headers.get(name))).toEqual([
    'nosniff',
    'no-referrer',
    'DENY',
    "default-src 'none'; frame-ancestors 'none'",
    caching,
    null,
  ])
})

test('HT4 HTTPS adds Strict-Transport-Security, also for a request without a credential', async () => {
  const { app } = await createTestAdmin({ https: true })
  const answer = await app.fetch(new Request('http://localhost/api/v1/services'))
  expect([answer.status, answer.headers.get('strict-transport-security')]).toEqual([401, 'max-age=31536000'])
})
