// Changes over HTTP: pages, and server-sent events over real connections.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { readEventStream, type StreamEvent } from '../../client/events.ts'
import { createChangeStreams, STREAMS_MAX } from '../../server/http/change-stream.ts'
import type { Change, ChangeFeed, FeedChanges, FeedIdle } from '../../server/store/feed/change-feed.ts'
import type { Store } from '../../server/store/store.ts'
import { createTestAdmin, type TestAdmin } from '../support/admin-app.ts'

let admin: TestAdmin
let server: ReturnType<typeof Bun.serve>
const stopping = new AbortController()
beforeEach(async () => {
  admin = await createTestAdmin({ stopping: stopping.signal })
  server = Bun.serve({ hostname: '127.0.0.1', port: 0, idleTimeout: 30, fetch: admin.app.fetch })
})
afterEach(async () => {
  await server.stop(true)
  await admin.store.close()
})

const write = (store: Store, name: string, spec = '{}') =>
  store.applyResource({ kind: 'Service', project: 'default', name }, { labels: {}, spec, nowMs: 1 })

interface Following {
  events: AsyncGenerator<StreamEvent>
  response: Response
  leave(): void
}
async function follow(query = '', headers: Record<string, string> = {}): Promise<Following> {
  const leaving = new AbortController()
  const response = await fetch(`${server.url}api/v1/changes${query}`, {
    headers: { accept: 'text/event-stream', authorization: `Bearer ${admin.token}`, ...headers },
    signal: leaving.signal,
  })
  if (response.body === null) throw new Error('no body')
  return { response, events: readEventStream(response.body), leave: () => leaving.abort() }
}
async function take({ events }: Following, count: number): Promise<StreamEvent[]> {
  const taken: StreamEvent[] = []
  while (taken.length < count) {
    const next = await events.next()
    if (next.done === true) break
    taken.push(next.value)
  }
  return taken
}
const shown = (events: readonly StreamEvent[]) => events.map(({ id, event }) => `${id} ${event}`)

test('CF6 a page of changes after a number, of some topics; without a number only where the feed is', async () => {
  const from = await admin.store.changes.position()
  for (const name of ['a', 'b', 'c']) await write(admin.store, name)
  expect((await admin.call('GET', '/api/v1/changes')).body).toEqual({ items: [], next: from + 3, newest: from + 3 })
  const page = await admin.call('GET', `/api/v1/changes?after=${from}&limit=2`)
  expect(page.body).toMatchObject({ next: from + 2, newest: from + 3, items: [{ topic: 'resource', name: 'Service/a' }, {}] })
  const tokens = await admin.call('GET', `/api/v1/changes?after=${from}&topic=token,event`)
  expect(tokens.body).toEqual({ items: [], next: from + 3, newest: from + 3 })
  expect((await admin.call('GET', '/api/v1/changes?topic=nothing')).status).toBe(400)
  expect((await admin.call('GET', '/api/v1/changes?after=-1')).status).toBe(400)
})

test('CF6 what is gone is 410, and says where to go on', async () => {
  await write(admin.store, 'a')
  const newest = await admin.store.changes.position()
  const { status, body } = await admin.call('GET', `/api/v1/changes?after=${newest + 5}`)
  expect({ status, body }).toMatchObject({ status: 410, body: { code: 'changes_gone', newest, oldest: 1 } })
})

