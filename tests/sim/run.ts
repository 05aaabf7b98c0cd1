// One history under way: its servers, its sites, and what was put aside to be brought back later.

import type { DesiredService } from '../../server/fleet/records.ts'
import { canonicalJson, setDigest } from '../../shared/kube/canonical.ts'
import { confirmationToken, objectRowId, type ServiceRow, serviceRowSchema } from '../../shared/model/desired.ts'
import type { PruneRefusal } from '../../shared/model/status.ts'
import type { ClusterId, ServiceId } from '../../shared/runtime/ids.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { World } from './history.ts'
import { FaultyNetwork, type SentPages } from './network.ts'
import { SimAgent } from './sim-agent.ts'
import { objectName, SimCluster, simObject, simRef } from './sim-cluster.ts'
import { SimServer } from './sim-server.ts'

export const SERVICES: readonly ServiceId[] = ['web', 'db', 'web-2', 'cron'].map((service) => ({ project: 'shop', service }))
/** `v` is a claim for a volume. */
const NAMES = ['a', 'b', 'v', 'c', 'd', 'e', 'f', 'g', 'h', 'i']

/** Of revisions with an object that does not compress and travels in parts on a bad link. */
const LARGE_SHARE = 0.04
const noise = (seed: number, bytes: number): string => {
  const random = seededRandom(seed)
  return Buffer.from(Array.from({ length: bytes }, () => random() * 256)).toString('base64')
}

export interface RunCounts {
  revisions: number
  rebuilds: number
  statuses: number
  objects: number
  deletes: number
  claims_deleted: number
  deletes_after_fork: number
  starts: number
  largest_agent_folder_bytes: number
}

export class Run {
  readonly world: World
  /** The first is where operators work; another one is there after a fork. */
  servers: SimServer[]
  readonly agents: SimAgent[] = []
  /** Second agents of a cluster, until somebody notices. */
  clones: SimAgent[] = []
  readonly pages: SentPages = new Map()
  readonly backups: Array<{ dir: string; restores: number }> = []
  /** How often the server was put back to a backup. */
  restores = 0
  /** Of the objects of one publication. */
  largestBytes = 0
  /** Sites that had two agents, or whose agent lost its memory of what it applied. */
  readonly cloned = new Set<string>()
  readonly forgetful = new Set<string>()
  readonly snapshots = new Map<string, string>()
  readonly counts: RunCounts = {
    revisions: 0,
    rebuilds: 0,
    statuses: 0,
    objects: 0,
    deletes: 0,
    claims_deleted: 0,
    deletes_after_fork: 0,
    starts: 0,
    largest_agent_folder_bytes: 0,
  }

  constructor(seed: number) {
    this.world = new World(seed)
    this.servers = [new SimServer(this.world, 'server')]
  }

  get server(): SimServer {
    const [server] = this.servers
    if (server === undefined) throw new Error('a history has a server')
    return server
  }
  get everyAgent(): SimAgent[] {
    return [...this.agents, ...this.clones]
  }

  addAgent(name: string): SimAgent {
    const network = new FaultyNetwork(this.world, name, this.server, this.pages)
    const agent = new SimAgent(this.world, name, this.server.joinToken, network, new SimCluster(this.world, name))
    this.agents.push(agent)
    return agent
  }

  /** A server that is up, and a cluster that it knows. */
  async pickCluster(): Promise<{ server: SimServer; name: string; clusterId: ClusterId } | null> {
    const up = this.servers.filter((server) => server.up)
    if (up.length === 0) return null
    const server = this.world.pick(up)
    const clusters = await server.store.listClusters()
    return clusters.length === 0 ? null : { server, ...this.world.pick(clusters) }
  }

  async currentRow(server: SimServer, clusterId: ClusterId, id: ServiceId): Promise<DesiredService | null> {
    const rows = await server.store.desiredInCluster(clusterId)
    return rows.find(({ project, service }) => project === id.project && service === id.service) ?? null
  }

