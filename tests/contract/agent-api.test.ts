import { expect, test } from 'bun:test'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { waitSecondsOf } from '../../server/http/desired-query.ts'
import { sortStatusRows } from '../../server/http/status-rows.ts'
import { cursorText } from '../../shared/crdt/position.ts'
import type { HeadProof } from '../../shared/protocol/frames.ts'
import { SUM_BYTES } from '../../shared/protocol/refetch.ts'
import {
  PAGE_BYTES_MAX,
  REFETCH_BODY_BYTES_MAX,
  ROUTES,
  STATUS_BODY_BYTES_MAX,
  STATUS_DOC_BYTES_MAX,
  STATUS_ROWS_MAX,
  WAIT_SECONDS_MAX,
} from '../../shared/protocol/routes.ts'
import { REV_INCARNATION } from '../../shared/protocol/status.ts'
import { parseTransfer, TRANSFER_HEADER } from '../../shared/protocol/transfer.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { joinTestAgent, startTestServer, type TestAgent, type TestServer } from '../support/agent-api-kit.ts'
import { newId, WEB } from '../support/sync-kit.ts'

async function start(): Promise<TestServer & { agent: TestAgent; publish(value: string, cluster?: ClusterId): Promise<boolean> }> {
  const test = await startTestServer()
  const agent = await joinTestAgent(test)
  return { ...test, agent, publish: (value, cluster = agent.clusterId) => test.server.publish(cluster, WEB, { a: value }) }
}

const zstd = { 'accept-encoding': 'gzip, zstd' }

test('PL2 a poll is answered at once when there is something, else as soon as there is', async () => {
  const { ask, agent, server, clock, publish } = await start()
  const poll = (wait: number) =>
    ask('GET', `${ROUTES.desired}?cursor=${cursorText(server.shards.head(agent.clusterId))}&wait=${wait}`, { token: agent.session.token })
  const waiting = poll(55)
  await clock.advance(30_000)
  await publish('1')
  const answer = await waiting
  expect([answer.status, answer.bytes.toString().split('\n').length]).toEqual([200, 5]) // hello, two rows, checkpoint, and its end
  const empty = poll(55)
  await clock.advance(54_999)
  expect(await Promise.race([empty, Promise.resolve('still waits')])).toBe('still waits')
  await clock.advance(1)
  expect((await empty).status).toBe(204)
  expect((await poll(0)).status).toBe(204)
})

test('PL7 the cluster is the credential’s, whatever the request says', async () => {
  const test = await start()
  const other = await joinTestAgent(test, 'other')
  await test.publish('mine')
  await test.publish('theirs', other.clusterId)
  const asked = `${ROUTES.desired}?cluster=${other.clusterId}`
  const answer = await test.ask('GET', asked, { token: test.agent.session.token, headers: { 'skerry-cluster': other.clusterId } })
  expect(answer.bytes.toString()).toContain('mine')
  expect(answer.bytes.toString()).not.toContain('theirs')
})

test.each([
  ['not a cursor', 'x', 400, 'bad_cursor'],
  ['a cursor with more', `${'ab'.repeat(16)}.1.0.${'0'.repeat(32)}.1`, 400, 'bad_cursor'],
  ['a number in another spelling', `${'ab'.repeat(16)}.1.00.${'0'.repeat(32)}`, 400, 'bad_cursor'],
  ['past 2^53', `${'ab'.repeat(16)}.1.9007199254740993.${'0'.repeat(32)}`, 400, 'bad_cursor'],
  ['of another file', `${newId()}.1.0.${'0'.repeat(32)}`, 409, 'must_refetch'],
] as const)('CU1 PL1 a cursor that is %s', async (_, cursor, status, code) => {
  const { ask, agent } = await start()
  const answer = await ask('GET', `${ROUTES.desired}?cursor=${cursor}`, { token: agent.session.token })
  expect([answer.status, answer.body['code']]).toEqual([status, code])
  if (code === 'must_refetch') expect(answer.body['reason']).toBe('unknown')
})

