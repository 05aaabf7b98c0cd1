// Files that are not what their process left: power loss, copies put back, two agents with one key, a full disk, for
// real server and agents. Afterwards every replica is what the server says and nothing was deleted. Power fails four
// times in each test, six with `scripts/check --long`, or SKERRY_CHAOS_LOSSES times.
import { afterEach, expect, setDefaultTimeout, test } from 'bun:test'
import { cpSync, existsSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { postgresIsWanted } from '../../scripts/local-cluster/postgres.ts'
import { restorePlanViewSchema } from '../../shared/model/views.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { type ChaosFleet, type ChaosOptions, startChaosFleet } from '../support/chaos-fleet.ts'
import { inLong } from '../support/extent.ts'
import { eventually } from '../support/kube-cluster.ts'
import { besides, checkpoint, cutWal, dropWal, flipBit, shardPaths, takeCopy } from '../support/lost-writes.ts'
import { canMountSmallDisk, mountSmallDisk, type SmallDisk } from '../support/small-disk.ts'
import { createSyncSite, type SyncSite } from '../support/sync-site.ts'

const LOSSES = Number(process.env['SKERRY_CHAOS_LOSSES'] ?? inLong(6, 4))
setDefaultTimeout(120_000 + LOSSES * 10_000)
/** A minute is six seconds: that is how long an agent rests that must refetch twice in a row, or whose server waits for
 *  a person. */
const SHORT_MINUTES = { timeScale: 10, waitSeconds: 2 }
const IMPATIENT = { ...SHORT_MINUTES, mayGoBack: true }
const random = seededRandom(77)
const undo: Array<() => unknown> = []
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step()
})

async function start(options: Partial<ChaosOptions> = {}): Promise<ChaosFleet> {
  const chaos = await startChaosFleet({ sites: ['ada', 'bering'], ...options })
  undo.push(() => chaos.stop())
  await chaos.settled()
  return chaos
}
const firstOf = (chaos: ChaosFleet): SyncSite => {
  const [site] = chaos.sites
  if (site === undefined) throw new Error('no site')
  return site
}
/** Half of the services, so that there is always something new and something that stays. */
const someCommits = async (chaos: ChaosFleet, count: number) => {
  for (let n = 0; n < count; n++) await chaos.commit(chaos.services().filter(() => random() < 0.6))
}
const restorePlan = async (chaos: ChaosFleet) => restorePlanViewSchema.parse(await chaos.fleet.api('/restore'))

/** A yes is for the plan that was shown: when an agent tells more in between, it is asked again. */
async function confirmIfPending(chaos: ChaosFleet): Promise<boolean> {
  if (!(await restorePlan(chaos)).pending) return false
  const { code } = await chaos.fleet.skerry(['restore', 'confirm', '--yes'])
  return code === 0
}

/** An agent that was silent may show only now what it knows: `confirm` is asked until all is settled. */
async function settledWhile(chaos: ChaosFleet, confirm: () => Promise<boolean>): Promise<void> {
  let settled = false
  const confirming = (async () => {
    for (; !settled; await Bun.sleep(300)) await confirm()
  })()
  await chaos.settled().finally(() => {
    settled = true
  })
  await confirming
}

test('CU4 RP1 PU7 an agent whose power fails in the midst of things loses what was not on the disk, and nothing else', async () => {
  const chaos = await start({ agent: SHORT_MINUTES })
  for (let loss = 0; loss < LOSSES; loss++) {
    const committing = someCommits(chaos, 2)
    await Bun.sleep(random() * 300)
    const losses = chaos.sites.map(async (site) => {
      await site.kill()
      const what = random()
      if (what < 0.4) cutWal(site.files.replica, random)
      else if (what < 0.6) dropWal(site.files.replica)
      else if (what < 0.8 && existsSync(site.files.replica)) flipBit(site.files.replica, random)
      cutWal(site.files.state, random)
      site.start({ mayGoBack: true })
    })
    await Promise.all([...losses, committing])
  }
  await chaos.commit()
  await chaos.settled()
  // Of events, what a file forgot it cannot tell.
  process.stdout.write(`chaos-loss: agents ${JSON.stringify(await chaos.verify({ events: false }))}\n`)
})

