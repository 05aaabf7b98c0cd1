// PL11: a server and an agent of different versions, in both directions. Versions that are yet to come mean what
// version 1 means here: only the choice is shown.
import { expect, test } from 'bun:test'
import { createServerClient } from '../../agent/link/server-client.ts'
import { CALL_TIMEOUT_MS, openSession } from '../../agent/link/session-keeper.ts'
import type { ProtocolRange } from '../../server/access/join.ts'
import { PAGE_BYTES_MAX, ROUTES } from '../../shared/protocol/routes.ts'
import { PROTOCOL_HEADER } from '../../shared/protocol/version.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { joinBody, joinTestAgent, newAgentKeys, startTestServer } from '../support/agent-api-kit.ts'

const range = (min: number, max: number): ProtocolRange => ({ min, max })
/** Of release N: it speaks N, and understands two before it. */
const release = (n: number): ProtocolRange => range(Math.max(1, n - 2), n)

async function meet(server: ProtocolRange, agent: ProtocolRange) {
  const host = await startTestServer()
  const { keys, joined } = await joinTestAgent(host)
  const { agentId, clusterId, serverKeys, incarnation } = joined
  await host.server.kill()
  host.server.versions = server
  await host.server.open()
  const spoken: string[] = []
  const client = createServerClient(
    'http://localhost',
    async (url, init) => {
      const request = new Request(url, init as RequestInit)
      // A session speaks the version in which it was opened.
      if (!request.headers.has('authorization')) spoken.push(request.headers.get(PROTOCOL_HEADER) ?? '1')
      const answer = await host.server.handle(request)
      if (answer === null) throw new Error('down')
      return answer
    },
    host.clock,
    { versions: agent },
  )
  const signal = new AbortController().signal
  const outcome = await openSession(
    client,
    keys,
    { agentId, clusterId, serverKeys, incarnation },
    { nonce: null, challenge: null, pin: () => {}, signal },
  ).then(
    async ({ token }) => {
      const pulled = {
        doing: 'pull',
        method: 'GET',
        path: ROUTES.desired,
        token,
        answerBytesMax: PAGE_BYTES_MAX,
        timeoutMs: CALL_TIMEOUT_MS,
        signal,
      } as const
      return String((await client.call(pulled)).status)
    },
    (error: unknown) => (error instanceof AppError ? `${error.code}: ${error.data.detail}` : String(error)),
  )
  await host.server.kill()
  return { outcome, spoken }
}

const RELEASES = [1, 2, 3, 4, 5]
const MATRIX = RELEASES.flatMap((server) => RELEASES.map((agent) => [server, agent] as const))

test.each(MATRIX)('PL11 a server of release %i and an agent of release %i agree when they are at most two apart', async (server, agent) => {
  const { outcome, spoken } = await meet(release(server), release(agent))
  const common = Math.min(server, agent)
  if (Math.abs(server - agent) <= 2) {
    expect(outcome).toBe('200')
    expect(spoken.at(-1)).toBe(String(common)) // the greatest of both
    expect(spoken.filter((version) => version !== String(common)).length).toBeLessThanOrEqual(1) // found out once
  } else {
    expect(outcome).toStartWith('protocol_unsupported: the agent speaks protocol')
    expect(spoken.length).toBeLessThanOrEqual(2)
  }
})

test('PL11 an agent that knows only the newest and a server that knows only the oldest each name both', async () => {
  expect((await meet(range(1, 1), range(2, 3))).outcome).toBe('protocol_unsupported: the agent speaks protocol 3, the server 1')
  expect((await meet(range(2, 3), range(1, 1))).outcome).toBe('protocol_unsupported: the agent speaks protocol 1, the server 2 to 3')
})

test.each([
  ['the agent', range(2, 3), range(1, 1)],
  ['the server', range(1, 1), range(2, 3)],
])('PL11 the answer says that %s is to be upgraded, and carries the server’s range', async (older, server, agent) => {
  const host = await startTestServer()
  await host.server.kill()
  host.server.versions = server
  await host.server.open()
  const answer = await host.ask('POST', ROUTES.join, {
    json: { ...joinBody(host, newAgentKeys()), protocol: agent },
    headers: { [PROTOCOL_HEADER]: String(server.max) },
  })
  expect([answer.status, answer.body['min'], answer.body['max']]).toEqual([426, server.min, server.max])
  expect(answer.body['remedy']).toStartWith(`Upgrade ${older}.`)
  await host.server.kill()
})

test('PL11 the join answer names the versions that the server serves', async () => {
  const host = await startTestServer()
  await host.server.kill()
  host.server.versions = range(1, 3)
  await host.server.open()
  const answer = await host.ask('POST', ROUTES.join, { json: joinBody(host, newAgentKeys()) })
  expect(answer.body['protocol']).toEqual(range(1, 3))
  await host.server.kill()
})
