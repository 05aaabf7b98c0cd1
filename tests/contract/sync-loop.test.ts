import { afterEach, expect, test } from 'bun:test'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { INVENTORY_WAIT_MS } from '../../agent/sync/push-loop.ts'
import { REST_MS } from '../../agent/sync/sync-loop.ts'
import { loadServerKeys } from '../../server/access/server-keys.ts'
import { openCrdtDb } from '../../shared/adapters/crdt-db.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { FLEET } from '../../shared/model/resources.ts'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { INCARNATION_LEAD_MAX, sessionAnswerBytes, sessionAnswerSchema } from '../../shared/protocol/session.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { ERRORS } from '../../shared/runtime/error-table.ts'
import { fingerprint, signBytes } from '../../shared/runtime/keys.ts'
import { type Body, joined, killAgents, problem, report, shown, site } from '../support/link-site.ts'
import { OTHER_KEY, WEB } from '../support/sync-kit.ts'

afterEach(killAgents)

test('SY3 an idle agent asks the server at most three times a minute', async () => {
  const { clock, asked } = await joined()
  asked.length = 0
  await clock.advance(60 * 60_000)
  expect(asked.length).toBeLessThanOrEqual(60 * 3)
  expect(asked.length).toBeGreaterThan(30)
})

test.each([
  ['at once, empty', () => new Response(null, { status: 204 })],
  ['with an error', () => problem(new AppError('internal'))],
  ['with a refetch, again and again', () => problem(new AppError('must_refetch', { extra: { reason: 'unknown' } }))],
  ['with a page of a proxy', () => new Response('<html>\n</html>\n')],
] as const)(
  'SY3 a server that answers polls %s gets no more than a few a minute',
  async (_, answer) => {
    const { clock, asked, link } = await joined()
    link.answer = (path, url) => (path === ROUTES.desired && url.searchParams.has('cursor') ? answer() : null)
    await clock.advance(10 * 60_000)
    asked.length = 0
    await clock.advance(60 * 60_000)
    expect(asked.length).toBeLessThanOrEqual(60 * 6)
  },
  20_000,
)

test('PL10 a commit arrives during a poll, not at its end', async () => {
  const { clock, agent, publish } = await joined()
  await clock.advance(20_000)
  await publish('1')
  await clock.settle()
  expect(agent.loop?.replica()?.read(WEB).kind).toBe('complete')
})

test('PL10 a proxy that cuts silent polls costs neither an error nor a missed commit', async () => {
  const { clock, agent, publish, status, link, asked } = await joined()
  link.cutAfterMs = 30_000
  await clock.advance(10 * 60_000)
  expect(status()).toMatchObject({ state: 'following', failure: null })
  asked.length = 0
  await clock.advance(10 * 60_000)
  expect(asked.length).toBeLessThanOrEqual(10 * 3)
  await publish('1')
  await clock.settle()
  expect(agent.loop?.replica()?.read(WEB).kind).toBe('complete')
})

test('PL10 a frozen link is given up and shown', async () => {
  const { clock, status, link } = await joined()
  link.frozen = true
  await clock.advance(200_000)
  expect(status()).toMatchObject({
    state: 'offline',
    failure: { code: 'server_unreachable', message: 'pull: no answer in time (aborted)' },
  })
  link.frozen = false
  await clock.advance(120_000)
  expect(status()).toMatchObject({ state: 'following', failure: null })
})

test('SY4 an agent that starts without a network serves what it holds, and follows when the network is there', async () => {
  const { clock, agent, server, publish, status, link } = await joined()
  await publish('1')
  await clock.advance(1_000)
  const held = agent.loop?.replica()?.dump()
  await agent.kill()
  link.answer = () => 'down'
  agent.start()
  expect(agent.loop?.replica()?.dump()).toEqual(held ?? [])
  await clock.advance(2 * 86_400_000)
  expect(status()).toMatchObject({ state: 'offline', failure: { code: 'server_unreachable' } })
  expect(agent.loop?.replica()?.read(WEB).kind).toBe('complete')
  await publish('2')
  link.answer = () => null
  await clock.advance(120_000)
  expect(status()).toMatchObject({ state: 'following', failure: null })
  expect(agent.loop?.replica()?.position()).toEqual(server.shards.head(agent.clusterId ?? ('' as never)))
})