test('CU5 a server whose shard files lost writes or bits serves none of that', async () => {
  const chaos = await start({ agent: SHORT_MINUTES })
  for (let loss = 0; loss < LOSSES; loss++) {
    const committing = someCommits(chaos, 2)
    await Bun.sleep(random() * 300)
    await chaos.fleet.killServer()
    for (const path of shardPaths(chaos.fleet.dataDir)) {
      const what = random()
      if (what < 0.3) cutWal(path, random)
      else if (what < 0.5) dropWal(path)
      else if (what < 0.6) flipBit(path, random)
      else if (what < 0.65) rmSync(path)
    }
    await chaos.fleet.startServer()
    await committing
  }
  await chaos.commit()
  expect((await restorePlan(chaos)).pending).toBe(false)
  process.stdout.write(`chaos-loss: shards ${JSON.stringify(await chaos.verify())}\n`)
})

// What PostgreSQL lost, or was put back to, is the backup of the next test.
test.skipIf(postgresIsWanted())(
  'RP2 CU8 PU7 a server whose fleet store lost its last commits waits for a person if agents know more, and nothing is deleted',
  async () => {
    const chaos = await start({ agent: IMPATIENT })
    // Who joined and who may do what is not what this is about.
    await chaos.fleet.killServer()
    checkpoint(join(chaos.fleet.dataDir, 'fleet.sqlite'))
    await chaos.fleet.startServer()
    let waited = 0
    const confirm = async () => {
      if (!(await confirmIfPending(chaos))) return false
      waited++
      return true
    }
    for (let loss = 0; loss < LOSSES; loss++) {
      const committing = someCommits(chaos, 2)
      await Bun.sleep(random() * 400)
      await chaos.fleet.killServer()
      cutWal(join(chaos.fleet.dataDir, 'fleet.sqlite'), random)
      await chaos.fleet.startServer()
      await committing
      await Bun.sleep(300)
      await confirm()
    }
    // Whether an agent knew more of these losses is a matter of milliseconds. Of this one both do: they have what the
    // file loses, and Git does not tell it again.
    await chaos.commit()
    await settledWhile(chaos, confirm)
    chaos.git.setDown(true)
    await chaos.fleet.killServer()
    dropWal(join(chaos.fleet.dataDir, 'fleet.sqlite'))
    await chaos.fleet.startServer()
    await eventually('the loss waits for a person, who says yes', confirm)
    chaos.git.setDown(false)
    await chaos.commit()
    await settledWhile(chaos, confirm)
    process.stdout.write(`chaos-loss: fleet store ${JSON.stringify({ waited, ...(await chaos.verify({ events: false })) })}\n`)
  },
)

test('RP2 a backup of the server that is put back under agents that know more: they keep what they have until a person says yes', async () => {
  const chaos = await start({ agent: IMPATIENT })
  await chaos.fleet.killServer()
  const { database } = chaos.fleet
  const backup = takeCopy(chaos.fleet.dataDir)
  const copy = await database?.postgres.takeCopy(database.url)
  undo.push(() => backup.remove())
  await chaos.fleet.startServer()
  for (let n = 0; n < 3; n++) await chaos.commit()
  await chaos.settled()
  const before = await Promise.all(chaos.sites.map((site) => site.dump()))
  await chaos.fleet.killServer()
  chaos.git.setDown(true) // so that it cannot render anew what it lost
  backup.putBack()
  await copy?.putBack()
  await chaos.fleet.startServer()
  await eventually('the restore waits for a person', async () => {
    const reports = await Promise.all(chaos.sites.map((site) => site.report()))
    return reports.every((report) => report?.failure?.code === 'restore_pending')
  })
  const plan = await restorePlan(chaos)
  expect(plan).toMatchObject({ pending: true })
  expect(plan.clusters.map(({ cluster, services }) => [cluster, services.length > 0]).sort()).toEqual([
    ['ada', true],
    ['bering', true],
  ])
  // Also over restarts of either side.
  await chaos.fleet.killServer()
  await chaos.fleet.startServer()
  for (const site of chaos.sites) {
    await site.kill()
    site.start()
  }
  await eventually('agents are back and wait', async () => {
    const reports = await Promise.all(chaos.sites.map((site) => site.report()))
    return reports.every((report) => report?.failure?.code === 'restore_pending')
  })
  expect((await Promise.all(chaos.sites.map((site) => site.dump()))).map(({ rows }) => rows)).toEqual(before.map(({ rows }) => rows))
  await eventually('a person says yes', () => confirmIfPending(chaos))
  await eventually('agents have what the backup has', async () => {
    const reports = await Promise.all(chaos.sites.map((site) => site.report()))
    return reports.every((report) => report?.state === 'following' && report.rounds['all-small'] === 1)
  })
  chaos.git.setDown(false)
  await chaos.commit()
  await chaos.settled()
  process.stdout.write(`chaos-loss: backup ${JSON.stringify(await chaos.verify({ events: false }))}\n`)
})

