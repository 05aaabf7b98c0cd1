// A server and its agents as they run in production, in one process: real fleet store, shard files, routes, replicas
// and agent states; only clock, network and dice are the simulation's. A part that is killed comes back from its files.
import { randomBytes } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type AgentKeys, loadAgentKeys } from '../../agent/link/agent-keys.ts'
import type { Fetcher } from '../../agent/link/server-client.ts'
import { type CheckedReplica, createCrdtReplica } from '../../agent/replica/crdt-replica.ts'
import type { AgentState } from '../../agent/state/agent-state.ts'
import { openAgentState } from '../../agent/state/sqlite-agent-state.ts'
import { SyncLoop, type SyncOptions } from '../../agent/sync/sync-loop.ts'
import { type AgentIndex, createAgentIndex } from '../../server/access/agent-index.ts'
import { OWN_VERSIONS, type ProtocolRange } from '../../server/access/join.ts'
import { createKnocks, type Knocks } from '../../server/access/knocks.ts'
import { loadServerKeys, type ServerKeys } from '../../server/access/server-keys.ts'
import { createSessions } from '../../server/access/sessions.ts'
import { createRestoreActions, type RestoreActions } from '../../server/actions/restore-actions.ts'
import { createRestoreGate, type RestoreGate, recordAhead } from '../../server/actions/restore-gate.ts'
import { type Asks, createAsks } from '../../server/ask/asks.ts'
import { raiseEpochs } from '../../server/desired/epochs.ts'
import { type Publication, publishRevisions } from '../../server/desired/publisher.ts'
import { decodeRenderedSet } from '../../server/desired/rendered-set.ts'
import { replayShards } from '../../server/desired/replay.ts'
import { createShards, shardOf } from '../../server/desired/shard-files.ts'
import type { Shards } from '../../server/desired/shards.ts'
import { discardStale } from '../../server/desired/stale-shards.ts'
import { type AgentRoutes, type AgentRoutesDeps, createAgentRoutes } from '../../server/http/agent-routes.ts'
import { createDrain, type Drain } from '../../server/http/drain.ts'
import { createFileContentStore } from '../../server/store/content/file-content-store.ts'
import { openSqliteStore } from '../../server/store/kysely-store.ts'
import type { Store } from '../../server/store/store.ts'
import { NO_LOG } from '../../shared/adapters/log-sync.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { serviceRowId, serviceRowSchema } from '../../shared/model/desired.ts'
import { joinTokenHash, joinTokenText } from '../../shared/protocol/join.ts'
import { type ClusterId, clusterIdSchema, type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import type { Random } from '../../shared/runtime/random.ts'
import { objectRows, serviceDoc } from './sync-kit.ts'
import type { VirtualClock } from './virtual-clock.ts'

export const SHARD_COUNT = 2
const JOIN_SECRET = 'simulated-join-secret'

export interface World {
  dir: string
  clock: VirtualClock
  random: Random
}

/** Random bytes of the run's own dice, so that a seed is the whole story. */
export const randomHex = (random: Random, bytes: number): string =>
  Array.from({ length: bytes }, () =>
    Math.floor(random() * 256)
      .toString(16)
      .padStart(2, '0'),
  ).join('')

export class SyncServer {
  readonly #world: World
  #keys: ServerKeys
  store!: Store
  shards!: Shards
  agents!: AgentIndex
  #routes: AgentRoutes | null = null
  /** Shards that were thrown away at an opening. */
  rebuilds = 0
  drain!: Drain
  restoreGate!: RestoreGate
  restore!: RestoreActions
  asks!: Asks
  readonly knocks: Knocks
  /** From the next opening on. */
  versions: ProtocolRange = OWN_VERSIONS
  strangers: NonNullable<AgentRoutesDeps['strangers']> = {}

  constructor(world: World) {
    this.#world = world
    this.knocks = createKnocks(world.clock)
    this.#keys = loadServerKeys(join(world.dir, 'keys'))
  }

  get keys(): ServerKeys {
    return this.#keys
  }
  get joinToken(): string {
    return joinTokenText(JOIN_SECRET, this.#keys.fingerprint)
  }

  async open(): Promise<void> {
    const { dir, clock, random } = this.#world
    this.#keys = loadServerKeys(join(dir, 'keys'))
    this.store = await openSqliteStore(join(dir, 'fleet.sqlite'), { clock, random, logFile: NO_LOG })
    this.agents = await createAgentIndex(this.store)
    const { agents } = this
    const newId = () => randomHex(random, 16)
    const options = { shardCount: SHARD_COUNT, clock, log: silentLogger, newId, sign: this.#keys.sign, epochOf: agents.epochOf }
    const opened = createShards({ ...options, dir: join(dir, 'shards'), withoutThreads: true })
    const { shards } = opened
    this.shards = shards
    await discardStale({ store: this.store, opened, log: silentLogger, onAhead: recordAhead(this.store, clock) })
    const raised = await raiseEpochs({ store: this.store, opened, log: silentLogger })
    this.rebuilds += raised.length > 0 ? 1 : 0
    await agents.refresh()
    await replayShards({ store: this.store, content: this.#content(), shards, log: silentLogger })
    const gate = await createRestoreGate({ store: this.store, keys: this.#keys, shards, clock, log: silentLogger })
    this.restoreGate = gate
    this.restore = createRestoreActions({
      store: this.store,
      publish: { store: this.store, content: this.#content(), shards },
      gate,
      knocks: this.knocks,
      refreshAgents: () => agents.refresh(),
      clock,
      log: silentLogger,
    })
    const randomBytes = (count: number) => Buffer.from(randomHex(random, count), 'hex')
    const common = { store: this.store, agents, keys: this.#keys, clock, randomBytes, log: silentLogger }
    this.drain = createDrain(clock, random)
    const newAskId = () => randomBytes(16).toString('base64url')
    this.asks = createAsks({ sign: this.#keys.sign, epochOf: agents.epochOf, wake: shards.wake.bind(shards), newId: newAskId, clock })
    this.#routes = createAgentRoutes({
      join: { ...common, versions: this.versions },
      sessions: createSessions({ ...common, onUnknown: this.knocks.note }),
      shards,
      store: this.store,
      onStatus: ({ clusterId }, changed) => gate.onStatus(clusterId, changed),
      onSeen: this.asks.seen,
      asks: this.asks,
      restoreGate: this.restoreGate,
      drain: this.drain,
      clock,
      log: silentLogger,
      strangers: this.strangers,
    })
  }

  async createJoinToken(uses: number): Promise<void> {
    const nowMs = this.#world.clock.nowMs()
    const record = { id: 'jt-sim', tokenHash: joinTokenHash(JOIN_SECRET), uses, usesLeft: uses, labels: {}, createdBy: 'sim' }
    await this.store.createJoinToken({ ...record, createdMs: nowMs, expiresMs: nowMs + 3_600_000 })
  }

  /** Null while it is down. */
  async handle(
    request: Request,
    setIdleTimeout: (seconds: number) => void = () => {},
    address: () => string | null = () => null,
  ): Promise<Response | null> {
    return this.#routes === null ? null : this.#routes(request, { setIdleTimeout, address })
  }

  /** As a killed process leaves things: files as they are, the mark that they are in use still there. */
  async kill(): Promise<void> {
    this.#routes = null
    await this.#world.clock.settle()
    this.shards.close()
    await this.store.close()
    writeFileSync(join(this.#world.dir, 'shards', 'in-use'), '')
  }

  /** What a lost disk page or a bad sector would leave. The server must be down. */
  damageShard(clusterId: ClusterId): void {
    const path = join(this.#world.dir, 'shards', `shard-${String(shardOf(clusterId, SHARD_COUNT)).padStart(2, '0')}.db`)
    writeFileSync(path, 'damaged')
    for (const suffix of ['-wal', '-shm']) rmSync(path + suffix, { force: true })
  }

  /** Null objects: a tombstone. */
  async publish(clusterId: ClusterId, service: ServiceId, objects: Record<string, string> | null): Promise<boolean> {
    const rows = objectRows(service, objects ?? {})
    const doc = objects === null ? null : serviceRowSchema.parse(JSON.parse(serviceDoc(rows)))
    return this.publishRows({ clusterId, ...service, doc, placedBy: '{}', objects: rows })
  }

  async publishRows(publication: Publication): Promise<boolean> {
    const [changed] = await publishRevisions({ store: this.store, content: this.#content(), shards: this.shards }, [publication])
    return changed === true
  }

  /** From the truth, not from the shard: what the fleet store wants in a cluster, by id. */
  async expectedRows(clusterId: ClusterId): Promise<Array<readonly [string, string]>> {
    const rows: Array<readonly [string, string]> = []
    for (const { doc, setSha, ...id } of await this.store.desiredInCluster(clusterId)) {
      if (doc !== null) rows.push([serviceRowId(id), canonicalJson(doc)])
      const bytes = setSha === null ? null : await this.#content().get(setSha)
      if (bytes !== null) rows.push(...decodeRenderedSet(bytes))
    }
    return rows.sort(([a], [b]) => (a < b ? -1 : 1))
  }

  #content() {
    return createFileContentStore(join(this.#world.dir, 'content'), this.#world.clock)
  }
}

export class SyncAgent {
  readonly name: string
  readonly #world: World
  readonly #server: SyncServer
  readonly #fetcher: Fetcher
  readonly #keys: AgentKeys
  #running: { stop: AbortController; done: Promise<void>; loop: SyncLoop; state: AgentState; replicas: CheckedReplica[] } | null = null
  /** Of its loop, from the next start on. */
  sync: Partial<SyncOptions> = {}
  /** Pages applied, counted over all lives. */
  changes = 0
  restarts = -1

  constructor(world: World, server: SyncServer, name: string, fetcher: Fetcher) {
    this.#world = world
    this.#server = server
    this.name = name
    this.#fetcher = fetcher
    this.#keys = loadAgentKeys(this.#dir)
  }

  get #dir(): string {
    return join(this.#world.dir, `agent-${this.name}`)
  }
  get replicaPath(): string {
    return join(this.#dir, 'replica.db')
  }
  get running(): boolean {
    return this.#running !== null
  }
  get loop(): SyncLoop | null {
    return this.#running?.loop ?? null
  }
  get state(): AgentState | null {
    return this.#running?.state ?? null
  }
  get clusterId(): ClusterId | null {
    const id = this.#running?.state.identity()?.clusterId
    return id === undefined ? null : clusterIdSchema.parse(id)
  }

  start(): void {
    const { clock, random } = this.#world
    const state = openAgentState(join(this.#dir, 'state.db'), undefined, NO_LOG)
    const replicas: CheckedReplica[] = []
    const loop = new SyncLoop({
      serverUrl: 'http://sim',
      fetcher: this.#fetcher,
      keys: this.#keys,
      join: { joinToken: this.#server.joinToken, clusterName: this.name, clusterUid: `uid-${this.name}`, agentVersion: 'sim' },
      state,
      openReplica: ({ clusterId, serverKeys }) => {
        const replica = createCrdtReplica({
          path: this.replicaPath,
          clusterId,
          serverKeys: () => state.identity()?.serverKeys ?? serverKeys,
          log: silentLogger,
        })
        replicas.push(replica)
        return replica
      },
      onChange: (services) => this.#report(loop, state, services),
      clock,
      random,
      randomBytes,
      log: silentLogger,
      ...this.sync,
    })
    const stop = new AbortController()
    this.#running = { stop, done: loop.run(stop.signal), loop, state, replicas }
    this.restarts++
  }

  /** Everything that was not written is gone. */
  async kill(): Promise<void> {
    const running = this.#running
    if (running === null) return
    this.#running = null
    running.stop.abort()
    await running.done
    for (const replica of running.replicas) replica.close()
    running.state.close()
  }

  /** In place of the reconciler: tells what arrived. */
  #report(loop: SyncLoop, state: AgentState, services: readonly ServiceId[]): void {
    this.changes++
    const rows = services.map((service) => {
      const read = loop.replica()?.read(service)
      const row = read?.kind === 'complete' ? read.revision.row : null
      const message = row?.digest ?? read?.kind ?? 'none'
      const received = row === null ? {} : { received: { commit: row.commit, digest: row.digest, atMs: 1 } }
      const doc = { ...received, sync: 'Synced', health: 'Healthy', reason: 'Sim', message, sinceMs: 1, objectCount: 0, healthyCount: 0 }
      return { kind: 'service' as const, key: serviceKey(service), doc }
    })
    state.report(rows)
  }
}