test('CF7 a stream says where it begins, then tells each change with its number, and is resumed by it', async () => {
  await write(admin.store, 'a')
  const from = await admin.store.changes.position()
  const first = await follow()
  expect(first.response.headers.get('content-type')).toStartWith('text/event-stream')
  expect(await take(first, 1)).toEqual([{ id: `${from}`, event: 'ready', data: `{"position":${from}}` }])
  await write(admin.store, 'b')
  await write(admin.store, 'c')
  const seen = await take(first, 2)
  expect(shown(seen)).toEqual([`${from + 1} resource`, `${from + 2} resource`])
  expect(JSON.parse(seen[0]?.data ?? '')).toMatchObject({
    id: from + 1,
    topic: 'resource',
    project: 'default',
    name: 'Service/b',
    cluster: null,
    keys: null,
  })
  first.leave()
  await write(admin.store, 'd')
  const again = await follow('?after=0', { 'last-event-id': `${from + 2}` })
  expect(shown(await take(again, 2))).toEqual([`${from + 2} ready`, `${from + 3} resource`])
  again.leave()
  const all = await follow('?after=0&topic=token')
  expect(shown(await take(all, 2))).toEqual(['0 ready', '1 token'])
  all.leave()
})

test('CF7 a number that is gone is answered by a reset, and the stream goes on from the number that it names', async () => {
  const newest = await admin.store.changes.position()
  const following = await follow(`?after=${newest + 7}`)
  const [, reset] = await take(following, 2)
  expect(reset).toEqual({ id: `${newest}`, event: 'reset', data: `{"position":${newest}}` })
  await write(admin.store, 'a')
  expect(shown(await take(following, 1))).toEqual([`${newest + 1} resource`])
  following.leave()
})

test('CF7 without a token, and with a Last-Event-ID that is no number, there is no stream', async () => {
  expect((await follow('', { authorization: 'Bearer sk_none' })).response.status).toBe(401)
  expect((await follow('', { 'last-event-id': 'x' })).response.status).toBe(400)
})

test('CF7 AZ4 a caller follows the kinds that it may read; one without any may not follow', async () => {
  const call = (path: string, body: object) => admin.call('POST', `/api/v1${path}`, body)
  const meta = { apiVersion: 'skerry.dev/v1' }
  const config = { ...meta, kind: 'Config', metadata: { name: 'keys', project: 'shop' }, spec: { data: { a: 1 } } }
  const rules = [{ verbs: ['read'], kinds: ['Config'] }]
  const spec = { role: 'secret-keeper', subjects: [{ token: 'keeper' }], projects: ['shop'] }
  const resources = [
    { ...meta, kind: 'Role', metadata: { name: 'secret-keeper' }, spec: { rules } },
    { ...meta, kind: 'RoleBinding', metadata: { name: 'keeper' }, spec },
  ]
  expect((await call('/apply', { resources })).status).toBe(200)
  const tokenOf = async (name: string) => (await call('/tokens', { name, role: 'none' })).body as { token: string }
  const as = async (name: string) => ({ authorization: `Bearer ${(await tokenOf(name)).token}` })
  expect((await follow('', await as('nobody'))).response.status).toBe(403)
  const following = await follow('', await as('keeper'))
  await take(following, 1)
  await call('/suspend', { all: true, reason: 'r' })
  await call('/tokens', { name: 'other', role: 'none' })
  await call('/apply', { resources: [{ ...config, metadata: { name: 'keys', project: 'other' } }, config] })
  const [seen] = await take(following, 1)
  expect(JSON.parse(seen?.data ?? '')).toMatchObject({ topic: 'resource', project: 'shop', name: 'Config/keys' })
  // A stream ends with the last right of its caller.
  await admin.call('DELETE', '/api/v1/role-bindings/keeper')
  await call('/apply', { resources: [{ ...config, spec: { data: { a: 2 } } }] })
  expect(await take(following, 1)).toEqual([])
})

test('CF8 one stream too many is 429 with a time to come back at; whoever leaves makes room', async () => {
  const open = async () =>
    admin.app.fetch(
      new Request('http://localhost/api/v1/changes', { headers: { accept: 'text/event-stream', authorization: `Bearer ${admin.token}` } }),
    )
  const streams: Response[] = []
  for (let i = 0; i < STREAMS_MAX; i++) streams.push(await open())
  const refused = await open()
  expect(refused.status).toBe(429)
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  await streams[0]?.body?.cancel()
  const taken = await open()
  expect(taken.status).toBe(200)
  for (const stream of [...streams.slice(1), taken]) await stream.body?.cancel()
})