test('SY4 PU6 an hour without a server writes nothing and asks less and less', async () => {
  const { clock, agent, status, link, asked } = await joined()
  link.answer = () => 'down'
  report(agent, 'waiting')
  await clock.advance(5 * 60_000)
  asked.length = 0
  await clock.advance(60 * 60_000)
  expect(asked.length).toBeLessThanOrEqual(60 * 4)
  expect(status()?.outboxDepth).toBe(1)
  link.answer = () => null
  asked.length = 0
  while (asked.length === 0) await clock.advance(1_000)
  await clock.advance(1_000) // the first contact does not wait for news: whoever waits for the report has waited long enough
  expect(status()?.outboxDepth).toBe(0)
})

test('SY2 a revoked agent says so, asks about once a minute, and goes on by itself when a person undoes it', async () => {
  const { clock, agent, server, publish, status, asked } = await joined()
  await publish('1')
  const revoke = async (revoked: boolean) => {
    const key = { kind: 'Cluster', project: FLEET, name: 'site' } as const
    await server.store.applyResource(key, { labels: {}, spec: JSON.stringify({ revoked }), nowMs: 1 })
    await server.agents.refresh()
  }
  await revoke(true)
  await clock.advance(2 * 60_000)
  expect(status()).toMatchObject({ state: 'halted', failure: { code: 'revoked' } })
  expect(status()?.failure?.remedy).toBe(ERRORS.revoked.remedy)
  expect(agent.loop?.replica()?.read(WEB).kind).toBe('complete')
  asked.length = 0
  await clock.advance(60 * 60_000)
  expect(asked.length).toBeLessThanOrEqual(60 * 3)
  await revoke(false)
  await clock.advance(2 * REST_MS)
  expect(status()).toMatchObject({ state: 'following', failure: null })
})

test.each([
  ['cluster_unknown', 401],
  ['superseded', 403],
  ['protocol_unsupported', 426],
] as const)('SY2 %s halts sync and leaves what is enforced alone', async (code) => {
  const { clock, agent, publish, status, link } = await joined()
  await publish('1')
  await clock.settle()
  link.answer = () => problem(new AppError(code))
  await clock.advance(2 * 60_000)
  expect(status()).toMatchObject({ state: 'halted', failure: { code } })
  expect(agent.loop?.replica()?.read(WEB).kind).toBe('complete')
})

test.each([
  ['no join token', (token: string) => token.slice(0, 0), 'join_token_unknown', 'does not have the form'],
  ['a wrong secret', (token: string) => token.replace('simulated', 'stimulated'), 'join_token_unknown', ''],
  ['another server’s fingerprint', (token: string) => `${token.slice(0, -1)}${token.endsWith('0') ? '1' : '0'}`, 'server_key_mismatch', ''],
] as const)('JN2 with %s the agent halts, says why, and keeps nothing', async (_, change, code, detail) => {
  const { clock, agent, status, server } = await site()
  const { joinToken } = server
  Object.defineProperty(server, 'joinToken', { value: change(joinToken) })
  agent.start()
  await clock.advance(1_000)
  expect(status()).toMatchObject({ state: 'halted', failure: { code } })
  expect(status()?.failure?.message).toContain(detail)
  expect([agent.state?.identity(), agent.loop?.replica()]).toEqual([null, null])
})