test('PL2 answers are compressed when the agent can read it and when it pays', async () => {
  const { ask, agent, publish } = await start()
  const get = (headers: Record<string, string>) => ask('GET', ROUTES.desired, { token: agent.session.token, headers })
  await publish('x'.repeat(10_000))
  const [plain, packed] = [await get({}), await get(zstd)]
  expect([plain.headers.get('content-encoding'), packed.headers.get('content-encoding')]).toEqual([null, 'zstd'])
  expect(packed.bytes.length).toBeLessThan(plain.bytes.length / 5)
  expect(zstdDecompressSync(packed.bytes).toString()).toContain('x'.repeat(10_000))
  expect((await get({ 'accept-encoding': 'gzip, xzstd' })).headers.get('content-encoding')).toBeNull()
})

const ID = 'A'.repeat(22)
const good = `cursor=${'ab'.repeat(16)}.1.0.${'0'.repeat(32)}`
test.each([
  ['a cursor twice', `${good}&${good}`, 'bad_request'],
  ['a cursor and another in another case', `${good}&Cursor=x`, 'must_refetch'],
  ['a parameter of tomorrow', `${good}&colour=blue`, 'must_refetch'],
  ['an unknown parameter twice', 'a=1&a=2', 'bad_request'],
  ['a parameter that every object has', `${good}&__proto__=1&constructor=2`, 'must_refetch'],
  ['an empty cursor', 'cursor=', 'bad_cursor'],
  ['a cursor without a value', 'cursor', 'bad_cursor'],
  ['a percent-encoded cursor', `cursor=${'%61b'.repeat(16)}.1.0.${'0'.repeat(32)}`, 'bad_cursor'],
  ['a cursor of NULs', `cursor=${'%00'.repeat(8)}`, 'bad_cursor'],
  ['a cursor with a negative version', `cursor=${'ab'.repeat(16)}.1.-1.${'0'.repeat(32)}`, 'bad_cursor'],
  ['a cursor in capitals', `cursor=${'AB'.repeat(16)}.1.0.${'0'.repeat(32)}`, 'bad_cursor'],
  ['a query of a megabyte', `cursor=${'a'.repeat(1_000_000)}`, 'bad_request'],
  ['ten thousand parameters', Array.from({ length: 10_000 }, (_, n) => `p${n}`).join('&'), 'bad_request'],
  ['a negative wait', `${good}&wait=-1`, 'bad_request'],
  ['an outbox that is no number', `${good}&outbox=many`, 'bad_request'],
  ['a negative outbox', `${good}&outbox=-1`, 'bad_request'],
  ['a slice that is no number', `${good}&slice=1e9`, 'bad_request'],
  ['a slice of a byte, which is taken for the smallest', `${good}&slice=1`, 'must_refetch'],
  ['a part without a transfer', 'part=1', 'bad_request'],
  ['a transfer without a part', `transfer=${ID}`, 'bad_request'],
  ['a part and a cursor', `${good}&transfer=${ID}&part=1`, 'bad_request'],
  ['a transfer that is no id', 'transfer=../../etc/passwd&part=1', 'bad_request'],
  ['a transfer id one character short', `transfer=${ID.slice(1)}&part=1`, 'bad_request'],
  ['a negative part', `transfer=${ID}&part=-1`, 'bad_request'],
  ['a part in another spelling', `transfer=${ID}&part=01`, 'bad_request'],
  ['a fraction of a part', `transfer=${ID}&part=1.5`, 'bad_request'],
  ['a part past every number', `transfer=${ID}&part=${'9'.repeat(30)}`, 'bad_request'],
  ['a transfer that never was', `transfer=${ID}&part=1`, 'transfer_gone'],
  ['a transfer that never was, far part', `transfer=${ID}&part=999999999`, 'transfer_gone'],
] as const)('CU1 PL3 a query with %s is judged before anything is read', async (_, query, code) => {
  const { ask, agent } = await start()
  const answer = await ask('GET', `${ROUTES.desired}?${query}`, { token: agent.session.token })
  expect(answer.body['code']).toBe(code)
  expect(answer.bytes.length).toBeLessThan(2_000)
})

