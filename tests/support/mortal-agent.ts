// A reconciler that dies at a chosen place: between any two things that it does to the cluster or to its disk, before a
// request, or after one whose answer it never hears. What was asked of it before death is not undone; the next life has
// the same disk and nothing else.
import type { Cluster } from '../../agent/cluster/cluster.ts'
import { createReconciler } from '../../agent/reconcile/reconcile-loop.ts'
import type { AgentState } from '../../agent/state/agent-state.ts'
import { openAgentState } from '../../agent/state/sqlite-agent-state.ts'
import { parseTracking, TRACKING_ANNOTATION } from '../../shared/kube/marks.ts'
import { type K8sObject, type ObjectRef, refKey, refOf } from '../../shared/kube/object.ts'
import type { ServiceRow } from '../../shared/model/desired.ts'
import type { ServiceStatus } from '../../shared/model/status.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { serviceKey } from '../../shared/runtime/ids.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { CLUSTER_ID, createReconcileKit, type RowOptions } from './reconcile-kit.ts'

const STATE_WRITES: ReadonlySet<string> = new Set([
  'widenInventory',
  'recordApplied',
  'narrowInventory',
  'setServiceState',
  'setFacts',
  'forgetService',
  'report',
])
const CLUSTER_WRITES: ReadonlySet<string> = new Set(['apply', 'delete', 'mergePatch'])
const CLUSTER_READS: ReadonlySet<string> = new Set(['get', 'discover'])

type AnyFunction = (...args: unknown[]) => unknown

export class MortalAgent {
  /** Places that it came by, over all lives, such as `apply ConfigMap a, before`. */
  readonly places: string[] = []
  /** What must never happen. */
  readonly wrong: string[] = []
  readonly state: AgentState
  readonly #deps: { cluster: Cluster; clock: Clock; dieAt: ReadonlySet<number> }
  readonly #kit: ReturnType<typeof createReconcileKit>
  /** By service: what its row names, by refKey. */
  readonly #wanted = new Map<string, Set<string>>()
  readonly #everWanted = new Set<string>()
  #life: { dead: boolean; stop: AbortController; done: Promise<void>; wake: (services: readonly ServiceId[]) => void } | null = null

  constructor(deps: { cluster: Cluster; clock: Clock; dieAt: ReadonlySet<number> }) {
    this.#deps = deps
    this.state = openAgentState(':memory:')
    // Only its replica is used: rows as the server would write them.
    this.#kit = createReconcileKit({ cluster: deps.cluster, clock: deps.clock })
  }

  /** Lives: begun and not over. */
  isAlive(): boolean {
    return this.#life !== null && !this.#life.dead
  }

  start(): void {
    const { cluster, clock } = this.#deps
    const stop = new AbortController()
    const life = { dead: false, stop, done: Promise.resolve(), wake: (_services: readonly ServiceId[]) => {} }
    this.#life = life
    const reconciler = createReconciler({
      replica: this.#kit.replica,
      state: this.#mortalState(life),
      cluster: this.#mortalCluster(cluster, life),
      identity: { clusterId: CLUSTER_ID, agentId: 'a-1', incarnation: 1 },
      place: 'here',
      clock,
      random: seededRandom(7),
      log: silentLogger,
      onClaim: () => {},
      onUnreachable: () => {},
    })
    life.wake = (services) => reconciler.revisionsChanged(services)
    life.done = reconciler.run(stop.signal).catch((error: unknown) => {
      if (!life.dead) throw error
    })
  }

  /** The next life, if this one is over. True: it was. */
  revive(): boolean {
    if (this.isAlive()) return false
    this.start()
    return true
  }

  async stop(): Promise<void> {
    const life = this.#life
    life?.stop.abort()
    // One that hangs in a request without an answer never ends.
    if (life !== null && !life.dead) await life.done
    this.state.close()
    this.#kit.state.close()
  }

  desire(id: ServiceId, objects: readonly K8sObject[], options: RowOptions = {}): void {
    const keys = new Set(objects.map((object) => refKey(refOf(object))))
    this.#wanted.set(serviceKey(id), keys)
    for (const key of keys) this.#everWanted.add(key)
    this.#kit.desire(objects, options, id)
    this.#wake(id)
  }

