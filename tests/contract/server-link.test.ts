// The link to the server over real sockets: proxies, authorities, what goes over the wire.
import { afterEach, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import type { KubeCredentials } from '../../agent/cluster/kube-credentials.ts'
import { createKubeHttp } from '../../agent/cluster/kube-http.ts'
import { createServerClient, cutOf, type ServerCall } from '../../agent/link/server-client.ts'
import { createServerLink } from '../../agent/link/server-link.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { type Logger, silentLogger } from '../../shared/runtime/logger.ts'
import { type HttpProxyOptions, startHttpProxy } from '../support/http-proxy.ts'
import { tempDir } from '../support/temp-dir.ts'
import { AUTHORITY, EXPIRED_CERT, OTHER_AUTHORITY, SERVER_CERT, SERVER_PRIVATE_KEY } from '../support/test-certs.ts'

const ends: Array<() => unknown> = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

function plainServer(answer: (request: Request) => Response | Promise<Response> = () => new Response('{}')): string {
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: answer })
  ends.push(() => server.stop(true))
  return `http://127.0.0.1:${server.port}`
}
function tlsServer(cert = SERVER_CERT, port = 0): { url: string; port: number; stop(): Promise<void> } {
  const server = Bun.serve({ port, hostname: '127.0.0.1', tls: { cert, key: SERVER_PRIVATE_KEY }, fetch: () => new Response('{"ok":1}') })
  ends.push(() => server.stop(true))
  return { url: `https://127.0.0.1:${server.port}`, port: server.port ?? 0, stop: () => server.stop(true) }
}
async function proxy(options: HttpProxyOptions = {}) {
  const started = await startHttpProxy(options)
  ends.push(() => started.stop())
  return started
}
const CALL = { doing: 'pull', method: 'GET', path: '/agent/v1/desired', answerBytesMax: 100_000, timeoutMs: 5_000 } as const
function client(
  serverUrl: string,
  env: Record<string, string> = {},
  caFile: string | null = null,
  log: Logger = silentLogger,
  insecureHttp = false,
) {
  const made = createServerClient(serverUrl, createServerLink({ serverUrl, caFile, insecureHttp, env, log }), systemClock)
  const call = (change: Partial<ServerCall> = {}) => made.call({ ...CALL, signal: new AbortController().signal, ...change })
  return { call, traffic: () => made.traffic() }
}
const pem = (text: string, dir = tempDir()) => {
  const path = join(dir, 'ca.pem')
  writeFileSync(path, text)
  return path
}
const failure = async (promise: Promise<unknown>): Promise<AppError> => {
  const error = await promise.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (error instanceof AppError) return error
  throw new Error(`expected an AppError, got ${String(error)}`)
}

test('SY7 plain http goes to the proxy in absolute form, with its credentials, and to nobody else', async () => {
  const through = await proxy({ credentials: 'me:secret' })
  const { call } = client(plainServer(), { http_proxy: `http://me:secret@127.0.0.1:${through.port}` })
  expect((await call()).status).toBe(200)
  expect(through.heads[0]).toMatch(/^GET http:\/\/127\.0\.0\.1:\d+\/agent\/v1\/desired HTTP\/1\.1/)
})

test.each([
  ['http://skerry.example', false, 'link_insecure', 0],
  ['http://10.0.0.7:8080', false, 'link_insecure', 0],
  ['http://127.0.0.1.example', false, 'link_insecure', 0],
  ['http://skerry.example', true, 'server_unreachable', 1],
  ['http://localhost:1', false, 'server_unreachable', 1],
  ['http://[::1]:1', false, 'server_unreachable', 1],
])('SY12 %s, allowed by --insecure-http: %p: %s', async (url, insecureHttp, expected, requests) => {
  const through = await proxy({ credentials: 'who:else' }) // nobody is let through
  const { call } = client(url, { http_proxy: `http://127.0.0.1:${through.port}` }, null, silentLogger, insecureHttp)
  const outcome = await call().then(
    () => 'answered',
    (error: AppError) => error.code,
  )
  expect([outcome, through.heads.length]).toEqual([expected, requests])
})

