import { expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { loadAgentKeys } from '../../agent/link/agent-keys.ts'
import { joinRequest, joinServer } from '../../agent/link/join.ts'
import { createServerClient, type Fetcher } from '../../agent/link/server-client.ts'
import { createKnocks, KNOCKS_MAX } from '../../server/access/knocks.ts'
import { createSeenMarks } from '../../server/access/seen-marks.ts'
import { loadServerKeys } from '../../server/access/server-keys.ts'
import { createSessions, NONCE_MS, SESSION_MS } from '../../server/access/sessions.ts'
import { cursorText } from '../../shared/crdt/position.ts'
import { FLEET } from '../../shared/model/resources.ts'
import { joinAnswerSchema, joinBytes, joinProofBytes, joinTokenHash, joinTokenProof, parseJoinToken } from '../../shared/protocol/join.ts'
import { formerClustersBytes, isRemovalOf } from '../../shared/protocol/removal.ts'
import { JOIN_BODY_BYTES_MAX, ROUTES } from '../../shared/protocol/routes.ts'
import { recipientBytes, sessionRequestSchema } from '../../shared/protocol/session.ts'
import { PROTOCOL_HEADER } from '../../shared/protocol/version.ts'
import type { AppError } from '../../shared/runtime/error.ts'
import { fingerprint, generateKey, signBytes, verifyBytes } from '../../shared/runtime/keys.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import {
  askNonce,
  joinBody,
  joinTestAgent,
  newAgentKeys,
  openTestSession,
  sessionBody,
  startTestServer,
  type TestAgent,
  type TestServer,
} from '../support/agent-api-kit.ts'
import { CLUSTER } from '../support/sync-kit.ts'
import { tempDir } from '../support/temp-dir.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const code = (answer: { status: number; body: Record<string, unknown> }) => `${answer.status} ${answer.body['code'] ?? 'ok'}`
const pull = (test: TestServer, { session }: TestAgent) => test.ask('GET', ROUTES.desired, { token: session.token })

test('JN1 the same token and key again get the same answer and use nothing up', async () => {
  const server = await startTestServer(1)
  const keys = newAgentKeys()
  const once = await server.ask('POST', ROUTES.join, { json: joinBody(server, keys) })
  expect(joinAnswerSchema.parse(once.body).serverKeys.map(fingerprint)).toEqual([server.server.joinToken.split('.')[2] ?? ''])
  const again = await server.ask('POST', ROUTES.join, { json: joinBody(server, keys) })
  expect(again.body).toEqual(once.body)
  expect(code(await server.ask('POST', ROUTES.join, { json: joinBody(server, newAgentKeys(), 'other') }))).toBe('401 join_token_used_up')
})

test('JN5 SE8 a removed cluster is remembered: its agent is told, and the next join of the same kube-system UID', async () => {
  const server = await startTestServer()
  const first = await joinTestAgent(server)
  expect(first.joined.former).toBeUndefined()
  const remove = async () => {
    await server.server.store.deleteCluster('site')
    await server.server.agents.refresh()
  }
  await remove()
  const told = await server.ask('POST', ROUTES.session, { json: { agentId: first.joined.agentId, incarnation: 1 } })
  expect([code(told), isRemovalOf(told.body['removal'], { ...first.joined, challenge: null })]).toEqual(['401 cluster_unknown', true])
  const second = await joinTestAgent(server)
  const { former, clusterId, serverKeys } = second.joined
  expect(former?.clusters).toEqual([first.clusterId])
  expect(serverKeys.some((key) => verifyBytes(key, formerClustersBytes(clusterId, former?.clusters ?? []), former?.signature ?? ''))).toBe(
    true,
  )
  await remove()
  const keys = newAgentKeys()
  const third = await server.ask('POST', ROUTES.join, { json: joinBody(server, keys) })
  expect(joinAnswerSchema.parse(third.body).former?.clusters).toEqual([second.clusterId, first.clusterId])
  const elsewhere = joinRequest(
    newAgentKeys(),
    { joinToken: null, clusterName: 'elsewhere', clusterUid: '', agentVersion: '' },
    parseJoinToken(server.server.joinToken)?.secret ?? '',
  )
  expect((await server.ask('POST', ROUTES.join, { json: elsewhere })).body).not.toHaveProperty('former')
})

