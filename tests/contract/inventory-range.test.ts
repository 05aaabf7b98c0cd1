import { expect, test } from 'bun:test'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { REV_INCARNATION } from '../../shared/protocol/status.ts'
import { joinTestAgent, startTestServer } from '../support/agent-api-kit.ts'

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
