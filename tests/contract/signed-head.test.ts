// PL14, PR7: "nothing new" is anybody's word until the server signs it.
import { afterEach, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { HEAD_INTERVAL_MS } from '../../agent/sync/head-check.ts'
import { parseCursor } from '../../shared/crdt/position.ts'
import { HEAD_HEADER, HEAD_PARAM, headBytes } from '../../shared/protocol/head.ts'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { generateKey, signBytes, verifyBytes } from '../../shared/runtime/keys.ts'
import { joinTestAgent, startTestServer } from '../support/agent-api-kit.ts'
import { joined, killAgents } from '../support/link-site.ts'

afterEach(killAgents)

/** A site that was restarted, so that its next contact is a first one. */
async function restarted() {
  let current = 0
  const made = await joined({ sync: { onCurrent: () => void current++ } })
  await made.agent.kill()
  current = 0
  const heads: string[] = []
  const answer = made.link.answer
  made.link.answer = (path, url) => {
    const nonce = url.searchParams.get(HEAD_PARAM)
    if (path === ROUTES.desired && nonce !== null) heads.push(nonce)
    return answer(path, url)
  }
  return { ...made, heads, current: () => current }
}
const nothing = (signature?: string) =>
  new Response(null, { status: 204, headers: signature === undefined ? {} : { [HEAD_HEADER]: signature } })

test('PR7 PL14 an unsigned "nothing new" lifts nothing, however often it comes, and sync goes on', async () => {
  const { agent, link, clock, status, current } = await restarted()
  link.answer = (path) => (path === ROUTES.desired ? nothing() : null)
  agent.start()
  await clock.advance(20 * 60_000)
  expect([current(), status()?.state, status()?.headSignedMs]).toEqual([0, 'following', null])
  link.answer = () => null
  await clock.advance(4 * 60_000)
  expect(current()).toBe(1)
})

test.each(['by another key', 'for another nonce', 'for another position', 'for another cluster', 'no signature at all'])(
  'PR7 PL14 a head that is signed %s lifts nothing and stops sync',
  async (kind) => {
    const { agent, link, clock, status, current, server } = await restarted()
    const stranger = generateKey('ed25519')
    link.answer = (path, url) => {
      const [nonce, cursor] = [url.searchParams.get(HEAD_PARAM), parseCursor(url.searchParams.get('cursor') ?? '')]
      if (path !== ROUTES.desired || nonce === null || cursor === null) return null
      const sign = (id: string, drawn: string, at = cursor) => server.keys.sign(headBytes(id, drawn, at))
      const id = String(agent.clusterId)
      if (kind === 'by another key') return nothing(signBytes(stranger.privateKey, headBytes(id, nonce, cursor)))
      if (kind === 'for another nonce') return nothing(sign(id, 'A'.repeat(22)))
      if (kind === 'for another position') return nothing(sign(id, nonce, { ...cursor, dv: cursor.dv + 1 }))
      if (kind === 'for another cluster') return nothing(sign('c-0000000000000009', nonce))
      return nothing('x')
    }
    agent.start()
    await clock.advance(60_000)
    expect([current(), status()?.state, status()?.failure?.code]).toEqual([0, 'halted', 'server_key_mismatch'])
  },
)

test('PR7 PL14 a page is no word on the newest: the server is asked for its head at once after it', async () => {
  const { agent, clock, current, heads, publish } = await restarted()
  agent.start()
  await clock.advance(0)
  await publish('came while it was away')
  await clock.advance(2_000)
  expect(current()).toBe(1)
  expect(new Set(heads).size).toBe(heads.length)
})

test('PL14 the head is asked for at the first contact and then about once an hour', async () => {
  const { agent, clock, current, heads, status } = await restarted()
  agent.start()
  await clock.advance(2_000)
  expect([heads.length, current()]).toEqual([1, 1])
  await clock.advance(HEAD_INTERVAL_MS - 10_000)
  expect(heads).toHaveLength(1)
  await clock.advance(200_000)
  expect([heads.length, current(), status()?.failure]).toEqual([2, 2, null])
})

test('PL14 the server signs the cursor that it was shown and the nonce, and only when it is asked', async () => {
  const host = await startTestServer()
  const agent = await joinTestAgent(host)
  const nonce = randomBytes(16).toString('base64url')
  const page = await host.ask('GET', ROUTES.desired, { token: agent.session.token })
  const { to } = JSON.parse(String(page.bytes).split('\n')[0] ?? '{}')
  const poll = (query: string) =>
    host.ask('GET', `${ROUTES.desired}?cursor=${to.dbId}.${to.term}.${to.dv}.${to.hash}&wait=0${query}`, { token: agent.session.token })
  const asked = await poll(`&${HEAD_PARAM}=${nonce}`)
  const signature = asked.headers.get(HEAD_HEADER) ?? ''
  expect([asked.status, verifyBytes(agent.joined.serverKeys[0] ?? '', headBytes(agent.clusterId, nonce, to), signature)]).toEqual([
    204,
    true,
  ])
  expect((await poll('')).headers.get(HEAD_HEADER)).toBeNull()
  expect((await poll(`&${HEAD_PARAM}=short`)).status).toBe(400)
})