test('PL7 parts of another cluster’s page are gone for everyone else, and nobody without a session gets any', async () => {
  const test = await start()
  const other = await joinTestAgent(test, 'other')
  for (const cluster of [test.agent.clusterId, other.clusterId])
    await test.server.publish(cluster, WEB, { a: Buffer.from(crypto.getRandomValues(new Uint8Array(400_000))).toString('base64') })
  const token = other.session.token
  const first = await test.ask('GET', ROUTES.desired, { token, headers: zstd })
  const transfer = parseTransfer(first.headers.get(TRANSFER_HEADER) ?? '', PAGE_BYTES_MAX)
  expect([first.status, first.headers.get('content-encoding'), transfer?.parts]).toEqual([200, null, 2])
  const path = `${ROUTES.desired}?transfer=${transfer?.id}&part=1`
  const code = async (token?: string) => (await test.ask('GET', path, token === undefined ? {} : { token })).body['code'] ?? 'a part'
  expect([await code(token), await code(test.agent.session.token), await code()]).toEqual(['a part', 'transfer_gone', 'session_required'])
  const rest = await test.ask('GET', path, { token })
  const whole = Buffer.concat([first.bytes, rest.bytes])
  expect([whole.length, zstdDecompressSync(whole).toString().split('\n').length]).toEqual([transfer?.bytes ?? 0, 5])
})

const line = (head: unknown) => Buffer.from(`${JSON.stringify(head)}\n`)
const buckets = (head: unknown, count: number) => Buffer.concat([line(head), Buffer.alloc(count * SUM_BYTES)])
const proofOf = (hello: unknown) => ({ proof: { hello, checkpoint: {} } })

test.each([
  ['no sums', buckets({}, 0), null],
  ['one sum', buckets({}, 1), null],
  ['16 sums', buckets({}, 16), null],
  ['256 sums', buckets({}, 256), null],
  ['two sums', buckets({}, 2), 'bad_request'],
  ['17 sums', buckets({}, 17), 'bad_request'],
  ['257 sums', buckets({}, 257), 'bad_request'],
  ['half a sum', Buffer.concat([line({}), Buffer.alloc(8)]), 'bad_request'],
  ['a line feed among the sums', Buffer.concat([line({}), Buffer.alloc(SUM_BYTES, '\n')]), null],
  ['members of tomorrow', buckets({ colour: 'blue' }, 1), null],
  ['no line', Buffer.alloc(SUM_BYTES), 'bad_request'],
  ['nothing', Buffer.alloc(0), 'bad_request'],
  ['a line that is no JSON', Buffer.from('sums\n'), 'bad_request'],
  ['a line of no UTF-8', Buffer.from([0x22, 0xff, 0x22, 0x0a]), 'bad_request'],
  ['a line that is an array', line([]), 'bad_request'],
  ['a proof that is none', line({ proof: 'trust me' }), 'bad_request'],
  ['a proof of nothing', line(proofOf({})), 'bad_request'],
  ['deep nesting', Buffer.from(`${'['.repeat(8_000)}${']'.repeat(8_000)}\n`), 'bad_request'],
  ['a prototype', Buffer.from('{"__proto__":{"proof":1}}\n'), null],
  ['a body at its limit', Buffer.concat([Buffer.alloc(REFETCH_BODY_BYTES_MAX - 1, ' '), Buffer.from('\n')]), 'bad_request'],
  ['a body one byte past', Buffer.alloc(REFETCH_BODY_BYTES_MAX + 1), 'too_large'],
] as const)('PL9 a refetch with %s is answered by its form', async (_, body, code) => {
  const { ask, agent, publish } = await start()
  await publish('1')
  const answer = await ask('POST', ROUTES.buckets, { token: agent.session.token, body })
  expect([answer.body['code'] ?? null, answer.status]).toEqual([code, code === null ? 200 : code === 'too_large' ? 413 : 400])
  if (code === null) expect(answer.bytes.toString()).toContain('"from":null')
})

