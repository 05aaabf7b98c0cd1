// One reconciler on any Cluster, fed by a replica in memory: what a test writes as objects arrives as a complete
// revision.

import type { Cluster } from '../../agent/cluster/cluster.ts'
import type { ClaimState } from '../../agent/reconcile/claim/claim-keeper.ts'
import type { EdgeAnswer } from '../../agent/reconcile/edge-orders.ts'
import type { WindowSource } from '../../agent/reconcile/plan/gates/time-gates.ts'
import { createReconciler, type Reconciler, type ReconcilerDeps } from '../../agent/reconcile/reconcile-loop.ts'
import type { SitePolicy } from '../../agent/reconcile/snapshot/permits.ts'
import type { Decryption } from '../../agent/reconcile/snapshot/wanted.ts'
import type { Replica, ServiceRead } from '../../agent/replica/replica.ts'
import type { AgentState } from '../../agent/state/agent-state.ts'
import { openAgentState } from '../../agent/state/sqlite-agent-state.ts'
import { NO_LOG } from '../../shared/adapters/log-sync.ts'
import { canonicalJson, setDigest } from '../../shared/kube/canonical.ts'
import { rowRefOf } from '../../shared/kube/generated-name.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { objectRowId, type RemovalOrder, type ServiceRow, serviceRowSchema } from '../../shared/model/desired.ts'
import type { HealthRuleSpec } from '../../shared/model/health-rules.ts'
import { sealingKeysOf, sealObject } from '../../shared/model/sealed-object.ts'
import type { DriftStatus, EventStatus, ObjectStatus, ServiceStatus } from '../../shared/model/status.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { parseServiceKey, type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import { type Logger, silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { type Trace, tracedCluster, tracedState } from './trace.ts'

export const CLUSTER_ID = 'c-0123456789abcdef'
export const SHOP: ServiceId = { project: 'web', service: 'shop' }

export class MemoryReplica implements Replica {
  readonly reads = new Map<string, ServiceRead>()
  ok = true
  position = () => null
  epoch = () => 1
  bucketSums = () => new Uint8Array()
  proof = () => null
  applyPage = () => ({ kind: 'discarded' }) as const
  services = () => [...this.reads.keys()].map(parseServiceKey)
  read = (id: ServiceId): ServiceRead => this.reads.get(serviceKey(id)) ?? { kind: 'absent' }
  unlock = (): Promise<void> | null => null
  /** Sealed rows that open, with their documents. */
  readonly opened = new Map<string, string>()
  open = (_rowId: string, doc: string): string | null => this.opened.get(doc) ?? null
  isLeaving = (id: ServiceId) => {
    const read = this.read(id)
    return read.kind === 'absent' || (read.kind === 'complete' && read.revision.row.removal !== undefined)
  }
  rules = new Map<string, string>()
  healthRules = () => [...this.rules].sort(([a], [b]) => (a < b ? -1 : 1))
  suspended: ReturnType<Replica['suspensions']> = []
  suspensions = () => this.suspended
  sites: ReturnType<Replica['siteConfigs']> = []
  siteConfigs = () => this.sites
  rowCount = () => this.reads.size
  dump = () => []
  verified = () => this.ok
  close = () => {}
}

const SEALING = sealingKeysOf({ id: '0a0b0c0d', secret: new Uint8Array(32) }, SHOP)

export interface RowOptions extends Omit<Partial<ServiceRow>, 'sync'> {
  sync?: Partial<ServiceRow['sync']>
  /** Every row comes sealed. */
  sealed?: boolean
}

export interface ReconcileKit {
  replica: MemoryReplica
  state: AgentState
  reconciler: Reconciler
  claims: ClaimState[]
  /** HealthRules of this cluster, by `project/name` (`/name`: of the whole fleet), in place of all former ones. */
  rules(rules: Readonly<Record<string, HealthRuleSpec>>): void
  /** A complete revision of these objects; the digest comes back. */
  desire(objects: readonly K8sObject[], options?: RowOptions, id?: ServiceId): string
  remove(policy: RemovalOrder['policy'], id?: ServiceId, atMs?: number, options?: RowOptions): void
  /** Their orders come in one page. */
  removeAll(ids: readonly ServiceId[], atMs: number): void
  /** The row goes, as after a confirmed removal. */
  dropRow(id?: ServiceId): void
  /** A person at the site confirms the list that the service shows. */
  confirm(id?: ServiceId): EdgeAnswer
  service(id?: ServiceId): ServiceStatus | null
  object(key: string, id?: ServiceId): ObjectStatus | null
  drift(key: string, id?: ServiceId): DriftStatus | null
  events(): EventStatus[]
  start(): void
  /** Ends the run; replica and state stay for the next `start`. */
  stop(): Promise<void>
}

export interface KitOptions {
  cluster: Cluster
  clock: Clock
  statePath?: string
  incarnation?: number
  agentId?: string
  /** Registration of the cluster; default CLUSTER_ID. */
  clusterId?: string
  /** Registrations that the server knows to be former ones. */
  formerClusters?: readonly string[]
  /** CM5; without it every start is at another one. */
  place?: string | null
  seed?: number
  isCurrent?: () => boolean
  windowsOf?: WindowSource
  resyncMs?: number
  /** LX1. Absent means that the site has none. */
  policy?: () => SitePolicy | null
  log?: Logger
  /** Of a simulated history: requests, answers, events and writes to the disk go there. */
  trace?: Trace
  /** What the reconciler has for its state; the test keeps the state itself. */
  watched?: (state: AgentState) => AgentState
  /** Opens SOPS documents. Absent means that nothing does. */
  decryption?: (state: AgentState) => Decryption
  /** Whether it writes Kubernetes Events and reads logs. */
  told?: Pick<ReconcilerDeps, 'kubeEvents' | 'podLogs'>
}

