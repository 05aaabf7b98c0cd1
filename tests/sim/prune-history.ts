// One history of pruning: commits and how they reach a site, crashes, older disks, other people's hands. Everything
// follows from the seed.
import { copyFileSync, existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Cluster } from '../../agent/cluster/cluster.ts'
import { CLAIM_NAMESPACE } from '../../agent/reconcile/claim/claim.ts'
import { createReconciler, type Reconciler } from '../../agent/reconcile/reconcile-loop.ts'
import { ownerOf } from '../../agent/reconcile/snapshot/watch/live-object.ts'
import type { AgentState } from '../../agent/state/agent-state.ts'
import { openAgentState } from '../../agent/state/sqlite-agent-state.ts'
import { NO_LOG } from '../../shared/adapters/log-sync.ts'
import { healthOf } from '../../shared/kube/health.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { confirmationToken } from '../../shared/model/desired.ts'
import type { ServiceStatus } from '../../shared/model/status.ts'
import { parseServiceKey, serviceKey } from '../../shared/runtime/ids.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { type Random, seededRandom } from '../../shared/runtime/random.ts'
import { createFakeCluster, type FakeCluster } from '../support/fake-cluster.ts'
import { CLUSTER_ID, MemoryReplica } from '../support/reconcile-kit.ts'
import { createTracedClock, type Trace, tracedCluster, tracedState } from '../support/trace.ts'
import type { ProcessClock, SharedClock } from '../support/virtual-clock.ts'
import { type Commit, isContainer, judgeDelete, type LogEntry, NAMES, PruneWorld, refOfName } from './prune-world.ts'

export interface PruneReport {
  seed: number
  broken: string[]
  trace: Trace
  deletes: number
  orphans: number
  crashes: number
  handovers: number
}

