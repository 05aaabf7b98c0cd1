// What can happen next in a history: people who order things, parts that die and come back, clocks, networks and
// clusters that misbehave. What happens to files is in file-steps.ts.

import { serviceStatusSchema } from '../../shared/model/status.ts'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { REV_INCARNATION } from '../../shared/protocol/status.ts'
import { serviceKey } from '../../shared/runtime/ids.ts'
import { FILE_STEPS } from './file-steps.ts'
import { type Run, SERVICES } from './run.ts'
import type { SimServer } from './sim-server.ts'

const YEAR_MS = 365 * 86_400_000
export type Step = (run: Run) => Promise<void>

/** Name, weight, what it does. */
export const STEPS: ReadonlyArray<readonly [name: string, weight: number, step: Step]> = [
  ['publish', 34, publish],
  ['wait', 16, (run) => run.world.clock.advance(run.world.random() ** 3 * 90_000)],
  ['operate', 6, operate],
  ['start agent', 9, startAgent],
  ['start server', 8, startServers],
  ['kill agent', 4, killAgent],
  ['kill agent at await', 4, killAgentAtAwait],
  ['kill server', 2, killServer],
  ['kill server at step', 3, killServerAtStep],
  ['weather', 6, weather],
  ['skew', 0.5, skew],
  ['agent clock', 1, agentClock],
  ['server clock', 0.5, serverClock],
  ['drift', 6, drift],
  ['kube', 3, kube],
  ['cut watches', 2, async (run) => run.world.pick(run.agents).cluster.cutWatches()],
  ['lag watches', 1, async (run) => run.world.pick(run.agents).cluster.lagWatches()],
  ['poison desired', 1, poisonDesired],
  ['vanish', 0.7, vanish],
  ['publish large', 0, publishLarge],
  ['bad agent', 1, badAgent],
  ...FILE_STEPS,
]

async function publish(run: Run): Promise<void> {
  const to = await run.pickCluster()
  if (to === null) return
  const id = run.world.pick(SERVICES)
  if (run.world.chance(0.08)) await run.remove(to, id)
  else await run.publish(to, id, run.wish(to.clusterId, id))
  if (run.world.chance(0.5)) await run.world.clock.advance(run.world.random() * 2_000)
}

async function poisonDesired(run: Run): Promise<void> {
  const to = await run.pickCluster()
  if (to === null) return
  const id = run.world.pick(SERVICES)
  if (await run.publish(to, id, run.wish(to.clusterId, id), { poison: true })) run.world.count('poison_desired')
}

/** A row that is gone without an order, as no server should have it: nothing may go for it. */
async function vanish(run: Run): Promise<void> {
  const to = await run.pickCluster()
  if (to === null) return
  const id = run.world.pick(SERVICES)
  run.world.note(`${to.server.name} loses the row of ${id.service} in ${to.name}`)
  if (await to.server.publish(to.clusterId, id, null, new Map())) run.world.count('vanished_row')
}

async function publishLarge(run: Run): Promise<void> {
  const to = await run.pickCluster()
  if (to === null) return
  const id = run.world.pick(SERVICES)
  await run.publish(to, id, run.wish(to.clusterId, id, { share: 1, bytes: 700_000 }))
}

/** A person reads what waits for one, and sometimes acts. */
async function operate(run: Run): Promise<void> {
  for (const server of run.servers) if (server.up) await actOnReports(run, server, 0.5)
}

export async function actOnReports(run: Run, server: SimServer, yes: number): Promise<void> {
  if (run.world.chance(yes) && (await server.confirmRestore())) run.world.note(`${server.name}: the restore is confirmed`)
  for (const { clusterId, name } of await server.store.listClusters()) {
    for (const { key, doc } of await server.store.listStatus({ clusterId, kind: 'service' })) {
      const status = serviceStatusSchema.safeParse(doc).data
      const id = SERVICES.find((candidate) => serviceKey(candidate) === key)
      if (status === undefined || id === undefined || !server.up) continue
      const row = (await run.currentRow(server, clusterId, id))?.doc
      const done = row?.removal !== undefined && status.removed === true && status.removedOrderMs === row.removal.atMs
      if (done) await server.publish(clusterId, id, null, new Map())
      else if (status.refusal !== undefined && run.world.chance(yes))
        await run.confirmPrune({ server, name, clusterId }, id, status.refusal)
    }
  }
}

async function killAgent(run: Run): Promise<void> {
  const agent = run.world.pick(run.everyAgent)
  if (!agent.running) return
  agent.kill()
  run.world.count('kill_agent')
  if (run.world.chance(0.5)) agent.start()
}

async function killAgentAtAwait(run: Run): Promise<void> {
  const agent = run.world.pick(run.everyAgent)
  const { life } = agent
  if (life === null) return
  life.endAfter(1 + run.world.below(12), run.world.chance(0.5))
  const forget = life.onEnd(() => run.world.count('kill_agent_at_await'))
  await run.world.clock.advance(run.world.random() * 30_000)
  forget()
  life.endAfter(Number.POSITIVE_INFINITY, false)
}

