// What networks, restores and rotations do to the sync loop, in virtual time.

import { afterEach, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { SessionKeeper } from '../../agent/link/session-keeper.ts'
import { createCrdtReplica } from '../../agent/replica/crdt-replica.ts'
import type { Replica } from '../../agent/replica/replica.ts'
import { HeadCheck } from '../../agent/sync/head-check.ts'
import { memoryStage } from '../../agent/sync/part-stage.ts'
import { createPull } from '../../agent/sync/pull.ts'
import type { SyncOptions } from '../../agent/sync/sync-loop.ts'
import { beginSync, type PageTask, type SyncEvent, stepSync, syncFailure, turnOf } from '../../agent/sync/sync-state.ts'
import { createTrafficDay } from '../../agent/sync/traffic-day.ts'
import { loadServerKeys } from '../../server/access/server-keys.ts'
import { type KeyLink, keyLinkBytes } from '../../shared/protocol/key-links.ts'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { sessionAnswerBytes, sessionAnswerSchema } from '../../shared/protocol/session.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { ERRORS } from '../../shared/runtime/error-table.ts'
import { generateKey, signBytes } from '../../shared/runtime/keys.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { runLoop } from '../../shared/runtime/loop.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { type Body, joined, killAgents, problem, report, shown, site } from '../support/link-site.ts'
import { OTHER_KEY, WEB } from '../support/sync-kit.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

afterEach(killAgents)

const HOUR = 3_600_000
const event = (n: number, message: string) => ({
  kind: 'event' as const,
  key: `${String(n).padStart(13, '0')}-${n}`,
  doc: { atMs: n, type: 'Warning', reason: 'Degraded', message, service: 'shop/web' },
})

test('SY6 metered, an idle agent moves at most 4,096 bytes an hour, its session included, and a commit still arrives', async () => {
  const { clock, status, publish, agent, asked } = await joined({ sync: { metered: true } })
  await clock.advance(2 * HOUR)
  expect(status()?.waitSeconds).toBe(900)
  const bytes = () => (status()?.traffic.sentBytes ?? 0) + (status()?.traffic.receivedBytes ?? 0)
  const before = bytes()
  await clock.advance(24 * HOUR)
  expect((bytes() - before) / 24).toBeLessThanOrEqual(4_096)
  expect((bytes() - before) / 24).toBeGreaterThan(1_000)
  asked.length = 0
  await publish('1')
  await clock.settle()
  expect(agent.loop?.replica()?.read(WEB).kind).toBe('complete')
})

test('SY6 metered, reports gather; a service that became healthy goes sooner', async () => {
  const { clock, agent, asked, status } = await joined({ sync: { metered: true } })
  await clock.advance(20 * 60_000)
  asked.length = 0
  const pushes = () => asked.filter((path) => path === ROUTES.status).length
  for (let n = 0; n < 30; n++) {
    agent.state?.report([event(n, `m${n}`)])
    await clock.advance(9_000)
  }
  expect([pushes(), status()?.outboxDepth]).toEqual([0, 30])
  await clock.advance(60_000)
  expect([pushes(), status()?.outboxDepth]).toEqual([1, 0])
  agent.state?.report([event(99, 'm')])
  report(agent, 'healthy now')
  await clock.advance(16_000)
  expect([pushes(), status()?.outboxDepth]).toEqual([2, 0])
})

test('SY6 past its budget an agent polls longest and reports hourly, changes still arrive, and at midnight UTC it is as before', async () => {
  const made = await site()
  const traffic = createTrafficDay({ path: null, budgetBytes: 100_000, clock: made.clock })
  made.agent.sync = { metered: true, traffic }
  made.agent.start()
  await made.clock.advance(60_000)
  traffic.add(100_000)
  await made.clock.advance(10 * 60_000)
  expect(made.status()).toMatchObject({ waitSeconds: 900, today: { budgetBytes: 100_000 } })
  report(made.agent, '1')
  await made.clock.advance(60_000)
  made.asked.length = 0
  report(made.agent, '2')
  await made.clock.advance(50 * 60_000)
  expect(made.asked).not.toContain(ROUTES.status)
  await made.clock.advance(15 * 60_000)
  expect(made.status()?.outboxDepth).toBe(0)
  await made.publish('1')
  await made.clock.settle()
  expect(made.agent.loop?.replica()?.read(WEB).kind).toBe('complete')
  await made.clock.advance(24 * HOUR)
  expect(made.status()?.today.bytes).toBeLessThan(100_000)
})

test('PU5 a day offline with 10,000 flaps costs at most 20,480 bytes at the reconnect', async () => {
  const made = await joined()
  const { clock, agent, link, status } = made
  link.answer = () => 'down'
  await clock.advance(60_000)
  const flap = (n: number) => {
    const health = n % 2 === 0 ? 'Degraded' : 'Healthy'
    const doc = { sync: 'Synced', health, reason: 'r', message: 'm', sinceMs: n, objectCount: 5, healthyCount: 4 }
    const told = event(n, `Deployment default/web is ${health}: 4 of 5 replicas are available`)
    return [{ kind: 'service' as const, key: 'shop/web', doc }, told]
  }
  // A hundred at a time, because each report is on the disk before it returns.
  for (let hour = 0; hour < 100; hour++) agent.state?.report(Array.from({ length: 100 }, (_, n) => flap(hour * 100 + n)).flat())
  expect(status()?.outboxDepth).toBe(3)
  const bytes = () => (status()?.traffic.sentBytes ?? 0) + (status()?.traffic.receivedBytes ?? 0)
  const before = bytes()
  link.answer = () => null
  await clock.advance(2 * 60_000)
  expect(status()).toMatchObject({ state: 'following', outboxDepth: 0 })
  expect(bytes() - before).toBeLessThanOrEqual(20_480)
}, 30_000)

test('PU4 PU7 an inventory that is larger than a push is complete, too', async () => {
  const made = await joined()
  const { clock, agent, server } = made
  const rows = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, n) => ({
      kind: 'service' as const,
      key: `shop/s${String(from + n).padStart(5, '0')}`,
      doc: { sync: 'Synced', health: 'Healthy', reason: 'r', message: 'x'.repeat(400), sinceMs: 1, objectCount: 0, healthyCount: 0 },
    }))
  agent.state?.report(rows(0, 6_000))
  await clock.advance(60_000)
  expect(await shown(made)).toHaveLength(6_000)
  const identity = agent.state?.identity()
  // What the server still has and the agent no longer knows, everywhere in the order of keys.
  const clusterId = agent.clusterId ?? ('' as never)
  const rev = (identity?.incarnation ?? 0) * 2 ** 32
  const doc = { sync: 'Synced', health: 'Healthy', reason: 'r', message: '', sinceMs: 1, objectCount: 0, healthyCount: 0 } as const
  const ghosts = ['shop/a', 'shop/s00000a', 'shop/s03000x', 'shop/s05999z', 'shop/z'].map((key, n) => ({
    kind: 'service' as const,
    key,
    rev: rev - 10 + n,
    doc,
  }))
  await server.store.upsertStatus(clusterId, ghosts, { complete: false, nowMs: 1 } as never)
  expect(await shown(made)).toHaveLength(6_005)
  agent.state?.reportAnew()
  await clock.advance(10 * 60_000)
  expect(agent.state?.inventoryDue()).toBe(false)
  expect(await shown(made)).toHaveLength(6_000)
}, 60_000)