test.each([
  ['a key of its own beside the server’s', (body) => ({ ...body, serverKeys: [...(body['serverKeys'] as string[]), OTHER_KEY.publicKey] })],
  ['another agent id', (body) => ({ ...body, agentId: 'a-00000000000000ff' })],
  ['another cluster', (body) => ({ ...body, clusterId: 'c-00000000000000ff' })],
  ['another incarnation', (body) => ({ ...body, incarnation: 99 })],
  ['no signature', ({ signature: _, ...body }) => body],
  ['a signature of its own', (body) => ({ ...body, signature: signBytes(OTHER_KEY.privateKey, new Uint8Array(9)) })],
] as Array<[string, (body: Body) => Body]>)('JN4 a join answer into which a proxy put %s is kept in no part', async (_, tamper) => {
  const { clock, agent, link, status, server } = await site()
  link.tamper = (path, body) => (path === ROUTES.join ? tamper(body) : body)
  agent.start()
  await clock.advance(120_000)
  expect(['halted', 'offline']).toContain(status()?.state ?? '')
  expect([agent.state?.identity(), agent.loop?.replica()]).toEqual([null, null])
  link.tamper = null
  await clock.advance(5 * 60_000)
  expect(status()).toMatchObject({ state: 'following', failure: null })
  expect(agent.state?.identity()?.serverKeys.map(fingerprint)).toEqual([server.joinToken.split('.')[2] ?? ''])
})

test('JN1 a join whose answer was lost is repeated and uses no second use', async () => {
  let lost = 0
  const { clock, server, agent, status, link } = await site({ joins: 1 })
  link.loseAnswer = (path) => path === ROUTES.join && lost++ < 3
  agent.start()
  await clock.advance(60_000)
  expect([status()?.state, lost]).toEqual(['following', 4])
  expect(await server.store.listClusters()).toHaveLength(1)
})

test('PU1 an agent that lost its state but not its key takes the next incarnation, so that no rev comes twice', async () => {
  const { clock, agent, server, world } = await joined()
  report(agent, 'before')
  await clock.advance(1_000)
  const before = agent.state?.identity()?.incarnation ?? 0
  await agent.kill()
  for (const suffix of ['', '-wal', '-shm']) rmSync(join(world.dir, 'agent-site', `state.db${suffix}`), { force: true })
  agent.start()
  await clock.advance(1_000)
  expect(agent.state?.identity()?.incarnation).toBe(before + 1)
  report(agent, 'after')
  await clock.advance(1_000)
  const clusterId = agent.clusterId ?? ('' as never)
  expect((await server.store.listStatus({ clusterId, kind: 'service' })).map(({ doc }) => doc)).toMatchObject([{ message: 'after' }])
})

test('PU1 an agent whose state was set back notices by the first acknowledgement and outranks its former self', async () => {
  const { clock, agent, server, world } = await joined()
  const file = join(world.dir, 'agent-site', 'state.db')
  await agent.kill()
  const snapshot = readFileSync(file)
  agent.start()
  for (const message of ['1', '2', '3']) {
    report(agent, message)
    await clock.advance(1_000)
  }
  await agent.kill()
  for (const suffix of ['-wal', '-shm']) rmSync(file + suffix, { force: true })
  writeFileSync(file, snapshot)
  agent.start()
  report(agent, 'from the snapshot')
  await clock.advance(120_000)
  const clusterId = agent.clusterId ?? ('' as never)
  expect((await server.store.listStatus({ clusterId, kind: 'service' })).map(({ doc }) => doc)).toMatchObject([
    { message: 'from the snapshot' },
  ])
  expect(agent.loop?.status()).toMatchObject({ state: 'following', outboxDepth: 0 })
})

test.each([
  ['nothing new to say', 0],
  ['as much to say as its former self', 3],
] as const)('PU7 PU4 an agent that was set back, with %s, corrects what its former self said', async (_, news) => {
  const made = await joined()
  const { clock, agent, world } = made
  const file = join(world.dir, 'agent-site', 'state.db')
  report(agent, 'Healthy')
  await clock.advance(1_000)
  await agent.kill()
  const snapshot = readFileSync(file)
  agent.start()
  report(agent, 'Degraded')
  report(agent, 'new', 'shop/new')
  await clock.advance(5_000)
  await agent.kill()
  for (const suffix of ['-wal', '-shm']) rmSync(file + suffix, { force: true })
  writeFileSync(file, snapshot)
  agent.start()
  report(agent, 'Healthy')
  for (let n = 0; n < news; n++) report(agent, 'x', `shop/x${n}`)
  await clock.advance(5_000)
  expect((await shown(made)).filter(([key]) => key === 'shop/web')).toEqual([['shop/web', 'Healthy']])
  await clock.advance(2 * INVENTORY_WAIT_MS)
  const others = Array.from({ length: news }, (_, n) => [`shop/x${n}`, 'x'])
  expect(await shown(made)).toEqual([['shop/web', 'Healthy'], ...others])
  expect(agent.state?.inventoryDue()).toBe(false)
})

