// The whole agent between a server in memory and the fake API server: an agent whose cluster was deleted stops when the
// server says so with its signature, and at nobody else's word; a new join token brings the cluster back with
// everything that it had.

import { afterEach, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { type Agent, createAgent } from '../../agent/agent.ts'
import { statusText } from '../../agent/cli/print-status.ts'
import { loadAgentKeys } from '../../agent/link/agent-keys.ts'
import type { Fetcher } from '../../agent/link/server-client.ts'
import { enforcementText } from '../../agent/messages/site-messages.ts'
import { NO_LOG } from '../../shared/adapters/log-sync.ts'
import { TRACKING_ANNOTATION } from '../../shared/kube/marks.ts'
import { joinTokenHash, joinTokenText } from '../../shared/protocol/join.ts'
import { isRemovalOf, removalBytes } from '../../shared/protocol/removal.ts'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { AppError, problemBody } from '../../shared/runtime/error.ts'
import { clusterIdSchema } from '../../shared/runtime/ids.ts'
import { generateKey, signBytes } from '../../shared/runtime/keys.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { createFakeCluster } from '../support/fake-cluster.ts'
import { configMapRef } from '../support/reconcile-kit.ts'
import { WEB } from '../support/sync-kit.ts'
import { SyncServer } from '../support/sync-world.ts'
import { tempDir } from '../support/temp-dir.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const LEARNT_MS = 300_000
const stops: Array<() => Promise<unknown>> = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

async function site() {
  const clock = createVirtualClock()
  const random = seededRandom(7)
  const server = new SyncServer({ dir: tempDir(), clock, random })
  await server.open()
  await server.createJoinToken(5)
  const cluster = createFakeCluster({ clock })
  const dataDir = tempDir()
  let answer: (challenge: string) => Response | null = () => null
  const fetcher: Fetcher = async (url, init) => {
    const aborted = new Promise<never>((_, reject) => init.signal?.addEventListener('abort', () => reject(new Error('aborted'))))
    aborted.catch(() => {})
    const asked = url.endsWith(ROUTES.session) ? ((await new Response(init.body as BodyInit).json()) as { challenge?: string }) : {}
    const response = answer(asked.challenge ?? '') ?? (await Promise.race([server.handle(new Request(url, init as RequestInit)), aborted]))
    if (response === null) throw new Error('connection refused')
    return response
  }
  const start = (joinToken: string | null) => {
    const agent: Agent = createAgent(
      { dataDir, serverUrl: 'http://user:secret@skerry', clusterName: 'site', joinToken, waitSeconds: 55, version: '1' },
      { cluster, fetcher, clock, random, randomBytes, log: silentLogger, place: 'here', logFile: NO_LOG, freeMemory: () => {} },
    )
    const stopping = new AbortController()
    const running = agent.run(stopping.signal)
    let closed = false
    const stop = async () => {
      stopping.abort()
      const end = await running
      if (!closed) agent.close()
      closed = true
      return end
    }
    stops.push(stop)
    return { agent, stop, running }
  }
  /** Joined, and one object applied. */
  const joined = async (joinToken: string | null = server.joinToken) => {
    const { agent, ...rest } = start(joinToken)
    await clock.advance(5_000)
    const id = clusterIdSchema.parse(agent.report().clusterId)
    await server.publish(id, WEB, { a: '1' })
    await clock.advance(120_000)
    expect(isThere()).toBe(true)
    return { agent, id, ...rest }
  }
  const isThere = () => cluster.object(configMapRef('a')) !== null
  /** Deletes the object and says whether it came back. */
  const heals = async () => {
    if (isThere()) cluster.deleteAs('kubectl', configMapRef('a'))
    await clock.advance(30_000)
    return isThere()
  }
  const remove = async () => {
    await server.store.deleteCluster('site')
    await server.agents.refresh()
    await clock.advance(LEARNT_MS)
  }
  const newToken = async () => {
    const secret = 'another-join-secret-of-a-person'
    const nowMs = clock.nowMs()
    const record = { id: 'jt-2', tokenHash: joinTokenHash(secret), uses: 1, usesLeft: 1, labels: {}, createdBy: 'ada' }
    await server.store.createJoinToken({ ...record, createdMs: nowMs, expiresMs: nowMs + 3_600_000 })
    return joinTokenText(secret, server.keys.fingerprint)
  }
  const answerWith = (next: typeof answer) => {
    answer = next
  }
  return { clock, cluster, server, dataDir, start, joined, heals, remove, newToken, answerWith }
}

/** Of another request. */
const CHALLENGE = 'A'.repeat(22)

/** What somebody answers to everything. */
const refusal = (removal?: unknown) => () => {
  const body = problemBody(new AppError('cluster_unknown', removal === undefined ? {} : { extra: { removal } }))
  return Response.json(body, { status: body.status })
}

test('CM9 an agent whose cluster was deleted stops enforcing, says so, and stays so over a restart with the token that it joined with', async () => {
  const { clock, server, joined, heals, remove, start } = await site()
  const { agent, stop } = await joined()
  expect(agent.report().enforcement.state).toBe('enforcing')
  await remove()
  expect(agent.report()).toMatchObject({ enforcement: { state: 'removed' }, link: { error: { code: 'cluster_removed' } } })
  expect(statusText(agent.report(), clock.nowMs())).toContain(enforcementText('removed'))
  expect(await heals()).toBe(false)
  await stop()
  const after = start(server.joinToken)
  await clock.advance(LEARNT_MS)
  expect(after.agent.report().enforcement.state).toBe('removed')
  expect(await heals()).toBe(false)
})

test('CM9 with no server at all a removed agent stays removed', async () => {
  const { clock, joined, heals, remove, start, answerWith } = await site()
  const { stop } = await joined()
  await remove()
  await stop()
  answerWith(() => {
    throw new Error('connection refused')
  })
  const { agent } = start(null)
  await clock.advance(LEARNT_MS)
  expect([agent.report().enforcement.state, await heals()]).toEqual(['removed', false])
})

test('CM8 CM10 a new join token brings the cluster back, and what it had before is its own', async () => {
  const { clock, cluster, server, joined, remove, start, newToken } = await site()
  const before = await joined()
  await remove()
  await before.stop()
  const { agent } = start(await newToken())
  await clock.advance(5_000)
  const id = clusterIdSchema.parse(agent.report().clusterId)
  expect(id).not.toBe(before.id)
  await server.publish(id, WEB, { a: '2' })
  await clock.advance(120_000)
  expect(agent.report()).toMatchObject({
    enforcement: { state: 'enforcing' },
    services: [{ status: { sync: 'Synced', health: 'Healthy' } }],
  })
  const live = cluster.object(configMapRef('a'))
  expect(live?.metadata.annotations?.[TRACKING_ANNOTATION]).toStartWith(id)
})

test('CM10 an agent that was started with a new token before it learnt of the removal joins anew by itself', async () => {
  const { clock, joined, remove, start, newToken } = await site()
  const first = await joined()
  await first.stop()
  const token = await newToken()
  const second = start(token)
  await clock.advance(5_000)
  await remove()
  expect(await second.running).toBe('join_anew')
  await second.stop()
  const third = start(token)
  await clock.advance(LEARNT_MS)
  const report = third.agent.report()
  expect([report.enforcement.state, report.clusterId === first.id, report.link?.error]).toEqual(['enforcing', false, null])
})

test('CM9 the server that knows the cluster again, out of a backup, has it enforced again', async () => {
  const { clock, server, joined, heals, answerWith } = await site()
  const { agent, id } = await joined()
  const agentId = agent.report().agentId ?? ''
  answerWith((challenge) => refusal({ clusterId: id, signature: server.keys.sign(removalBytes(agentId, id, challenge)) })())
  await clock.advance(LEARNT_MS)
  expect(agent.report().enforcement.state).toBe('removed')
  answerWith(() => null)
  await clock.advance(LEARNT_MS)
  expect([agent.report().enforcement.state, await heals()]).toEqual(['enforcing', true])
})

test('CM9 SE8 the statement about the former registration is no word about the next one, which has the same key', async () => {
  const { clock, server, joined, remove, start, newToken, answerWith, heals, dataDir } = await site()
  const before = await joined()
  const former = before.agent.report()
  await remove()
  await before.stop()
  const ask = { agentId: former.agentId, incarnation: former.incarnation, challenge: CHALLENGE }
  const json = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(ask) }
  const told = await server.handle(new Request(`http://skerry${ROUTES.session}`, json))
  const { removal } = (await (told ?? Response.json({})).json()) as { removal: unknown }
  const keys = loadAgentKeys(dataDir)
  const { agent } = start(await newToken())
  await clock.advance(5_000)
  await server.publish(clusterIdSchema.parse(agent.report().clusterId), WEB, { a: '2' })
  await clock.advance(LEARNT_MS)
  const own = agent.report()
  expect([own.clusterId === former.clusterId, own.agentId === former.agentId, loadAgentKeys(dataDir)]).toEqual([false, false, keys])
  const registration = {
    agentId: former.agentId ?? '',
    clusterId: former.clusterId ?? '',
    serverKeys: server.keys.publicKeys,
    challenge: CHALLENGE,
  }
  expect(isRemovalOf(removal, registration)).toBe(true)
  answerWith(refusal(removal))
  await clock.advance(LEARNT_MS)
  expect([agent.report().enforcement.state, await heals()]).toEqual(['enforcing', true])
})

