// A server as it runs in production: real fleet store, shard files, sessions and routes; its clock, dice and content
// are the simulation's. Each opening is another life; what a life leaves behind are its files, as a kill leaves them.
import { createHash } from 'node:crypto'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type AgentIndex, createAgentIndex } from '../../server/access/agent-index.ts'
import { loadServerKeys, type ServerKeys } from '../../server/access/server-keys.ts'
import { createSessions } from '../../server/access/sessions.ts'
import { createRestoreActions, type RestoreActions } from '../../server/actions/restore-actions.ts'
import { createRestoreGate, recordAhead } from '../../server/actions/restore-gate.ts'
import { catchUpAll } from '../../server/desired/catch-up.ts'
import { raiseEpochs } from '../../server/desired/epochs.ts'
import { publishRevisions } from '../../server/desired/publisher.ts'
import { decodeRenderedSet } from '../../server/desired/rendered-set.ts'
import { replayShards } from '../../server/desired/replay.ts'
import { rewriteShard } from '../../server/desired/rewrite-shard.ts'
import { createShards, type OpenedShards, shardOf } from '../../server/desired/shard-files.ts'
import type { Shards } from '../../server/desired/shards.ts'
import { discardStale } from '../../server/desired/stale-shards.ts'
import type { DesiredService } from '../../server/fleet/records.ts'
import { type AgentRoutes, createAgentRoutes } from '../../server/http/agent-routes.ts'
import { createDrain } from '../../server/http/drain.ts'
import type { ContentStore } from '../../server/store/content/content-store.ts'
import { openSqliteStore } from '../../server/store/kysely-store.ts'
import type { Store } from '../../server/store/store.ts'
import { NO_LOG } from '../../shared/adapters/log-sync.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { type ServiceRow, serviceRowId } from '../../shared/model/desired.ts'
import { joinTokenHash, joinTokenText } from '../../shared/protocol/join.ts'
import type { ClusterId, ServiceId } from '../../shared/runtime/ids.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { createPace } from '../../shared/runtime/pace.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { type ProcessClock, VIRTUAL_START_MS } from '../support/virtual-clock.ts'
import { copyFolder, keyOf, type World } from './history.ts'
import { Life } from './life.ts'

const SHARD_COUNT = 1
const JOIN_SECRET = 'simulated-join-secret'

interface Running {
  life: Life
  clock: ProcessClock
  /** Of the process; the other one is for whoever looks at it. */
  store: Store
  raw: Store
  shards: Shards
  opened: OpenedShards
  agents: AgentIndex
  routes: AgentRoutes
  restore: RestoreActions
}

export class ServerDown extends Error {}

export class SimServer {
  readonly name: string
  readonly #world: World
  #dir: string
  #keys: ServerKeys
  #running: Running | null = null
  #offsetMs = 0
  readonly #newKey = () => keyOf('ed25519', `rotated ${this.#world.randomHex(8)}`)
  /** Shards that were made anew at an opening. */
  rebuilds = 0

