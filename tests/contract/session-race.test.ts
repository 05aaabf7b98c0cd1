// Two calls of one agent, one of which makes the other’s session worthless: the agent must not take itself for another.
import { expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { createServerClient } from '../../agent/link/server-client.ts'
import { createSessionKeeper } from '../../agent/link/session-keeper.ts'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { joinTestAgent, startTestServer } from '../support/agent-api-kit.ts'

test('SE4 an agent that hears that it is superseded, by its own next incarnation, waits for that one and goes on', async () => {
  const { server, clock, ...kit } = await startTestServer()
  const { keys, joined } = await joinTestAgent({ server, clock, ...kit })
  let identity = { ...joined, keyLinks: [] }
  let next = false
  let release = () => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  let raised = () => {}
  const raisedThere = new Promise<void>((resolve) => {
    raised = resolve
  })
  const client = createServerClient(
    'http://localhost',
    async (url, init) => {
      const answer = await server.handle(new Request(url, init as RequestInit))
      if (answer === null) throw new Error('no such route')
      if (next && answer.ok && url.endsWith(ROUTES.session)) {
        raised()
        await held
      }
      return answer
    },
    clock,
  )
  const state = {
    identity: () => identity,
    setIdentity: (changed: typeof identity) => {
      identity = changed
      next = false
    },
    wantNextIncarnation: () => {
      next = true
    },
    wantsNextIncarnation: () => next,
    removal: () => null,
    setRemoval: () => {},
  }
  const keeper = createSessionKeeper({
    client,
    keys,
    state: state as Parameters<typeof createSessionKeeper>[0]['state'],
    clock,
    randomBytes,
  })
  const { signal } = new AbortController()
  const push = () => {
    const json = { incarnation: identity.incarnation, rows: [] }
    return keeper.call({ doing: 'push', method: 'POST', path: ROUTES.status, json, answerBytesMax: 1e6, timeoutMs: 1e6, signal })
  }
  const poll = () => keeper.call({ doing: 'pull', method: 'GET', path: ROUTES.desired, answerBytesMax: 1e6, timeoutMs: 1e6, signal })
  await push()
  const before = identity.incarnation
  const taking = keeper.takeNextIncarnation(signal)
  await raisedThere
  const polled = poll() // with the session of the incarnation that was
  await new Promise<void>((resolve) => setTimeout(resolve, 5))
  release()
  await taking
  expect((await polled).status).toBe(200)
  expect(identity.incarnation).toBeGreaterThan(before)
})