test.each([
  ['the same number', 1],
  ['a lower number', 5],
] as const)(
  'PU7 what a copy of this agent said under %s hides nothing: this one takes a new incarnation and says it again',
  async (_, said) => {
    const made = await joined()
    const { clock, agent, server } = made
    report(agent, 'before')
    await clock.advance(1_000)
    const { incarnation = 0 } = agent.state?.identity() ?? {}
    const doc = {
      sync: 'Synced',
      health: 'Degraded',
      reason: 'r',
      message: 'of the copy',
      sinceMs: 1,
      objectCount: 0,
      healthyCount: 0,
    } as const
    const rev = (agent.state?.lastRev() ?? 0) + 1
    await server.store.upsertStatus(agent.clusterId ?? ('' as never), [{ kind: 'service', key: 'shop/web', rev, doc }], {
      complete: false,
      nowMs: 1,
    })
    agent.state?.report(
      Array.from({ length: said }, (_, n) => ({
        kind: 'service',
        key: n === 0 ? 'shop/web' : `shop/x${n}`,
        doc: { ...doc, message: 'of this one' },
      })),
    )
    await clock.advance(10_000)
    expect((await shown(made)).map(([, message]) => message)).toEqual(Array.from({ length: said }, () => 'of this one'))
    expect(agent.state?.identity()?.incarnation).toBe(incarnation + 1)
  },
)

