// An agent that speaks garbage at every endpoint of the compiled server, while a healthy one beside it goes on. Prints
// what each attack cost. SKERRY_CHAOS_ATTACK_MS (default 1000) is how long each lasts.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { type ChaosFleet, type ProcessSize, processSize, startChaosFleet } from '../support/chaos-fleet.ts'
import { ATTACKS, connectRaw, type HostileAgent, joinHostile, type RawConnection } from '../support/hostile-client.ts'
import { joinToken } from '../support/scenario.ts'
import { createWakeProbe, latencyText, type WakeProbe } from '../support/wake-probe.ts'

const ATTACK_MS = Number(process.env['SKERRY_CHAOS_ATTACK_MS'] ?? 1_000)
setDefaultTimeout(60_000 + ATTACK_MS * 10)
/** The server holds some 130 MB by itself; bodies that come in are 96 MiB at most (AR2), what is made of them is
 *  garbage until it is collected. */
const RSS_MB_MAX = 450
/** A change is with the healthy agent some 10 ms after it was made, on an idle machine. The attackers share its two
 *  processors. */
const WAKE_MS_MAX = 3_000
/** Connections of the probe and of the healthy agent. */
const FDS_MORE_MAX = 20
const SILENT = 200

let chaos: ChaosFleet
let hostile: HostileAgent
let probe: WakeProbe
let before: ProcessSize
let pid: number
let silent: RawConnection[]
let silentSinceMs: number

beforeAll(async () => {
  chaos = await startChaosFleet({ programs: 'dist', sites: ['ada'], services: { 'all-small': 4, 'all-large': 400 }, ballast: 1_000 })
  await chaos.settled()
  hostile = await joinHostile(chaos.fleet.serverUrl, await joinToken(chaos.fleet, {}), 'mallory')
  probe = await createWakeProbe(chaos.fleet, chaos.site('ada'), 'only-ada')
  const took = await probe.during(Bun.sleep(2_000))
  pid = chaos.fleet.serverPid()
  before = sizeNow()
  silentSinceMs = performance.now()
  silent = await Promise.all(Array.from({ length: SILENT }, () => connectRaw(hostile.port)))
  say('before', took, before, before)
})
afterAll(() => chaos?.stop())

const sizeNow = (): ProcessSize => {
  const size = processSize(pid)
  if (size === null) throw new Error(`the server died\n${chaos.fleet.serverLog().slice(-3_000)}`)
  return size
}
function say(name: string, took: readonly number[], most: ProcessSize, after: ProcessSize): void {
  const sizes = `rss ${most.rssMb} then ${after.rssMb} MB, fds ${most.fds} then ${after.fds}`
  process.stdout.write(`chaos-garbage: ${name.padEnd(42)} wake ${latencyText(took)}; ${sizes}\n`)
}

test.each(ATTACKS.map((attack) => [attack.name, attack] as const))(
  'AR1 AR2 PU3 the server and other agents bear %s',
  async (name, attack) => {
    const most = sizeNow()
    const attacking = attack.run(hostile, ATTACK_MS)
    const took = await probe.during(attacking, () => {
      const { rssMb, fds } = sizeNow()
      most.rssMb = Math.max(most.rssMb, rssMb)
      most.fds = Math.max(most.fds, fds)
    })
    await attacking
    await Bun.sleep(200)
    say(name, took, most, sizeNow())
    expect(most.rssMb).toBeLessThan(RSS_MB_MAX)
    expect(Math.max(...took)).toBeLessThan(WAKE_MS_MAX)
  },
)

test('AR2 connections that say nothing are cut by the server itself', async () => {
  await Promise.all(silent.map(({ closed }) => closed))
  expect(performance.now() - silentSinceMs).toBeLessThan(60_000)
})

test('PU3 PL7 after all of it the server is whole: same process, no error of its own, nothing leaked, nobody else’s rows or statuses touched', async () => {
  await chaos.commit()
  await chaos.settled()
  const took = await probe.during(Bun.sleep(1_000))
  const after = sizeNow()
  say('after', took, after, after)
  expect(after.fds).toBeLessThan(before.fds + FDS_MORE_MAX)
  expect(after.rssMb).toBeLessThan(RSS_MB_MAX)
  const errors = chaos.fleet
    .serverLog()
    .split('\n')
    .filter((line) => line.includes('"level":50'))
  expect(errors).toEqual([])
  await chaos.verify()
})
