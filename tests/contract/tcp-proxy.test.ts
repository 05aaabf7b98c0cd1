// The bad network of tests and benchmarks is itself honest: what it counts is what went through, and each kind of
// trouble is what it says.
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { type LinkRules, startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'

const ANSWER_BYTES = 200_000
let server: ReturnType<typeof Bun.serve>
let proxy: TcpProxy
const through = (rules: LinkRules = {}) => {
  proxy = startTcpProxy(server.port ?? 0, rules)
  return proxy
}
const ask = (init: RequestInit = {}) => fetch(`${proxy.url}/`, { ...init, keepalive: false })
const failed = (answer: Promise<Response>) =>
  answer
    .then((response) => response.bytes())
    .then(
      (bytes) => `${bytes.length} bytes`,
      () => 'failed',
    )

beforeAll(() => {
  server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: async (request) => new Response(`${(await request.bytes()).length}`.padEnd(ANSWER_BYTES, '.')),
  })
})
afterEach(() => proxy.stop())
afterAll(() => server.stop(true))

test('bytes pass unchanged both ways and are counted with their headers', async () => {
  const { counts, resetCounts } = through()
  const text = await (await ask({ method: 'POST', body: 'x'.repeat(100_000) })).text()
  expect([text.length, Number.parseInt(text, 10)]).toEqual([ANSWER_BYTES, 100_000])
  const { upBytes, downBytes, connections, cuts } = counts()
  expect([upBytes > 100_000 && upBytes < 101_000, downBytes > ANSWER_BYTES && downBytes < ANSWER_BYTES + 1_000]).toEqual([true, true])
  expect([connections, cuts]).toEqual([1, 0])
  resetCounts()
  expect(counts().downBytes).toBe(0)
})

test.each([
  ['after bytes of the answer', { cutAfterBytes: { down: 50_000 } }, { downBytes: 50_000 }],
  ['after bytes of the request', { cutAfterBytes: { up: 10 } }, { upBytes: 10, downBytes: 0 }],
  ['before the first byte', { cutAfterBytes: { down: 0 } }, { downBytes: 0 }],
  ['at once', { refuse: true }, { upBytes: 0, downBytes: 0 }],
  ['after a time', { cutAfterMs: 50, swallow: ['down'] }, { downBytes: 0 }],
] as const)('a connection is cut %s, and not a byte more passes', async (_, rules, expected) => {
  const { counts, open } = through(rules)
  expect(await failed(ask())).toBe('failed')
  expect(counts()).toMatchObject({ ...expected, connections: 1, cuts: 1 })
  expect(open()).toBe(0)
})

test('bytes are late by the delay, and no faster than the throttle lets them', async () => {
  through({ delayMs: 60 })
  let startMs = performance.now()
  await (await ask()).text()
  expect(performance.now() - startMs).toBeGreaterThan(115)
  proxy.stop()
  through({ bytesPerSecond: 1_000_000 })
  startMs = performance.now()
  await (await ask()).text()
  expect(performance.now() - startMs).toBeGreaterThan(150)
})

test('a half-open link says nothing, also not that the other side is gone, until it is cut', async () => {
  const { setRules, cutAll, open, setTarget } = through({ swallow: ['up', 'down'] })
  const answer = failed(ask())
  await Bun.sleep(50)
  expect(open()).toBe(1)
  cutAll()
  expect(await answer).toBe('failed')
  setRules({})
  expect(await failed(ask())).toBe(`${ANSWER_BYTES} bytes`)
  setTarget(1)
  expect(await failed(ask())).toBe('failed')
})

test('a limit that is set when more than that has passed already cuts at the next byte', async () => {
  const { setRules, counts } = through({ bytesPerSecond: 400_000 })
  const answer = failed(ask())
  await Bun.sleep(100)
  setRules({ cutAfterBytes: { down: 10 } })
  expect(await answer).toBe('failed')
  expect(counts().cuts).toBe(1)
})