test('SE4 PU7 of two agents with one key one is superseded, and the server believes the other', async () => {
  const chaos = await start({ sites: ['ada'], agent: SHORT_MINUTES })
  const site = firstOf(chaos)
  await site.kill()
  const twinDir = besides(site.dataDir, 'ada-twin')
  cpSync(site.dataDir, twinDir, { recursive: true, filter: (path) => !path.endsWith('.sock') })
  site.start()
  await chaos.commit()
  await chaos.settled()
  const twin = createSyncSite({ dataDir: twinDir, serverUrl: chaos.fleet.serverUrl, name: 'ada', joinToken: 'none', ...IMPATIENT })
  undo.push(() => twin.kill())
  twin.start()
  const both = [site, twin]
  const halted = await eventually('one of both is superseded', async () => {
    const reports = await Promise.all(both.map((each) => each.report()))
    const codes = reports.map((report) => report?.failure?.code ?? report?.state)
    return codes.filter((code) => code === 'superseded').length === 1 && codes.includes('following') ? codes.indexOf('superseded') : false
  })
  const [loser, winner] = halted === 0 ? [site, twin] : [twin, site]
  const last = (await loser.report())?.rounds['all-small']
  const round = await chaos.commit()
  await eventually('the other one goes on', async () => {
    const report = await winner.report()
    return report?.state === 'following' && report.outboxDepth === 0 && report.rounds['all-small'] === round
  })
  expect((await loser.report())?.rounds['all-small']).toBe(last)
  for (const each of both) expect(each.journal().filter(({ kind }) => kind === 'violation')).toEqual([])
})

const maybe = canMountSmallDisk ? test : test.skip
maybe('RP4 PU5 server and agent whose disks are full stay alive, and go on by themselves when there is space', async () => {
  const disks: SmallDisk[] = []
  const disk = (megabytes: number) => {
    const made = mountSmallDisk(megabytes)
    disks.push(made)
    undo.push(() => made.remove())
    return made
  }
  const [serverDisk, agentDisk] = [disk(48), disk(24)]
  const chaos = await start({ agent: SHORT_MINUTES, sites: ['ada'], dataDir: join(serverDisk.path, 'server'), sitesDir: agentDisk.path })
  const site = firstOf(chaos)
  const pids = [chaos.fleet.serverPid(), site.pid()]
  agentDisk.fill()
  await someCommits(chaos, 3)
  await Bun.sleep(1_000)
  serverDisk.fill()
  await someCommits(chaos, 3)
  await Bun.sleep(1_500)
  expect([chaos.fleet.serverPid(), site.pid(), site.alive()]).toEqual([...pids, true])
  expect((await fetch(`${chaos.fleet.serverUrl}/healthz`)).status).toBe(200)
  if (chaos.fleet.database === null) expect(statSync(join(chaos.fleet.dataDir, 'fleet.sqlite')).size).toBeGreaterThan(0)
  for (const each of disks) each.free()
  await chaos.commit()
  await chaos.settled(90_000)
  // And killed while nothing can be written.
  agentDisk.fill()
  serverDisk.fill()
  await someCommits(chaos, 2)
  await Promise.all([chaos.fleet.killServer(), site.kill()])
  await chaos.fleet.startServer({ wait: false })
  site.start()
  await Bun.sleep(1_500)
  for (const each of disks) each.free()
  if (!site.alive()) site.start()
  await chaos.fleet.startServer()
  await chaos.commit()
  await chaos.settled(90_000)
  process.stdout.write(`chaos-loss: full disks ${JSON.stringify(await chaos.verify({ events: false, staged: true }))}\n`)
})
