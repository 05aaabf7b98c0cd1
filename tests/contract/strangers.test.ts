// What callers without a credential can take from others, over real connections.
import { afterEach, expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { createCallerAddress } from '../../server/http/caller-address.ts'
import { type Listener, listen } from '../../server/http/listener.ts'
import { ownOpenFiles } from '../../server/http/open-files.ts'
import { createLinkExchange } from '../../server/http/sign-in-link-routes.ts'
import { createStrangerBodies } from '../../server/http/stranger-bodies.ts'
import { parseRanges } from '../../server/sources/address/range.ts'
import { JOIN_BODY_BYTES_MAX, ROUTES, SESSION_BODY_BYTES_MAX } from '../../shared/protocol/routes.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { joinBody, joinTestAgent, newAgentKeys, startTestServer, type TestServer } from '../support/agent-api-kit.ts'

const never = () => new Promise<never>(() => {})
const sockets: Socket[] = []
const listeners: Listener[] = []
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  for (const listener of listeners.splice(0)) await listener.stop(true)
})

/** Callers say in a header which address they have. */
async function start(strangers: TestServer['server']['strangers'] = {}) {
  const test = await startTestServer(5, strangers)
  const agent = await joinTestAgent(test)
  const loopback = parseRanges('127.0.0.0/8').ranges
  const agents = (request: Request, context: { address(): string | null }) => test.server.handle(request, () => {}, context.address)
  const others = async () => new Response('', { status: 404 })
  const listener = await listen({ place: { hostname: '127.0.0.1', port: 0 }, trustedProxies: loopback }, { agents, others })
  listeners.push(listener)
  const post = async (path: string, from: string, body: unknown) => {
    const headers = { 'x-forwarded-for': from }
    const response = await fetch(`http://127.0.0.1:${listener.port}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return `${response.status} ${((await response.json()) as { code?: string }).code ?? 'ok'}`
  }
  const join = (from: string) => post(ROUTES.join, from, joinBody(test, newAgentKeys(), `site-${from.replaceAll('.', '-')}`))
  const session = (from: string) => post(ROUTES.session, from, { agentId: agent.joined.agentId, incarnation: null })
  return { listener, join, session }
}

/** All of its body but the last byte comes; resolves with the status of the answer. */
function stall({ port }: Listener, path: string, from: string, bytes: number, type = 'application/octet-stream'): Promise<number> {
  const socket = connect(port, '127.0.0.1')
  sockets.push(socket)
  socket.on('error', () => {})
  socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\nx-forwarded-for: ${from}\r\ncontent-type: ${type}\r\ncontent-length: ${bytes}\r\n\r\n`)
  socket.write(Buffer.alloc(bytes - 1))
  return new Promise((resolve) => socket.once('data', (answer) => resolve(Number(String(answer).split(' ')[1]))))
}

test('AR2 260 stalled joins from one address leave room for joins from others and for every session', async () => {
  const { listener, join, session } = await start()
  const answers = Array.from({ length: 260 }, () => stall(listener, ROUTES.join, '203.0.113.1', JOIN_BODY_BYTES_MAX))
  expect(await Promise.race(answers)).toBe(503) // the address has what it may have
  expect([await join('203.0.113.2'), await session('203.0.113.1')]).toEqual(['200 ok', '401 session_required'])
})

test('AR2 connections that send no body count, too', async () => {
  const { listener, session } = await start({ ofOneBytesMax: 64 * 1_024 })
  const answers = Array.from({ length: 40 }, () => stall(listener, ROUTES.session, '203.0.113.1', 1))
  expect(await Promise.race(answers)).toBe(503)
  expect([await session('203.0.113.1'), await session('203.0.113.2')]).toEqual(['503 unavailable', '401 session_required'])
})

test('AR2 a body of a stranger that is not complete in time is refused, and its room is free again', async () => {
  const { listener, session } = await start({ bodyMs: 100, ofOneBytesMax: 6 * 1_024 })
  expect(await stall(listener, ROUTES.session, '203.0.113.1', 1_000)).toBe(400)
  expect(await session('203.0.113.1')).toBe('401 session_required')
})

test('AR2 the exchange of a sign-in link bounds the bodies of an address and ends slow ones', async () => {
  const bodies = createStrangerBodies({ bytesMax: 64 * 1_024, ofOneBytesMax: 6 * 1_024, bodyMs: 300 })
  const links = {
    offer: () => {
      throw new Error('nobody offers a link')
    },
    redeem: never,
  }
  const addressOf = (request: Request): string | null => listener.addressOf(request)
  const others = createLinkExchange({ links, store: { appendEvents: never }, clock: systemClock, addressOf, bodies })
  const place = { hostname: '127.0.0.1', port: 0 }
  const trustedProxies = parseRanges('127.0.0.0/8').ranges
  const listener = await listen({ place, trustedProxies }, { agents: async () => null, others })
  listeners.push(listener)
  const slow = stall(listener, '/auth/link', '203.0.113.1', 1_000, 'application/json')
  expect(await stall(listener, '/auth/link', '203.0.113.1', 1_000, 'application/json')).toBe(503)
  expect(await slow).toBe(400)
})

test('AR2 a session request has at most 2 KiB', async () => {
  const { listener } = await start()
  const answer = (bytes: number) =>
    fetch(`http://127.0.0.1:${listener.port}${ROUTES.session}`, { method: 'POST', body: Buffer.alloc(bytes, ' ') })
  expect([(await answer(SESSION_BODY_BYTES_MAX)).status, (await answer(SESSION_BODY_BYTES_MAX + 1)).status]).toEqual([400, 413])
})

test('AR5 one request more than may be open is refused with Retry-After, and the others go on', async () => {
  const { promise: end, resolve } = Promise.withResolvers<Response>()
  let waiting = 0
  const agents = async ({ url }: Request) => {
    if (!url.endsWith('/wait')) return null
    waiting++
    return end.then((response) => response.clone())
  }
  const others = async () => new Response('ok')
  const listener = await listen({ place: { hostname: '127.0.0.1', port: 0 }, trustedProxies: [], openMax: 2 }, { agents, others })
  listeners.push(listener)
  const ask = (path: string) => fetch(`http://127.0.0.1:${listener.port}${path}`)
  const polls = [ask('/wait'), ask('/wait')]
  while (waiting < 2) await Bun.sleep(1)
  const refused = await ask('/')
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5'])
  resolve(new Response('done'))
  expect((await Promise.all(polls)).map(({ status }) => status)).toEqual([200, 200])
  expect((await ask('/')).status).toBe(200)
})

test('AR5 connections leave files to the server: new ones are refused for a while, and an open poll goes on', async () => {
  const { promise: end, resolve } = Promise.withResolvers<Response>()
  const arrived = Promise.withResolvers<void>()
  const agents = async (request: Request, { address }: { address(): string | null }) => {
    if (!request.url.endsWith('/wait')) return null
    arrived.resolve()
    return end.then(() => new Response(address()))
  }
  const others = async () => new Response('ok')
  const before = ownOpenFiles().count() ?? 0 // connections of other tests in this process
  const files = { max: 50, count: () => (ownOpenFiles().count() ?? 0) - before }
  const place = { hostname: '127.0.0.1', port: 0 }
  const listener = await listen({ place, trustedProxies: [], openMax: 1_000, files }, { agents, others })
  listeners.push(listener)
  const poll = fetch(`http://127.0.0.1:${listener.port}/wait`)
  await arrived.promise // a connection without a request is idle, and closed
  const isAccepted = () =>
    new Promise<boolean>((accepted) => {
      const socket = connect(listener.port, '127.0.0.1')
      sockets.push(socket)
      socket.on('connect', () => accepted(true)).on('error', () => accepted(false))
    })
  for (let isOpen = true; isOpen; isOpen = await isAccepted()) listener.checkFiles() // each connection stays open
  for (const socket of sockets.splice(0)) socket.destroy()
  for (let isOpen = false; !isOpen; isOpen = await isAccepted()) {
    await Bun.sleep(5)
    listener.checkFiles()
  }
  resolve(new Response())
  expect(await (await poll).text()).toBe('127.0.0.1')
})

test.each([
  ['a host that is none', 'GET / HTTP/1.1\r\nhost: [\r\n\r\n', 400, 'bad_request'],
  ['a port that is none', 'GET / HTTP/1.1\r\nhost: x:99999\r\n\r\n', 400, 'bad_request'],
  ['no host', 'GET / HTTP/1.0\r\n\r\n', 400, 'bad_request'],
  ['a bug of a route', 'GET / HTTP/1.1\r\nhost: x\r\n\r\n', 500, 'internal'],
])('AR6 %s is answered by a problem that tells nothing of the server', async (_, head, status, code) => {
  const others = async ({ url }: Request) => Promise.reject(new Error(`a bug at ${new URL(url).pathname}`))
  const listener = await listen({ place: { hostname: '127.0.0.1', port: 0 }, trustedProxies: [] }, { agents: async () => null, others })
  listeners.push(listener)
  const answer = await rawAnswer(listener, head)
  expect([answer.status, JSON.parse(answer.body).code]).toEqual([status, code])
  expect(answer.body).not.toMatch(/a bug|\.ts|cwd/)
})

/** `connection: close` is not asked for, so the answer ends where its length says. */
function rawAnswer({ port }: Listener, head: string): Promise<{ status: number; body: string }> {
  const socket = connect(port, '127.0.0.1')
  sockets.push(socket)
  socket.write(head)
  let text = ''
  return new Promise((resolve) => {
    socket.on('data', (chunk) => {
      text += chunk
      const [start = '', body] = text.split('\r\n\r\n')
      const length = Number(/content-length: (\d+)/i.exec(start)?.[1])
      if (body !== undefined && Buffer.byteLength(body) >= length) resolve({ status: Number(start.split(' ')[1]), body })
    })
  })
}

const PROXIES = parseRanges('10.0.0.0/8,192.0.2.7').ranges
test.each([
  ['no proxy: the header is the caller’s own word', '198.51.100.1', '203.0.113.9', '198.51.100.1'],
  ['a proxy', '10.1.1.1', '203.0.113.9', '203.0.113.9'],
  ['a proxy whose address is written as IPv6', '::ffff:10.1.1.1', '203.0.113.9', '203.0.113.9'],
  ['two proxies, and what the caller wrote left of them', '10.1.1.1', '8.8.8.8, 203.0.113.9, 192.0.2.7', '203.0.113.9'],
  ['a proxy that adds nothing', '10.1.1.1', null, '10.1.1.1'],
  ['a header that is no address', '10.1.1.1', 'unknown', '10.1.1.1'],
  ['only proxies', '10.1.1.1', '10.2.2.2', '10.1.1.1'],
  ['an address that is not known', null, '203.0.113.9', null],
])('AR2 the address of a caller: %s', (_, peer, forwarded, expected) => {
  expect(createCallerAddress(PROXIES)(peer, forwarded)).toBe(expected)
})