test('CF7 silence is broken by a comment, which moves the number to come back with', async () => {
  async function* quiet(): AsyncGenerator<FeedIdle> {
    yield { kind: 'idle', next: 12 }
  }
  const feed: ChangeFeed = { position: async () => 5, read: async () => ({ kind: 'changes', items: [], next: 5 }), follow: quiet }
  const stream = await createChangeStreams(feed, stopping.signal).open(new Request('http://localhost/'), undefined, undefined)
  const text = await stream.text()
  expect(text).toContain('\n\n:\nid: 12\n\n')
  expect(await Array.fromAsync(readEventStream(new Response(text).body ?? new ReadableStream()))).toEqual([
    { id: '5', event: 'ready', data: '{"position":5}' },
    { id: '12', event: '', data: '' },
  ])
})

test('CF8 a reader that takes nothing is not read ahead for, and is cut', async () => {
  let told = 0
  let left = false
  const change: Change = { id: 1, atMs: 1, topic: 'status', cluster: null, project: null, name: null, keys: ['k'.repeat(50_000)] }
  async function* endless(): AsyncGenerator<FeedChanges> {
    try {
      for (;;) yield { kind: 'changes', items: [{ ...change, id: ++told }], next: told }
    } finally {
      left = true
    }
  }
  const feed: ChangeFeed = {
    position: async () => 0,
    read: async () => ({ kind: 'changes', items: [], next: 0 }),
    follow: endless,
  }
  const streams = createChangeStreams(feed, stopping.signal)
  const serving = Bun.serve({ hostname: '127.0.0.1', port: 0, idleTimeout: 1, fetch: (request) => streams.open(request, 0, undefined) })
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port: serving.port ?? 0,
    socket: { open: (own) => void own.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'), data: (own) => own.pause() },
  })
  for (let before = -1; before !== told || told === 0; await Bun.sleep(200)) before = told
  expect(told * 50_000).toBeLessThan(20_000_000) // what the kernel takes of a connection, and no more
  while (!left) await Bun.sleep(100)
  socket.end()
  await serving.stop(true)
}, 20_000)

test('CF8 streams end when the server stops', async () => {
  const mine = new AbortController()
  const own = await createTestAdmin({ stopping: mine.signal })
  const serving = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: own.app.fetch })
  const headers = { accept: 'text/event-stream', authorization: `Bearer ${own.token}` }
  const response = await fetch(`${serving.url}api/v1/changes`, { headers })
  const text = response.text()
  await Bun.sleep(20)
  mine.abort()
  expect(await text).toContain('event: ready')
  expect((await fetch(`${serving.url}api/v1/changes`, { headers })).status).toBe(503)
  await serving.stop()
  await own.store.close()
})

test('CF8 a stream that is opened while the server stops ends with it', async () => {
  const ends = new AbortController()
  const { promise: asked, resolve: answer } = Promise.withResolvers<number>()
  const feed = { ...silentFeed, position: () => asked }
  const opening = createChangeStreams(feed, ends.signal).open(new Request('http://x'), undefined, undefined)
  ends.abort()
  answer(0)
  expect(await Promise.race([(await opening).text(), Bun.sleep(1_000).then(() => 'it goes on')])).toBe('')
})

test('CF7 HEAD is answered like a page: a stream that nobody reads would be held open', async () => {
  const headers = { accept: 'text/event-stream', authorization: `Bearer ${admin.token}` }
  const response = await fetch(`${server.url}api/v1/changes`, { method: 'HEAD', headers, signal: AbortSignal.timeout(2_000) })
  expect([response.status, response.headers.get('content-type')]).toEqual([200, expect.stringContaining('application/json')])
})

/** Nothing ever comes, until the signal. */
const silentFeed: ChangeFeed = {
  position: async () => 0,
  read: async (after) => ({ kind: 'changes', items: [], next: after }),
  async *follow(_, { signal }) {
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    yield* []
  },
}
