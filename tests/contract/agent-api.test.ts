import { expect, test } from 'bun:test'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { waitSecondsOf } from '../../server/http/desired-query.ts'
import { sortStatusRows } from '../../server/http/status-rows.ts'
import { cursorText } from '../../shared/crdt/position.ts'
import type { ClusterId } from '../../shared/model/ids.ts'
import { ROUTES, STATUS_BODY_BYTES_MAX, STATUS_DOC_BYTES_MAX, STATUS_ROWS_MAX, WAIT_SECONDS_MAX } from '../../shared/protocol/routes.ts'
import { REV_INCARNATION } from '../../shared/protocol/status.ts'
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
  expect((await push([row(2)])).body).toEqual({ ack: rev(2), reject: [] })
  expect((await push([row(2, service('forged'))])).body).toEqual({ ack: rev(2), reject: [] })
  expect((await push([row(1)])).body).toEqual({ ack: rev(2), reject: [] })
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
  expect(good.body).toEqual({ ack: rev(1), reject: [] })
})

test('PU3 as many rows as a push may hold are taken', async () => {
  const { ask, agent, server } = await start()
  const rows = Array.from({ length: STATUS_ROWS_MAX }, (_, n) => row(n + 1, service(''), `shop/${n}`))
  const answer = await ask('POST', ROUTES.status, { token: agent.session.token, json: { incarnation: 1, rows } })
  expect(answer.body).toEqual({ ack: rev(STATUS_ROWS_MAX), reject: [] })
  expect(await server.store.listStatus({ clusterId: agent.clusterId, kind: 'service' })).toHaveLength(STATUS_ROWS_MAX)
})

test('PU4 a whole inventory sweeps what it does not name, but not when one of its rows was refused', async () => {
  const { ask, agent, server } = await start()
  const push = (rows: unknown[]) =>
    ask('POST', ROUTES.status, { token: agent.session.token, json: { incarnation: 1, rows, complete: true } })
  const keys = async () => (await server.store.listStatus({ clusterId: agent.clusterId, kind: 'service' })).map(({ key }) => key)
  await push([row(1, service(''), 'a'), row(2, service(''), 'b')])
  await push([row(3, service(''), 'a'), row(4, 'poison', 'b')])
  expect(await keys()).toEqual(['a', 'b'])
  await push([row(5, service(''), 'a')])
  expect(await keys()).toEqual(['a'])
})