test('PL9 sums may come as zstd, and a bomb is refused by what it inflates to', async () => {
  const { ask, agent } = await start()
  const post = (body: Buffer) =>
    ask('POST', ROUTES.buckets, { token: agent.session.token, body: zstdCompressSync(body), headers: { 'content-encoding': 'zstd' } })
  expect((await post(buckets({}, 16))).status).toBe(200)
  expect((await post(Buffer.alloc(REFETCH_BODY_BYTES_MAX + 1))).status).toBe(413)
})

test('AR1 a refetch whose body is still on its way ends when its agent asks again', async () => {
  const { server, ask, agent } = await start()
  const { token } = agent.session
  const headers = { authorization: `Bearer ${token}` }
  const body = new ReadableStream<Uint8Array>({ start: (stream) => stream.enqueue(line({})) })
  const stalled = server.handle(new Request(`http://localhost${ROUTES.buckets}`, { method: 'POST', headers, body }))
  expect((await ask('POST', ROUTES.buckets, { token, body: buckets({}, 0) })).status).toBe(200)
  expect((await stalled)?.status).toBe(400)
})

test('RP2 while a restore waits for a person no page, part or bucket is served, its evidence is taken, and status goes on', async () => {
  const test = await start()
  const { ask, agent, server, publish } = test
  await publish('1')
  const hello = {
    t: 'hello',
    epoch: 1,
    schema: 1,
    ordinal: 9,
    from: null,
    to: server.shards.head(agent.clusterId),
    siteId: 'ab'.repeat(16),
  }
  const checkpoint = { t: 'checkpoint', count: 1, rows: 'cd'.repeat(32), signature: 'A'.repeat(86) }
  const offered: unknown[] = []
  let pending = false
  Object.assign(server.restoreGate, {
    pending: () => pending,
    offer: async (cluster: string, proof: HeadProof) => {
      offered.push([cluster, proof.hello.ordinal])
      pending = true
    },
  })
  const token = agent.session.token
  const refused = await ask('POST', ROUTES.buckets, { token, body: line({ proof: { hello, checkpoint } }) })
  expect([refused.status, refused.body['code'], refused.headers.get('retry-after')]).toEqual([503, 'restore_pending', '60'])
  expect(offered).toEqual([[agent.clusterId, 9]])
  for (const path of [ROUTES.desired, `${ROUTES.desired}?transfer=${ID}&part=1`])
    expect((await ask('GET', path, { token })).body['code']).toBe('restore_pending')
  expect((await ask('POST', ROUTES.status, { token, json: { incarnation: 1, rows: [row(1)] } })).status).toBe(200)
  pending = false
  expect((await ask('GET', ROUTES.desired, { token })).status).toBe(200)
})

test.each(['pull', 'refetch'] as const)('RP2 a %s that was being read when a restore was found out is not handed out', async (call) => {
  const { ask, agent, server, publish } = await start()
  await publish('1')
  let pending = false
  Object.assign(server.restoreGate, { pending: () => pending })
  const read = server.shards[call].bind(server.shards) as () => Promise<unknown>
  Object.assign(server.shards, {
    [call]: async (...asked: Parameters<typeof read>) => {
      const page = await read(...asked)
      pending = true // by the proof of another agent
      return page
    },
  })
  const { token } = agent.session
  const answer = call === 'pull' ? ask('GET', ROUTES.desired, { token }) : ask('POST', ROUTES.buckets, { token, body: line({}) })
  expect((await answer).body['code']).toBe('restore_pending')
})

test('PL2 idle answers carry nothing but their status', async () => {
  const { ask, agent, server } = await start()
  const path = `${ROUTES.desired}?cursor=${cursorText(server.shards.head(agent.clusterId))}&wait=0`
  const answer = await ask('GET', path, { token: agent.session.token })
  expect([answer.status, [...answer.headers.keys()], answer.bytes.length]).toEqual([204, [], 0])
})