test('SY7 https goes through a tunnel that is kept, and the server is verified inside it', async () => {
  const through = await proxy({ credentials: 'me:secret' })
  const { call } = client(tlsServer().url, { HTTPS_PROXY: `http://me:secret@127.0.0.1:${through.port}` }, pem(AUTHORITY))
  expect((await call()).status).toBe(200)
  expect((await call()).status).toBe(200)
  expect(through.heads).toHaveLength(1)
  expect(through.heads[0]).toMatch(/^CONNECT 127\.0\.0\.1:\d+ HTTP\/1\.1/)
  const other = client(tlsServer().url, { HTTPS_PROXY: `http://me:secret@127.0.0.1:${through.port}` }, pem(OTHER_AUTHORITY))
  expect((await failure(other.call())).message).toContain('not signed by an authority')
})

test('SY7 NO_PROXY leads past the proxy, and Bun’s own reading of the environment never counts', async () => {
  const through = await proxy()
  const { call } = client(plainServer(), { HTTP_PROXY: through.url, NO_PROXY: '10.0.0.0/8,127.0.0.0/8' })
  expect((await call()).status).toBe(200)
  const before = process.env['HTTP_PROXY']
  process.env['HTTP_PROXY'] = through.url
  try {
    expect((await client(plainServer()).call()).status).toBe(200)
  } finally {
    if (before === undefined) delete process.env['HTTP_PROXY']
    else process.env['HTTP_PROXY'] = before
  }
  expect(through.heads).toEqual([])
})

test.each([
  ['http', () => plainServer()],
  ['https', () => tlsServer().url],
])('SY7 a proxy that wants credentials (%s) is told as such, and none are logged', async (_, serverUrl) => {
  const { port } = await proxy({ credentials: 'me:right' })
  const lines: unknown[] = []
  const log: Logger = { ...silentLogger, info: (...line) => void lines.push(line), warn: (...line) => void lines.push(line) }
  const url = `http://me:wrongsecret@127.0.0.1:${port}`
  const error = await failure(client(serverUrl(), { http_proxy: url, https_proxy: url }, pem(AUTHORITY), log).call())
  expect(error.code).toBe('server_unreachable')
  expect(`${error.message} ${error.remedy}`).toContain('HTTPS_PROXY')
  expect(JSON.stringify([lines, error.message, String(error.cause)])).not.toContain('wrongsecret')
  expect(JSON.stringify(lines)).toContain(`127.0.0.1:${port}`)
})

test('SY7 a proxy that buffers whole answers costs nothing but the time of the answer', async () => {
  const through = await proxy({ buffers: true })
  const body = 'x'.repeat(50_000)
  const { call } = client(
    plainServer(() => new Response(body)),
    { http_proxy: through.url },
  )
  expect((await call()).body.length).toBe(50_000)
})

test('SY7 PL10 a proxy that cuts silence ends the call as unreachable, without a byte of an answer', async () => {
  const through = await proxy({ idleMs: 300 })
  const slow = plainServer(async () => {
    await Bun.sleep(3_000)
    return new Response('late')
  })
  const error = await failure(client(slow, { http_proxy: through.url }).call())
  expect([error.code, cutOf(error)?.begun]).toEqual(['server_unreachable', false])
})

test.each([
  ['expired', EXPIRED_CERT, AUTHORITY, 'has expired', 'correct the clock of this machine'],
  ['of another authority', SERVER_CERT, OTHER_AUTHORITY, 'not signed by an authority', '--server-ca'],
] as const)('SY8 a certificate that is %s is refused, and said so', async (_, cert, ca, detail, remedy) => {
  const error = await failure(client(tlsServer(cert).url, {}, pem(ca)).call())
  expect(error.message).toContain(detail)
  expect(error.remedy).toContain(remedy)
})

