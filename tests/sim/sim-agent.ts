// An agent as it runs in production, put together by its own root: sync, replica, state and reconciler on real files.
// Each start is another life; a kill leaves its files as they are at that moment and answers nothing that it waits for.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Agent, agentFiles, createAgent } from '../../agent/agent.ts'
import type { AgentReport } from '../../agent/observe/report.ts'
import { NO_LOG } from '../../shared/adapters/log-sync.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { hashOfRows } from '../../shared/crdt/row-hash.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { tracedLog } from '../support/trace.ts'
import type { ProcessClock } from '../support/virtual-clock.ts'
import { copyFolder, keyOf, makeReserve, type World } from './history.ts'
import { Life } from './life.ts'
import type { FaultyNetwork } from './network.ts'
import { headOnDisk, readServiceRow, rowsOnDisk, type SimCluster, serviceOfRow } from './sim-cluster.ts'

export interface StatusOnDisk {
  kind: string
  key: string
  doc: string
}

export class SimAgent {
  readonly name: string
  readonly network: FaultyNetwork
  readonly cluster: SimCluster
  readonly #world: World
  readonly #joinToken: string
  #dir: string
  /** Of its folder on its machine; the folders of this simulation are an image of that one. */
  #place: string
  #running: { agent: Agent; life: Life; clock: ProcessClock; clusterId: string | null } | null = null
  #offsetMs = 0
  #seen = ''
  #tampered = false
  /** Why the last start failed; a person at the site reads it. */
  startFailure: string | null = null
  starts = 0

