// One history: a seed decides what is written, what breaks and when; after the faults every agent must hold exactly its rows, and the server exactly what
// the agents last reported.
import { truncateSync, writeFileSync } from 'node:fs'
import { openCrdtDb } from '../../shared/adapters/crdt-db.ts'
import type { ServiceId } from '../../shared/model/ids.ts'
import { type Random, seededRandom } from '../../shared/runtime/random.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'
import { createFaultyNetwork, type FaultCounts, type FaultyNetwork, noFaults } from './faults.ts'
import { SimAgent, SimServer, sumOf, type World } from './world.ts'

export interface SimOptions {
  seed: number
  dir: string
  agents?: number
  steps?: number
}

export interface SimReport {
  seed: number
  faults: FaultCounts
  revisions: number
  pages: number
  agentKills: number
  serverKills: number
  rebuilds: number
  rogueEdits: number
  damagedFiles: number
  statuses: number
  virtualHours: number
}

const SERVICES: ServiceId[] = ['web', 'db', 'web-2', 'cron'].map((service) => ({ project: 'shop', service }))
const QUIET_MS = 15 * 60_000

type Step = (run: Run) => Promise<void>

class Run {
  readonly random: Random
  readonly world: World
  readonly server: SimServer
  readonly agents: SimAgent[] = []
  readonly networks: FaultyNetwork[] = []
  readonly report: SimReport
  serverUp = true
  readonly trace: string[] = []

  constructor({ seed, dir }: SimOptions) {
    this.random = seededRandom(seed)
    this.world = { dir, clock: createVirtualClock(), random: this.random }
    this.server = new SimServer(this.world)
    const zero = { revisions: 0, pages: 0, agentKills: 0, serverKills: 0, rebuilds: 0, rogueEdits: 0, damagedFiles: 0, statuses: 0 }
    this.report = { seed, faults: noFaults(), ...zero, virtualHours: 0 }
  }

  pick<T>(items: readonly T[]): T {
    const item = items[Math.floor(this.random() * items.length)]
    if (item === undefined) throw new Error('nothing to pick from')
    return item
  }
}

const STEPS: ReadonlyArray<readonly [name: string, weight: number, step: Step]> = [
  ['publish', 40, publish],
  ['wait', 20, (run) => run.world.clock.advance(run.random() ** 3 * 90_000)],
  ['kill agent', 5, killAgent],
  ['start agent', 8, startAgent],
  ['kill server', 3, killServer],
  ['start server', 6, startServer],
  ['rogue edit', 3, rogueEdit],
  ['damage', 2, damage],
  ['weather', 6, weather],
  ['clock', 1, jumpClock],
]

export async function simulate(options: SimOptions): Promise<SimReport> {
  const run = new Run(options)
  try {
    await prepare(run, options.agents ?? 3)
    for (let step = 0; step < (options.steps ?? 60); step++) {
      const [name, act] = chooseStep(run.random)
      run.trace.push(name)
      await act(run)
      assertNoForeignRows(run)
    }
    await becomeQuiet(run)
    await assertConverged(run)
    return run.report
  } catch (error) {
    const tail = run.trace.slice(-20).join(', ')
    throw new Error(`seed ${options.seed}: ${error instanceof Error ? error.message : String(error)} (last steps: ${tail})`, {
      cause: error,
    })
  } finally {
    for (const agent of run.agents) await agent.kill()
    if (run.serverUp) await run.server.kill()
  }
}

async function prepare(run: Run, count: number): Promise<void> {
  await run.server.open()
  await run.server.createJoinToken(count)
  for (let index = 0; index < count; index++) {
    const network = createFaultyNetwork(run.server, run.world.clock, run.random)
    network.rate = run.random() * 0.5
    run.networks.push(network)
    const agent = new SimAgent(run.world, run.server, `site-${index}`, network.fetcher)
    run.agents.push(agent)
    agent.start()
  }
  await run.world.clock.advance(120_000)
}

function chooseStep(random: Random): readonly [string, Step] {
  const total = STEPS.reduce((sum, [, weight]) => sum + weight, 0)
  let left = random() * total
  for (const [name, weight, step] of STEPS) {
    left -= weight
    if (left < 0) return [name, step]
  }
  return ['publish', publish]
}

async function publish(run: Run): Promise<void> {
  const clusters = run.serverUp ? await run.server.store.listClusters() : []
  if (clusters.length === 0) return
  const { clusterId } = run.pick(clusters)
  const names = ['a', 'b', 'c', 'd', 'e', 'f'].filter(() => run.random() < 0.6)
  // The value names the cluster: a row in the wrong place is seen.
  const objects = Object.fromEntries(names.map((name) => [name, `${clusterId} ${Math.floor(run.random() * 4)}`]))
  if (await run.server.publish(clusterId, run.pick(SERVICES), run.random() < 0.1 ? null : objects)) run.report.revisions++
  await run.world.clock.advance(run.random() < 0.5 ? 0 : run.random() * 2_000)
}