test('PU7 a push whose answer was lost is no copy of this agent', async () => {
  const made = await joined()
  const { clock, agent, link } = made
  report(agent, 'before')
  await clock.advance(1_000)
  const { incarnation = 0 } = agent.state?.identity() ?? {}
  let lost = 0
  link.loseAnswer = (path) => path === ROUTES.status && lost++ < 2
  report(agent, 'after')
  await clock.advance(60_000)
  report(agent, 'later')
  await clock.advance(10_000)
  expect([lost >= 2, await shown(made), agent.state?.identity()?.incarnation]).toEqual([true, [['shop/web', 'later']], incarnation])
})

test('SY1 RP2 a server that waits for a person is no error: status goes up, polls are few, and it goes on by itself', async () => {
  const { clock, agent, link, status, publish, asked } = await joined()
  await publish('1')
  await clock.settle()
  link.answer = (path) => (path.startsWith(ROUTES.desired) ? problem(new AppError('restore_pending', { retryAfterMs: 30_000 })) : null)
  await clock.advance(5 * 60_000)
  expect(status()).toMatchObject({ state: 'restore_pending', failure: { code: 'restore_pending', remedy: ERRORS.restore_pending.remedy } })
  expect(agent.loop?.replica()?.read(WEB).kind).toBe('complete')
  report(agent, 'still told')
  await clock.advance(1_000)
  expect(status()?.outboxDepth).toBe(0)
  asked.length = 0
  await clock.advance(HOUR)
  expect(asked.length).toBeLessThanOrEqual(60 * 3)
  link.answer = () => null
  await clock.advance(3 * 60_000)
  expect(status()).toMatchObject({ state: 'following', failure: null })
})

test('PL10 a drained server is obeyed and is no cut: the wait stays as it was', async () => {
  const { clock, link, status, asked } = await joined()
  await clock.advance(10 * 60_000)
  const before = status()?.waitSeconds
  link.answer = () => problem(new AppError('unavailable', { retryAfterMs: 20_000 }))
  await clock.advance(2 * 60_000) // the poll that waits ends by itself
  asked.length = 0
  await clock.advance(3 * 60_000)
  expect(asked.length).toBeLessThanOrEqual(9) // each time at least the 20 s that were asked for
  expect(asked.length).toBeGreaterThanOrEqual(4)
  expect(status()?.waitSeconds).toBe(before ?? 0)
  link.answer = () => null
  await clock.advance(60_000)
  expect(status()).toMatchObject({ state: 'following', failure: null })
})

test.each([[504], [408], [524]])('PL10 a gateway that gives up waiting with %d shortens the wait and is no error', async (code) => {
  const { clock, link, status, agent, publish } = await joined()
  link.answer = (path, url) =>
    path === ROUTES.desired && Number(url.searchParams.get('wait')) > 30 ? new Response('<html>', { status: code }) : null
  link.delayMs = (path, url) => (path === ROUTES.desired && Number(url.searchParams.get('wait')) > 30 ? 30_000 : 0)
  await clock.advance(10 * 60_000)
  expect(status()).toMatchObject({ state: 'following', failure: null, waitSeconds: 24 })
  await publish('1')
  await clock.settle()
  expect(agent.loop?.replica()?.read(WEB).kind).toBe('complete')
})

