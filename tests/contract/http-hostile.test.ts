// Requests that try to be read differently by two parsers, by the router and the credential check, or by the schema and
// the store: on a real socket.
import { beforeAll, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { type RunningServer, startServer } from '../../server/server.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { repositoryDoc } from '../support/admin-app.ts'
import { tempDir } from '../support/temp-dir.ts'

let server: RunningServer
let bearer: string
beforeAll(async () => {
  const deps = { clock: systemClock, random: seededRandom(9), log: silentLogger }
  server = await startServer({ dataDir: tempDir(), hostname: '127.0.0.1', port: 0, requestsPerSecond: 0 }, deps)
  bearer = `authorization: Bearer ${server.firstAdminToken}`
})

/** Everything that comes back within the patience, or until the server ends the connection. */
function raw(text: string): Promise<string> {
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
  let answer = ''
  return new Promise((resolve) => {
    const end = () => {
      socket.destroy()
      resolve(answer)
    }
    socket.on('data', (chunk) => {
      answer += chunk
      if (/\r\n\r\n[\s\S]/.test(answer) || /content-length: 0/i.test(answer)) void Bun.sleep(30).then(end)
    })
    socket.on('close', end)
    socket.on('error', end)
    socket.write(text)
  })
}
const request = (line: string, headers: readonly string[] = [], body = '') =>
  raw([`${line} HTTP/1.1`, 'host: skerry.example', ...headers, '', body].join('\r\n'))
const statuses = (answer: string): number[] => [...answer.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status))

test.each([
  ['two lengths', ['content-length: 2', 'content-length: 30'], '{}'],
  ['a length and chunks', ['content-length: 2', 'transfer-encoding: chunked'], '0\r\n\r\n'],
  ['two transfer encodings', ['transfer-encoding: chunked', 'transfer-encoding: identity'], '0\r\n\r\n'],
  ['an unknown transfer encoding', ['transfer-encoding: xchunked'], '0\r\n\r\n'],
  ['a blank before the colon', ['transfer-encoding : chunked'], '0\r\n\r\n'],
  ['a signed length', ['content-length: +2'], '{}'],
  ['a folded header', ['x-a: b', ' content-length: 2'], '{}'],
])('HT7 a request with %s is refused, and nothing behind it is read as another request', async (_, headers, body) => {
  const smuggled = `GET /healthz HTTP/1.1\r\nhost: skerry.example\r\n\r\n`
  const answer = await request('POST /api/v1/suspend', [bearer, 'content-type: application/json', ...headers], body + smuggled)
  expect(statuses(answer)).toEqual([400])
})

test('HT7 two credentials are none', async () => {
  const two = await request('GET /api/v1/version', [bearer, 'authorization: Bearer sk_other'])
  expect(statuses(two)).toEqual([401])
  const other = await request('GET /api/v1/version', ['authorization: Bearer sk_other', bearer])
  expect(statuses(other)).toEqual([401])
  expect(statuses(await request('GET /api/v1/version', [bearer]))).toEqual([200])
})

test.each([
  ['/api//v1/version', 401],
  ['//api/v1/version', 404],
  ['/healthz/../api/v1/version', 401],
  ['/healthz/%2e%2e/api/v1/version', 401],
  ['/api/v1/%2e%2e/%2e%2e/healthz', 200],
  ['/api/v1/..%2fversion', 401],
  ['/%61pi/v1/version', 404],
  ['/API/v1/version', 404],
  ['/api/v1/Version', 401],
  ['/api%2fv1%2fversion', 404],
  ['/api\\v1\\version', 401],
  ['/api/v1/version;x=1', 401],
  ['/api/v1/version/', 401],
  ['/agent/v1/../../api/v1/version', 401],
  ['/webhooks/v1/../../api/v1/version', 401],
  ['http://other.example/api/v1/version', 401],
])('HT8 %s without a credential is answered %d, as it is read after resolution', async (path, status) => {
  const answer = await request(`GET ${path}`)
  expect(statuses(answer)).toEqual([status])
  expect(answer).not.toContain('"commit"')
})