export function createReconcileKit({
  cluster,
  clock,
  statePath = ':memory:',
  incarnation = 1,
  agentId = 'a-1',
  clusterId = CLUSTER_ID,
  formerClusters = [],
  place = null,
  seed = 1,
  isCurrent = () => true,
  windowsOf,
  resyncMs,
  policy,
  log = silentLogger,
  trace,
  watched = (state) => state,
  decryption,
  told = {},
}: KitOptions): ReconcileKit {
  const replica = new MemoryReplica()
  const opened = openAgentState(statePath, undefined, NO_LOG)
  const state = trace === undefined ? opened : tracedState(opened, trace)
  const claims: ClaimState[] = []
  let stop = new AbortController()
  let running = Promise.resolve()
  const random = seededRandom(seed)
  const create = () =>
    createReconciler({
      replica,
      state: watched(state),
      cluster: trace === undefined ? cluster : tracedCluster(cluster, trace),
      identity: { clusterId, agentId, incarnation, formerClusters },
      isCurrent,
      ...(windowsOf === undefined ? {} : { windowsOf }),
      ...(resyncMs === undefined ? {} : { resyncMs }),
      ...(policy === undefined ? {} : { policy }),
      ...(decryption === undefined ? {} : { sops: decryption(state) }),
      clock,
      place,
      random,
      log,
      onClaim: (claim) => void claims.push(claim),
      onUnreachable: () => {},
      ...told,
    })
  const order = (policy: RemovalOrder['policy'], id: ServiceId, atMs: number, { sync = {}, ...options }: RowOptions) => {
    const removal = { policy, by: 'test', atMs, why: 'test' }
    const row = serviceRowSchema.parse({ commit: 'c', digest: setDigest([]), count: 0, ...options, sync, removal })
    replica.reads.set(serviceKey(id), { kind: 'complete', revision: { ...id, row, objects: new Map() } })
  }
  const kit: ReconcileKit = {
    replica,
    state,
    claims,
    reconciler: create(),
    rules(rules) {
      replica.rules = new Map(Object.entries(rules).map(([name, spec]) => [`healthrule/${name}`, canonicalJson(spec)]))
      kit.reconciler.revisionsChanged([])
    },
    desire(objects, { sync = {}, sealed = false, ...options } = {}, id = SHOP) {
      const rowOf = (object: K8sObject): [string, string] => {
        const [rowId, doc] = [objectRowId(id, rowRefOf(object)), canonicalJson(object)]
        if (!sealed) return [rowId, doc]
        const row = sealObject(SEALING, rowId, object, doc)
        replica.opened.set(row, doc)
        return [rowId, row]
      }
      const rows = new Map(objects.map(rowOf))
      const digest = setDigest(rows)
      const row = serviceRowSchema.parse({ commit: `commit-${digest.slice(0, 6)}`, digest, count: rows.size, ...options, sync })
      replica.reads.set(serviceKey(id), { kind: 'complete', revision: { ...id, row, objects: rows } })
      kit.reconciler.revisionsChanged([id])
      return digest
    },
    remove(policy, id = SHOP, atMs = 0, options = {}) {
      order(policy, id, atMs, options)
      kit.reconciler.revisionsChanged([id])
    },
    removeAll(ids, atMs) {
      for (const id of ids) order('delete', id, atMs, {})
      kit.reconciler.revisionsChanged(ids)
    },
    dropRow(id = SHOP) {
      replica.reads.delete(serviceKey(id))
      kit.reconciler.revisionsChanged([id])
    },
    confirm(id = SHOP) {
      const digest = kit.service(id)?.refusal?.list ?? 'none'
      return kit.reconciler.order({ kind: 'confirm', service: serviceKey(id), digest, by: 'ola' })
    },
    service: (id = SHOP) => state.lastReported('service', serviceKey(id)) as ServiceStatus | null,
    object: (key, id = SHOP) => state.lastReported('object', `${serviceKey(id)}/${key}`) as ObjectStatus | null,
    drift: (key, id = SHOP) => state.lastReported('drift', `${serviceKey(id)}/${key}`) as DriftStatus | null,
    events: () => state.outbox(10_000).flatMap(({ kind, doc }) => (kind === 'event' ? [doc as EventStatus] : [])),
    start() {
      stop = new AbortController()
      kit.reconciler = create()
      running = kit.reconciler.run(stop.signal)
    },
    async stop() {
      stop.abort()
      await running
    },
  }
  return kit
}

/** A turn that broke and an object that was forgotten are errors, and nothing else in these lives is. */
export function errorsInto(problems: string[]): Logger {
  const log: Logger = {
    ...silentLogger,
    error: (message, fields) => void problems.push(`${message} ${JSON.stringify(fields)}`),
    with: () => log,
  }
  return log
}

export const configMap = (name: string, data: Record<string, string> = { a: '1' }, namespace = 'default'): K8sObject =>
  ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data }) as K8sObject
export const configMapKey = (name: string, namespace = 'default'): string => `/ConfigMap/${namespace}/${name}`
export const configMapRef = (name: string, namespace = 'default') => ({ group: '', kind: 'ConfigMap', namespace, name })
export const configMaps = (count: number, namespace = 'default'): K8sObject[] =>
  Array.from({ length: count }, (_, i) => configMap(`m${String(i).padStart(4, '0')}`, { n: String(i) }, namespace))