test('PL10 a box that forgets silent connections in silence costs one wait, then the wait that was good is kept to', async () => {
  const { clock, link, status, agent, publish } = await joined({ sync: { metered: true } })
  link.delayMs = (path, url) => (path === ROUTES.desired && Number(url.searchParams.get('wait')) > 300 ? 86_400_000 : 0)
  await clock.advance(2 * HOUR)
  expect(status()).toMatchObject({ state: 'following', failure: null, waitSeconds: 282 })
  await publish('1')
  await clock.settle()
  expect(agent.loop?.replica()?.read(WEB).kind).toBe('complete')
  await clock.advance(3 * HOUR)
  expect(status()).toMatchObject({ state: 'following', waitSeconds: 282 })
})

test.each([
  ['back', -6 * 365 * 24 * HOUR],
  ['forward', 6 * 365 * 24 * HOUR],
])('SY4 a clock that is set %s by years holds up neither polls nor reports', async (_, ms) => {
  const { clock, agent, status, asked } = await site()
  const own = clock.process(0)
  agent.sync = { metered: true, clock: own }
  agent.start()
  await clock.advance(20_000)
  agent.state?.report([event(1, 'waits')])
  await clock.advance(1_000)
  own.setBy(ms)
  asked.length = 0
  await clock.advance(30 * 60_000)
  expect(status()).toMatchObject({ state: 'following', outboxDepth: 0 })
  expect(asked.filter((path) => path === ROUTES.desired).length).toBeGreaterThan(2)
})

const withOwnKeys = (made: Awaited<ReturnType<typeof site>>): Partial<SyncOptions> => ({
  openReplica: ({ clusterId }) =>
    createCrdtReplica({
      path: join(made.world.dir, 'agent-site', 'replica.db'),
      clusterId,
      serverKeys: () => made.agent.state?.identity()?.serverKeys ?? [],
      log: silentLogger,
    }),
})

test('RP7 after a rotation of the server’s key the agent pins what follows from its own, and a commit during a poll is not refused', async () => {
  const made = await site()
  const { clock, agent, server, status, publish, asked } = made
  agent.sync = withOwnKeys(made)
  agent.start()
  await clock.advance(20_000)
  const before = agent.state?.identity()?.serverKeys ?? []
  server.keys.rotate(clock.nowMs())
  server.keys.rotate(clock.nowMs())
  asked.length = 0
  await publish('1')
  await clock.advance(5_000)
  expect(agent.loop?.replica()?.read(WEB).kind).toBe('complete')
  expect(status()).toMatchObject({ state: 'following', failure: null })
  const pinned = agent.state?.identity()?.serverKeys ?? []
  expect(pinned.slice(0, before.length)).toEqual(before)
  expect(pinned).toHaveLength(before.length + 2)
  expect(asked.filter((path) => path === ROUTES.buckets)).toEqual([])
})

test('RP7 a page by a newer key that comes before the session that tells of it is kept until it does', async () => {
  const made = await site()
  const { clock, agent, server, link, status, publish, asked } = made
  agent.sync = withOwnKeys(made)
  agent.start()
  await clock.advance(20_000)
  link.delayMs = (path) => (path === ROUTES.desired ? 30_000 : 0)
  await clock.advance(60_000)
  const position = agent.loop?.replica()?.position() ?? null
  server.keys.rotate(clock.nowMs())
  await publish('1')
  const page = await server.shards.pull(agent.clusterId ?? ('' as never), position, { zstd: false })
  const bytes = page.kind === 'page' ? Buffer.from(page.bytes) : Buffer.alloc(0)
  let answered = 0
  link.answer = (path) => (path === ROUTES.desired && answered++ === 0 ? new Response(bytes) : null)
  asked.length = 0
  await clock.advance(35_000)
  expect(answered).toBeGreaterThanOrEqual(1)
  expect(agent.loop?.replica()?.read(WEB).kind).toBe('complete')
  expect(status()).toMatchObject({ state: 'following', failure: null })
  expect(asked.filter((path) => path === ROUTES.session)).toHaveLength(2)
  expect(asked).not.toContain(ROUTES.buckets)
  expect(agent.state?.identity()?.serverKeys).toHaveLength(2)
})