async function startAgent(run: Run): Promise<void> {
  for (const agent of run.agents) if (!agent.running && run.world.chance(0.7)) startOrRepair(run, agent)
  for (const clone of run.clones) if (!clone.running) clone.start(clone.name)
}

/** A person at the site reads why it does not start, and removes what it names. */
export function startOrRepair(run: Run, agent: Run['agents'][number]): void {
  agent.start()
  if (agent.startFailure === null) return
  run.world.note(`${agent.name} loses its state to start`)
  run.forgetful.add(agent.name)
  agent.lose(agent.files.state, `${agent.files.state}-wal`, `${agent.files.state}-shm`)
  agent.start()
}

async function killServer(run: Run): Promise<void> {
  const server = run.world.pick(run.servers)
  if (!server.up) return
  server.kill()
  run.world.count('kill_server')
}

/** In the midst of whatever it does, a publication often. */
async function killServerAtStep(run: Run): Promise<void> {
  const server = run.world.pick(run.servers)
  if (!server.up) return
  const { life } = server
  const forget = life.onEnd(() => run.world.count('kill_server_at_step'))
  life.endAfter(1 + run.world.below(3), run.world.chance(0.6))
  const clusters = await server.store.listClusters()
  const id = run.world.pick(SERVICES)
  if (clusters.length > 0) {
    const to = { server, ...run.world.pick(clusters) }
    await run.publish(to, id, run.wish(to.clusterId, id))
  }
  await run.world.clock.advance(run.world.random() * 10_000)
  forget()
  life.endAfter(Number.POSITIVE_INFINITY, false)
}

export async function startServers(run: Run): Promise<void> {
  for (const server of run.servers) if (!server.up) await server.open()
}

async function weather(run: Run): Promise<void> {
  run.world.pick(run.everyAgent).network.rate = run.world.pick([0, 0.1, 0.3, 0.6, 1])
}

async function skew({ world, agents }: Run): Promise<void> {
  world.pick(agents).network.skewedUntilMs = world.clock.nowMs() + world.random() * 120_000
}

async function agentClock({ world, agents }: Run): Promise<void> {
  world.pick(agents).setClockBy(world.pick([-3, -1, 1, 3]) * YEAR_MS * world.random())
  world.count('clock_jump_agent')
}

async function serverClock({ world, servers }: Run): Promise<void> {
  world.pick(servers).setClockBy(world.pick([-2, -1, 1, 2]) * YEAR_MS * world.random())
  world.count('clock_jump_server')
}

async function drift({ world, agents }: Run): Promise<void> {
  world.pick(agents).cluster.drift()
  if (world.chance(0.5)) await world.clock.advance(world.random() * 5_000)
}

async function kube({ world, agents }: Run): Promise<void> {
  const { cluster } = world.pick(agents)
  cluster.failing = world.pick([0, 0.1, 0.5, 1])
  cluster.slowMs = world.pick([0, 0, 5_000, 60_000])
}

/** Whoever has an agent's session says nonsense about its own cluster, and tries others'. */
async function badAgent({ world, agents }: Run): Promise<void> {
  const agent = world.pick(agents)
  const { target, authorization } = agent.network
  const incarnation = agent.report()?.incarnation ?? 1
  if (authorization === null) return
  const rev = (counter: number) => incarnation * REV_INCARNATION + counter
  const service = { sync: 'Synced', health: 'Healthy', reason: 'Lie', message: '', sinceMs: 1, objectCount: 0, healthyCount: 0 }
  const kinds: ReadonlyArray<readonly [complete: boolean, rows: unknown[]]> = [
    [false, [{ kind: 'service', key: 'shop/web', rev: rev(2 ** 32 - 1), doc: service }]],
    [false, [{ kind: 'service', key: 'shop/never', rev: rev(5), doc: service }]],
    [true, [{ kind: 'service', key: 'shop/web', rev: rev(2 ** 32) + 5, doc: service }]],
    [true, [{ kind: 'secret', key: '__proto__', rev: -1, doc: { __proto__: { polluted: true } } }, 7, null, [], 'x']],
    [true, Array.from({ length: 50 }, (_, index) => ({ kind: 'object', key: `x/${index}`, rev: 2 ** 60, doc: null }))],
  ]
  const [complete, rows] = world.pick(kinds)
  const body = JSON.stringify({ incarnation, rows, complete: complete && world.chance(0.5) })
  const headers = { authorization, 'content-type': 'application/json' }
  const answer = await Promise.race([
    target.handle(new Request(`http://sim${ROUTES.status}`, { method: 'POST', headers, body })),
    world.clock.sleep(1_000).then(() => null),
    world.clock.advance(2_000).then(() => null),
  ])
  if (answer !== null) world.count('bad_agent')
}
