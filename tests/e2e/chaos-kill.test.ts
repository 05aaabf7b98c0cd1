// Kills the compiled server and real agents (kill -9) at random moments, while commits are published, pages merged and
// statuses pushed. The number of kills is 56, 200 with `scripts/check --long`, or SKERRY_CHAOS_ROUNDS.
// tests/e2e/chaos-cluster.test.ts kills the compiled agent.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { seededRandom } from '../../shared/runtime/random.ts'
import { type ChaosFleet, startChaosFleet } from '../support/chaos-fleet.ts'
import { inLong } from '../support/extent.ts'

const ROUNDS = Number(process.env['SKERRY_CHAOS_ROUNDS'] ?? inLong(200, 56))
const BOUTS = 8
setDefaultTimeout(120_000 + ROUNDS * 1_500)
let chaos: ChaosFleet

beforeAll(async () => {
  chaos = await startChaosFleet({ programs: 'dist', sites: ['ada', 'bering', 'cook', 'drake'] })
  await chaos.settled()
})
afterAll(() => chaos?.stop())

test('CU4 CU5 RV1 PU5 kills of server and agents at random moments lose nothing, double nothing and delete nothing', async () => {
  const random = seededRandom(200)
  let [serverKills, agentKills, round] = [0, 0, 0]
  const pages = () => chaos.sites.map((site) => site.journal().filter(({ kind }) => kind === 'page').length)
  /** Kills until there were so many in all, while commits arrive. */
  const tormented = async (kills: number) => {
    const over = () => serverKills + agentKills >= kills
    const tormentServer = async () => {
      while (!over()) {
        await Bun.sleep(200 + random() ** 2 * 2_500)
        await chaos.fleet.killServer()
        serverKills++
        await Bun.sleep(random() * 100)
        await chaos.fleet.startServer({ wait: false })
      }
    }
    const tormentAgents = chaos.sites.map(async (site) => {
      while (!over()) {
        await Bun.sleep(150 + random() ** 2 * 2_000)
        await site.kill()
        agentKills++
        site.start()
      }
    })
    const committing = async () => {
      const services = chaos.services()
      while (!over()) await chaos.commit(services.filter(() => random() < 0.5))
    }
    await Promise.all([tormentServer(), ...tormentAgents, committing()])
    await chaos.fleet.startServer()
    round = await chaos.commit()
  }
  // Between the bouts everything that was committed arrives, however slow the machine is.
  for (let bout = 1; bout <= BOUTS; bout++) {
    const before = pages()
    await tormented(Math.ceil((ROUNDS / BOUTS) * bout))
    await chaos.settled(60_000)
    for (const [at, now] of pages().entries()) expect(now).toBeGreaterThan(before[at] ?? 0)
  }
  const counts = await chaos.verify()
  process.stdout.write(`chaos-kill: ${JSON.stringify({ serverKills, agentKills, rounds: round, pages: pages(), ...counts })}\n`)
  await chaos.commit()
  await chaos.settled()
})