test.each([
  ['/api/v1/services/', 200],
  ['/api/v1/projects/shop/services/web%2F..%2Fother', 400],
  ['/api/v1/projects/shop/services/web%00', 400],
  ['/api/v1/projects/shop/services/%e0%80%af', 400],
  ['/api/v1/projects/shop/services/Web', 400],
  ['/api/v1/projects/shop%2f..%2fother/services/web', 400],
  ['/api/v1/versions', 404],
  ['/api/v1/clusters/a/servicesx', 404],
])('HT8 %s with a credential is %d: a name is one segment, and no prefix of a route is the route', async (path, status) => {
  expect(statuses(await request(`GET ${path}`, [bearer]))).toEqual([status])
})

const call = async (method: string, path: string, body?: unknown) => {
  const headers = { authorization: bearer.slice('authorization: '.length), 'content-type': 'application/json' }
  const answer = await fetch(server.url + path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
}

test('HT9 members that the server writes are not taken from a body, and unknown ones are refused', async () => {
  const path = '/api/v1/projects/default/repositories/apps'
  const doc = repositoryDoc('apps', { uid: 'mine', version: 999, generation: 7, createdMs: 1, deletingMs: 1 })
  const made = await call('PUT', path, { ...doc, status: { ready: true, commit: 'f00' } })
  expect(made).toMatchObject({ status: 201, body: { metadata: { generation: 1 }, status: { ready: false, commit: null } } })
  const { metadata } = made.body as { metadata: Record<string, unknown> }
  expect([metadata['uid'] === 'mine', metadata['version'] === 999, metadata['createdMs'] === 1, metadata['deletingMs']]).toEqual([
    false,
    false,
    false,
    undefined,
  ])
  for (const extra of [{ owner: 'me' }, { __proto__: null, constructor: {} }])
    expect((await call('PUT', path, { ...repositoryDoc('apps'), ...extra })).status).toBe(422)
  expect((await call('PUT', path, JSON.parse(JSON.stringify(repositoryDoc('other'))))).status).toBe(400)
  const token = await call('POST', '/api/v1/tokens', { name: 'ci', role: 'viewer', createdBy: 'root', id: 't-1' })
  expect(token.status).toBe(422)
})

test('HT9 a source at an address of this machine is refused when it is read', async () => {
  const path = '/api/v1/projects/default/repositories/inner'
  const inner = { ...repositoryDoc('inner'), spec: { git: { url: `${server.url}/api/v1/version` }, poll: '1s' } }
  expect((await call('PUT', path, inner)).status).toBe(201)
  let reason: unknown
  for (let tries = 0; tries < 100 && reason !== 'source_address_refused'; tries++) {
    await Bun.sleep(50)
    const { status } = (await call('GET', path)).body as { status: { reason: string; message: string } }
    reason = /address/.test(status.message) ? 'source_address_refused' : status.reason
  }
  expect(reason).toBe('source_address_refused')
})

test('HT10 an unknown token takes as long as a known prefix of one', async () => {
  const known = server.firstAdminToken ?? ''
  const last = known.at(-9) === 'A' ? 'B' : 'A'
  const near = withChecksum(known.slice(0, -9) + last)
  const far = withChecksum(`sk_${'x'.repeat(43)}`)
  const times = { near: [] as number[], far: [] as number[] }
  for (let i = 0; i < 60; i++)
    for (const [which, token] of [
      ['near', near],
      ['far', far],
    ] as const) {
      const began = performance.now()
      const { status } = await fetch(`${server.url}/api/v1/version`, { headers: { authorization: `Bearer ${token}` } })
      times[which].push(performance.now() - began)
      expect(status).toBe(401)
    }
  const median = (all: number[]) => all.toSorted((a, b) => a - b)[all.length >> 1] ?? 0
  // The look-up is by SHA-256, so that no part of a token can be found by time; a comparison byte by byte would show on
  // the socket only by luck.
  expect(Math.abs(median(times.near) - median(times.far))).toBeLessThan(3)
})
test('HT7 after all of that the server is ready, and stops as asked', async () => {
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200)
  await server.stop()
})

const withChecksum = (text: string): string => text + Bun.hash.crc32(text).toString(16).padStart(8, '0')
