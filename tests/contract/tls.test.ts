// Native TLS and Unix sockets: the real server on a real socket, asked by the real client of the command line and by
// the link of the agent.
import { afterEach, expect, test } from 'bun:test'
import { copyFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createServerLink } from '../../agent/link/server-link.ts'
import { createClient } from '../../server/cli/client.ts'
import { type Listener, listen } from '../../server/http/listener.ts'
import { followTlsFiles, readTlsPair } from '../../server/http/tls-files.ts'
import { startServer } from '../../server/server.ts'
import { versionAnswerSchema } from '../../shared/model/views.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import type { AppError } from '../../shared/runtime/error.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { tempDir } from '../support/temp-dir.ts'
import { AUTHORITY, EXPIRED_CERT, OTHER_AUTHORITY, SERVER_CERT, SERVER_PRIVATE_KEY } from '../support/test-certs.ts'

const deps = { clock: systemClock, random: seededRandom(5), log: silentLogger }
const stops: Array<() => Promise<unknown>> = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

function tlsFolder() {
  const dir = tempDir()
  const at = (name: string, text: string) => {
    writeFileSync(join(dir, name), text, { mode: 0o600 })
    return join(dir, name)
  }
  return { at, cert: at('tls.crt', SERVER_CERT), key: at('tls.key', SERVER_PRIVATE_KEY), ca: at('ca.pem', AUTHORITY) }
}

test('HT1 a server with --tls-cert serves the command line and agents that trust its own authority, and nobody else', async () => {
  const { cert, key, ca } = tlsFolder()
  const server = await startServer({ dataDir: tempDir(), hostname: '127.0.0.1', port: 0, tls: { cert, key } }, deps)
  stops.push(server.stop)
  expect(server.url).toStartWith('https://127.0.0.1:')
  const token = server.firstAdminToken ?? ''
  const io = { fetch, clock: systemClock }
  const version = await createClient(io, { server: server.url, token, ca: AUTHORITY }).get('/version', versionAnswerSchema)
  expect(version.version).toBeString()
  const other = createClient(io, { server: server.url, token, ca: OTHER_AUTHORITY })
  expect(await other.get('/version', versionAnswerSchema).catch((error: AppError) => error.data.detail)).toContain('--server-ca')
  const link = createServerLink({ serverUrl: server.url, caFile: ca, env: {}, log: silentLogger })
  const poll = await link(`${server.url}/agent/v1/desired`, { method: 'GET' })
  expect([poll.status, poll.headers.get('strict-transport-security')]).toEqual([401, null])
  await poll.body?.cancel()
  const probe = await fetch(`${server.url}/healthz`, { tls: { ca: AUTHORITY } })
  expect(probe.headers.get('strict-transport-security')).toBe('max-age=31536000')
})

test('HT2 a certificate that changes is used for new connections, while an open request is answered; a broken one is not used', async () => {
  const { cert, key, at } = tlsFolder()
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const others = async (request: Request) => {
    if (request.url.endsWith('/slow')) await released
    return new Response('ok')
  }
  const pair = readTlsPair({ cert, key })
  const options = { place: { hostname: '127.0.0.1', port: 0 }, tls: pair, trustedProxies: [] }
  const listener: Listener = await listen(options, { agents: async () => null, others })
  stops.push(() => listener.stop(true))
  const log: string[] = []
  const note = (message: string) => void log.push(message)
  const logger = { ...silentLogger, info: note, warn: note, error: note }
  const ending = new AbortController()
  const { promise: looked, resolve: lookAgain } = Promise.withResolvers<void>()
  let turn = looked
  let wake = lookAgain
  const clock = { ...systemClock, sleep: async () => turn }
  const look = async () => {
    const now = wake
    const next = Promise.withResolvers<void>()
    turn = next.promise
    wake = next.resolve
    now()
    await Bun.sleep(20)
  }
  const following = followTlsFiles({ paths: { cert, key }, current: pair, use: listener.useTls, clock, log: logger }, ending.signal)
  const ask = (path: string) =>
    fetch(listener.origin + path, { tls: { ca: AUTHORITY }, keepalive: false }).then(
      (response) => response.status,
      (error: { code: string }) => error.code,
    )
  const slow = ask('/slow')
  expect(await ask('/')).toBe(200)

  at('tls.crt', 'half a file')
  await look()
  await look()
  expect(log).toEqual(['TLS certificate not reloaded; the previous one stays in use'])
  expect(await ask('/')).toBe(200)

  at('tls.crt', EXPIRED_CERT) // of the same key
  await look()
  expect(log.slice(1)).toEqual(['TLS certificate reloaded', 'TLS certificate expires soon or has expired'])
  expect(await ask('/')).toBe('CERT_HAS_EXPIRED')

  at('tls.crt', SERVER_CERT)
  await look()
  expect(await ask('/')).toBe(200)
  release()
  expect(await slow).toBe(200)
  ending.abort()
  await look()
  await following
})

test('HT2 a start names the file that cannot be used', () => {
  const { cert, key, at } = tlsFolder()
  const refused = (paths: { cert: string; key: string }) => {
    try {
      readTlsPair(paths)
      return 'read'
    } catch (error) {
      return (error as AppError).data.detail ?? ''
    }
  }
  expect(refused({ cert, key })).toBe('read')
  expect(refused({ cert: '/nowhere.crt', key })).toBe('--tls-cert /nowhere.crt cannot be read')
  expect(refused({ cert, key: cert })).toStartWith(`--tls-key ${cert} does not hold`)
  expect(refused({ cert: at('other.crt', OTHER_AUTHORITY), key })).toStartWith(`--tls-key ${key} is not the key of the certificate`)
})

test('HT3 a server on a Unix socket has the mode that was asked for, and takes the place of a socket that a crash left', async () => {
  const dir = tempDir()
  const unix = join(dir, 's.sock')
  const others = async (request: Request) => new Response(String(listener.addressOf(request)))
  const handlers = { agents: async () => null, others }
  const options = { place: { unix, mode: 0o640 }, trustedProxies: [] }
  const listener = await listen({ ...options, trustsSocket: true }, handlers)
  stops.push(() => listener.stop(true))
  expect(listener.origin).toBe(`unix:${unix}`)
  expect((statSync(unix).mode & 0o777).toString(8)).toBe('640')
  const ask = async () => (await fetch('http://localhost/', { unix, headers: { 'x-forwarded-for': '203.0.113.9' } })).text()
  expect(await ask()).toBe('203.0.113.9')
  expect(await listen(options, handlers).catch((error: AppError) => error.code)).toBe('data_unusable')
  const file = join(dir, 'file')
  copyFileSync('package.json', file)
  expect(await listen({ ...options, place: { unix: file, mode: 0o660 } }, handlers).catch((error: AppError) => error.code)).toBe(
    'bad_options',
  )

  const left = join(dir, 'left.sock')
  const killed = Bun.spawn([
    process.execPath,
    '-e',
    `Bun.listen({unix:${JSON.stringify(left)},socket:{data(){}}}); process.kill(process.pid, 9)`,
  ])
  await killed.exited
  expect(statSync(left).isSocket()).toBe(true)
  const after = await listen({ ...options, place: { unix: left, mode: 0o660 } }, handlers)
  stops.push(() => after.stop(true))
  expect((await fetch('http://localhost/', { unix: left })).status).toBe(200)
})