test.each([
  [null, 55],
  ['0', 0],
  ['900', WAIT_SECONDS_MAX],
  ['901', WAIT_SECONDS_MAX],
] as const)('PL10 wait=%s is %d seconds', (text, seconds) => expect(waitSecondsOf(text)).toBe(seconds))
test.each(['-1', '1.5', 'x', '', '1e3', '9999999'])('PL10 wait=%s is refused', (text) =>
  expect(() => waitSecondsOf(text)).toThrow('number of seconds'),
)

// Push

const service = (message: string) => ({
  sync: 'Synced',
  health: 'Healthy',
  reason: 'r',
  message,
  sinceMs: 1,
  objectCount: 1,
  healthyCount: 1,
})
const rev = (counter: number, incarnation = 1) => incarnation * REV_INCARNATION + counter
const row = (counter: number, doc: unknown = service(String(counter)), key = 'shop/web') => ({
  kind: 'service',
  key,
  rev: rev(counter),
  doc,
})

test('PU2 replayed, repeated and reordered rows change nothing', async () => {
  const { ask, agent, server } = await start()
  const push = (rows: unknown[]) => ask('POST', ROUTES.status, { token: agent.session.token, json: { incarnation: 1, rows } })
  const shown = async () =>
    (await server.store.listStatus({ clusterId: agent.clusterId, kind: 'service' })).map(({ rev: at, doc }) => [at, doc])
  expect((await push([row(2)])).body).toMatchObject({ ack: rev(2), reject: [] })
  expect((await push([row(2, service('forged'))])).body).toMatchObject({ ack: rev(2), reject: [] })
  expect((await push([row(1)])).body).toMatchObject({ ack: rev(2), reject: [] })
  expect(await shown()).toEqual([[rev(2), service('2')]])
  await push([row(4), row(3)])
  expect(await shown()).toEqual([[rev(4), service('4')]])
  await push([row(5, null)])
  expect(await shown()).toEqual([])
})

/** A document of exactly `bytes` bytes. */
const sized = (bytes: number) => {
  const doc = {
    ...service(''),
    refusal: { digest: '', names: Array.from({ length: 125 }, () => 'n'.repeat(500)), count: 1, ownedCount: 1, why: '' },
  }
  const missing = bytes - Buffer.byteLength(JSON.stringify(doc))
  doc.refusal.why = 'w'.repeat(missing)
  return doc
}

test.each([
  ['PU3 a good row', row(9), null],
  ['PU3 a removal', row(9, null), null],
  ['PU3 a document at its limit', row(9, sized(STATUS_DOC_BYTES_MAX)), null],
  ['PU3 a document one byte past', row(9, sized(STATUS_DOC_BYTES_MAX + 1)), 'too_large'],
  ['PU3 a kind of tomorrow', { ...row(9), kind: 'forecast' }, 'unknown_kind'],
  ['PU3 a kind that every object has', { ...row(9), kind: 'constructor' }, 'unknown_kind'],
  ['PU3 a rev of the next incarnation', { ...row(9), rev: rev(9, 2) }, 'bad_rev'],
  ['PU3 a rev of an older one', { ...row(9), rev: 9 }, 'bad_rev'],
  ['PU3 the greatest number there is', { ...row(9), rev: 2 ** 53 - 1 }, 'bad_rev'],
  ['PU3 a number that is none any more', { ...row(9), rev: 2 ** 53 }, 'bad_document'],
  ['PU3 a fraction', { ...row(9), rev: 1.5 }, 'bad_document'],
  ['PU3 no key', { ...row(9), key: '' }, 'bad_document'],
  ['PU3 a key past its limit', { ...row(9), key: 'k'.repeat(1_025) }, 'bad_document'],
  [
    'PU3 a key of few characters and many bytes',
    { ...row(9, null), kind: 'object', key: `shop/web//Pod/n/${'雲'.repeat(400)}` },
    'bad_document',
  ],
  ['PU3 a key of some bytes', { ...row(9, null), kind: 'object', key: `shop/web//Pod/n/${'雲'.repeat(300)}` }, null],
  ['PU3 a service without a project', { ...row(9), key: 'web' }, 'bad_document'],
  ['PU3 a service with a third name', { ...row(9), key: 'shop/web/x' }, 'bad_document'],
  ['PU3 an object of no service', { ...row(9, null), kind: 'object', key: 'web' }, 'bad_document'],
  ['PU3 a drift of a service in capitals', { ...row(9, null), kind: 'drift', key: 'Shop/web//Pod/n/x' }, 'bad_document'],
  ['PU3 a second row about the cluster itself', { ...row(9, null), kind: 'cluster', key: 'other' }, 'bad_document'],
  ['PU3 a document of another kind', { ...row(9), kind: 'drift' }, 'bad_document'],
  ['PU3 a document that is a text', row(9, 'Synced'), 'bad_document'],
  ['PU3 a health of tomorrow is Unknown', row(9, { ...service(''), health: 'Radiant' }), null],
  ['PU3 not a row', 7, 'bad_document'],
  ['PU3 null', null, 'bad_document'],
  ['PU3 a row of rows', [row(9)], 'bad_document'],
  ['PU3 a prototype', JSON.parse(`{"__proto__":{"kind":"service"},"key":"k","rev":${rev(9)}}`), 'bad_document'],
])('%s is judged alone, its neighbours are taken', (_, poison, code) => {
  const { taken, reject } = sortStatusRows([row(1), poison, row(20)], 1)
  expect(reject.map((refused) => refused.code)).toEqual(code === null ? [] : ([code] as never))
  expect(taken.map((write) => write.rev)).toEqual(code === null ? [rev(1), rev(9), rev(20)] : [rev(1), rev(20)])
})