  constructor(world: World, name: string, joinToken: string, network: FaultyNetwork, cluster: SimCluster, copyOf?: string) {
    this.#world = world
    this.name = name
    this.#joinToken = joinToken
    this.network = network
    this.cluster = cluster
    this.#dir = world.nextFolder(name)
    this.#place = this.#dir
    if (copyOf === undefined) {
      mkdirSync(this.#dir, { recursive: true })
      const keys = { signing: keyOf('ed25519', name), recipient: keyOf('x25519', name) }
      writeFileSync(join(this.#dir, 'agent-keys.json'), JSON.stringify(keys))
      makeReserve(this.#dir)
    } else copyFolder(copyOf, this.#dir)
  }

  get dir(): string {
    return this.#dir
  }
  get files(): { state: string; replica: string } {
    return agentFiles(this.#dir)
  }
  get running(): boolean {
    return this.#running !== null
  }
  get life(): Life | null {
    return this.#running?.life ?? null
  }
  report(): AgentReport | null {
    return this.#running?.agent.report() ?? null
  }
  get clusterId(): string | null {
    const running = this.#running
    if (running === null) return null
    running.clusterId ??= running.agent.report().clusterId
    return running.clusterId
  }

  start(clusterName: string = this.name): void {
    const { clock: time } = this.#world
    const life = new Life()
    const clock = time.process(this.#offsetMs)
    const dir = this.#dir
    const lived = { ...clock, sleep: (ms: number, signal?: AbortSignal) => life.call(() => clock.sleep(ms, signal)) }
    this.starts++
    try {
      const agent = createAgent(
        { dataDir: dir, serverUrl: 'http://sim', clusterName, joinToken: this.#joinToken, waitSeconds: 55, version: 'sim' },
        {
          cluster: this.cluster.port(
            life,
            () => dir,
            () => this.clusterId,
            () => this.network.target.name,
          ),
          fetcher: (url, init) => life.call(() => this.network.fetch(life, url, init)),
          clock: lived,
          random: seededRandom(this.#world.below(2 ** 31)),
          randomBytes: (count) => Buffer.from(this.#world.randomHex(count), 'hex'),
          log: tracedLog(this.#world.trace, this.name),
          place: this.#place,
          logFile: NO_LOG,
          freeMemory: () => {},
        },
      )
      this.startFailure = null
      this.#running = { agent, life, clock, clusterId: null }
      life.onEnd(() => this.#leaveFiles())
      agent.run(new AbortController().signal).catch((error: unknown) => {
        if (!life.ended) this.#world.break('stuck', `${this.name} ended: ${error instanceof Error ? error.stack : String(error)}`)
      })
    } catch (error) {
      this.startFailure = error instanceof Error ? error.message : String(error)
      this.#world.note(`${this.name} does not start: ${this.startFailure}`)
      clock.end()
    }
  }

  kill(): void {
    this.#running?.life.end()
  }

  /** Its machine starts anew. */
  boot(): void {
    this.#place = `${this.#dir} booted ${this.starts}`
  }

  setClockBy(ms: number): void {
    this.#offsetMs += ms
    this.#running?.clock.setBy(ms)
  }

  #leaveFiles(): void {
    const running = this.#running
    if (running === null) return
    this.#running = null
    running.clock.end()
    const left = this.#dir
    this.#dir = this.copy()
    // What ran in it may still be between two steps; it can do no more harm there.
    setImmediate(() => {
      try {
        running.agent.close()
      } catch {} // it was closed in the midst of something
      rmSync(left, { recursive: true, force: true })
    })
  }

  /** The files as they are at this moment. */
  copy(): string {
    const to = this.#world.nextFolder(this.name)
    copyFolder(this.#dir, to)
    this.#world.trace.detail(`${this.name} copied: ${sizesIn(to)}`)
    return to
  }

  /** Of an agent that is not running. */
  setBackTo(copy: string): void {
    rmSync(this.#dir, { recursive: true, force: true })
    this.#dir = this.#world.nextFolder(this.name)
    // The machine was started anew, or the file came back under the number of the one that it replaces.
    if (this.#world.chance(0.5)) this.#place = this.#dir
    copyFolder(copy, this.#dir)
  }

  lose(...paths: string[]): void {
    for (const path of paths) rmSync(path, { force: true })
  }

  /** Somebody else wrote the file: until it is healed nothing is expected of it. */
  tamper(): void {
    this.#tampered = true
  }

  get isTampered(): boolean {
    return this.#tampered
  }

  /** By its bytes: times of files are real time, and two writes can have the same. */
  #replicaChanged(): boolean {
    const { replica } = this.files
    if (!existsSync(replica)) return false
    const log = `${replica}-wal`
    const seen = `${Bun.hash(readFileSync(replica))} ${existsSync(log) ? Bun.hash(readFileSync(log)) : ''}`
    if (seen === this.#seen) return false
    this.#seen = seen
    return true
  }

  /** Looks at the rows on the disk and lets the orders know what this cluster held. */
  watchRows(): void {
    const clusterId = this.clusterId
    if (clusterId === null || !this.#replicaChanged()) return
    const rows = rowsOnDisk(this.#dir) ?? []
    const head = headOnDisk(this.#dir)
    // CU4: rows and cursor change together, so that whenever it dies it is at a position that was once a head.
    const fits = head !== null && head.count === rows.length && head.hash === hashOfRows(rows.map(({ id, doc }) => [id, doc]))
    if (fits) this.#tampered = false
    else if (!this.#tampered && head !== null)
      this.#world.break('diverged', `${this.name} holds ${rows.length} rows that are not those of its own cursor`)
    if (this.#tampered) return
    for (const { cluster, id, doc } of rows) {
      if (cluster !== clusterId || (id.startsWith('object/') && !doc.includes(clusterId) && doc !== 'rogue'))
        this.#world.break('foreign_row', `${this.name} holds ${id} of another cluster`)
      const service = serviceOfRow(id)
      const row = service === null ? null : readServiceRow(doc)
      if (service !== null && row !== null) this.#world.orders.sawHeld(this.name, service, row)
    }
  }

  /** The last state of every key that it ever reported, events left out. */
  reported(): StatusOnDisk[] {
    const db = openSqlite(this.files.state, { readonly: true })
    try {
      const sql = "SELECT kind, key, doc FROM outbox WHERE kind <> 'event' AND doc IS NOT NULL ORDER BY kind, key"
      return db.query<StatusOnDisk, []>(sql).all()
    } finally {
      db.close()
    }
  }
}

const sizesIn = (dir: string): string =>
  readdirSync(dir)
    .sort()
    .map((name) => `${name} ${statSync(join(dir, name)).size}`)
    .join(', ')