test('JN2 each reason not to join has its own answer, and none makes a cluster', async () => {
  const server = await startTestServer(2)
  await joinTestAgent(server, 'site')
  const keys = newAgentKeys()
  const good = joinBody(server, keys, 'other')
  const refused = async (body: unknown) => code(await server.ask('POST', ROUTES.join, { json: body }))
  expect(await refused({ ...joinBody(server, keys, 'site') })).toBe('409 join_name_taken')
  expect(await refused({ ...good, proof: joinBody(server, newAgentKeys(), 'other').proof })).toBe('401 join_proof_invalid')
  const wrongSecret = joinRequest(
    keys,
    { joinToken: null, clusterName: 'other', clusterUid: '', agentVersion: '' },
    'a-secret-that-nobody-made',
  )
  expect(await refused(wrongSecret)).toBe('401 join_token_unknown')
  const forged = { ...good, protocol: { min: 8, max: 9 } }
  expect(await refused(forged)).toBe('426 protocol_unsupported')
  expect(await refused({ ...good, cluster: '../etc' })).toBe('400 bad_request')
  expect(await refused({ ...good, agentVersion: 'v'.repeat(JOIN_BODY_BYTES_MAX) })).toBe('413 too_large')
  server.clock.jump(3_600_000)
  expect(await refused(good)).toBe('401 join_token_expired')
  expect((await server.server.store.listClusters()).map(({ name }) => name)).toEqual(['site'])
})

test('JN7 a join request names its token and proves it, and nobody can use what was sent for another join', async () => {
  const server = await startTestServer(2)
  const keys = newAgentKeys()
  const good = joinBody(server, keys)
  const { secret = '?' } = parseJoinToken(server.server.joinToken) ?? {}
  expect([JSON.stringify(good).includes(secret), JSON.stringify(good).includes(joinTokenHash(secret))]).toEqual([false, false])
  const asked = async (body: unknown) => code(await server.ask('POST', ROUTES.join, { json: body }))
  const other = newAgentKeys()
  const own = joinBody(server, other, 'mine')
  // A captured proof, with the key and the name of whoever captured it, signed by that key as far as it can be.
  for (const taken of [{ publicKey: own.publicKey }, { recipient: own.recipient }, { cluster: 'mine' }, { clusterUid: 'mine' }, own])
    expect(await asked({ ...good, ...taken, tokenProof: good.tokenProof })).toBe('401 join_token_unknown')
  expect(await asked({ ...good, tokenProof: 'f'.repeat(64) })).toBe('401 join_token_unknown')
  expect(await asked({ ...good, tokenId: 'f'.repeat(32) })).toBe('401 join_token_unknown')
  for (const broken of [{ tokenId: undefined }, { tokenProof: undefined }, { tokenProof: 'x' }, { token: secret }])
    expect(await asked({ ...good, ...broken })).toBe('400 bad_request')
  expect((await server.server.store.listClusters()).length).toBe(0)
  expect(await asked(good)).toBe('200 ok')
})

test('JN1 JN7 a join is repeated also when its token was deleted meanwhile', async () => {
  const server = await startTestServer(1)
  const good = joinBody(server, newAgentKeys())
  const once = await server.ask('POST', ROUTES.join, { json: good })
  const [token] = await server.server.store.listJoinTokens()
  await server.server.store.deleteJoinToken(token?.id ?? '')
  expect((await server.ask('POST', ROUTES.join, { json: good })).body).toEqual(once.body)
  expect(code(await server.ask('POST', ROUTES.join, { json: joinBody(server, newAgentKeys(), 'other') }))).toBe('401 join_token_unknown')
})