const stranger = generateKey('ed25519')
test.each<[what: string, statement: (server: SyncServer, agentId: string, id: string, challenge: string) => unknown]>([
  ['no statement', () => undefined],
  ['nonsense', () => 'removed'],
  [
    'a statement signed by another key',
    (_, agentId, id, challenge) => ({ clusterId: id, signature: signBytes(stranger.privateKey, removalBytes(agentId, id, challenge)) }),
  ],
  [
    'a statement about another agent',
    (server, _, id, challenge) => ({ clusterId: id, signature: server.keys.sign(removalBytes('a-00000000000000ff', id, challenge)) }),
  ],
  [
    'a statement about an earlier registration',
    (server, agentId, _, challenge) => ({
      clusterId: 'c-00000000000000ff',
      signature: server.keys.sign(removalBytes(agentId, 'c-00000000000000ff', challenge)),
    }),
  ],
  [
    'a statement that answered an earlier request, of a server that was restored since',
    (server, agentId, id) => ({ clusterId: id, signature: server.keys.sign(removalBytes(agentId, id, CHALLENGE)) }),
  ],
  [
    'a statement that answers no request in particular',
    (server, agentId, id) => ({ clusterId: id, signature: server.keys.sign(removalBytes(agentId, id, null)) }),
  ],
  [
    'a key link that no pinned key signed',
    (_, agentId, id, challenge) => ({
      clusterId: id,
      keyLinks: [{ key: stranger.publicKey, by: stranger.publicKey, signature: signBytes(stranger.privateKey, new Uint8Array(4)) }],
      signature: signBytes(stranger.privateKey, removalBytes(agentId, id, challenge)),
    }),
  ],
])('CM9 a refusal with %s stops nothing', async (_, statement) => {
  const { clock, server, joined, heals, answerWith } = await site()
  const { agent, id } = await joined()
  answerWith((challenge) => refusal(statement(server, agent.report().agentId ?? '', id, challenge))())
  await clock.advance(LEARNT_MS)
  expect(agent.report()).toMatchObject({ enforcement: { state: 'enforcing' }, link: { error: { code: 'cluster_unknown' } } })
  expect(await heals()).toBe(true)
})

test('SE8 a server that never knew the agent signs nothing', async () => {
  const { clock, server, joined, heals } = await site()
  const { agent } = await joined()
  // As after a restore from before the join: nobody removed it.
  const known = server.agents.agent
  Object.assign(server.agents, { agent: () => null })
  await clock.advance(LEARNT_MS)
  expect([agent.report().enforcement.state, agent.report().link?.error?.code, await heals()]).toEqual([
    'enforcing',
    'cluster_unknown',
    true,
  ])
  Object.assign(server.agents, { agent: known })
})