test('RP7 a page by a key that follows from none is refused, after one new session', async () => {
  const { clock, agent, link, asked } = await joined()
  const page = '{"t":"hello"}'
  link.answer = (path, url) => (path === ROUTES.desired && url.searchParams.get('wait') !== '0' ? new Response(`${page}\n`) : null)
  await clock.advance(200)
  asked.length = 0
  await clock.advance(60_000)
  expect(asked.filter((path) => path === ROUTES.session).length).toBeLessThanOrEqual(2)
  expect(agent.state?.identity()?.serverKeys).toHaveLength(1)
})

const link17 = (first: { publicKey: string; privateKey: string }, count: number): KeyLink[] => {
  let by = first
  return Array.from({ length: count }, () => {
    const next = generateKey('ed25519')
    const made = { key: next.publicKey, by: by.publicKey, signature: signBytes(by.privateKey, keyLinkBytes(next.publicKey, by.publicKey)) }
    by = next
    return made
  })
}

test.each([
  [
    'with a wrong signature',
    (own: string) => [
      { key: OTHER_KEY.publicKey, by: own, signature: signBytes(OTHER_KEY.privateKey, keyLinkBytes(OTHER_KEY.publicKey, own)) },
    ],
  ],
  ['from a key that nobody pinned', () => link17(OTHER_KEY, 2)],
  ['that is a loop', (own: string) => [{ key: own, by: own, signature: signBytes(OTHER_KEY.privateKey, keyLinkBytes(own, own)) }]],
  ['of 17 links', () => link17(OTHER_KEY, 17)],
  ['of no form', () => 'links'],
] as Array<[string, (own: string) => unknown]>)('RP7 a chain %s changes no pin', async (_, links) => {
  const made = await joined()
  const { clock, agent, link, world } = made
  const keys = loadServerKeys(join(world.dir, 'keys'))
  const own = agent.state?.identity()?.serverKeys ?? []
  await agent.kill()
  link.tamper = (path, body: Body) => {
    if (path !== ROUTES.session) return body
    const answer = sessionAnswerSchema.parse(body)
    return { ...body, keyLinks: links(own[0] ?? ''), signature: keys.sign(sessionAnswerBytes(answer, link.nonce)) }
  }
  agent.start()
  await clock.advance(3 * 60_000)
  expect(agent.state?.identity()?.serverKeys).toEqual(own)
  link.tamper = null
  await clock.advance(3 * 60_000)
  expect(made.status()).toMatchObject({ state: 'following', failure: null })
})

test('PL11 a server that speaks no version of ours halts sync, enforcement goes on, and unknown members change nothing', async () => {
  const { clock, agent, link, status, publish } = await joined()
  await publish('1')
  await clock.settle()
  link.answer = () => problem(new AppError('protocol_unsupported', { extra: { min: 7, max: 9, tomorrow: true } }))
  await clock.advance(3 * 60_000)
  expect(status()).toMatchObject({ state: 'halted', failure: { code: 'protocol_unsupported' } })
  expect(agent.loop?.replica()?.read(WEB).kind).toBe('complete')
  link.answer = () => null
  link.tamper = (_, body) => ({ ...body, tomorrow: { deep: [1] } })
  await clock.advance(5 * 60_000)
  expect(status()).toMatchObject({ state: 'following', failure: null })
})

