// Trouble of the site itself is no trouble with the server: what there is to report goes up all the same.
import { afterEach, expect, test } from 'bun:test'
import { PUSH_ROWS_MAX } from '../../agent/sync/outbox-batch.ts'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { joined, killAgents, problem, report, shown } from '../support/link-site.ts'

afterEach(killAgents)

test('RP4 an agent whose disk has no space for a page goes on reporting', async () => {
  const site = await joined()
  const { clock, agent, publish, status } = site
  const replica = agent.loop?.replica()
  if (replica == null) throw new Error('it has no replica')
  replica.applyPage = () => {
    throw Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' })
  }
  await publish('1')
  await clock.advance(60_000)
  expect(status()?.failure?.code).toBe('disk_full')
  report(agent, 'told')
  await clock.advance(120_000)
  expect(status()?.outboxDepth).toBe(0)
  expect(await shown(site)).toEqual([['shop/web', 'told']])
})

test('SY3 PU7 an answer that says again and again that it knows more takes no incarnation each time', async () => {
  const { clock, agent, link, asked } = await joined()
  link.answer = (path) => (path === ROUTES.status ? Response.json({ ack: 2 ** 52, reject: [] }) : null)
  report(agent, 'told')
  await clock.advance(60_000)
  asked.length = 0
  await clock.advance(10 * 60_000)
  expect(agent.state?.identity()?.incarnation).toBeLessThan(30)
  expect(asked.length).toBeLessThan(10 * 12)
})

test('SY3 PU7 an answer that says again and again that it lost what it had is not told everything without a pause', async () => {
  const { clock, agent, link, asked } = await joined()
  const doc = { sync: 'Synced', health: 'Healthy', reason: 'r', message: 'm', sinceMs: 1 }
  const row = (n: number) => ({ kind: 'object' as const, key: `shop/web/ConfigMap/default/${n}`, doc })
  agent.state?.report(Array.from({ length: 3 * PUSH_ROWS_MAX }, (_, n) => row(n)))
  const settled = () => (agent.state?.outbox(PUSH_ROWS_MAX) ?? []).at(-1)?.rev ?? 0
  link.answer = (path) => (path === ROUTES.status ? Response.json({ ack: settled(), had: 0, reject: [] }) : null)
  await clock.advance(60_000)
  asked.length = 0
  await clock.advance(10 * 60_000)
  expect(asked.length).toBeLessThan(10 * 12)
})

test('PU7 RP2 a server that waits because of a restore is told everything again, once, whatever it says that it has', async () => {
  const { clock, agent, link } = await joined()
  report(agent, 'told')
  await clock.advance(10_000)
  const before = agent.state?.lastRev() ?? 0
  let away = false
  const pending = () => problem(new AppError('restore_pending'))
  link.answer = (path) => (away ? 'down' : path === ROUTES.desired ? pending() : null)
  for (let flap = 0; flap < 5; flap++) {
    await clock.advance(3 * 60_000)
    away = !away
  }
  expect(agent.state?.lastRev()).toBe(before + 1)
  away = false
  await clock.advance(2 * 60_000)
  expect(agent.state?.outboxDepth()).toBe(0)
})
