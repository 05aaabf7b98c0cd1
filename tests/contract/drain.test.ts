// A server that is told to stop, over real sockets: nobody waits for it, nobody is cut, and they do not all come back
// at once.
import { expect, test } from 'bun:test'
import { connect } from 'node:net'
import { type RunningServer, startServer } from '../../server/server.ts'
import { cursorText, type Position } from '../../shared/crdt/position.ts'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { joinTestAgent, type TestAgent, type TestServer } from '../support/agent-api-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

const AGENTS = 12

async function start() {
  const options = { dataDir: tempDir(), hostname: '127.0.0.1', port: 0 }
  const server: RunningServer = await startServer(options, { clock: systemClock, random: seededRandom(3), log: silentLogger })
  const headers = { authorization: `Bearer ${server.firstAdminToken}`, 'content-type': 'application/json' }
  const made = await fetch(`${server.url}/api/v1/join-tokens`, { method: 'POST', headers, body: JSON.stringify({ uses: AGENTS }) })
  const { token: joinToken } = (await made.json()) as { token: string }
  const ask: TestServer['ask'] = async (method, path, { token, json } = {}) => {
    const response = await fetch(server.url + path, {
      method,
      ...(token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } }),
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    })
    const bytes = Buffer.from(await response.arrayBuffer())
    const body = /json/.test(response.headers.get('content-type') ?? '') && response.status !== 200 ? JSON.parse(bytes.toString()) : null
    return { status: response.status, headers: response.headers, bytes, body: body ?? parse(bytes) }
  }
  const agents: TestAgent[] = []
  for (let n = 0; n < AGENTS; n++) agents.push(await joinTestAgent({ server: { joinToken }, ask } as unknown as TestServer, `site-${n}`))
  return { server, ask, agents }
}

const parse = (bytes: Buffer): Record<string, unknown> => {
  try {
    return JSON.parse(bytes.toString().split('\n')[0] ?? '')
  } catch {
    return {}
  }
}

/** The raw request of a push whose body comes in two pieces, `pause` between them. */
function slowPush(url: string, token: string, pause: Promise<void>): Promise<string> {
  const body = JSON.stringify({ incarnation: 1, rows: [] })
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname)
    let answer = ''
    socket.on('data', (chunk) => {
      answer += chunk
    })
    socket.on('close', () => resolve(answer))
    socket.on('error', reject)
    const head = `POST ${ROUTES.status} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\ncontent-length: ${body.length}\r\n\r\n`
    socket.write(head + body.slice(0, 5))
    void pause.then(() => socket.write(body.slice(5)))
  })
}

test('PL12 a server that stops answers waiting polls at once, each with another time to come back at, and finishes what is under way', async () => {
  const { server, ask, agents } = await start()
  const polls = await Promise.all(
    agents.map(async ({ session: { token } }) => {
      const { to } = (await ask('GET', ROUTES.desired, { token })).body as { to: Position }
      return () => ask('GET', `${ROUTES.desired}?cursor=${cursorText(to)}&wait=60`, { token })
    }),
  )
  const waiting = polls.map((poll) => poll())
  const push = Promise.withResolvers<void>()
  const slow = slowPush(server.url, agents[0]?.session.token ?? '', push.promise)
  await Bun.sleep(100)
  const begun = performance.now()
  const stopped = server.stop()
  const answers = await Promise.all(waiting)
  expect(performance.now() - begun).toBeLessThan(1_000)
  const wrong = answers.filter(({ status, body }) => status !== 503 || body['code'] !== 'unavailable')
  expect(wrong).toEqual([])
  const retries = answers.map(({ body }) => Number(body['retryAfterMs']))
  expect(Math.min(...retries)).toBeGreaterThanOrEqual(1_000)
  expect(Math.max(...retries) - Math.min(...retries)).toBeGreaterThan(1_000)
  // It still drains: the push is not done.
  const late = await polls[1]?.()
  const pushed = await ask('POST', ROUTES.status, { token: agents[1]?.session.token ?? '', json: { incarnation: 1, rows: [] } })
  const ready = await fetch(`${server.url}/readyz`)
  expect([late?.status, late?.body['code'], pushed.status, ready.status]).toEqual([503, 'unavailable', 503, 503])
  expect(await ready.text()).toContain('stopping')
  push.resolve()
  expect(await slow).toContain('200 OK')
  await stopped
  await expect(fetch(`${server.url}/readyz`)).rejects.toThrow()
})