test.each([
  ['nginx', true],
  ['app:1', true],
  ['library/web:v1.2_3-rc.1', true],
  ['registry.example:5000/Team/app:1', false],
  ['registry.example:5000/team/sub/app-x__y.z:V1@sha256:00', true],
  ['LOCALHOST:5000/app', true],
  ['[2001:db8::1]:5000/app', true],
  ['app@sha256:ab', true],
  [`${'a'.repeat(253)}:1`, true],
  [`${'a'.repeat(254)}:1`, false],
  [`app:${'t'.repeat(128)}`, true],
  [`app:${'t'.repeat(129)}`, false],
  ['', false],
  ['a b', false],
  ['app:', false],
  ['app\n:1', false],
  ['https://registry.example/app', false],
  ['app:$TAG', false],
  ['雲:1', false],
])('PU10 of the image %p: shown is %p', (image, shown) => {
  const doc = { sync: 'Synced', health: 'Healthy', reason: '', message: '', sinceMs: 1, images: ['a:1', image, 'z:1'] }
  const { taken, reject } = sortStatusRows([{ ...row(1, doc, 'shop/web//Pod/n/x'), kind: 'object' }], 1)
  expect(reject).toEqual([])
  expect(taken[0]?.doc).toEqual({ ...doc, images: shown ? ['a:1', image, 'z:1'] : ['a:1', 'z:1'] })
})

test('PU3 two keys that could be taken for one service are no error of the whole push', async () => {
  const { ask, agent } = await start()
  const rows = [
    { ...row(1), key: 'ab' },
    { ...row(2), key: 'a/ab' },
  ]
  const answer = await ask('POST', ROUTES.status, { token: agent.session.token, json: { incarnation: 1, rows } })
  expect([answer.status, answer.body['ack'], answer.body['reject']]).toEqual([200, rev(2), [{ key: 'ab', code: 'bad_document' }]])
})

test('PU3 NUL bytes and lone surrogates in a status are kept or refused, never an error of the whole push', async () => {
  const { ask, agent } = await start()
  const rows = [row(1, service('\0')), { ...row(2), key: 'a\0b' }, row(3, service('\ud800')), { ...row(4), key: '\udfff' }, row(5)]
  const answer = await ask('POST', ROUTES.status, { token: agent.session.token, json: { incarnation: 1, rows } })
  expect([answer.status, answer.body['ack']]).toEqual([200, rev(5)])
})

