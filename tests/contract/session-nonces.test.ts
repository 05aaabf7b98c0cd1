// Nonces of sessions: whose they are, and how many an agent uses.
import { expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { createSessions, NONCE_MS, NONCES_OF_ONE_MAX } from '../../server/access/sessions.ts'
import { sessionRequestSchema } from '../../shared/protocol/session.ts'
import type { AppError } from '../../shared/runtime/error.ts'
import { joinTestAgent, sessionBody, startTestServer } from '../support/agent-api-kit.ts'

test('SE1 a nonce of an earlier process is none, so a restart opens no session a second time', async () => {
  const server = await startTestServer()
  const { keys, joined } = await joinTestAgent(server)
  const deps = { keys: server.server.keys, agents: server.server.agents, store: server.server.store, clock: server.clock, randomBytes }
  const [before, after] = [createSessions({ ...deps, salt: randomBytes(16) }), createSessions({ ...deps, salt: randomBytes(16) })]
  const request = sessionRequestSchema.parse(sessionBody(keys, joined.agentId, joined.incarnation, before.nonce()))
  const { token } = await before.open(request)
  expect(await after.open(request).catch(({ code }: AppError) => code)).toBe('session_required')
  expect(after.authorize(`Bearer ${token}`).agentId).toBe(joined.agentId) // sessions outlive the process
})

test('SE9 an agent that opens session after session is sent away, and others are not', async () => {
  const server = await startTestServer()
  const [busy, other] = [await joinTestAgent(server, 'busy'), await joinTestAgent(server, 'other')]
  const deps = { keys: server.server.keys, agents: server.server.agents, store: server.server.store, clock: server.clock, randomBytes }
  const sessions = createSessions({ ...deps, usedMax: NONCES_OF_ONE_MAX + 1 })
  const open = ({ keys, joined }: typeof busy) =>
    sessions.open(sessionRequestSchema.parse(sessionBody(keys, joined.agentId, joined.incarnation, sessions.nonce()))).then(
      () => 'open',
      ({ code }: AppError) => code,
    )
  const outcomes: string[] = []
  for (let n = 0; n <= NONCES_OF_ONE_MAX; n++) outcomes.push(await open(busy))
  expect(outcomes.map((outcome) => outcome === 'open').lastIndexOf(true)).toBe(NONCES_OF_ONE_MAX - 1)
  expect([outcomes.at(-1), await open(other)]).toEqual(['too_many_requests', 'open'])
  server.clock.jump(NONCE_MS)
  expect(await open(busy)).toBe('open')
})