test('JN7 PL11 the plain token of an agent of version 1 is taken, and no agent of version 2 sends it to a server of version 1', async () => {
  const server = await startTestServer(2)
  const keys = newAgentKeys()
  const { secret = '?' } = parseJoinToken(server.server.joinToken) ?? {}
  const { tokenId: _, tokenProof: __, ...rest } = joinBody(server, keys)
  const proof = joinProofBytes(joinTokenHash(secret), rest.publicKey, rest.recipient, rest.cluster)
  const old = { ...rest, token: secret, protocol: { min: 1, max: 1 }, proof: signBytes(keys.signing.privateKey, proof) }
  expect(code(await server.ask('POST', ROUTES.join, { json: old }))).toBe('200 ok')

  await server.server.kill()
  server.server.versions = { min: 1, max: 1 }
  await server.server.open()
  const sent: string[] = []
  const fetcher: Fetcher = async (url, init) => {
    sent.push(String(Buffer.from((init.body ?? []) as Uint8Array)))
    return (await server.server.handle(new Request(url, init as RequestInit))) ?? Response.error()
  }
  const client = createServerClient('http://localhost', fetcher, server.clock)
  const input = { joinToken: server.server.joinToken, clusterName: 'new', clusterUid: '', agentVersion: '' }
  const refused = await joinServer(client, newAgentKeys(), input, new AbortController().signal).catch((error: AppError) => error)
  expect([(refused as AppError).code, sent.length, sent.join().includes(secret)]).toEqual(['protocol_unsupported', 1, false])
  expect((refused as AppError).remedy).toStartWith('Upgrade the server.')
})

test('JN3 keys are made at the edge, once, for the owner’s eyes only', () => {
  const folder = tempDir()
  const keys = loadAgentKeys(folder)
  expect(loadAgentKeys(folder)).toEqual(keys)
  expect(statSync(join(folder, 'agent-keys.json')).mode & 0o777).toBe(0o600)

  const server = loadServerKeys(join(folder, 'keys'))
  expect(loadServerKeys(join(folder, 'keys')).fingerprint).toBe(server.fingerprint)
  for (const name of ['signing.json', 'mac.key']) expect(statSync(join(folder, 'keys', name)).mode & 0o777).toBe(0o600)
  expect(server.mac('session', Buffer.from('x'))).not.toEqual(server.mac('nonce', Buffer.from('x')))
  expect(readFileSync(join(folder, 'keys', 'signing.json'), 'utf8')).toContain(server.publicKeys[0] ?? '?')
})

test('SE1 a session is had by signing a fresh nonce of this server, once', async () => {
  const server = await startTestServer()
  const { keys, joined } = await joinTestAgent(server)
  const open = async (body: unknown) => code(await server.ask('POST', ROUTES.session, { json: body }))
  const { agentId, incarnation } = joined
  const nonce = await askNonce(server, agentId)
  expect(await open(sessionBody(newAgentKeys(), agentId, incarnation, nonce))).toBe('401 session_required') // another key
  expect(await open({ ...sessionBody(keys, agentId, incarnation, nonce), incarnation: incarnation + 1 })).toBe('401 session_required') // not what was signed
  expect(await open(sessionBody(keys, agentId, incarnation, nonce))).toBe('200 ok')
  expect(await open(sessionBody(keys, agentId, incarnation, nonce))).toBe('401 session_required') // replayed
  const flipped = `${nonce.slice(0, 5)}${nonce[5] === 'A' ? 'B' : 'A'}${nonce.slice(6)}`
  expect(await open(sessionBody(keys, agentId, incarnation, flipped))).toBe('401 session_required')
  expect(await open(sessionBody(keys, 'a-00000000000000ff', incarnation, nonce))).toBe('401 cluster_unknown')

  const [edge, past] = [await askNonce(server, agentId), await askNonce(server, agentId)]
  server.clock.jump(NONCE_MS - 1)
  expect(await open(sessionBody(keys, agentId, incarnation, edge))).toBe('200 ok')
  server.clock.jump(1)
  expect(await open(sessionBody(keys, agentId, incarnation, past))).toBe('401 session_required')
})

