// A large fleet for the dashboard: a server on a filled store, and agents of some of its clusters that tell what their
// services are like.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { connectSqlite } from '../../server/store/engines/connections.ts'
import type { ServiceRow } from '../../shared/model/desired.ts'
import type { ServiceStatus } from '../../shared/model/status.ts'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { REV_INCARNATION } from '../../shared/protocol/status.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { generateKey } from '../../shared/runtime/keys.ts'
import { createDataFolder } from '../local-cluster/child-process.ts'
import { createLocalFleet, type LocalFleet } from '../local-cluster/local-fleet.ts'
import { clusterIdOf, clusterName } from './fleet-rows.ts'
import { openSession } from './open-session.ts'
import { benchPrograms } from './server-process.ts'
import { fillSqlite } from './store-fleet.ts'

const INCARNATION = 1
/** Above the revisions of the rows that the store was filled with. */
const FIRST_REV = INCARNATION * REV_INCARNATION + 1_000_000
const ROWS_A_PUSH = 20
/** Pushes that wait for their answers at the same time; a server that is behind gets no more. */
const PUSHES_AT_ONCE = 100

interface Placed {
  key: string
  row: ServiceRow
}

/** One agent of the fleet: it tells the status of services that are placed in its cluster. */
export class TellingAgent {
  readonly name: string
  readonly id: string
  readonly #url: string
  readonly #privateKey: string
  readonly #services: readonly Placed[]
  #token = ''
  #rev = FIRST_REV

  constructor(url: string, number: number, privateKey: string, services: readonly Placed[]) {
    this.name = clusterName(number)
    this.id = clusterIdOf(number)
    this.#url = url
    this.#privateKey = privateKey
    this.#services = services
  }

  async open(): Promise<void> {
    const agentId = this.id.replace('c-', 'a-')
    this.#token = await openSession(this.#url, { agentId, incarnation: INCARNATION, privateKey: this.#privateKey })
  }

  /** So many services at once, from the given one; answers when the server has them. A busy server is asked again, as
   * agents do. */
  async tell(from: number, count: number, isBad: boolean): Promise<void> {
    const rows = Array.from({ length: count }, (_, n) => {
      const { key, row } = this.#services[(from + n) % this.#services.length] ?? { key: '', row: { commit: '', digest: '', count: 0 } }
      this.#rev += 1
      const point = { commit: row.commit, digest: row.digest, atMs: Date.now() }
      const state = isBad
        ? { health: 'Degraded' as const, reason: 'CrashLoopBackOff', message: `Deployment ${key}: not ready` }
        : { health: 'Healthy' as const, reason: 'Healthy', message: '' }
      const counts = { objectCount: row.count, healthyCount: isBad ? 0 : row.count }
      const doc: ServiceStatus = { sync: 'Synced', ...state, sinceMs: point.atMs, received: point, applied: point, ...counts }
      return { kind: 'service', key, rev: this.#rev, doc }
    })
    const request = {
      method: 'POST',
      headers: { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ incarnation: INCARNATION, rows }),
    }
    for (;;) {
      const response = await fetch(this.#url + ROUTES.status, request)
      if (response.ok) return
      const text = await response.text()
      if (response.status !== 429) throw new Error(`push: HTTP ${response.status} ${text}`)
      await Bun.sleep(1_000 * (Number.parseInt(response.headers.get('retry-after') ?? '', 10) || 1))
    }
  }
}

export interface LargeFleet {
  fleet: LocalFleet
  agents: readonly TellingAgent[]
  /** Reports this many rows a second until `stop`, which returns the number of reported rows. */
  tellRows(perSecond: number): { stop(): Promise<number> }
  stop(): Promise<void>
}

export async function startLargeFleet(clusters: number, agentCount: number): Promise<LargeFleet> {
  const folder = createDataFolder('skerry-dashboard')
  const dataDir = join(folder.path, 'server')
  mkdirSync(dataDir)
  const path = join(dataDir, 'fleet.sqlite')
  // Twenty usual services, and twenty more that every cluster has.
  await fillSqlite(path, { clusters, objects: 20, services: 44, fullClusters: clusters, nowMs: systemClock.nowMs() })
  const fleet = await createLocalFleet({ programs: benchPrograms(), dataDir, serverEnv: { SKERRY_REQUESTS_PER_SECOND: '0' } })
  const agents = await admit(path, fleet.serverUrl, Math.min(agentCount, clusters))
  await fleet.startServer()
  for (const agent of agents) await agent.open()
  return {
    fleet,
    agents,
    tellRows: (perSecond) => tellRows(agents, perSecond),
    async stop() {
      await fleet.stop()
      await folder.remove()
    },
  }
}

/** The filled store has agents without keys: some of them get one. */
async function admit(path: string, url: string, count: number): Promise<TellingAgent[]> {
  const { writer, close } = await connectSqlite(path)
  await writer.updateTable('clusters').set({ last_seen_ms: Date.now() }).where('no', '>', 40).execute()
  const agents: TellingAgent[] = []
  for (let number = 0; number < count; number++) {
    const { publicKey, privateKey } = generateKey('ed25519')
    const id = clusterIdOf(number)
    await writer.updateTable('agents').set({ public_key: publicKey }).where('cluster_id', '=', id).execute()
    const rows = await writer.selectFrom('desired').select(['project', 'service', 'doc']).where('cluster_id', '=', id).execute()
    const services = rows.map(({ project, service, doc }) => ({ key: `${project}/${service}`, row: JSON.parse(doc ?? '{}') as ServiceRow }))
    agents.push(new TellingAgent(url, number, privateKey, services))
  }
  await close()
  return agents
}

function tellRows(agents: readonly TellingAgent[], perSecond: number): { stop(): Promise<number> } {
  let told = 0
  let isStopped = false
  const everyMs = 1_000 / (perSecond / ROWS_A_PUSH)
  const running = new Set<Promise<void>>()
  const work = (async () => {
    const startMs = performance.now()
    for (let push = 0; !isStopped; push++) {
      await Bun.sleep(Math.max(0, startMs + push * everyMs - performance.now()))
      if (running.size >= PUSHES_AT_ONCE) await Promise.race(running)
      const round = Math.floor(push / agents.length)
      const one = agents[push % agents.length]?.tell(round * ROWS_A_PUSH, ROWS_A_PUSH, push % 10 === 0 && round % 2 === 0).then(() => {
        told += ROWS_A_PUSH
      })
      if (one === undefined) return
      running.add(one)
      void one.finally(() => running.delete(one))
    }
  })()
  return {
    async stop() {
      isStopped = true
      await work
      await Promise.all(running)
      return told
    },
  }
}
