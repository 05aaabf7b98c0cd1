// One history: a seed decides what is ordered, what breaks and when. After the faults every replica must be its
// cluster's rows, every cluster what its rows say, and every status at the server; what must never happen is noticed
// when it does.

import type { Trace } from '../support/trace.ts'
import { VIRTUAL_START_MS } from '../support/virtual-clock.ts'
import type { FaultCounts, NetworkFault } from './fault-kinds.ts'
import { RESTORE_STEPS } from './file-steps.ts'
import type { Broken } from './history.ts'
import { findProblems } from './invariants.ts'
import { Run, type RunCounts, SERVICES } from './run.ts'
import { ServerDown } from './sim-server.ts'
import { actOnReports, STEPS, type Step, startOrRepair, startServers } from './steps.ts'

export interface SimOptions {
  seed: number
  /** An empty folder, the working directory while the history lasts: paths that the product sees are the same on every
   *  machine. */
  dir: string
  agents?: number
  steps?: number
  /** Weights of steps by name, in place of the usual ones. Absent means 0. */
  weights?: Readonly<Record<string, number>>
  /** In place of all network faults. */
  network?: readonly NetworkFault[]
  /** How long a world that does not come to rest is waited for. */
  restMinutes?: number
}

export interface SimReport extends RunCounts {
  seed: number
  faults: FaultCounts
  broken: Broken[]
  virtualHours: number
  trace: Trace
}

const MINUTE_MS = 60_000
/** An hour is the longest that anybody waits by itself (Retry-After, recheck). */
const REST_MINUTES_MAX = 100

/** The working directory and the ids of files belong to one history. */
let isPlaying = false

export async function simulate(options: SimOptions): Promise<SimReport> {
  if (isPlaying) throw new Error('another history is being played in this process') // such as one that a test gave up waiting for
  isPlaying = true
  const before = process.cwd()
  process.chdir(options.dir)
  try {
    return await live(new Run(options.seed), options)
  } finally {
    process.chdir(before)
    isPlaying = false
  }
}

async function live(run: Run, options: SimOptions): Promise<SimReport> {
  const { world } = run
  try {
    await prepare(run, options)
    const steps = [...STEPS, ...RESTORE_STEPS].map(
      ([name, weight, act]) => [name, options.weights === undefined ? weight : (options.weights[name] ?? 0), act] as const,
    )
    for (let step = 0; step < (options.steps ?? 24); step++) {
      const [name, act] = choose(steps, world.random())
      world.note(`step ${name}`)
      await unlessDown(run, () => act(run))
      for (const agent of run.everyAgent) agent.watchRows()
    }
    await becomeQuiet(run)
    world.broken.push(...(await rest(run, options.restMinutes ?? REST_MINUTES_MAX)))
  } catch (error) {
    world.break('stuck', error instanceof Error ? (error.stack ?? error.message) : String(error))
  } finally {
    for (const agent of run.everyAgent) agent.kill()
    for (const server of run.servers) server.kill()
    await world.clock.settle()
  }
  for (const { cluster, starts } of run.agents) {
    run.counts.objects += cluster.applies
    run.counts.deletes += cluster.deletes
    run.counts.claims_deleted += cluster.claimsDeleted
    run.counts.deletes_after_fork += cluster.deletesAfterFork
    run.counts.starts += starts
  }
  run.counts.rebuilds = run.servers.reduce((sum, { rebuilds }) => sum + rebuilds, 0)
  const virtualHours = Math.round((world.clock.nowMs() - VIRTUAL_START_MS) / 36e5)
  const { broken, faults } = world
  return {
    seed: options.seed,
    faults,
    broken,
    ...run.counts,
    virtualHours,
    trace: world.trace,
  }
}

/** A server may go down while a person looks at it: then that person saw nothing. */
async function unlessDown(run: Run, act: () => Promise<void>): Promise<void> {
  try {
    await act()
  } catch (error) {
    if (!(error instanceof ServerDown)) throw error
    run.world.note('the server went down meanwhile')
  }
}

function choose(steps: ReadonlyArray<readonly [string, number, Step]>, dice: number): readonly [string, Step] {
  let left = dice * steps.reduce((sum, [, weight]) => sum + weight, 0)
  for (const [name, weight, step] of steps) {
    left -= weight
    if (left < 0) return [name, step]
  }
  throw new Error('the weights have no end')
}

async function prepare(run: Run, { agents = 2, network }: SimOptions): Promise<void> {
  const { world } = run
  await run.server.open()
  await run.server.createJoinToken(agents)
  for (let index = 0; index < agents; index++) {
    const agent = run.addAgent(`site-${index}`)
    agent.network.rate = world.random() * 0.4
    if (network !== undefined) agent.network.kinds = network
    agent.start()
  }
  for (let minute = 0; minute < 120 && run.agents.some((agent) => agent.clusterId === null); minute++) await world.clock.advance(MINUTE_MS)
  for (const agent of run.agents)
    if (agent.clusterId === null) throw new Error(`${agent.name} does not join: ${JSON.stringify(agent.report()?.link)}`)
  for (const agent of run.agents) run.snapshots.set(agent.name, agent.copy())
  run.backups.push({ dir: run.server.backup(), restores: 0 })
}

/** The faults stop. One of two forked servers is left; people look at what cannot mend itself. */
async function becomeQuiet(run: Run): Promise<void> {
  const { world } = run
  world.note('the faults stop')
  for (const clone of run.clones) clone.kill()
  run.clones = []
  await startServers(run)
  const survivor = world.pick(run.servers)
  for (const server of run.servers) if (server !== survivor) server.kill()
  run.servers = [survivor]
  for (const agent of run.agents) {
    const { network, cluster } = agent
    network.rate = 0
    network.skewedUntilMs = 0
    network.target = survivor
    cluster.failing = 0
    cluster.slowMs = 0
    if (agent.isTampered) agent.kill() // a byte that nobody reads any more is found at the next start
    if (!agent.running) startOrRepair(run, agent)
  }
  for (const { clusterId, name } of await survivor.store.listClusters()) {
    for (const id of SERVICES) {
      const row = await run.currentRow(survivor, clusterId, id)
      const poisoned = row?.doc !== null && row?.doc !== undefined && !run.world.orders.isComplete(row.doc)
      if (poisoned) await run.publish({ server: survivor, name, clusterId }, id, run.wish(clusterId, id))
    }
  }
}

/** Waits until there is nothing left to find, twice; else says what there is. */
async function rest(run: Run, minutes: number): Promise<Broken[]> {
  let calm = 0
  let found: Broken[] = []
  for (let minute = 0; minute < minutes && calm < 2; minute++) {
    await run.world.clock.advance(MINUTE_MS)
    await run.server.catchUp()
    await actOnReports(run, run.server, 1)
    for (const agent of run.agents) takeOver(run, agent)
    found = await findProblems(run)
    calm = found.length === 0 ? calm + 1 : 0
  }
  for (const agent of run.agents) agent.watchRows()
  return found
}

/** The agent says that another one took its place; the other one is gone, so a person does what the message says. */
function takeOver(run: Run, agent: Run['agents'][number]): void {
  const report = agent.report()
  if (report?.link?.error?.code !== 'superseded' && report?.enforcement.state !== 'superseded') return
  run.world.note(`${agent.name} takes over again`)
  run.forgetful.add(agent.name)
  run.cloned.delete(agent.name)
  agent.kill()
  agent.lose(agent.files.state, `${agent.files.state}-wal`, `${agent.files.state}-shm`)
  agent.start()
}