test('SE1 a clock that was ahead and was set back locks nobody out', async () => {
  const server = await startTestServer()
  const { keys, joined } = await joinTestAgent(server)
  const { agentId, incarnation } = joined
  const deps = { keys: server.server.keys, agents: server.server.agents, store: server.server.store, clock: server.clock, randomBytes }
  const sessions = createSessions({ ...deps, usedMax: 3 })
  const request = () => sessionRequestSchema.parse(sessionBody(keys, agentId, incarnation, sessions.nonce()))
  const open = () => sessions.open(request()).then(({ expiresInMs }) => expiresInMs)
  server.clock.jump(365 * 24 * 3_600_000)
  expect(await open()).toBe(SESSION_MS)
  server.clock.jump(-365 * 24 * 3_600_000)
  for (let n = 0; n < 5; n++) {
    expect(await open()).toBe(SESSION_MS)
    server.clock.jump(NONCE_MS)
  }
  const one = request()
  await sessions.open(one)
  await expect(sessions.open(one)).rejects.toMatchObject({ code: 'session_required' })
  for (let n = 0; n < 2; n++) await open()
  await expect(open()).rejects.toMatchObject({ code: 'too_many_requests' })
})

test('SE2 a token is short, ends with its time, and no bent one is taken', async () => {
  const server = await startTestServer()
  const agent = await joinTestAgent(server)
  const { token } = agent.session
  expect(token.length).toBeLessThanOrEqual(50)
  for (let at = 0; at < token.length; at++) {
    const bent = `${token.slice(0, at)}${token[at] === 'x' ? 'y' : 'x'}${token.slice(at + 1)}`
    const answer = await server.ask('GET', ROUTES.desired, { token: bent })
    expect([code(answer), typeof answer.body['nonce']]).toEqual(['401 session_required', 'string'])
  }
  for (const headers of [{}, { authorization: token }, { authorization: 'Bearer ' }, { authorization: `Basic ${token}` }]) {
    expect(code(await server.ask('GET', ROUTES.desired, { headers: headers as Record<string, string> }))).toBe('401 session_required')
  }
  server.clock.jump(SESSION_MS - 1_000)
  expect(code(await pull(server, agent))).toBe('200 ok')
  server.clock.jump(1_000)
  expect(code(await pull(server, agent))).toBe('401 session_required')
})

test('SE3 revocation and removal are seen at the next request of a valid session, and at the end of a wait', async () => {
  const server = await startTestServer()
  const agent = await joinTestAgent(server)
  const cursor = cursorText(server.server.shards.head(agent.clusterId))
  const waiting = server.ask('GET', `${ROUTES.desired}?cursor=${cursor}&wait=60`, { token: agent.session.token })
  await server.clock.settle()
  const key = { kind: 'Cluster', project: FLEET, name: 'site' } as const
  const revoke = (revoked: boolean) => server.server.store.applyResource(key, { labels: {}, spec: JSON.stringify({ revoked }), nowMs: 1 })
  await revoke(true)
  await server.server.agents.refresh()
  expect(code(await pull(server, agent))).toBe('403 revoked')
  await server.clock.advance(60_000)
  expect(code(await waiting)).toBe('403 revoked')
  expect(code(await server.ask('POST', ROUTES.session, { json: { agentId: agent.joined.agentId, incarnation: null } }))).toBe('403 revoked')
  await revoke(false)
  await server.server.agents.refresh()
  expect(code(await pull(server, agent))).toBe('200 ok')

  await server.server.store.deleteCluster('site')
  await server.server.agents.refresh()
  expect(code(await pull(server, agent))).toBe('401 cluster_unknown')
})

