// Bad links and frozen processes between a real server and real agents: connections that are cut at every byte, late,
// slow, half open or refused, and either side stopped (SIGSTOP) for longer than the other is patient.
// SKERRY_CHAOS_LINK_MS (default 12000) is how long links are bad.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { seededRandom } from '../../shared/runtime/random.ts'
import { type ChaosFleet, processSize, startChaosFleet } from '../support/chaos-fleet.ts'
import type { SyncSite } from '../support/sync-site.ts'
import { type LinkRules, startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'
import { createWakeProbe, latencyText } from '../support/wake-probe.ts'

const LINK_MS = Number(process.env['SKERRY_CHAOS_LINK_MS'] ?? 12_000)
setDefaultTimeout(120_000 + LINK_MS * 3)
/** The agents' clock, so that half a minute's patience is one and a half seconds. */
const TIME_SCALE = 20
/** Longer than (wait + CALL_TIMEOUT_MS) / TIME_SCALE. */
const FROZEN_MS = 2_500
/** Some 10 ms on an idle machine; here large commits are rendered on the same two processors. */
const WAKE_MS_MAX = 5_000
const random = seededRandom(31)

let chaos: ChaosFleet
const proxies = new Map<string, TcpProxy>()
const proxyOf = (site: SyncSite): TcpProxy => {
  const proxy = proxies.get(site.name)
  if (proxy === undefined) throw new Error(`${site.name} has no proxy`)
  return proxy
}

beforeAll(async () => {
  chaos = await startChaosFleet({
    sites: ['ada', 'bering', 'cook'],
    services: { 'all-small': 4, 'all-large': 250 },
    ballast: 3_000,
    agent: { timeScale: TIME_SCALE, waitSeconds: 1 },
  })
  await chaos.settled()
  for (const site of chaos.sites) {
    const proxy = startTcpProxy(Number(new URL(chaos.fleet.serverUrl).port))
    proxies.set(site.name, proxy)
    await site.kill()
    site.start({ serverUrl: proxy.url })
  }
  await chaos.settled()
})
afterAll(async () => {
  await chaos?.stop()
  for (const proxy of proxies.values()) proxy.stop()
})

const upTo = (max: number) => Math.floor(random() ** 3 * max)
const TROUBLE: ReadonlyArray<() => LinkRules> = [
  () => ({ cutAfterBytes: { down: upTo(600_000) } }),
  () => ({ cutAfterBytes: { up: upTo(3_000) } }),
  () => ({ cutAfterMs: upTo(1_000) }),
  () => ({ delayMs: upTo(400) }),
  () => ({ bytesPerSecond: 5_000 + upTo(400_000) }),
  () => ({ swallow: random() < 0.5 ? ['down'] : ['up', 'down'], cutAfterMs: 4_000 }),
  () => ({ refuse: true }),
  () => ({}),
]

test('PL3 PL5 PL6 PU2 links that cut, delay, throttle, swallow and refuse lose nothing and double nothing', async () => {
  const endMs = performance.now() + LINK_MS
  const over = () => performance.now() > endMs
  const changeLinks = chaos.sites.map(async (site) => {
    const proxy = proxyOf(site)
    while (!over()) {
      const trouble = TROUBLE[Math.floor(random() * TROUBLE.length)] ?? (() => ({}))
      if (random() < 0.7) proxy.setRules(trouble())
      else proxy.setRulesFor(() => trouble())
      if (random() < 0.3) proxy.cutAll()
      await Bun.sleep(100 + upTo(1_500))
    }
  })
  const committing = async () => {
    while (!over()) {
      await chaos.commit(chaos.services().filter(() => random() < 0.5))
      await Bun.sleep(300)
    }
  }
  await Promise.all([...changeLinks, committing()])
  const counts = chaos.sites.map((site) => proxyOf(site).counts())
  for (const site of chaos.sites) proxyOf(site).setRules({})
  await chaos.commit()
  await chaos.settled()
  process.stdout.write(`chaos-link: ${JSON.stringify(counts)} ${JSON.stringify(await chaos.verify())}\n`)
  expect(Math.min(...counts.map(({ cuts }) => cuts))).toBeGreaterThan(3)
})

test('PL3 a page that is larger than a link ever lets through in one go arrives part by part', async () => {
  const [site] = chaos.sites
  if (site === undefined) throw new Error('no site')
  const proxy = proxyOf(site)
  proxy.setRules({})
  // More than a part, less than the page: ballast that does not compress.
  proxy.setRulesFor(() => ({ cutAfterBytes: { down: 330_000 } }))
  proxy.cutAll()
  proxy.resetCounts()
  await chaos.commit(['all-large'])
  await chaos.settled(60_000, site.name)
  const { downBytes, cuts } = proxy.counts()
  process.stdout.write(`chaos-link: parts ${JSON.stringify({ downBytes, cuts })}\n`)
  expect(downBytes).toBeGreaterThan(400_000)
  expect(cuts).toBeGreaterThan(0)
  proxy.setRules({})
  await chaos.settled()
})

test('PL10 a frozen server is given up and found again, and no agent is frozen with it', async () => {
  const pid = chaos.fleet.serverPid()
  for (let round = 0; round < 2; round++) {
    const committed = chaos.commit()
    await Bun.sleep(upTo(200))
    process.kill(pid, 'SIGSTOP')
    await Bun.sleep(FROZEN_MS)
    const reports = await Promise.all(chaos.sites.map((site) => site.report()))
    expect(reports.map((report) => report?.verified)).toEqual(chaos.sites.map(() => true))
    process.kill(pid, 'SIGCONT')
    await committed
    await chaos.settled()
  }
  await chaos.verify()
})

test('PL10 frozen agents cost the others nothing, and catch up when they thaw', async () => {
  const [healthy, ...others] = chaos.sites
  if (healthy === undefined) throw new Error('no site')
  const probe = await createWakeProbe(chaos.fleet, healthy, `only-${healthy.name}`)
  const before = await probe.during(Bun.sleep(1_000))
  for (const site of others) site.pause()
  const sizeBefore = processSize(chaos.fleet.serverPid())
  const committing = (async () => {
    for (let n = 0; n < 8; n++) await chaos.commit(['all-large'])
  })()
  const during = await probe.during(Promise.all([committing, Bun.sleep(FROZEN_MS)]))
  const sizeAfter = processSize(chaos.fleet.serverPid())
  process.stdout.write(`chaos-link: frozen neighbours: before ${latencyText(before)}; during ${latencyText(during)}; `)
  process.stdout.write(`${JSON.stringify({ sizeBefore, sizeAfter })}\n`)
  expect(Math.max(...during)).toBeLessThan(WAKE_MS_MAX)
  for (const site of others) site.resume()
  await chaos.settled()
  await chaos.verify()
})
