// Idempotency-Key on writes.
import { expect, test } from 'bun:test'
import { createIdempotency, KEPT_MS } from '../../server/http/idempotency.ts'
import { openSqliteStore } from '../../server/store/kysely-store.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
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

const memoryStore = () => openSqliteStore(':memory:', { clock: systemClock, random: seededRandom(1) })

test('HT6 requests at the same time with one key are done once; a failure is not repeated; what is kept ends', async () => {
  const clock = { nowMs: () => now }
  let now = 0
  const idempotency = createIdempotency(await memoryStore(), clock)
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
  now = KEPT_MS
  expect(await (await run('b', 200, 'another body')).text()).toBe('5')
})

test('HT6 of requests that waited for one that failed, one is done', async () => {
  const idempotency = createIdempotency(await memoryStore(), { nowMs: () => 0 })
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

test('HT6 another server over the same store repeats the answer, and performs nothing whose answer is not kept', async () => {
  const store = await memoryStore()
  let done = 0
  const run = (path: string, perform: () => Promise<Response> = async () => new Response(String(++done), { headers: { etag: '"7"' } })) =>
    createIdempotency(store, { nowMs: () => 5 }).run(
      't',
      new Request(`http://localhost${path}`, { method: 'POST', headers: key(path) }),
      Buffer.from('x'),
      perform,
    )
  expect(await (await run('/api/v1/apply')).text()).toBe('1')
  const again = await run('/api/v1/apply')
  expect([await again.text(), again.headers.get('etag'), again.headers.get('idempotency-replayed')]).toEqual(['1', '"7"', 'true'])
  // A new token is written nowhere; a request that never ended may have been performed.
  const secrets = ['/api/v1/tokens', '/api/v1/join-tokens', '/api/v1/token/exchange', '/api/v1/sign-in-links']
  for (const path of secrets) await run(path)
  void run('/api/v1/suspend', () => new Promise(() => {}))
  await Promise.resolve()
  for (const path of [...secrets, '/api/v1/suspend']) await expect(run(path)).rejects.toMatchObject({ code: 'conflict' })
  await expect(run('/api/v1/resume', async () => Promise.reject(new Error('x')))).rejects.toThrow('x')
  expect(await (await run('/api/v1/resume')).text()).toBe(String(secrets.length + 2))
})

test('HT6 one caller pushes out its own keys only', async () => {
  const idempotency = createIdempotency(await memoryStore(), { nowMs: () => 0 }, 100, 3)
  let done = 0
  const run = (caller: string, text: string, path = '/a') =>
    idempotency.run(caller, new Request(`http://localhost${path}`, { method: 'POST', headers: key(text) }), null, async () => {
      return new Response(String(++done))
    })
  await run('modest', 'k')
  for (let index = 0; index < 9; index++) await run('greedy', `g${index}`)
  expect((await run('modest', 'k')).headers.get('idempotency-replayed')).toBe('true')
  expect([done, (await run('greedy', 'g8')).headers.get('idempotency-replayed')]).toEqual([10, 'true'])
})

test.each(['/api/v1/query', '/api/v1/projects/p/services/s/diff'])('HT6 a request that changes nothing takes no key: %s', async (path) => {
  const idempotency = createIdempotency(await memoryStore(), { nowMs: () => 0 })
  let done = 0
  const run = () =>
    idempotency.run('t', new Request(`http://localhost${path}`, { method: 'POST', headers: key('k') }), null, async () => {
      return new Response(String(++done))
    })
  await run()
  expect([(await run()).headers.get('idempotency-replayed'), done]).toEqual([null, 2])
})