test('PU7 a set-back agent whose new incarnation was lost on its way back asks for another one', async () => {
  const made = await joined()
  const { clock, agent, world, link, status } = made
  const file = join(world.dir, 'agent-site', 'state.db')
  await agent.kill()
  const snapshot = readFileSync(file)
  agent.start()
  report(agent, 'Degraded')
  await clock.advance(5_000)
  await agent.kill()
  for (const suffix of ['-wal', '-shm']) rmSync(file + suffix, { force: true })
  writeFileSync(file, snapshot)
  let sessions = 0
  // First comes the one that asks for a nonce, then the session of the incarnation held; then the same for the next
  // one, of which the answer is lost.
  link.loseAnswer = (path) => path === ROUTES.session && ++sessions === 4
  agent.start()
  report(agent, 'Healthy')
  await clock.advance(5_000)
  await agent.kill()
  expect(sessions).toBeGreaterThanOrEqual(4)
  agent.start()
  await clock.advance(5 * 60_000)
  expect(status()).toMatchObject({ state: 'following', failure: null, outboxDepth: 0 })
  expect(await shown(made)).toEqual([['shop/web', 'Healthy']])
})

test('PU7 a server that was set back is sent everything again within the hour, and an agent asks no more than that', async () => {
  const made = await joined()
  const { clock, agent, world, asked } = made
  report(agent, 'Healthy')
  await clock.advance(10 * 60_000)
  const db = openSqlite(join(world.dir, 'fleet.sqlite'))
  db.run('UPDATE clusters SET status_rev = 0, status_floor = 0, row_count = 0')
  db.run('DELETE FROM status_rows')
  db.close()
  asked.length = 0
  await clock.advance(2 * 3_600_000)
  expect(await shown(made)).toEqual([['shop/web', 'Healthy']])
  expect(asked.filter((path) => path === ROUTES.status).length).toBeLessThanOrEqual(6)
  expect(agent.state?.identity()?.incarnation).toBe(2)
})

test('PU4 after a lost state what the agent no longer knows leaves the server', async () => {
  const made = await joined()
  const { clock, agent, world } = made
  report(agent, 'old', 'shop/old')
  report(agent, 'old')
  await clock.advance(1_000)
  await agent.kill()
  for (const suffix of ['', '-wal', '-shm']) rmSync(join(world.dir, 'agent-site', `state.db${suffix}`), { force: true })
  agent.start()
  await clock.advance(1_000)
  report(agent, 'new')
  await clock.advance(2 * INVENTORY_WAIT_MS)
  expect(await shown(made)).toEqual([['shop/web', 'new']])
})

