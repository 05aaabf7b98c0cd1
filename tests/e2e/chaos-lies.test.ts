// A server that lies to real agents in every way that HTTP and the protocol allow, with the right key and without.
// Nothing false is ever held, no agent dies, its memory stays bounded, it does not hammer, and it catches up by itself
// when it hears the truth again.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { type ChaosFleet, processSize, startChaosFleet } from '../support/chaos-fleet.ts'
import { LIES, type Lie, type LyingServer, startLyingServer } from '../support/lying-server.ts'
import type { SyncSite } from '../support/sync-site.ts'

setDefaultTimeout(240_000)
/** The agents' clock, so that a minute's rest is three seconds. */
const TIME_SCALE = 20
const LIE_MS = 900
/** An agent holds some 90 MB; a page is inflated whole, PAGE_BYTES_MAX at most. */
const RSS_MB_MAX = 700
/** In LIE_MS, which are 18 s to the agent. */
const ASKED_MAX = 60
const NAMES = ['ada', 'bering', 'cook', 'drake']

let chaos: ChaosFleet
const liars = new Map<string, LyingServer>()

beforeAll(async () => {
  chaos = await startChaosFleet({ sites: NAMES, services: { 'all-small': 4 }, agent: { timeScale: TIME_SCALE, waitSeconds: 1 } })
  await chaos.settled()
  for (const site of chaos.sites) {
    const clusterId = (await site.report())?.clusterId ?? ''
    const liar = startLyingServer({ trueUrl: chaos.fleet.serverUrl, dataDir: chaos.fleet.dataDir, clusterId: () => clusterId })
    liars.set(site.name, liar)
    await site.kill()
    site.start({ serverUrl: liar.url })
  }
  await chaos.settled()
})
afterAll(async () => {
  await chaos?.stop()
  for (const liar of liars.values()) await liar.stop()
})

const TOLD_WITHIN_MS = 20_000

interface Outcome {
  lie: string
  told: boolean
  asked: number
  rssMb: number
  catchUpMs: number
}

async function endure(site: SyncSite, lie: Lie): Promise<Outcome> {
  const liar = liars.get(site.name)
  if (liar === undefined) throw new Error(`nobody lies to ${site.name}`)
  liar.tell(lie)
  await chaos.commit([`only-${site.name}`])
  let rssMb = 0
  const beganMs = performance.now()
  // An agent on a busy machine asks later.
  const isOver = (ms: number) => ms >= TOLD_WITHIN_MS || (ms >= LIE_MS && liar.told() > 0)
  for (; !isOver(performance.now() - beganMs); await Bun.sleep(50)) {
    rssMb = Math.max(rssMb, processSize(site.pid())?.rssMb ?? Number.POSITIVE_INFINITY)
  }
  const outcome = { lie: lie.name, told: liar.told() > 0, asked: liar.asked(), rssMb }
  liar.tell(null)
  const startMs = performance.now()
  if (lie.restart === true) {
    await site.kill()
    site.start()
  }
  await chaos.settled(30_000, site.name).catch((error: Error) => {
    throw new Error(`after ${lie.name}: ${error.message}`)
  })
  return { ...outcome, catchUpMs: Math.round(performance.now() - startMs) }
}

test('PL5 CU2a SE5 SY3 no lie of a server is believed, none kills an agent, and the truth is taken again', async () => {
  const pids = chaos.sites.map((site) => site.pid())
  const outcomes = await Promise.all(
    chaos.sites.map(async (site, index) => {
      const mine: Outcome[] = []
      for (const lie of LIES.filter((_, n) => n % NAMES.length === index)) {
        const outcome = await endure(site, lie)
        mine.push(outcome)
        const { lie: name, ...figures } = outcome
        process.stdout.write(`chaos-lies: ${name.padEnd(50)} ${JSON.stringify(figures)}\n`)
      }
      return mine
    }),
  )
  const bad = outcomes.flat().filter(({ told, asked, rssMb }) => !told || asked > ASKED_MAX || rssMb > RSS_MB_MAX)
  expect(bad).toEqual([])
  const restarted = outcomes.map((mine) => mine.some(({ lie }) => LIES.find(({ name }) => name === lie)?.restart === true))
  expect(chaos.sites.map((site, index) => restarted[index] || site.pid() === pids[index])).toEqual(NAMES.map(() => true))
  expect(chaos.sites.every((site) => site.alive())).toBe(true)
  await chaos.commit()
  process.stdout.write(`chaos-lies: ${JSON.stringify(await chaos.verify())}\n`)
})