test('SE4 the newer of two agents with one key wins, and the older is told', async () => {
  const server = await startTestServer()
  const agent = await joinTestAgent(server)
  const newer = await openTestSession(server, agent.keys, agent.joined, null)
  expect(newer.incarnation).toBe(agent.joined.incarnation + 1)
  expect(code(await pull(server, agent))).toBe('403 superseded')
  expect(code(await server.ask('POST', ROUTES.status, { token: agent.session.token, json: { incarnation: 1, rows: [] } }))).toBe(
    '403 superseded',
  )
  const nonce = await askNonce(server, agent.joined.agentId)
  const older = sessionBody(agent.keys, agent.joined.agentId, agent.joined.incarnation, nonce)
  expect(code(await server.ask('POST', ROUTES.session, { json: older }))).toBe('403 superseded')
  expect(code(await server.ask('GET', ROUTES.desired, { token: newer.token }))).toBe('200 ok')
})

test('SE4 an incarnation above the server’s, after a restore, is outranked; one that nobody gave out is refused', async () => {
  const server = await startTestServer()
  const agent = await joinTestAgent(server)
  expect((await openTestSession(server, agent.keys, agent.joined, 7)).incarnation).toBe(8)
  const nonce = await askNonce(server, agent.joined.agentId)
  const absurd = sessionBody(agent.keys, agent.joined.agentId, 2 ** 53 - 1, nonce)
  expect(code(await server.ask('POST', ROUTES.session, { json: absurd }))).toBe('400 bad_request')
})

test.each([
  ['0', '426 protocol_unsupported'],
  ['1', '200 ok'],
  ['2', '200 ok'],
  ['3', '426 protocol_unsupported'],
  ['one', '400 bad_request'],
])('PL11 protocol %s is answered %s, with both versions', async (version, expected) => {
  const server = await startTestServer()
  const { session } = await joinTestAgent(server)
  const answer = await server.ask('GET', ROUTES.desired, { token: session.token, headers: { [PROTOCOL_HEADER]: version } })
  expect(code(answer)).toBe(expected)
  if (answer.status === 426) expect(answer.body['detail']).toBe(`the agent speaks protocol ${version}, the server 1 to 2`)
})

test('last-seen marks of many polls are one write, and the first of a cluster does not wait for it', async () => {
  const written: unknown[] = []
  const clock = createVirtualClock(7)
  const marks = createSeenMarks({ markSeen: async (seen) => void written.push([...seen]) }, clock, silentLogger)
  const stop = new AbortController()
  const running = marks.run(stop.signal)
  await clock.advance(20_000)
  marks.seen(CLUSTER)
  await clock.advance(100)
  expect(written).toEqual([[[CLUSTER, 20_007]]])
  marks.seen(CLUSTER)
  marks.seen(CLUSTER)
  await clock.advance(1_000)
  expect(written).toHaveLength(1)
  await clock.advance(10_000)
  expect(written.slice(1)).toEqual([[[CLUSTER, 20_107]]])
  marks.seen(CLUSTER)
  stop.abort()
  await running
  expect(written).toHaveLength(3)
})

test('SE7 of agents that are not known only the last ones to knock are kept', () => {
  const clock = createVirtualClock(7)
  const knocks = createKnocks(clock)
  for (let n = 0; n <= KNOCKS_MAX; n++) knocks.note(`a-${n}`)
  knocks.note('a-5')
  expect(knocks.list()).toHaveLength(KNOCKS_MAX)
  expect(knocks.list()[0]).toEqual({ agentId: 'a-5', tries: 2, lastMs: 7 })
  expect(knocks.list().at(-1)?.agentId).toBe('a-1')
})

test('AP11 the wait of an agent is written when it changes by more than a minute, and with no mark of its own', async () => {
  const written: unknown[] = []
  const clock = createVirtualClock(7)
  const marks = createSeenMarks({ markSeen: async (_, waits) => void written.push([...(waits ?? [])]) }, clock, silentLogger)
  const stop = new AbortController()
  const running = marks.run(stop.signal)
  for (const wait of [55, 30, 850, 880, undefined, 60]) {
    marks.seen(CLUSTER, wait)
    await clock.advance(10_100)
  }
  expect(written).toEqual([[[CLUSTER, 0]], [], [[CLUSTER, 900]], [], [], [[CLUSTER, 60]]])
  stop.abort()
  await running
})

