// The whole agent between a server in memory and the fake API server: what the server answers, or that it does not,
// never stops enforcement.

import { afterEach, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { type Agent, agentFiles, createAgent } from '../../agent/agent.ts'
import { statusText } from '../../agent/cli/print-status.ts'
import type { Fetcher } from '../../agent/link/server-client.ts'
import { NO_LOG } from '../../shared/adapters/log-sync.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { clusterStatusSchema, factsStatusSchema } from '../../shared/model/status.ts'
import { SUSPENSIONS } from '../../shared/model/suspension.ts'
import { AppError, type ErrorCode, problemBody } from '../../shared/runtime/error.ts'
import { clusterIdSchema } from '../../shared/runtime/ids.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { createFakeCluster } from '../support/fake-cluster.ts'
import { configMapRef } from '../support/reconcile-kit.ts'
import { WEB } from '../support/sync-kit.ts'
import { SyncServer } from '../support/sync-world.ts'
import { tempDir } from '../support/temp-dir.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const stops: Array<() => Promise<void>> = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

async function site(waitSeconds = 55, freeMemory: () => void = () => {}) {
  const clock = createVirtualClock()
  const random = seededRandom(7)
  const server = new SyncServer({ dir: tempDir(), clock, random })
  await server.open()
  await server.createJoinToken(1)
  const cluster = createFakeCluster({ clock })
  const dataDir = tempDir()
  let answer: () => Response | null = () => null
  const fetcher: Fetcher = async (url, init) => {
    const aborted = new Promise<never>((_, reject) => init.signal?.addEventListener('abort', () => reject(new Error('aborted'))))
    aborted.catch(() => {})
    const response = answer() ?? (await Promise.race([server.handle(new Request(url, init as RequestInit)), aborted]))
    if (response === null) throw new Error('connection refused')
    return response
  }
  const start = (joinToken: string | null): { agent: Agent; stop: () => Promise<void> } => {
    const agent = createAgent(
      { dataDir, serverUrl: 'http://skerry', clusterName: 'site', joinToken, waitSeconds, version: '1' },
      { cluster, fetcher, clock, random, randomBytes, log: silentLogger, place: null, logFile: NO_LOG, freeMemory },
    )
    const stopping = new AbortController()
    const running = agent.run(stopping.signal)
    const stop = async () => {
      stopping.abort()
      await running
      agent.close()
    }
    stops.push(stop)
    return { agent, stop }
  }
  return {
    dataDir,
    clock,
    cluster,
    server,
    start,
    answerWith: (next: typeof answer) => {
      answer = next
    },
  }
}

const refuse = (code: ErrorCode) => () => {
  const body = problemBody(new AppError(code))
  return Response.json(body, { status: body.status })
}
const ANSWERS: ReadonlyArray<[name: string, answer: () => Response, state: string]> = [
  ['revoked', refuse('revoked'), 'halted'],
  ['superseded on the server', refuse('superseded'), 'halted'],
  ['unknown to the server', refuse('cluster_unknown'), 'halted'],
  ['of another protocol', refuse('protocol_unsupported'), 'halted'],
  ['answered nonsense', () => new Response('<html>', { status: 200 }), 'offline'],
  [
    'offline',
    () => {
      throw new Error('connection refused')
    },
    'offline',
  ],
]

test.each(ANSWERS)('SY2 an agent that is %s goes on healing, also after a restart', async (_, answer, state) => {
  const { clock, cluster, server, start, answerWith } = await site()
  const first = start(server.joinToken)
  await clock.advance(5_000)
  await server.publish(clusterIdSchema.parse(first.agent.report().clusterId), WEB, { a: '1', b: '2' })
  await clock.advance(5_000)
  expect(first.agent.report()).toMatchObject({ enforcement: { state: 'enforcing' }, link: { state: 'following' } })
  expect(cluster.object(configMapRef('a'))?.['data']).toEqual({ value: '1' })

  answerWith(answer)
  await clock.advance(5 * 60_000)
  const { link, enforcement } = first.agent.report()
  expect([['halted', 'offline', 'refetching'].includes(link?.state ?? ''), enforcement.state]).toEqual([true, 'enforcing'])
  if (state === 'halted') expect(link?.state).toBe('halted')
  cluster.deleteAs('kubectl', configMapRef('a'))
  cluster.editAs('kubectl', configMapRef('b'), (object) => Object.assign(object, { data: { value: 'x' } }))
  await clock.advance(1_000)
  expect([cluster.object(configMapRef('a'))?.['data'], cluster.object(configMapRef('b'))?.['data']]).toEqual([
    { value: '1' },
    { value: '2' },
  ])

  await first.stop()
  stops.length = 0
  cluster.deleteAs('kubectl', configMapRef('b'))
  const second = start(null)
  await clock.advance(10_000)
  expect(second.agent.report().enforcement.state).toBe('enforcing')
  expect(cluster.object(configMapRef('b'))?.['data']).toEqual({ value: '2' })
  expect(statusText(second.agent.report(), clock.nowMs())).toContain('enforcing')
})

test('CM4 an API server that goes away is told, the agent waits for it, and heals what happened meanwhile', async () => {
  const { clock, cluster, server, start } = await site()
  const { agent } = start(server.joinToken)
  await clock.advance(5_000)
  await server.publish(clusterIdSchema.parse(agent.report().clusterId), WEB, { a: '1' })
  await clock.advance(5_000)
  cluster.fail(() => ({ kind: 'unreachable', status: 0, reason: 'ECONNREFUSED', message: 'no answer from https://kube' }))
  cluster.cutWatches()
  await clock.advance(30_000)
  expect(agent.report().enforcement).toMatchObject({ state: 'waiting', message: expect.stringContaining('no answer from https://kube') })
  cluster.deleteAs('kubectl', configMapRef('a'))
  cluster.fail(() => null)
  await clock.advance(60_000)
  expect(agent.report().enforcement).toEqual({ state: 'enforcing', message: '' })
  expect(cluster.object(configMapRef('a'))?.['data']).toEqual({ value: '1' })
})

test('RP1 a replica that is found damaged while a long poll waits is fetched again at once', async () => {
  const { clock, server, start, dataDir } = await site(900)
  const { agent } = start(server.joinToken)
  await clock.advance(5_000)
  await server.publish(clusterIdSchema.parse(agent.report().clusterId), WEB, { a: '1' })
  await clock.advance(5_000)
  const rogue = openSqlite(agentFiles(dataDir).replica)
  rogue.run('UPDATE replica_position SET count = count + 1')
  rogue.close()
  expect(agent.report().replica?.verified).toBe(false) // whoever asks finds it
  await clock.advance(2_000)
  expect(agent.report()).toMatchObject({ replica: { verified: true }, link: { state: 'following' } })
})

test('HO1, HO2 a hold of the whole cluster is a problem of the cluster, over a restart, until it ends', async () => {
  const { clock, server, start } = await site()
  const first = start(server.joinToken)
  await clock.advance(5_000)
  const clusterId = clusterIdSchema.parse(first.agent.report().clusterId)
  const problems = async () =>
    (await server.store.listStatus({ clusterId, kind: 'cluster' })).map(({ doc }) => clusterStatusSchema.parse(doc).problems)
  expect(await problems()).toEqual([[]])
  const sinceMs = clock.nowMs()
  first.agent.order({ kind: 'hold', service: null, by: 'ann', why: 'harbour', untilMs: sinceMs + 600_000 })
  await clock.advance(20_000)
  const held = { code: 'held', message: expect.stringMatching(/^held by ann since .* until .*: harbour;/), sinceMs }
  expect(await problems()).toEqual([[held]])
  await first.stop()
  const second = start(null)
  await clock.advance(60_000)
  expect(await problems()).toEqual([[held]])
  await clock.advance(600_000)
  expect(await problems()).toEqual([[]])
  second.agent.order({ kind: 'hold', service: null, by: 'ann', why: 'harbour' })
  await clock.advance(20_000)
  expect((await problems())[0]).toHaveLength(1)
  second.agent.order({ kind: 'unhold', service: null, by: 'ann' })
  await clock.advance(20_000)
  expect(await problems()).toEqual([[]])
})

test('SU1, SU4 a suspension of the cluster reaches the agent by its rows, is a problem of the cluster, and ends', async () => {
  const { clock, server, cluster, start } = await site()
  const { agent } = start(server.joinToken)
  await clock.advance(5_000)
  const clusterId = clusterIdSchema.parse(agent.report().clusterId)
  const suspend = (rows: Array<[string, string]>) =>
    server.publishRows({ ...SUSPENSIONS, clusterId, doc: null, placedBy: '', objects: new Map(rows) })
  const problems = async () =>
    (await server.store.listStatus({ clusterId, kind: 'cluster' })).map(({ doc }) => clusterStatusSchema.parse(doc).problems)
  await suspend([['suspension/cluster/site', JSON.stringify({ by: 'ana', why: 'harbour', sinceMs: 5 })]])
  await server.publish(clusterId, WEB, { a: '1' })
  await clock.advance(60_000)
  expect(await problems()).toEqual([[{ code: 'suspended', message: expect.stringContaining('suspended by ana'), sinceMs: 5 }]])
  expect(cluster.object(configMapRef('a'))).toBeNull()
  await suspend([])
  await clock.advance(60_000)
  expect(await problems()).toEqual([[]])
  expect(cluster.object(configMapRef('a'))).not.toBeNull()
})

test('memory is given back two seconds after the start and after the last large turn, and every half minute', async () => {
  const freedAtMs: number[] = []
  let nowMs = () => 0
  const { clock, server, start } = await site(55, () => freedAtMs.push(nowMs()))
  nowMs = () => clock.nowMs()
  const { agent } = start(server.joinToken)
  await clock.advance(10_000)
  expect(freedAtMs).toHaveLength(2) // upkeep begins with one
  const id = clusterIdSchema.parse(agent.report().clusterId)
  const many = Object.fromEntries(Array.from({ length: 600 }, (_, n) => [`many-${n}`, '1']))
  const publishedMs = clock.nowMs()
  await server.publish(id, WEB, many)
  await clock.advance(4_000)
  const afterLarge = freedAtMs.slice(2)
  expect(afterLarge).toHaveLength(1)
  expect(afterLarge[0]).toBeGreaterThanOrEqual(publishedMs + 2_000)
  await clock.advance(150_000)
  const upkeep = freedAtMs.length - 3
  expect([upkeep >= 3, upkeep <= 11]).toEqual([true, true])
})

test('FA1, FA4 what the cluster serves reaches the server once, and an idle day writes and lists nothing more', async () => {
  const { clock, cluster, server, start } = await site(3_600)
  const { agent } = start(server.joinToken)
  await clock.advance(60_000)
  const clusterId = clusterIdSchema.parse(agent.report().clusterId)
  const facts = async () => (await server.store.listStatus({ clusterId, kind: 'facts' })).map(({ key, rev, doc }) => ({ key, rev, doc }))
  const [first, ...others] = await facts()
  const said = factsStatusSchema.parse(first?.doc)
  expect([others, first?.key, said.apis['apps/v1']?.includes('Deployment')]).toEqual([[], 'cluster', true])
  expect(said.kubernetesVersion).toBe((await cluster.info()).version)
  const before = cluster.requests.length
  await clock.advance(24 * 3_600_000)
  expect((await facts()).map(({ rev }) => rev)).toEqual([first?.rev ?? 0])
  const asked = cluster.requests.slice(before).map(({ verb }) => verb)
  expect(asked.filter((verb) => ['watch', 'delete'].includes(verb))).toEqual([])
  expect(asked.filter((verb) => verb === 'discover').length).toBeLessThan(40)
})
