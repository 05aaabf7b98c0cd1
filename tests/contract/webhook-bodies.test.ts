// Bodies of webhooks that come slowly, over real connections: anybody can send them.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { createWebhook, WEBHOOK_BODY_BYTES_MAX, type WebhookDeps, webhookSecret } from '../../server/http/webhook.ts'
import { storedRepository as repository } from '../support/stored-repository.ts'

const keys = { mac: () => Buffer.from('k'.repeat(32)), earlierMac: () => null }
let server: Bun.Server<undefined>
const slow: Socket[] = []
let bodyMs: number | undefined
let addressOf: NonNullable<WebhookDeps['addressOf']>
beforeEach(() => {
  bodyMs = undefined
  addressOf = (request) => request.headers.get('x-from') ?? 'forge'
})
afterEach(async () => {
  for (const socket of slow.splice(0)) socket.destroy()
  await server.stop(true)
})
function start(): void {
  const deps = {
    store: { getResource: async () => repository, webhookNumber: async () => 0 },
    keys,
    repositoryChanged: () => {},
    addressOf,
  }
  const webhook = createWebhook({ ...deps, ...(bodyMs === undefined ? {} : { bodyMs }) })
  const fetch = async (request: Request) => (await webhook(request)) ?? new Response('', { status: 404 })
  server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch })
}
/** The status line of its answer. */
function sendSlowly(from: string): Promise<string> {
  const socket = connect(server.port ?? 0, '127.0.0.1')
  slow.push(socket)
  socket.on('error', () => {})
  const announced = `content-length: ${WEBHOOK_BODY_BYTES_MAX}`
  socket.write(`POST /webhooks/v1/default/apps HTTP/1.1\r\nhost: x\r\nx-from: ${from}\r\n${announced}\r\n\r\n`)
  socket.write(Buffer.alloc(WEBHOOK_BODY_BYTES_MAX - 100))
  return new Promise((resolve) => socket.once('data', (bytes) => resolve(String(bytes).split('\r\n')[0] ?? '')))
}
async function post(from = 'forge'): Promise<number> {
  const body = JSON.stringify({ ref: 'x'.repeat(10_000) })
  const signature = createHmac('sha256', webhookSecret(keys, 'uid-1', 0))
    .update(body)
    .digest('hex')
  const headers = { 'x-hub-signature-256': `sha256=${signature}`, 'x-from': from }
  return (await fetch(`http://127.0.0.1:${server.port}/webhooks/v1/default/apps`, { method: 'POST', body, headers })).status
}

test('IN12 slow bodies of one address leave room for those of others', async () => {
  start()
  const answers = Array.from({ length: 8 }, () => sendSlowly('stranger'))
  // Who finds no room is told at once; then the others hold all that this address may.
  expect(await Promise.race(answers)).toBe('HTTP/1.1 503 Service Unavailable')
  expect([await post(), await post('another')]).toEqual([202, 202])
})

test('IN12 slow bodies of one IPv6 network share its room, from whichever of its addresses they come', async () => {
  start()
  const answers = Array.from({ length: 8 }, (_, n) => sendSlowly(`2001:db8:0:1::${n + 1}`))
  expect(await Promise.race(answers)).toBe('HTTP/1.1 503 Service Unavailable')
  expect([await post('2001:db8:0:2::1'), await post('::ffff:192.0.2.1')]).toEqual([202, 202])
})

test('IN12 a body that does not come to its end in time is cut off', async () => {
  bodyMs = 200
  start()
  expect(await sendSlowly('stranger')).toBe('HTTP/1.1 400 Bad Request')
  expect(await post('stranger')).toBe(202)
})