test('an unknown route of the agent API is a problem body, other paths are not its business', async () => {
  const server = await startTestServer()
  expect(code(await server.ask('PUT', ROUTES.desired))).toBe('404 not_found')
  expect(code(await server.ask('POST', `${ROUTES.desired}/bucket`))).toBe('404 not_found')
  expect(await server.server.handle(new Request('http://localhost/api/v1/clusters'))).toBeNull()
})

test('a key that only looks like one is refused by the form of the join', async () => {
  const server = await startTestServer()
  const good = joinBody(server, newAgentKeys())
  for (const publicKey of ['', 'A'.repeat(42), `${generateKey('ed25519').publicKey}A`, '='.repeat(43)]) {
    expect(code(await server.ask('POST', ROUTES.join, { json: { ...good, publicKey } }))).toBe('400 bad_request')
  }
  const forged = { ...good, publicKey: 'A'.repeat(43) }
  const tokenHash = joinTokenHash(parseJoinToken(server.server.joinToken)?.secret ?? '')
  const tokenProof = joinTokenProof(tokenHash, joinBytes(good.tokenId ?? '', forged))
  expect(code(await server.ask('POST', ROUTES.join, { json: { ...forged, tokenProof } }))).toBe('401 join_proof_invalid')
})

test('SL10 SL11 an agent that is asked for another recipient key makes one, and its rows are sent anew; one of an earlier version goes on', async () => {
  const server = await startTestServer()
  const agent = await joinTestAgent(server)
  const { store, agents } = server.server
  const before = agents.agent(agent.joined.agentId)
  const announce = (by: string, key: string) => (nonce: string) => ({
    recipient: { key, signature: signBytes(by, recipientBytes(agent.joined.agentId, nonce, key)) },
  })
  const open = async (more: (nonce: string) => object = () => ({})) => {
    const nonce = await askNonce(server, agent.joined.agentId)
    return server.ask('POST', ROUTES.session, { json: { ...sessionBody(agent.keys, agent.joined.agentId, 1, nonce), ...more(nonce) } })
  }
  const old = (await open()).body
  expect(old['recipient']).toMatchObject({ fingerprint: fingerprint(before?.recipient ?? ''), rotate: false })
  server.clock.jump(1_000)
  expect(await store.askForRecipient(agent.clusterId, server.clock.nowMs())).toBe(true)
  await agents.refresh()
  expect(code(await pull(server, agent))).toBe('401 session_required')
  const told = (await open()).body
  expect(told['recipient']).toMatchObject({ fingerprint: fingerprint(before?.recipient ?? ''), rotate: true })
  const goesOn = await server.ask('GET', ROUTES.desired, { token: String(told['token']) })
  expect(goesOn.status).not.toBe(401)
  const next = generateKey('x25519')
  expect(code(await open(announce(newAgentKeys().signing.privateKey, next.publicKey)))).toBe('401 session_required')
  const changed = (await open(announce(agent.keys.signing.privateKey, next.publicKey))).body
  const stated = changed['recipient'] as { fingerprint: string; rotate: boolean; signature: string }
  expect(stated).toMatchObject({ fingerprint: fingerprint(next.publicKey), rotate: false })
  const after = agents.agent(agent.joined.agentId)
  expect(after).toMatchObject({ recipient: next.publicKey, epoch: (before?.epoch ?? 0) + 1 })
  expect(after).not.toHaveProperty('rotateMs')
  const events = await store.listEvents({ limit: 10 })
  expect(JSON.stringify(events)).toContain(`from ${fingerprint(before?.recipient ?? '')} to ${fingerprint(next.publicKey)}`)
})