test.each([
  ['a body at its limit', () => ({ body: Buffer.alloc(STATUS_BODY_BYTES_MAX, ' ') }), 'bad_request'],
  ['a body one byte past', () => ({ body: Buffer.alloc(STATUS_BODY_BYTES_MAX + 1, ' ') }), 'too_large'],
  ['a body that lies about its length', () => ({ body: Buffer.alloc(9), headers: { 'content-length': '999999999' } }), 'too_large'],
  [
    'a zstd bomb',
    () => ({ body: zstdCompressSync(Buffer.alloc(STATUS_BODY_BYTES_MAX + 1)), headers: { 'content-encoding': 'zstd' } }),
    'too_large',
  ],
  [
    'zstd at the limit',
    () => ({ body: zstdCompressSync(Buffer.alloc(STATUS_BODY_BYTES_MAX, ' ')), headers: { 'content-encoding': 'zstd' } }),
    'bad_request',
  ],
  [
    'zstd that was cut',
    () => ({ body: zstdCompressSync(Buffer.from('{}')).subarray(0, 9), headers: { 'content-encoding': 'zstd' } }),
    'bad_request',
  ],
  ['no zstd', () => ({ body: Buffer.from('{}'), headers: { 'content-encoding': 'zstd' } }), 'bad_request'],
  ['another encoding', () => ({ body: Buffer.from('{}'), headers: { 'content-encoding': 'br' } }), 'bad_request'],
  ['no UTF-8', () => ({ body: Buffer.from([0x22, 0xff, 0x22]) }), 'bad_request'],
  ['no JSON', () => ({ body: Buffer.from('rows') }), 'bad_request'],
  ['nothing', () => ({}), 'bad_request'],
  ['one row too many', () => ({ json: { incarnation: 1, rows: Array.from({ length: STATUS_ROWS_MAX + 1 }, () => 0) } }), 'bad_request'],
  ['another incarnation', () => ({ json: { incarnation: 2, rows: [] } }), 'superseded'],
] as const)('PU3 a push with %s is refused whole, and the server goes on', async (_, make, code) => {
  const { ask, agent } = await start()
  const answer = await ask('POST', ROUTES.status, { token: agent.session.token, ...make() } as never)
  expect(answer.body['code']).toBe(code)
  expect(answer.bytes.length).toBeLessThan(4_000)
  const good = await ask('POST', ROUTES.status, { token: agent.session.token, json: { incarnation: 1, rows: [row(1)] } })
  expect(good.body).toMatchObject({ ack: rev(1), reject: [] })
})

test('PU3 as many rows as a push may hold are taken', async () => {
  const { ask, agent, server } = await start()
  const rows = Array.from({ length: STATUS_ROWS_MAX }, (_, n) => row(n + 1, service(''), `shop/${n}`))
  const answer = await ask('POST', ROUTES.status, { token: agent.session.token, json: { incarnation: 1, rows } })
  expect(answer.body).toMatchObject({ ack: rev(STATUS_ROWS_MAX), reject: [] })
  expect(await server.store.listStatus({ clusterId: agent.clusterId, kind: 'service' })).toHaveLength(STATUS_ROWS_MAX)
})

test('PU4 a whole inventory sweeps what it does not name, but not when one of its rows was refused', async () => {
  const { ask, agent, server } = await start()
  const push = (rows: unknown[]) =>
    ask('POST', ROUTES.status, { token: agent.session.token, json: { incarnation: 1, rows, complete: true } })
  const keys = async () => (await server.store.listStatus({ clusterId: agent.clusterId, kind: 'service' })).map(({ key }) => key)
  await push([row(1, service(''), 'p/a'), row(2, service(''), 'p/b')])
  await push([row(3, service(''), 'p/a'), row(4, 'poison', 'p/b')])
  expect(await keys()).toEqual(['p/a', 'p/b'])
  await push([row(5, service(''), 'p/a')])
  expect(await keys()).toEqual(['p/a'])
})