test('SY10 what differs alone travels after a rebuild of the server, and what was in force stays in force', async () => {
  const { clock, agent, server, status, asked, publish } = await joined()
  const clusterId = agent.clusterId ?? ('' as never)
  await server.publish(clusterId, WEB, Object.fromEntries(Array.from({ length: 3_000 }, (_, n) => [`o${n}`, `value ${n * 7919}`])))
  await clock.advance(5_000)
  const whole = status()?.traffic.receivedBytes ?? 0
  await server.kill()
  server.damageShard(clusterId)
  await server.open()
  asked.length = 0
  await clock.advance(3 * 60_000)
  expect(asked.filter((path) => path === ROUTES.buckets)).toHaveLength(1)
  expect(status()).toMatchObject({ state: 'following', failure: null })
  expect(agent.loop?.replica()?.dump()).toEqual(await server.expectedRows(clusterId))
  expect((status()?.traffic.receivedBytes ?? 0) - whole).toBeLessThan(8_192)
  await publish('1')
  await clock.settle()
  expect(agent.loop?.replica()?.dump()).toEqual(await server.expectedRows(clusterId))
})

test('PL10 a thousand agents that lose a server in one moment come back spread', async () => {
  const clock = createVirtualClock()
  const random = seededRandom(11)
  let up = true
  const cuts: Array<(error: Error) => void> = []
  const arrivals: number[] = []
  const stop = new AbortController()
  const position = { dbId: '0'.repeat(32), term: 1, dv: 1, hash: '0'.repeat(32) }
  const replica = { position: () => position } as unknown as Replica
  const session: SessionKeeper = {
    call: async () => {
      arrivals.push(clock.nowMs())
      if (!up) throw new AppError('server_unreachable', { doing: 'pull', extra: { cut: { sent: false, begun: false, bodyBytes: 0 } } })
      return new Promise((_, reject) => cuts.push(reject))
    },
    takeNextIncarnation: async () => {},
    renewKeys: async () => false,
  }
  const agents = Array.from({ length: 1_000 }, () => {
    const waitLimit = () => ({ startSeconds: 55, limitSeconds: 110, longest: false })
    const head = new HeadCheck({ clock, randomBytes, clusterId: () => 'c', serverKeys: () => [], renewKeys: async () => false })
    const pull = createPull({ session, stage: memoryStage(), clock, random, clusterId: () => 'c', head, waitLimit })
    let state = beginSync({ joined: true, verified: true, behind: false, staged: null }, 0)
    const turn = async () => {
      const next = turnOf(state)
      let event: SyncEvent
      try {
        event = (await pull.follow(replica, state.task as PageTask, next.kind === 'follow' && next.patient, stop.signal)) as SyncEvent
      } catch (error) {
        event = { kind: 'failed', failure: syncFailure('server_unreachable', String(error), 0) }
      }
      const stepped = stepSync(state, event, clock.nowMs())
      state = stepped.state
      for (const effect of stepped.effects) {
        if (effect.kind === 'sleep') await clock.sleep(effect.ms)
        if (effect.kind === 'back_off') throw new AppError('server_unreachable')
      }
    }
    return runLoop({ name: 'sync', turn, backoff: { baseMs: 500, capMs: 60_000 }, clock, random, log: silentLogger, signal: stop.signal })
  })
  await clock.advance(30_000)
  const lose = () => {
    const error = new AppError('server_unreachable', { doing: 'pull', extra: { cut: { sent: true, begun: false, bodyBytes: 0 } } })
    for (const cut of cuts.splice(0)) cut(error)
    arrivals.length = 0
  }
  const busiestSecond = () => {
    const seconds = new Map<number, number>()
    for (const atMs of arrivals) seconds.set(Math.floor(atMs / 1_000), (seconds.get(Math.floor(atMs / 1_000)) ?? 0) + 1)
    return Math.max(...seconds.values())
  }
  lose() // a restart: the server is back at once, and all were cut together
  await clock.advance(10_000)
  expect([arrivals.length, busiestSecond() < 300]).toEqual([1_000, true])
  up = false
  lose()
  await clock.advance(10 * 60_000)
  up = true
  arrivals.length = 0
  await clock.advance(70_000)
  expect(arrivals.length).toBeGreaterThanOrEqual(1_000)
  expect(busiestSecond()).toBeLessThan(60)
  stop.abort()
  lose()
  clock.jump(1e9)
  await clock.advance(1)
  void agents
}, 60_000)