  /** What somebody might order next. */
  wish(
    clusterId: ClusterId,
    id: ServiceId,
    { share = LARGE_SHARE, bytes = this.world.chance(0.2) ? 300_000 : 50_000 } = {},
  ): Map<string, string> {
    const { world } = this
    const pool = NAMES.slice(0, id.service === 'web' ? 10 : 6)
    const part = world.chance(0.1) ? 0.1 : 0.65
    const names = pool.filter(() => world.chance(part))
    // The value names the cluster: what comes to the wrong place is seen.
    const large = world.chance(share) ? world.pick(['', ...names.filter((name) => name !== 'v')]) : ''
    return new Map(
      names.map((name) => [
        objectName(id, name),
        `${clusterId} ${world.below(4)}${name === large ? noise(world.below(1_000_000), bytes) : ''}`,
      ]),
    )
  }

  /** Orders a revision in one cluster. `poison`: its digest is another one's. */
  async publish(
    to: { server: SimServer; name: string; clusterId: ClusterId },
    id: ServiceId,
    values: ReadonlyMap<string, string>,
    { poison = false }: { poison?: boolean } = {},
  ): Promise<boolean> {
    const { server, name, clusterId } = to
    const objects = new Map(
      [...values].map(([object, value]) => [objectRowId(id, simRef(object)), canonicalJson(simObject(object, value))]),
    )
    this.largestBytes = Math.max(
      this.largestBytes,
      [...objects.values()].reduce((sum, doc) => sum + doc.length, 0),
    )
    const digest = poison ? setDigest([['object/x', '{}']]) : setDigest(objects)
    const before = (await this.currentRow(server, clusterId, id))?.doc ?? null
    const same = before !== null && before.digest === digest && before.removal === undefined
    const order = { line: server.name, names: new Set(values.keys()), removal: null, complete: !poison }
    const commit = same ? before.commit : this.world.orders.give(name, id, order)
    const row = same ? before : serviceRowSchema.parse({ commit, digest, count: objects.size, sync: { maxPrunePercent: 50 } })
    this.world.note(`${server.name} publishes ${id.service} to ${name}: ${commit} of ${values.size}${poison ? ' poisoned' : ''}`)
    return this.#count(await server.publish(clusterId, id, row, objects))
  }

  async remove(to: { server: SimServer; name: string; clusterId: ClusterId }, id: ServiceId): Promise<boolean> {
    const { server, name, clusterId } = to
    const before = (await this.currentRow(server, clusterId, id))?.doc ?? null
    if (before === null || before.removal !== undefined) return false
    const policy = this.world.chance(0.7) ? 'prune' : 'orphan'
    const commit = this.world.orders.give(name, id, { line: server.name, names: null, removal: policy, complete: true })
    const removal = { policy, by: 'sim', atMs: this.world.clock.nowMs(), why: 'sim' }
    const row = serviceRowSchema.parse({ commit, digest: setDigest([]), count: 0, sync: {}, removal })
    this.world.note(`${server.name} removes ${id.service} from ${name} (${policy}): ${commit}`)
    return this.#count(await server.publish(clusterId, id, row, new Map()))
  }

  /** The same revision or order with a person's yes for the deletions that wait: by name, or, as older servers do, for
   *  the revision as a whole. */
  async confirmPrune(
    to: { server: SimServer; name: string; clusterId: ClusterId },
    id: ServiceId,
    refusal: PruneRefusal,
  ): Promise<boolean> {
    const { server, name, clusterId } = to
    const current = await this.currentRow(server, clusterId, id)
    if (current === null || current.doc === null || confirmationToken(current.doc) !== refusal.digest) return false
    const { doc } = current
    const isWhole = doc.removal === undefined && this.world.chance(0.3)
    const row: ServiceRow = { ...doc, ...(doc.removal === undefined ? { pruneConfirmed: doc.digest } : {}) }
    if (isWhole) delete row.confirmed
    else row.confirmed = [...new Set([...(doc.confirmed ?? []), ...refusal.names])].sort()
    this.world.orders.confirm(row, row.confirmed ?? 'all')
    this.world.note(`${server.name} confirms the prune of ${id.service} in ${name}: ${isWhole ? 'all' : row.confirmed?.join(', ')}`)
    return server.publish(clusterId, id, row, await server.objectsOf(current))
  }

  #count(changed: boolean): boolean {
    if (changed) this.counts.revisions++
    return changed
  }
}
