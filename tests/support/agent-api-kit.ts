// One agent's side of the agent API by hand: raw requests against a real server, without the agent's own client.
import { expect } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type AgentKeys, loadAgentKeys } from '../../agent/link/agent-keys.ts'
import { joinRequest } from '../../agent/link/join.ts'
import { type JoinAnswer, joinAnswerSchema, parseJoinToken } from '../../shared/protocol/join.ts'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { type SessionAnswer, sessionAnswerSchema, sessionProofBytes } from '../../shared/protocol/session.ts'
import { type ClusterId, clusterIdSchema } from '../../shared/runtime/ids.ts'
import { signBytes } from '../../shared/runtime/keys.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { SyncServer } from './sync-world.ts'
import { tempDir } from './temp-dir.ts'
import { createVirtualClock, type VirtualClock } from './virtual-clock.ts'

export interface Answer {
  status: number
  headers: Headers
  bytes: Buffer
  /** The parsed body; null when it is not JSON. */
  body: Record<string, unknown>
}

export interface TestServer {
  server: SyncServer
  clock: VirtualClock
  ask(
    method: string,
    path: string,
    init?: { token?: string; json?: unknown; body?: Uint8Array; headers?: Record<string, string>; signal?: AbortSignal },
  ): Promise<Answer>
}

export async function startTestServer(joins = 5, strangers: SyncServer['strangers'] = {}): Promise<TestServer> {
  const clock = createVirtualClock()
  const server = new SyncServer({ dir: tempDir(), clock, random: seededRandom(randomBytes(4).readUInt32BE()) })
  server.strangers = strangers
  await server.open()
  await server.createJoinToken(joins)
  return {
    server,
    clock,
    async ask(method, path, { token, json, body, headers, signal } = {}) {
      const sent = json === undefined ? body : Buffer.from(JSON.stringify(json))
      const response = await server.handle(
        new Request(`http://localhost${path}`, {
          method,
          headers: { ...headers, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
          ...(sent === undefined ? {} : { body: sent as Uint8Array<ArrayBuffer> }),
          ...(signal === undefined ? {} : { signal }),
        }),
      )
      if (response === null) throw new Error('the server does not accept this path')
      const bytes = Buffer.from(await response.arrayBuffer())
      return { status: response.status, headers: response.headers, bytes, body: parse(bytes) }
    },
  }
}

const parse = (bytes: Buffer): Record<string, unknown> => {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return {}
  }
}

export interface TestAgent {
  keys: AgentKeys
  joined: JoinAnswer
  clusterId: ClusterId
  session: SessionAnswer
}

export function newAgentKeys(): AgentKeys {
  const folder = join(tempDir(), 'agent')
  mkdirSync(folder)
  return loadAgentKeys(folder)
}

export const joinBody = (test: TestServer, keys: AgentKeys, clusterName = 'site') =>
  joinRequest(
    keys,
    { joinToken: null, clusterName, clusterUid: 'uid', agentVersion: 'test' },
    parseJoinToken(test.server.joinToken)?.secret ?? '',
  )

export async function joinTestAgent(test: TestServer, clusterName = 'site'): Promise<TestAgent> {
  const keys = newAgentKeys()
  const answer = await test.ask('POST', ROUTES.join, { json: joinBody(test, keys, clusterName) })
  expect([answer.status, answer.body['detail']]).toEqual([200, undefined])
  const joined = joinAnswerSchema.parse(answer.body)
  const session = await openTestSession(test, keys, joined, joined.incarnation)
  return { keys, joined, clusterId: clusterIdSchema.parse(joined.clusterId), session }
}

export async function askNonce(test: TestServer, agentId: string): Promise<string> {
  const { status, body } = await test.ask('POST', ROUTES.session, { json: { agentId, incarnation: null } })
  expect([status, body['code']]).toEqual([401, 'session_required'])
  return String(body['nonce'])
}

export const sessionBody = (keys: AgentKeys, agentId: string, incarnation: number | null, nonce: string) => ({
  agentId,
  incarnation,
  nonce,
  signature: signBytes(keys.signing.privateKey, sessionProofBytes(agentId, incarnation, nonce)),
})

export async function openTestSession(
  test: TestServer,
  keys: AgentKeys,
  { agentId }: JoinAnswer,
  incarnation: number | null,
): Promise<SessionAnswer> {
  const nonce = await askNonce(test, agentId)
  const answer = await test.ask('POST', ROUTES.session, { json: sessionBody(keys, agentId, incarnation, nonce) })
  expect([answer.status, answer.body['code']]).toEqual([200, undefined])
  return sessionAnswerSchema.parse(answer.body)
}
