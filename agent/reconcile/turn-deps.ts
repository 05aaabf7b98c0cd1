// What a turn of one service works with. Shared by all services: ports, what is known of the cluster, and the one index of who owns what.
import type { ObjectRef } from '../../shared/kube/object.ts'
import type { ServiceId } from '../../shared/model/ids.ts'
import { durationMs } from '../../shared/model/resources.ts'
import type { EventStatus, ObjectStatus, StatusKind } from '../../shared/model/status.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { Random } from '../../shared/runtime/random.ts'
import type { Cluster } from '../cluster/cluster.ts'
import type { Replica } from '../replica/replica.ts'
import type { AgentState, TurnRecord } from '../state/agent-state.ts'
import { actingOf, clusterAs, unplacedAccount } from './apply/acting.ts'
import type { RequestGate } from './apply/request-gate.ts'
import type { Autoscalers } from './fields/autoscalers.ts'
import type { Dependents } from './gates/dependents.ts'
import type { Closed } from './gates/gates.ts'
import type { TimeGates } from './gates/time-gates.ts'
import { viewIn } from './plan-view.ts'
import type { Taker } from './prune/handover.ts'
import type { ServiceModel } from './service-model.ts'
import type { FirstContacts } from './watch/first-contacts.ts'
import type { LiveObject } from './watch/live-object.ts'
import type { ServedKinds } from './watch/served-kinds.ts'
import type { LiveView, Watches } from './watch/watches.ts'

export interface StatusUpdate {
  kind: StatusKind
  key: string
  /** Null removes the key. */
  doc: unknown
}

export interface TurnDeps {
  /** Holds and windows. */
  times: TimeGates
  replica: Replica
  state: AgentState
  cluster: Cluster
  clusterId: string
  kinds: ServedKinds
  watches: Watches
  gate: RequestGate
  firstContacts: FirstContacts
  clock: Clock
  random: Random
  log: Logger
  signal: AbortSignal
  /** Keyed by refKey. */
  owners: Map<string, ServiceId>
  /** Services other than `model` whose revision names the object. */
  othersWanting(model: ServiceModel, key: string): ServiceModel[]
  /** RC11: services other than `model` that make the object where nobody has it: their namespace. */
  othersNeeding(model: ServiceModel, key: string): ServiceModel[]
  /** Who depends on whom, and who waits for whom. */
  dependents: Dependents
  /** Null: nothing is known of that service here. */
  modelOf(serviceKey: string): ServiceModel | null
  /** How often new rows came. When it moved, nobody knows any more that no other service wants what is to be deleted. */
  revisionsSeen(): number
  /** True: another service has rows that it did not read yet. `model` is woken when all are read. */
  waitsForOthers(model: ServiceModel): boolean
  /** `model` is woken when rows of another service were read. */
  wakeWhenRead(model: ServiceModel): void
  /** What is known of the service that an object is handed over to. */
  taker(id: ServiceId): Taker
  /** PR10: UIDs of applied objects that revisions name, of all services. */
  uidsInForce(): ReadonlySet<string>
  /** PR7: the replica is known not to be an older one that came back. */
  isCurrent(): boolean
  /** A service has read its rows. */
  revisionRead(): void
  /** Says why workloads are not well. */
  explainer: {
    /** HE8: after a turn. */
    look(model: ServiceModel, deps: TurnDeps): void
    /** The status with what is known beyond it. */
    say(model: ServiceModel, key: string, status: ObjectStatus, previous: ObjectStatus | null): ObjectStatus
    explanation(service: string, key: string): string
  }
  /** How services want the health of their objects told. */
  healthChoices: {
    load(state: AgentState): Promise<void>
    follow(model: ServiceModel, deps: Pick<TurnDeps, 'state' | 'kinds' | 'watches'>): Promise<void>
  }
  /** What scales objects of ours. */
  autoscalers: Autoscalers
  /** Keys of services of which something failed that another object is the cause of. */
  lacking: Set<string>
  /** An object changed: what failed because of it is tried at once. */
  causeChanged(key: string, isHealthy: boolean): void
  /** Watches follow the kinds of all inventories; `model`: only this service's have changed. */
  followKinds(model?: ServiceModel): void
  /** IV3: live objects that carry the service's mark and were in no inventory. */
  strays(model: ServiceModel): Iterable<{ key: string; apiVersion: string; live: LiveObject }>
  /** Stopping, or another agent has the claim: nothing more is begun. */
  isHalted(): boolean
  wake(serviceKey: string): void
  wakeAt(serviceKey: string, atMs: number): void
  emit(event: Omit<EventStatus, 'atMs'>): void
  /** Only as a Kubernetes Event on the object, where those are wanted (KE2): too many for the server to hear of. */
  emitOnObject(event: Omit<EventStatus, 'atMs'>): void
  /** Goes into the agent's state at the end of the turn, in one transaction. */
  report(rows: readonly StatusUpdate[]): void
  flushReports(turn?: TurnRecord): void
}

/** RC17: has the service's health deadline passed since, in this process? */
export function isHealthOverdue(model: ServiceModel, { clock, signal, wake }: TurnDeps, key: string, sinceMs: number): boolean {
  const deadlineMs = durationMs(model.sync().healthDeadline)
  return model.deadlines.isOver(key, { sinceMs, deadlineMs, clock, signal, wake: () => wake(model.key) })
}

/** As the watches have it. */
export const liveIn = (
  { kinds, watches }: Pick<TurnDeps, 'kinds' | 'watches'>,
  object: { key: string; ref: ObjectRef; apiVersion: string },
): LiveView => viewIn({ find: kinds.find.bind(kinds), view: watches.view.bind(watches) }, object)

/** IM1: the cluster as the service may change it. */
export function serviceCluster(model: ServiceModel, { cluster, kinds }: TurnDeps): Cluster {
  const lookup = kinds.find('', 'v1', 'ServiceAccount')
  return clusterAs(cluster, actingOf(model), lookup.kind === 'served' ? lookup.resource : null)
}

/** IM2 */
export const accountTrouble = (model: ServiceModel): Closed | null => unplacedAccount(actingOf(model))
