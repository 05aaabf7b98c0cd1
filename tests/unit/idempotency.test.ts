// Idempotency-Key on writes.
import { expect, test } from 'bun:test'
import { createIdempotency, KEPT_MS } from '../../server/http/idempotency.ts'
import { createTestAdmin, repositoryDoc } from '../support/admin-app.ts'

const key = (text: string) => ({ 'idempotency-key': text })

test('HT6 a repeated write gets the first answer, and is done once', async () => {
  const admin = await createTestAdmin()
  const create = (headers = {}) => admin.call('POST', '/api/v1/tokens', { name: 'ci', role: 'viewer' }, headers)
  const first = await create(key('k-1'))
  const again = await create(key('k-1'))
  expect([first.status, first.headers.get('idempotency-replayed')]).toEqual([201, null])
  expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([201, 'true'])
  expect(again.body).toEqual(first.body)
  expect((await create(key('k-2'))).body).not.toEqual(first.body)
  expect(await admin.store.listApiTokens()).toHaveLength(3)
})

test('HT6 a key with another request is 422, and belongs to its credential', async () => {
  const admin = await createTestAdmin()
  const path = '/api/v1/projects/default/repositories/apps'
  expect((await admin.call('PUT', path, repositoryDoc('apps'), key('k'))).status).toBe(201)
  const reused = await admin.call('PUT', path, repositoryDoc('apps', { labels: { a: 'b' } }), key('k'))
  expect([reused.status, (reused.body as { code: string }).code]).toEqual([422, 'idempotency_key_reused'])
  expect((await admin.call('DELETE', path, undefined, key('k'))).status).toBe(422)
  const { body } = await admin.call('POST', '/api/v1/tokens', { name: 'other', role: 'admin' })
  const other = { authorization: `Bearer ${(body as { token: string }).token}`, ...key('k') }
  expect((await admin.call('DELETE', path, undefined, other)).status).toBe(200)
})

test.each([
  ['a blank', 'a b'],
  ['too long', 'x'.repeat(256)],
])('HT6 a key that is %s is 400', async (_, text) => {
  const admin = await createTestAdmin()
  expect((await admin.call('POST', '/api/v1/suspend', {}, key(text))).status).toBe(400)
})

test('HT6 requests at the same time with one key are done once; a failure is not repeated; what is kept is bounded', async () => {
  const clock = { nowMs: () => now }
  let now = 0
  const idempotency = createIdempotency(clock, 2)
  let done = 0
  const run = (text: string, status = 200, body = 'x') =>
    idempotency.run('t', new Request('http://localhost/a', { method: 'POST', headers: key(text) }), Buffer.from(body), async () => {
      await Promise.resolve()
      return new Response(String(++done), { status })
    })
  const both = await Promise.all([run('a'), run('a')])
  expect(await Promise.all(both.map((answer) => answer.text()))).toEqual(['1', '1'])
  await run('b', 422)
  await run('b', 500)
  expect(await (await run('b')).text()).toBe('4')
  expect(await (await run('b')).text()).toBe('4')
  await run('c') // the third: the oldest is forgotten
  expect(await (await run('a')).text()).toBe('6')
  now = KEPT_MS
  expect(await (await run('c', 200, 'another body')).text()).toBe('7')
})

test('HT6 of requests that waited for one that failed, one is done', async () => {
  const idempotency = createIdempotency({ nowMs: () => 0 })
  let asked = 0
  const run = () =>
    idempotency.run('t', new Request('http://localhost/a', { method: 'POST', headers: key('k') }), Buffer.from('x'), async () => {
      asked += 1
      const status = asked === 1 ? 503 : 200
      await Promise.resolve()
      return new Response(String(asked), { status })
    })
  expect((await Promise.all([run(), run(), run()])).map(({ status }) => status)).toEqual([503, 200, 200])
  expect([asked, await (await run()).text()]).toEqual([2, '2'])
})