async function killAgent(run: Run): Promise<void> {
  const agent = run.pick(run.agents)
  if (!agent.running) return
  await agent.kill()
  run.report.agentKills++
}

async function startAgent(run: Run): Promise<void> {
  const agent = run.pick(run.agents)
  if (!agent.running) agent.start()
}

async function killServer(run: Run): Promise<void> {
  if (!run.serverUp) return
  run.serverUp = false
  await run.server.kill()
  run.report.serverKills++
  const agent = run.pick(run.agents)
  if (run.random() < 0.3 && agent.clusterId !== null) run.server.damageShard(agent.clusterId)
}

async function startServer(run: Run): Promise<void> {
  if (run.serverUp) return
  await run.server.open()
  run.serverUp = true
}

async function rogueEdit(run: Run): Promise<void> {
  const agent = run.pick(run.agents)
  const { clusterId, loop } = agent
  if (clusterId === null || !loop?.replica()?.verified()) return
  const edit = run.pick([
    "UPDATE desired SET doc = 'rogue'",
    'DELETE FROM desired',
    `INSERT INTO desired VALUES ('${clusterId}', 'x', 'rogue')`,
  ])
  const crdt = openCrdtDb(agent.replicaPath, { synchronous: 'OFF' })
  crdt.db.run(edit)
  crdt.close()
  run.report.rogueEdits++
  if (run.random() < 0.5) await run.world.clock.advance(run.random() * 60_000)
}

async function damage(run: Run): Promise<void> {
  const agent = run.pick(run.agents)
  if (agent.loop?.replica()?.position() == null) return
  await agent.kill()
  if (run.random() < 0.5) writeFileSync(agent.replicaPath, 'damaged')
  else truncateSync(agent.replicaPath, 8_192)
  run.report.damagedFiles++
}

async function weather(run: Run): Promise<void> {
  run.pick(run.networks).rate = run.pick([0, 0.1, 0.3, 0.6, 1])
}

async function jumpClock(run: Run): Promise<void> {
  run.world.clock.jump(run.pick([1, 30]) * 86_400_000)
}

async function becomeQuiet(run: Run): Promise<void> {
  for (const network of run.networks) network.rate = 0
  await startServer(run)
  for (const agent of run.agents) if (!agent.running) agent.start()
  await run.world.clock.advance(QUIET_MS)
}

function assertNoForeignRows(run: Run): void {
  for (const agent of run.agents) {
    const replica = agent.loop?.replica()
    if (!agent.clusterId || !replica?.verified()) continue
    for (const [id, doc] of replica.dump()) {
      if (id.startsWith('object/') && !doc.includes(agent.clusterId)) throw new Error(`${agent.name} holds a row of another cluster: ${id}`)
    }
  }
}

async function assertConverged(run: Run): Promise<void> {
  const { server, report } = run
  for (const agent of run.agents) {
    const { clusterId, loop, state } = agent
    if (clusterId === null || state === null || loop === null)
      throw new Error(`${agent.name} never joined: ${JSON.stringify(loop?.status())}`)
    const expected = await server.expectedRows(clusterId)
    const held = loop.replica()?.dump() ?? []
    if (sumOf(held) !== sumOf(expected)) {
      throw new Error(`${agent.name} holds ${held.length} rows, the fleet store says ${expected.length}: ${JSON.stringify(loop.status())}`)
    }
    if (loop.status().outboxDepth > 0) throw new Error(`${agent.name} has ${loop.status().outboxDepth} rows in its outbox`)
    for (const { key, doc } of await server.store.listStatus({ clusterId, kind: 'service' })) {
      if (JSON.stringify(sorted(state.lastReported('service', key))) !== JSON.stringify(sorted(doc)))
        throw new Error(`${agent.name} lost the status of ${key}`)
      report.statuses++
    }
    report.pages += agent.changes
  }
  for (const { counts } of run.networks)
    for (const [fault, count] of Object.entries(counts)) report.faults[fault as keyof FaultCounts] += count
  report.rebuilds = server.rebuilds
  report.virtualHours = Math.round((run.world.clock.nowMs() - 1_700_000_000_000) / 36e5)
}

const sorted = (doc: unknown): unknown =>
  doc === null || typeof doc !== 'object' ? doc : Object.entries(doc).sort(([a], [b]) => (a < b ? -1 : 1))
