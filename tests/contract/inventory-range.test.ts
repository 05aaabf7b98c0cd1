import { expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ROUTES, STATUS_ROWS_MAX } from '../../shared/protocol/routes.ts'
import { REV_INCARNATION } from '../../shared/protocol/status.ts'
import { joinTestAgent, startTestServer } from '../support/agent-api-kit.ts'
import { restorableFleet } from '../support/restore-kit.ts'

const doc = { sync: 'Synced', health: 'Healthy', reason: '', message: '', sinceMs: 1, objectCount: 0, healthyCount: 0 }
const row = (rev: number, key: string, kind = 'service') => ({ kind, key, rev: REV_INCARNATION + rev, doc })

async function start() {
  const test = await startTestServer()
  const agent = await joinTestAgent(test)
  const push = async (rows: unknown[], complete?: unknown) => {
    const { incarnation } = agent.session
    const shifted = rows.map((item) => ({
      ...(item as { rev: number }),
      rev: (item as { rev: number }).rev + (incarnation - 1) * REV_INCARNATION,
    }))
    const answer = await test.ask('POST', ROUTES.status, { token: agent.session.token, json: { incarnation, rows: shifted, complete } })
    return `${answer.status} ${answer.body['code'] ?? 'ok'}`
  }
  const keys = async () => (await test.server.store.listStatus({ clusterId: agent.clusterId, kind: 'service' })).map(({ key }) => key)
  return { push, keys }
}

test('PU4 a range of an inventory sweeps its own part only', async () => {
  const { push, keys } = await start()
  await push(['a/1', 'a/2', 'b/1', 'b/2'].map((key, i) => row(i + 1, key)))
  expect(await push([row(9, 'b/1')], { after: 'service/a/2', upTo: null })).toBe('200 ok')
  expect(await keys()).toEqual(['a/1', 'a/2', 'b/1'])
})

test.each([
  ['a row before it', [row(9, 'a/1')], { after: 'service/a/1', upTo: null }],
  ['a row after it', [row(9, 'b/2')], { after: null, upTo: 'service/b/1' }],
  [
    'a row of another kind',
    [{ ...row(9, 'a/2', 'event'), doc: { atMs: 1, type: 'Normal', reason: 'r', message: '' } }],
    { after: 'service/a', upTo: null },
  ],
  ['an empty range', [], { after: 'service/b', upTo: 'service/a' }],
  ['a range of one end', [], { after: null }],
  ['no range', [], 'all'],
])('PU4 an inventory with %s is refused whole', async (_, rows, complete) => {
  const { push, keys } = await start()
  await push(['a/1', 'a/2', 'b/1', 'b/2'].map((key, i) => row(i + 1, key)))
  expect(await push(rows, complete)).toBe('400 bad_request')
  expect(await keys()).toEqual(['a/1', 'a/2', 'b/1', 'b/2'])
})

test('PU4 a range with a refused row sweeps nothing', async () => {
  const { push, keys } = await start()
  await push(['a/1', 'a/2'].map((key, i) => row(i + 1, key)))
  expect(await push([row(8, 'a/1'), { ...row(9, 'a/9'), doc: 'poison' }], { after: null, upTo: null })).toBe('200 ok')
  expect(await keys()).toEqual(['a/1', 'a/2'])
})

test('PU4 an agent with more rows than one push holds sweeps what its former self said, range by range', async () => {
  const fleet = await restorableFleet(['ship-1'])
  const agent = fleet.agent('ship-1')
  const { clusterId } = agent
  if (clusterId === null) throw new Error('not joined')
  const names = Array.from({ length: STATUS_ROWS_MAX + 700 }, (_, n) => `p/s//ConfigMap/n/o${n}`)
  const object = { sync: 'Synced', health: 'Healthy', reason: 'Applied', message: '', sinceMs: 1 }
  const report = (keys: readonly string[]) => agent.state?.report(keys.map((key) => ({ kind: 'object' as const, key, doc: object })))
  const held = async () => (await fleet.server.store.listStatus({ clusterId, kind: 'object' })).map(({ key }) => key)
  report([...names, 'p/s//ConfigMap/n/a-ghost', 'p/s//ConfigMap/n/z-ghost'])
  await fleet.clock.advance(60_000)
  expect(await held()).toHaveLength(names.length + 2)

  await agent.kill()
  for (const suffix of ['', '-wal', '-shm']) rmSync(join(dirname(agent.replicaPath), `state.db${suffix}`), { force: true })
  agent.start()
  await fleet.clock.advance(20_000)
  report(names)
  await fleet.clock.advance(10 * 60_000)
  expect(agent.state?.outboxDepth()).toBe(0)
  expect(await held()).toEqual([...names].sort())
  await fleet.stop()
}, 30_000)