  constructor(world: World, name: string, copyOf?: string) {
    this.#world = world
    this.name = name
    this.#dir = world.nextFolder(name)
    if (copyOf === undefined) {
      mkdirSync(join(this.#dir, 'keys'), { recursive: true })
      writeFileSync(join(this.#dir, 'keys', 'signing.json'), JSON.stringify(keyOf('ed25519', 'server')))
      writeFileSync(join(this.#dir, 'keys', 'mac.key'), createHash('sha256').update('mac').digest('base64url'))
    } else copyFolder(copyOf, this.#dir)
    this.#keys = loadServerKeys(join(this.#dir, 'keys'), this.#newKey)
  }

  get up(): boolean {
    return this.#running !== null && !this.#running.life.ended
  }
  get dir(): string {
    return this.#dir
  }
  get joinToken(): string {
    return joinTokenText(JOIN_SECRET, this.#keys.fingerprint)
  }
  get privateKey(): string {
    return keyOf('ed25519', 'server').privateKey
  }
  get store(): Store {
    return this.#alive().raw
  }
  get life(): Life {
    return this.#alive().life
  }

  #alive(): Running {
    if (this.#running === null) throw new ServerDown(`${this.name} is down`)
    return this.#running
  }

  async open(): Promise<void> {
    const { random, clock: time } = this.#world
    const dir = this.#dir
    const own = seededRandom(this.#world.below(2 ** 31))
    const randomBytes = (count: number) => Buffer.from(Array.from({ length: count }, () => Math.floor(own() * 256)))
    const life = new Life()
    const clock = time.process(this.#offsetMs)
    const raw = await openSqliteStore(join(dir, 'fleet.db'), { clock, random, logFile: NO_LOG })
    const store = life.wrap(raw)
    const agents = await createAgentIndex(raw)
    this.#keys = loadServerKeys(join(dir, 'keys'), this.#newKey)
    const keys = this.#keys
    const newId = () => randomBytes(16).toString('hex')
    const common = { shardCount: SHARD_COUNT, clock, log: silentLogger, newId, sign: keys.sign, epochOf: agents.epochOf }
    const opened = createShards({ ...common, dir: join(dir, 'shards'), withoutThreads: true })
    const { shards } = opened
    await discardStale({ store: raw, opened, log: silentLogger, onAhead: recordAhead(raw, clock) })
    const raised = await raiseEpochs({ store: raw, opened, log: silentLogger })
    this.rebuilds += raised.length > 0 ? 1 : 0
    await agents.refresh()
    agents.onChanged((clusterId) => {
      shards.endTransfers(clusterId)
      shards.wake(clusterId)
    })
    await replayShards({ store: raw, content: this.#content, shards, log: silentLogger })
    const gate = await createRestoreGate({ store: raw, keys, shards, clock, log: silentLogger })
    const access = { store, agents, keys, clock, randomBytes, log: silentLogger }
    const routes = createAgentRoutes({
      join: access,
      sessions: createSessions(access),
      shards,
      store,
      onStatus: ({ clusterId }, changed) => gate.onStatus(clusterId, changed),
      onSeen: () => {},
      restoreGate: gate,
      drain: createDrain(clock, random),
      clock,
      log: silentLogger,
    })
    const publish = { store: raw, content: this.#content, shards }
    const restore = createRestoreActions({
      store: raw,
      publish,
      gate,
      knocks: { list: () => [] },
      refreshAgents: agents.refresh,
      clock,
      log: silentLogger,
    })
    this.#running = { life, clock, store, raw, shards, opened, agents, routes, restore }
    life.onEnd(() => this.#leaveFiles())
  }

  async createJoinToken(uses: number): Promise<void> {
    const record = { id: 'jt-sim', tokenHash: joinTokenHash(JOIN_SECRET), uses, usesLeft: uses, labels: {}, createdBy: 'sim' }
    await this.store.createJoinToken({ ...record, createdMs: VIRTUAL_START_MS, expiresMs: VIRTUAL_START_MS + 86_400_000 })
  }

  /** Null while it is down, and when it goes down before it answered. */
  handle(request: Request): Promise<Response | null> {
    const running = this.#running
    if (running === null || running.life.ended) return Promise.resolve(null)
    return new Promise((resolve) => {
      const forget = running.life.onEnd(() => resolve(null))
      void running.routes(request, { setIdleTimeout: () => {}, address: () => null }).then((response) => {
        forget()
        if (!running.life.ended) resolve(response)
      })
    })
  }

  setClockBy(ms: number): void {
    this.#offsetMs += ms
    this.#running?.clock.setBy(ms)
  }

  kill(): void {
    this.#running?.life.end()
  }

  /** The files as they are at this moment, from now on in another place, where the dead do not write. */
  #leaveFiles(): void {
    const running = this.#running
    if (running === null) return
    this.#running = null
    running.clock.end()
    const left = this.#dir
    this.#dir = this.#world.nextFolder(this.name)
    copyFolder(left, this.#dir)
    this.#reap(running, left)
  }

  /** What ran in it may still be between two steps; it can do no more harm there. */
  #reap({ shards, raw }: Running, dir: string): void {
    setImmediate(() => {
      try {
        shards.close()
      } catch {} // it was closed in the midst of a write
      void raw.close().catch(() => {})
      rmSync(dir, { recursive: true, force: true })
    })
  }

  /** A copy of everything, as a backup takes it. */
  backup(): string {
    const to = this.#world.nextFolder('backup')
    copyFolder(this.#dir, to)
    return to
  }

  /** Of a server that is down. `keepShards`: only the fleet store comes from the backup. */
  restore(from: string, keepShards: boolean): void {
    const shards = join(this.#dir, 'shards')
    const before = this.#dir
    this.#dir = this.#world.nextFolder(this.name)
    copyFolder(from, this.#dir)
    if (keepShards) {
      rmSync(join(this.#dir, 'shards'), { recursive: true, force: true })
      copyFolder(shards, join(this.#dir, 'shards'))
    }
    rmSync(before, { recursive: true, force: true })
  }

  shardPath(clusterId: ClusterId): string {
    return join(this.#dir, 'shards', `shard-${String(shardOf(clusterId, SHARD_COUNT)).padStart(2, '0')}.db`)
  }

  /** Null doc: a tombstone. False: it went down meanwhile, or could not. */
  async publish(clusterId: ClusterId, id: ServiceId, doc: ServiceRow | null, objects: ReadonlyMap<string, string>): Promise<boolean> {
    const { store, shards, life } = this.#alive()
    const publication = { clusterId, ...id, doc, placedBy: '{}', objects }
    const work = publishRevisions({ store, content: this.#content, shards }, [publication])
    return new Promise((resolve) => {
      const forget = life.onEnd(() => resolve(false))
      work
        .then(([changed]) => resolve(changed === true))
        .catch(() => resolve(false))
        .finally(forget)
    })
  }

  /** As every look at Git does: what a full disk kept from a shard is made good. */
  async catchUp(): Promise<void> {
    const { raw, shards } = this.#alive()
    await catchUpAll({ store: raw, content: this.#content, shards })
  }

  /** False: it went down meanwhile. */
  async compact(): Promise<boolean> {
    const { store, opened, agents, clock, life } = this.#alive()
    const newId = () => this.#world.randomHex(16)
    const onEpochsRaised = () => agents.refresh()
    const deps = { store, content: this.#content, opened, newId, onEpochsRaised, pace: createPace(clock), log: silentLogger }
    const work = rewriteShard(deps, 0, 'compacted').then(
      () => true,
      () => false,
    )
    return Promise.race([work, new Promise<boolean>((resolve) => life.onEnd(() => resolve(false)))])
  }

  rotateKey(): void {
    this.#keys.rotate(this.#alive().clock.nowMs())
  }

  /** What a person does who reads the plan and finds it right. */
  async confirmRestore(): Promise<boolean> {
    const { restore } = this.#alive()
    const { token } = await restore.plan()
    if (token === null) return false
    await restore.confirm(token, 'sim')
    return true
  }

  /** From the truth, not from the shard: what the fleet store wants in a cluster, by id. */
  async expectedRows(clusterId: ClusterId): Promise<Array<readonly [string, string]>> {
    const rows: Array<readonly [string, string]> = []
    for (const { doc, ...row } of await this.store.desiredInCluster(clusterId)) {
      if (doc !== null) rows.push([serviceRowId(row), canonicalJson(doc)])
      rows.push(...(await this.objectsOf(row)))
    }
    return rows.sort(([a], [b]) => (a < b ? -1 : 1))
  }

  async objectsOf({ setSha }: Pick<DesiredService, 'setSha'>): Promise<Map<string, string>> {
    const bytes = setSha === null ? null : await this.#content.get(setSha)
    return bytes === null ? new Map() : decodeRenderedSet(bytes)
  }

  readonly #content: ContentStore = {
    put: async (bytes) => {
      const sha256 = createHash('sha256').update(bytes).digest('hex')
      this.#world.content.set(sha256, Buffer.from(bytes))
      return sha256
    },
    get: async (sha256) => this.#world.content.get(sha256) ?? null,
    refresh: async (sha256) => this.#world.content.has(sha256),
  }
}