test('SY8 a private authority is trusted when it is named, not by the system, and read again when the file changes', async () => {
  const { url } = tlsServer()
  expect((await failure(client(url).call())).message).toContain('not signed by an authority')
  const dir = tempDir()
  const path = pem(OTHER_AUTHORITY, dir)
  const { call } = client(url, {}, path)
  await failure(call())
  writeFileSync(path, 'half a ')
  await failure(call())
  pem(AUTHORITY, dir)
  expect((await call()).status).toBe(200)
  writeFileSync(path, '')
  expect((await call()).status).toBe(200)
})

test.each([
  ['no file', () => join(tempDir(), 'none.pem')],
  ['a file that is no PEM', () => pem('hello')],
])('SY8 --server-ca with %s is said at the start', (_, path) => {
  expect(() => client('https://x', {}, path())).toThrow('read --server-ca')
})

test.each([['ftp://x'], ['not a url'], ['']])('SY7 --server %s is said at the start', (url) => {
  expect(() => createServerLink({ serverUrl: url, caFile: null, env: {}, log: silentLogger })).toThrow('not an http:// or https:// URL')
})

test('SY6 what is counted is what goes over the socket, headers included, on one kept connection', async () => {
  let received = 0
  let sent = 0
  let connections = 0
  const answers = ['HTTP/1.1 204 No Content\r\n\r\n', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}']
  const server = createServer((socket: Socket) => {
    connections++
    socket.on('data', (bytes: Buffer) => {
      received += bytes.length
      const answer = answers[0] ?? ''
      sent += answer.length
      socket.write(answer)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ends.push(() => server.close())
  const address = server.address()
  const { call, traffic } = client(`http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`)
  const token = 'x'.repeat(43)
  const cursor = `${'0'.repeat(32)}.1.1234567.${'0'.repeat(32)}`
  await call({ token, query: { cursor, wait: '110' } })
  expect(received).toBeLessThanOrEqual(300)
  answers.shift()
  await call({ token, method: 'POST', path: '/agent/v1/status', json: { incarnation: 1, rows: [] } })
  expect(traffic()).toEqual({ requests: 2, sentBytes: received, receivedBytes: sent })
  expect(connections).toBe(1)
})

test('SY7 the Kubernetes link takes no proxy of the environment', async () => {
  const through = await proxy()
  const names = ['HTTP_PROXY', 'http_proxy'] as const
  const before = names.map((name) => process.env[name])
  for (const name of names) process.env[name] = through.url
  try {
    const access = { authorization: null, tls: { insecure: false } }
    const credentials = { server: plainServer(() => Response.json({ ok: 1 })), source: 'test', read: async () => access }
    const kube = createKubeHttp(credentials as unknown as KubeCredentials, { clock: systemClock, log: silentLogger, userAgent: 'test' })
    ends.push(() => kube.close())
    expect(await kube.request({ method: 'GET', path: '/version', plural: '' })).toMatchObject({ kind: 'answer', body: { ok: 1 } })
    expect(through.heads).toEqual([])
  } finally {
    names.forEach((name, n) => {
      const value = before[n]
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    })
  }
})

test('SY7 credentials in --server are refused, and said by no message', () => {
  const open = () => createServerLink({ serverUrl: 'https://user:hunter2@skerry.example', caFile: null, env: {}, log: silentLogger })
  expect(open).toThrow('a user or a password')
  expect(open).not.toThrow('hunter2')
})

test('SY5 a network that sends everybody to its log-in page is named as that, and is no contact', async () => {
  const url = plainServer(() => new Response(null, { status: 302, headers: { location: 'http://127.0.0.1:9/log-in' } }))
  const error = await failure(client(url).call())
  expect([error.code, error.message, cutOf(error)?.sent]).toEqual([
    'server_unreachable',
    'pull: a proxy or portal answered in place of the server',
    false,
  ])
  expect(error.remedy).toContain('log in')
})