export const pick = <T>(random: Random, items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
const AVAILABLE = {
  observedGeneration: 1,
  replicas: 1,
  updatedReplicas: 1,
  readyReplicas: 1,
  availableReplicas: 1,
  conditions: [{ type: 'Available', status: 'True' }],
}

const serviceOf = (object: K8sObject): string | null => {
  const owner = ownerOf(object)
  return owner.kind === 'service' ? `${owner.project}/${owner.service}` : null
}
const isOf = (key: string, keyAndDigest: string): boolean => keyAndDigest.startsWith(`${key} `)

/** One start of the agent. When it crashed, nothing that it began is answered any more. */
interface Life {
  state: AgentState
  clock: ProcessClock
  stop: AbortController
  running: Promise<void>
  reconciler: Reconciler
  dead: boolean
}

export class PruneHistory {
  readonly random: Random
  readonly clock: SharedClock
  readonly cluster: FakeCluster
  readonly world = new PruneWorld()
  readonly replica = new MemoryReplica()
  readonly report: PruneReport
  readonly #dir: string
  readonly #held = new Map<string, LogEntry | 'incomplete'>()
  readonly #inForce = new Map<string, LogEntry>()
  /** UID → the service that applied it last. */
  readonly #applied = new Map<string, string>()
  /** Service → token of the revision or order that the reconciler read last. */
  readonly #read = new Map<string, string>()
  /** Service and token to the names that were shown. */
  readonly #confirmed = new Map<string, ReadonlySet<string>>()
  readonly #confirmedHere = new Set<string>()
  readonly #deletedFor = new Map<string, Set<string>>()
  readonly #lost = new Set<string>()
  #delivered = 0
  #current = true
  #life: Life | null = null
  /** Crash at this many requests from now; 0: not. */
  #crashIn = 0
  #snapshot: { held: Map<string, LogEntry | 'incomplete'>; delivered: number; confirmed: Map<string, ReadonlySet<string>> } | null = null
  #starts = 0

  constructor(seed: number, dir: string) {
    const { clock, trace, random } = createTracedClock(seed)
    this.random = random
    this.clock = clock
    this.cluster = createFakeCluster({ clock })
    this.#dir = dir
    const { read } = this.replica
    this.replica.read = (id) => {
      const answer = read(id)
      if (answer.kind === 'complete') this.#reads(serviceKey(id), confirmationToken(answer.revision.row))
      return answer
    }
    this.report = { seed, broken: [], trace, deletes: 0, orphans: 0, crashes: 0, handovers: 0 }
  }

  get state(): AgentState | null {
    return this.#life?.state ?? null
  }

  start(): void {
    const state = tracedState(openAgentState(this.#statePath(), undefined, NO_LOG), this.report.trace)
    const clock = this.clock.process(0)
    const life: Life = { state, clock, stop: new AbortController(), running: Promise.resolve(), dead: false, reconciler: null as never }
    this.#starts += 1
    this.#confirmedHere.clear()
    this.#inForce.clear()
    for (const [key, held] of this.#held) if (held !== 'incomplete') this.#inForce.set(key, held)
    life.reconciler = createReconciler({
      replica: this.replica,
      state,
      cluster: tracedCluster(this.#portOf(life), this.report.trace),
      identity: { clusterId: CLUSTER_ID, agentId: 'a-1', incarnation: this.#starts },
      isCurrent: () => this.#current,
      clock,
      random: seededRandom(this.#starts),
      log: silentLogger,
      onClaim: () => {},
      onUnreachable: () => {},
    })
    this.#life = life
    life.running = life.reconciler.run(life.stop.signal)
  }

  async stop(): Promise<void> {
    const life = this.#life
    if (life === null) return
    this.#life = null
    life.stop.abort()
    await this.clock.settle()
    await life.running
    life.state.close()
  }

  crash(): void {
    const life = this.#life
    if (life === null) return
    this.#life = null
    this.report.crashes += 1
    life.dead = true
    life.clock.end()
    life.stop.abort()
    life.state.close()
  }

  /** In `requests` from now. */
  crashSoon(requests: number): void {
    this.#crashIn = requests
  }

  // What reaches the site.

  commit(next: Commit): void {
    this.world.commits.push(next)
  }

  /** The next rows of the server's log, as many as come with one pull. */
  deliver(count: number): void {
    const changed = new Set<string>()
    for (const entry of this.world.log.slice(this.#delivered, this.#delivered + count)) {
      const key = serviceKey(entry.id)
      if (entry.revision === null) this.#held.delete(key)
      else this.#held.set(key, entry)
      changed.add(key)
    }
    this.#delivered = Math.min(this.world.log.length, this.#delivered + count)
    this.#showReplica()
    this.#life?.reconciler.revisionsChanged([...changed].map(parseServiceKey))
  }

  /** The server answers: the replica is all that it has. */
  contact(): void {
    this.deliver(this.world.log.length)
    this.repair()
    this.#current = true
    this.#life?.reconciler.becameCurrent()
  }

  /** Rows of a service are lost: some of them, or the service's own with all that was known of it. */
  damage(key: string, whole: boolean): void {
    if (!this.#held.has(key)) return
    if (whole) {
      this.#held.delete(key)
      this.#lost.add(key)
      this.replica.ok = false
    } else this.#held.set(key, 'incomplete')
    this.#showReplica()
    this.#life?.reconciler.revisionsChanged([parseServiceKey(key)])
  }

  /** Rows that were damaged are fetched again. */
  repair(): void {
    const damaged = [...this.#lost, ...[...this.#held].flatMap(([key, held]) => (held === 'incomplete' ? [key] : []))]
    this.#lost.clear()
    this.replica.ok = true
    for (const key of damaged) {
      const entry = this.world.log.slice(0, this.#delivered).findLast(({ id }) => serviceKey(id) === key)
      if (entry?.revision) this.#held.set(key, entry)
      else this.#held.delete(key)
    }
    this.#showReplica()
    this.#life?.reconciler.revisionsChanged(damaged.map(parseServiceKey))
  }

  /** What the disk holds now, to come back later. The agent is not running. */
  takeSnapshot(): void {
    if (this.#life !== null || !existsSync(this.#statePath())) return
    copyFileSync(this.#statePath(), `${this.#statePath()}.old`)
    this.#snapshot = { held: new Map(this.#held), delivered: this.#delivered, confirmed: new Map(this.#confirmed) }
  }

  comeBackOlder(withState: boolean): void {
    const snapshot = this.#snapshot
    if (snapshot === null || this.#life !== null) return
    this.#held.clear()
    for (const [key, held] of snapshot.held) this.#held.set(key, held)
    this.#delivered = snapshot.delivered
    this.#current = false
    if (withState) {
      this.#dropStateFiles()
      copyFileSync(`${this.#statePath()}.old`, this.#statePath())
      this.#confirmed.clear()
      for (const [yes, names] of snapshot.confirmed) this.#confirmed.set(yes, names)
    }
    this.#showReplica()
  }

  loseDisk(): void {
    if (this.#life !== null) return
    this.#dropStateFiles()
    this.#confirmed.clear()
    this.#held.clear()
    this.#delivered = 0
    this.#current = false
    this.#showReplica()
  }

  restartedOffline(): void {
    this.#current = false
  }

  confirmAtSite(key: string): void {
    const status = this.state?.lastReported('service', key) as ServiceStatus | null
    const { digest, list } = status?.refusal ?? {}
    if (digest === undefined || list === undefined || this.#life === null) return
    const answer = this.#life.reconciler.order({ kind: 'confirm', service: key, digest: list, by: 'ola' })
    if (answer.kind !== 'done') return
    const before = this.#confirmed.get(`${key} ${digest}`) ?? []
    this.#confirmed.set(`${key} ${digest}`, new Set([...before, ...(status?.refusal?.names ?? [])]))
    this.#confirmedHere.add(`${key} ${digest}`)
  }

  live(name: string): K8sObject | null {
    return this.cluster.object(refOfName(name))
  }

  status(key: string): ServiceStatus | null {
    return (this.state?.lastReported('service', key) as ServiceStatus | null) ?? null
  }

  makeHealthy(): void {
    for (const name of NAMES) {
      const object = this.live(name)
      if (object === null || name.startsWith('m') || isContainer(name)) continue
      const status = name.startsWith('v') ? { phase: 'Bound' } : { ...AVAILABLE, observedGeneration: object.metadata.generation ?? 1 }
      this.cluster.setStatus(refOfName(name), status)
    }
  }

  #statePath = (): string => join(this.#dir, 'agent.sqlite')

  #dropStateFiles(): void {
    for (const suffix of ['', '-wal', '-shm']) rmSync(this.#statePath() + suffix, { force: true })
  }

  #showReplica(): void {
    this.replica.reads.clear()
    for (const [key, held] of this.#held) {
      if (held === 'incomplete') this.replica.reads.set(key, { kind: 'incomplete', why: 'one row is missing' })
      else if (held.revision !== null) {
        this.replica.reads.set(key, { kind: 'complete', revision: held.revision })
        this.#inForce.set(key, held)
      }
    }
  }

  /** The port of one life: it counts, judges, and after a crash answers nothing. */
  #portOf(life: Life): Cluster {
    const never = () => new Promise<never>(() => {})
    const { cluster } = this
    const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
      if (life.dead) return never()
      if (this.#crashIn > 0) {
        this.#crashIn -= 1
        if (this.#crashIn === 0) {
          // The API server may have done it all the same.
          if (this.random() < 0.5) await work()
          if (!life.dead) this.crash()
          return never()
        }
      }
      const answer = await work()
      return life.dead ? never() : answer
    }
    return {
      info: () => guarded(() => cluster.info()),
      discover: () => guarded(() => cluster.discover()),
      get: (resource, ref, options) => guarded(() => cluster.get(resource, ref, options)),
      apply: (resource, object, options) =>
        guarded(async () => {
          const answer = await cluster.apply(resource, object, options)
          const owner = answer.kind === 'applied' ? serviceOf(answer.object) : null
          if (answer.kind === 'applied' && answer.object.metadata.uid) this.#applied.set(answer.object.metadata.uid, owner ?? '')
          return answer
        }),
      delete: (resource, ref, uid, ...rest) =>
        guarded(async () => {
          const broken = ref.namespace === CLAIM_NAMESPACE ? null : this.#judge(ref.name.split('.')[0] ?? '', uid)
          const answer = await cluster.delete(resource, ref, uid, ...rest)
          if (broken === null || answer.kind === 'replaced' || answer.kind === 'changed') return answer
          this.report.broken.push(broken)
          return answer
        }),
      mergePatch: (resource, ref, body, ...rest) =>
        guarded(() => {
          if (ref.namespace !== CLAIM_NAMESPACE) this.report.orphans += 1
          return cluster.mergePatch(resource, ref, body, ...rest)
        }),
      watch: (resource, options) => cluster.watch(resource, { ...options, signal: AbortSignal.any([options.signal, life.stop.signal]) }),
    }
  }

  /** PR1, EC1: a guard counts, and a yes is good for, the time in which one revision is the service's. */
  #reads(key: string, digest: string): void {
    if (this.#read.get(key) === digest) return
    this.#read.set(key, digest)
    for (const seen of this.#deletedFor.keys()) if (isOf(key, seen) && seen !== `${key} ${digest}`) this.#deletedFor.delete(seen)
    for (const yes of this.#confirmed.keys()) if (isOf(key, yes) && yes !== `${key} ${digest}`) this.#confirmed.delete(yes)
    for (const yes of this.#confirmedHere) if (isOf(key, yes) && yes !== `${key} ${digest}`) this.#confirmedHere.delete(yes)
  }

  /** What is wrong with deleting it now. Null means nothing. */
  #judge(name: string, uid: string): string | null {
    this.report.deletes += 1
    const found = judgeDelete(name, uid, {
      world: this.world,
      replica: this.#held,
      inForce: this.#inForce,
      verified: this.replica.ok,
      current: this.#current,
      confirmedHere: this.#confirmedHere,
      confirmed: this.#confirmed,
      applied: this.#applied,
      live: (other) => this.live(other),
      all: () => this.cluster.objects(),
      ownerOf: serviceOf,
      isHealthy: (other) => {
        const object = this.live(other)
        return object !== null && healthOf(object, this.clock.nowMs()).word === 'Healthy'
      },
      deletedFor: this.#deletedFor,
    })
    return found === null ? null : `${name} was deleted: ${found}`
  }
}
