// Silence that looks like contact: what something on the way did to a poll says nothing of the server.
import { afterEach, expect, test } from 'bun:test'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { joined, killAgents, site } from '../support/link-site.ts'

afterEach(killAgents)

/** A resolver that is out of reach takes this long to say so. */
const RESOLVER_MS = 12_000
const OUT_OF_REACH = { state: 'offline', failure: { code: 'server_unreachable' } }

async function listening() {
  let heard = 0
  const made = await joined({ sync: { onCurrent: () => void heard++ } })
  const heardSince = () => {
    const before = heard
    heard = 0
    return before
  }
  expect(heardSince()).toBeGreaterThan(0)
  return { ...made, heardSince }
}

test('SY4 PR7 PL10 a start without a network whose failures take long is no contact with the server', async () => {
  const { clock, agent, status, link, heardSince } = await listening()
  await agent.kill()
  heardSince()
  link.delayMs = () => RESOLVER_MS
  link.answer = () => 'down'
  agent.start()
  await clock.advance(10 * 60_000)
  expect(heardSince()).toBe(0)
  expect(status()).toMatchObject(OUT_OF_REACH)
})

test('SY5 PL10 a network that goes while failures take long is shown as one', async () => {
  const { clock, status, link } = await listening()
  link.delayMs = () => RESOLVER_MS
  link.answer = () => 'down'
  await clock.advance(10 * 60_000)
  expect(status()).toMatchObject(OUT_OF_REACH)
})

test('SY5 PR7 PL10 a box on the way that takes connections for a server that is gone is no contact', async () => {
  const { clock, status, link, heardSince } = await listening()
  link.cutAfterMs = 6_000
  link.delayMs = () => 1e9
  await clock.advance(2 * 60_000) // the poll that waited ended well
  heardSince()
  await clock.advance(10 * 60_000)
  expect(status()).toMatchObject(OUT_OF_REACH)
  expect(heardSince()).toBe(0)
  link.cutAfterMs = null
  link.delayMs = () => 0
  await clock.advance(2 * 60_000)
  expect(status()).toMatchObject({ state: 'following', failure: null })
})

test('SY3 the log-in page of a network is no reason to fetch anew what is held', async () => {
  const { clock, status, link, publish, asked } = await listening()
  await publish('1')
  link.answer = (path) => (path === ROUTES.status ? null : new Response('<html>log in</html>'))
  await clock.advance(20 * 60_000)
  expect(status()).toMatchObject(OUT_OF_REACH)
  expect(status()?.failure?.remedy).toContain('log in')
  asked.length = 0
  link.answer = () => null
  await clock.advance(2 * 60_000)
  expect(status()).toMatchObject({ state: 'following', failure: null })
  expect(asked).not.toContain(ROUTES.buckets)
})

test('PR7 a start hears of the server at once, not when the first poll is over', async () => {
  const { clock, agent, asked, heardSince } = await listening()
  await agent.kill()
  heardSince()
  asked.length = 0
  agent.start()
  await clock.advance(2_000)
  expect(heardSince()).toBeGreaterThan(0)
  expect(asked.filter((path) => path === ROUTES.desired)).toHaveLength(2) // one that does not wait, one that does
})

test.each([
  ['a log-in page', () => new Response('<html>log in</html>'), 'a proxy or portal answered in place of the server'],
  ['a proxy that reaches nobody', () => new Response('<html>', { status: 502 }), 'HTTP 502, not from a Skerry server'],
] as const)('SY5 %s in the place of the join is named as that', async (_, answer, message) => {
  const { clock, agent, link, status } = await site()
  link.answer = answer
  agent.start()
  await clock.advance(60_000)
  expect(status()).toMatchObject({ state: 'offline', failure: { message: `join: ${message}` } })
})
