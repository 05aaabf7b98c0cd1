// PU3, JN2, SE1: an agent that speaks garbage at every route that reads a body. It gets a short answer soon, and the
// server is as it was.
import { beforeAll, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { zstdCompressSync } from 'node:zlib'
import { cursorText } from '../../shared/crdt/position.ts'
import { JOIN_BODY_BYTES_MAX, ROUTES, SESSION_BODY_BYTES_MAX, STATUS_BODY_BYTES_MAX } from '../../shared/protocol/routes.ts'
import { REV_INCARNATION } from '../../shared/protocol/status.ts'
import { problemBodySchema } from '../../shared/runtime/error.ts'
import { joinBody, joinTestAgent, newAgentKeys, startTestServer, type TestAgent, type TestServer } from '../support/agent-api-kit.ts'

let host: TestServer
let agent: TestAgent
beforeAll(async () => {
  host = await startTestServer(50)
  agent = await joinTestAgent(host)
})

const ANSWER_MS_MAX = 1_500
const ANSWER_BYTES_MAX = 8_000

interface Garbage {
  body: Uint8Array
  headers?: Record<string, string>
}
const text = (body: string, headers?: Record<string, string>): Garbage => ({ body: Buffer.from(body), ...(headers ? { headers } : {}) })
const packed = (body: Uint8Array): Garbage => ({ body, headers: { 'content-encoding': 'zstd' } })
const deep = (open: string, close: string, depth: number) => `${open.repeat(depth)}1${close.repeat(depth)}`
const keys = (count: number) => `{${Array.from({ length: count }, (_, n) => `"k${n}":0`).join()}}`
const bomb = (bytes: number) =>
  Buffer.concat(Array.from({ length: Math.ceil(bytes / 2 ** 24) }, () => zstdCompressSync(Buffer.alloc(2 ** 24))))
const LIMITS: Record<string, number> = {
  [ROUTES.join]: JOIN_BODY_BYTES_MAX,
  [ROUTES.session]: SESSION_BODY_BYTES_MAX,
  [ROUTES.status]: STATUS_BODY_BYTES_MAX,
}

const GARBAGE: Array<[name: string, (limit: number) => Garbage]> = [
  ['nothing', () => text('')],
  ['noise', () => ({ body: Buffer.from(Array.from({ length: 5_000 }, (_, n) => (n * 7_919 + (n >> 3)) % 256)) })],
  ['only NUL', () => ({ body: Buffer.alloc(1_000) })],
  ['a byte order mark', () => text('\ufeff{}')],
  ['half an object', () => text('{"agentId":"a-00')],
  ['null', () => text('null')],
  ['a number', () => text('1e999')],
  ['a text', () => text('"join"')],
  ['an empty list', () => text('[]')],
  ['an empty object', () => text('{}')],
  ['UTF-16', () => ({ body: Buffer.from('{"token":"x"}', 'utf16le') })],
  ['broken UTF-8', () => ({ body: Buffer.concat([Buffer.from('{"token":"'), Buffer.from([0xc3, 0x28, 0xf0, 0x9f]), Buffer.from('"}')]) })],
  ['lists 10,000 deep', () => text(deep('[', ']', 10_000))],
  ['objects 10,000 deep', () => text(deep('{"a":', '}', 10_000))],
  ['rows 10,000 deep', () => text(`{"incarnation":1,"agentId":"a-0000000000000001","rows":${deep('[', ']', 10_000)}}`)],
  ['as deep as fits', (limit) => text(deep('[', ']', limit / 2 - 1))],
  ['a million keys', () => text(keys(1_000_000))],
  ['a million keys, packed', () => packed(zstdCompressSync(Buffer.from(keys(1_000_000))))],
  ['as many keys as fit', (limit) => text(keys(Math.floor(limit / 14)))],
  ['as many rows as fit', (limit) => text(`{"incarnation":1,"rows":[${'1,'.repeat(limit / 2 - 20)}1]}`)],
  [
    'prototype keys',
    () =>
      text('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"rows":[{"__proto__":{"polluted":1}}],"incarnation":1}'),
  ],
  ['a number where a text is expected', () => text('{"token":1,"agentId":2,"incarnation":"1","rows":{}}')],
  ['a huge number', () => text(`{"incarnation":${'9'.repeat(5_000)},"rows":[],"agentId":"a-0000000000000001"}`)],
  ['a text as long as fits', (limit) => text(`{"token":"${'x'.repeat(limit - 40)}"}`)],
  ['a body one byte past', (limit) => ({ body: Buffer.alloc(limit + 1, ' ') })],
  ['16 MiB', () => ({ body: Buffer.alloc(16 * 2 ** 20, '[') })],
  ['a bomb of 256 MiB', () => packed(bomb(256 * 2 ** 20))],
  ['a bomb in a bomb', () => packed(zstdCompressSync(bomb(64 * 2 ** 20)))],
  ['a frame that promises 1 TiB', () => packed(Buffer.from('28b52ffde000000000000100000100000000', 'hex'))],
  ['cut zstd', () => packed(zstdCompressSync(Buffer.from('{}'.repeat(500))).subarray(0, 20))],
  ['zstd and more', () => packed(Buffer.concat([zstdCompressSync(Buffer.from('{}')), Buffer.from('tail')]))],
  ['what is no zstd', () => packed(Buffer.from('{}'))],
  ['gzip', () => ({ body: Bun.gzipSync(Buffer.from('{}')), headers: { 'content-encoding': 'gzip' } })],
  ['zstd twice', () => ({ body: zstdCompressSync(zstdCompressSync(Buffer.from('{}'))), headers: { 'content-encoding': 'zstd, zstd' } })],
  ['an encoding of 5,000 characters', () => text('{}', { 'content-encoding': 'x'.repeat(5_000) })],
  ['a length that is a lie', () => text('{}', { 'content-length': '99999999999' })],
]
const ROUTES_WITH_BODY = [ROUTES.join, ROUTES.session, ROUTES.status, ROUTES.buckets]
const CASES = ROUTES_WITH_BODY.flatMap((route) => GARBAGE.map(([name, make]) => [route, name, make] as const))

test.each(CASES)('PU3 JN2 SE1 %s takes no harm from %s', async (route, _, make) => {
  const { body, headers = {} } = make(LIMITS[route] ?? 16 * 1_024)
  const startMs = performance.now()
  const answer = await host.ask('POST', route, { token: agent.session.token, body, headers })
  expect(performance.now() - startMs).toBeLessThan(ANSWER_MS_MAX)
  expect(answer.bytes.length).toBeLessThan(ANSWER_BYTES_MAX)
  if (answer.status === 200) expect([route, answer.body['reject']]).toEqual([ROUTES.status, [{ key: '', code: 'bad_document' }]])
  else {
    expect([400, 401, 403, 413, 426]).toContain(answer.status)
    expect(problemBodySchema.safeParse(answer.body).success).toBe(true)
  }
  expect(Object.keys(Object.prototype)).toEqual([])
})

const good = () => ({ sync: 'Synced', health: 'Healthy', reason: 'Applied', message: '', sinceMs: 1, objectCount: 0, healthyCount: 0 })
let counter = 0
const push = (rows: string) =>
  host.ask('POST', ROUTES.status, { token: agent.session.token, body: Buffer.from(`{"incarnation":1,"rows":[${rows}]}`) })
const rowText = (doc: string, key = `"p/s${counter}"`) =>
  `{"kind":"service","key":${key},"rev":${REV_INCARNATION + ++counter},"doc":${doc}}`

test.each([
  ['a document 10,000 deep', () => rowText(deep('[', ']', 10_000))],
  ['a document 500,000 deep', () => rowText(deep('{"a":', '}', 500_000))],
  ['a document with 200,000 keys', () => rowText(keys(200_000))],
  ['a document that is a prototype', () => rowText('{"__proto__":{"sync":"Synced"},"constructor":1}')],
  ['a lone surrogate as a key', () => rowText('{}', '"\\ud800"')],
  ['a key of NULs', () => rowText('{}', `"${'\\u0000'.repeat(100)}"`)],
  ['a document that is a number past all numbers', () => rowText('1e999')],
])('PU3 %s is one refused row, its neighbours are taken', async (_, make) => {
  const poison = make()
  const startMs = performance.now()
  const { status, body, bytes } = await push(`${rowText(JSON.stringify(good()))},${poison},${rowText(JSON.stringify(good()))}`)
  expect(performance.now() - startMs).toBeLessThan(ANSWER_MS_MAX)
  expect(bytes.length).toBeLessThan(ANSWER_BYTES_MAX)
  if (status === 200) {
    expect(body['ack']).toBe(REV_INCARNATION + counter)
    expect(body['reject']).toHaveLength(1)
  } else expect([status, body['code']]).toEqual([400, 'bad_request'])
})

test('PU3 members that nobody knows are left out, prototype keys among them', async () => {
  const doc = `{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"tomorrow":1,${JSON.stringify(good()).slice(1)}`
  const { body } = await push(rowText(doc, '"p/polluter"'))
  expect(body['reject']).toEqual([])
  const [entry] = await host.server.store.listStatus({ clusterId: agent.clusterId, kind: 'service', key: 'p/polluter' })
  expect(entry?.doc).toEqual(good())
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
})

test('JN2 SE1 a join or session with members of a prototype is read as if they were not there', async () => {
  const body = JSON.stringify(joinBody(host, newAgentKeys(), 'proto'))
  const answer = await host.ask('POST', ROUTES.join, { body: Buffer.from(`{"__proto__":{"cluster":"other"},${body.slice(1)}`) })
  expect(answer.status).toBe(200)
  expect((await host.server.store.listClusters()).map(({ name }) => name)).toContain('proto')
})

test('PU3 after all that a good agent is served, and memory is as it was', async () => {
  Bun.gc(true)
  const before = process.memoryUsage().rss
  for (const [, make] of GARBAGE) {
    const { body, headers = {} } = make(STATUS_BODY_BYTES_MAX)
    await host.ask('POST', ROUTES.status, { token: agent.session.token, body, headers })
  }
  Bun.gc(true)
  expect(process.memoryUsage().rss - before).toBeLessThan(200 * 2 ** 20)
  const cursor = cursorText(host.server.shards.head(agent.clusterId))
  expect((await host.ask('GET', `${ROUTES.desired}?cursor=${cursor}&wait=0`, { token: agent.session.token })).status).toBe(204)
})

test('PU3 over a socket: a body that ends before its length, one that never ends, and lengths that contradict each other', async () => {
  const http = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 2,
    fetch: async (request) => (await host.server.handle(request)) ?? new Response('down', { status: 503 }),
  })
  const head = (more: string) =>
    `POST ${ROUTES.status} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${agent.session.token}\r\n${more}\r\n\r\n`
  const talk = (sent: string, endAfterMs?: number) =>
    new Promise<{ said: string; ms: number }>((resolve) => {
      const startMs = performance.now()
      let said = ''
      const socket = connect(http.port ?? 0, '127.0.0.1', () => socket.write(sent))
      socket.on('data', (chunk) => {
        said += chunk.toString()
        if (said.includes('\r\n\r\n')) socket.end()
      })
      socket.on('error', () => {})
      socket.on('close', () => resolve({ said: said.split('\r\n')[0] ?? '', ms: performance.now() - startMs }))
      if (endAfterMs !== undefined) setTimeout(() => socket.destroy(), endAfterMs)
    })
  // One after the other: a newer push ends an older one of the same agent.
  const cut = await talk(`${head('content-length: 5000')}{"incarnation":1`, 300)
  const slow = await talk(`${head('content-length: 5000')}{"incarnation":1`)
  const twice = await talk(`${head('content-length: 2\r\ncontent-length: 40')}{}`)
  const chunk = await talk(`${head('transfer-encoding: chunked')}zzzz\r\n{}`)
  expect(cut.said).toBe('')
  expect(slow.ms).toBeLessThan(10_000) // given up by the server
  for (const { said } of [twice, chunk]) expect(said === '' || /^HTTP\/1\.1 4\d\d/.test(said)).toBe(true)
  const good = await fetch(`http://127.0.0.1:${http.port}${ROUTES.status}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${agent.session.token}` },
    body: JSON.stringify({ incarnation: 1, rows: [] }),
  })
  expect(good.status).toBe(200)
  await http.stop(true)
}, 20_000)