test.each([
  ['a giant incarnation', (body) => ({ ...body, incarnation: 2_000_000 })],
  ['the next incarnation', (body) => ({ ...body, incarnation: Number(body['incarnation']) + 1 })],
  ['another token', (body) => ({ ...body, token: 'x'.repeat(43) })],
  ['no signature', ({ signature: _, ...body }) => body],
  ['a giant incarnation, signed', (body, sign) => sign({ ...body, incarnation: Number(body['incarnation']) + INCARNATION_LEAD_MAX + 1 })],
  ['an older incarnation, signed', (body, sign) => sign({ ...body, incarnation: Number(body['incarnation']) - 1 })],
  ['the answer to another nonce', (body, sign) => sign(body, 'another-nonce-of-20-')],
] as Array<[string, (body: Body, sign: (body: Body, nonce?: string) => Body) => Body]>)(
  'SE5 a session answer with %s changes nothing, and the agent goes on when it is gone',
  async (_, tamper) => {
    const { clock, agent, link, status, world } = await joined()
    const before = agent.state?.identity() ?? null
    await agent.kill()
    const keys = loadServerKeys(join(world.dir, 'keys'))
    const sign = (body: Body, nonce = link.nonce) => ({
      ...body,
      signature: keys.sign(sessionAnswerBytes(sessionAnswerSchema.parse(body), nonce)),
    })
    link.tamper = (path, body) => (path === ROUTES.session ? tamper(body, sign) : body)
    agent.start()
    await clock.advance(5 * 60_000)
    expect(status()?.state).not.toBe('following')
    expect(agent.state?.identity() ?? null).toEqual(before)
    link.tamper = null
    await clock.advance(5 * 60_000)
    report(agent, 'after')
    await clock.advance(1_000)
    expect(status()).toMatchObject({ state: 'following', failure: null, outboxDepth: 0 })
    expect(agent.state?.identity()).toEqual(before)
  },
)

test('SE6 an agent that is further ahead than the server takes gets the next incarnation, and its reports count again', async () => {
  const { clock, agent, server, status } = await joined()
  const identity = agent.state?.identity()
  if (identity) agent.state?.setIdentity({ ...identity, incarnation: identity.incarnation + INCARNATION_LEAD_MAX + 1_000 })
  report(agent, 'held')
  await agent.kill()
  agent.start()
  await clock.advance(60_000)
  expect(agent.state?.identity()?.incarnation).toBe((identity?.incarnation ?? 0) + 1)
  expect(status()).toMatchObject({ state: 'following', failure: null, outboxDepth: 0 })
  const clusterId = agent.clusterId ?? ('' as never)
  expect((await server.store.listStatus({ clusterId, kind: 'service' })).map(({ doc }) => doc)).toMatchObject([{ message: 'held' }])
})

test('PU3 a poison row leaves the outbox, its neighbours arrive', async () => {
  const { clock, agent, server } = await joined()
  report(agent, 'good', 'shop/a')
  agent.state?.report([{ kind: 'drift', key: 'k', doc: { poison: true } }])
  report(agent, 'good', 'shop/b')
  agent.state?.report([{ kind: 'drift', key: 'l', doc: { poison: true } }])
  await clock.advance(1_000)
  const clusterId = agent.clusterId ?? ('' as never)
  expect((await server.store.listStatus({ clusterId, kind: 'service' })).map(({ key }) => key)).toEqual(['shop/a', 'shop/b'])
  expect(agent.loop?.status().outboxDepth).toBe(0)
})

test('PU5 changes that come together travel together', async () => {
  const { clock, agent, asked } = await joined()
  asked.length = 0
  for (let n = 0; n < 50; n++) report(agent, 'x', `shop/${n}`)
  await clock.advance(1_000)
  expect(asked.filter((path) => path === ROUTES.status)).toHaveLength(1)
})

test('RP1 a damaged replica is fetched again while the agent runs', async () => {
  const { clock, agent, publish, status } = await joined()
  await publish('1')
  await clock.settle()
  const rogue = openCrdtDb(agent.replicaPath)
  rogue.db.run("UPDATE desired SET doc = 'rogue'")
  rogue.close()
  expect(agent.loop?.replica()?.read(WEB).kind).toBe('incomplete')
  await clock.advance(60_000)
  expect(status()?.state).toBe('following')
  expect(agent.loop?.replica()?.read(WEB).kind).toBe('complete')
})

test('status counts bytes and requests, for people', async () => {
  const { clock, publish, status } = await joined()
  const before = status()?.traffic
  await publish('x'.repeat(5_000))
  await clock.advance(1_000)
  const after = status()?.traffic
  const received = (after?.receivedBytes ?? 0) - (before?.receivedBytes ?? 0)
  expect(received).toBeGreaterThan(300)
  expect(received).toBeLessThan(2_500) // compressed
  expect(status()?.position?.dv).toBeGreaterThan(0)
  expect(status()?.lastContactMs).toBeLessThanOrEqual(clock.nowMs())
})