  remove(id: ServiceId, policy: NonNullable<ServiceRow['removal']>['policy']): void {
    this.#wanted.delete(serviceKey(id))
    this.#kit.remove(policy, id, this.#deps.clock.nowMs())
    this.#wake(id)
  }

  dropRow(id: ServiceId): void {
    this.#kit.dropRow(id)
    this.#wake(id)
  }

  service = (id: ServiceId): ServiceStatus | null => this.state.lastReported('service', serviceKey(id)) as ServiceStatus | null
  inventory = (id: ServiceId): string[] =>
    this.state
      .inventory(id)
      .map(({ ref }) => ref.name)
      .sort()

  /** IV8: what carries our marks is in an inventory whenever anybody looks, or, on its way from one service to another,
   *  in the rows of the taker. */
  checkInventory(live: readonly K8sObject[]): void {
    for (const object of live) {
      const key = refKey(refOf(object))
      const tracking = parseTracking(object.metadata.annotations?.[TRACKING_ANNOTATION])
      const isWanted = [...this.#wanted.values()].some((keys) => keys.has(key))
      if (tracking?.key === key && this.state.ownerOf(key) === null && !isWanted)
        this.wrong.push(`after ${this.places.length} places ${key} has our mark and is in no inventory`)
    }
  }

  #wake(id: ServiceId): void {
    if (this.isAlive()) this.#life?.wake([id])
  }

  /** True: this is where it dies. */
  #pass(life: { dead: boolean; stop: AbortController }, place: string): boolean {
    if (life.dead) return true
    this.places.push(place)
    if (!this.#deps.dieAt.has(this.places.length - 1)) return false
    life.dead = true
    life.stop.abort()
    return true
  }

  #mortalState(life: { dead: boolean; stop: AbortController }): AgentState {
    return new Proxy(this.state, {
      get: (target, name: keyof AgentState) => {
        const method = target[name] as AnyFunction
        return (...args: unknown[]) => {
          const isWrite = STATE_WRITES.has(name)
          if (life.dead || (isWrite && this.#pass(life, `${name}, before`))) throw new Error('killed')
          const answer = method.apply(target, args)
          if (isWrite && this.#pass(life, `${name}, after`)) throw new Error('killed')
          return answer
        }
      },
    })
  }

  #mortalCluster(cluster: Cluster, life: { dead: boolean; stop: AbortController }): Cluster {
    const never = () => new Promise<never>(() => {})
    return new Proxy(cluster, {
      get: (target, name: string) => {
        const method = target[name as keyof Cluster] as AnyFunction
        if (name === 'watch')
          return (...args: unknown[]) => this.#mortalWatch(method.apply(target, args) as ReturnType<Cluster['watch']>, life)
        if (!CLUSTER_WRITES.has(name) && !CLUSTER_READS.has(name)) return method
        return async (...args: unknown[]) => {
          const place = `${name} ${textOf(args[1])}`
          if (life.dead || this.#pass(life, `${place}, before`)) return never()
          if (name === 'delete') this.#judgeDelete(args[1] as ObjectRef)
          const answer = await method.apply(target, args)
          if (life.dead || (CLUSTER_WRITES.has(name) && this.#pass(life, `${place}, after`))) return never()
          return answer
        }
      },
    })
  }

  async *#mortalWatch(
    events: ReturnType<Cluster['watch']>,
    life: { dead: boolean },
  ): ReturnType<Cluster['watch']> extends AsyncIterable<infer E> ? AsyncGenerator<E> : never {
    for await (const event of events) {
      if (life.dead) return
      yield event
    }
  }

  #judgeDelete(ref: ObjectRef): void {
    const key = refKey(ref)
    if (!this.#everWanted.has(key)) this.wrong.push(`deletes ${key}, which was never its own`)
    for (const [service, keys] of this.#wanted) if (keys.has(key)) this.wrong.push(`deletes ${key}, which ${service} wants`)
  }
}

function textOf(subject: unknown): string {
  if (subject === null || typeof subject !== 'object') return ''
  const ref = 'metadata' in subject ? refOf(subject as K8sObject) : (subject as ObjectRef)
  return `${ref.kind} ${ref.name}`
}
