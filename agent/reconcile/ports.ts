// The dependencies of the rooms of the reconciler: one port for each subject, composed once, in reconcile-loop.ts. A
// function takes the ports that it uses and no others. A plan takes none: it gets what was read through them.

import type { EventStatus, ObjectStatus, StatusKind } from '../../shared/model/status.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { Random } from '../../shared/runtime/random.ts'
import type { Cluster } from '../cluster/cluster.ts'
import type { Replica } from '../replica/replica.ts'
import type { AgentState, TurnRecord } from '../state/agent-state.ts'
import type { ContentsReader } from './apply/contents.ts'
import type { MarkedSearch } from './apply/marked-search.ts'
import type { TimeGates } from './plan/gates/time-gates.ts'
import type { Ticket } from './requests/fair-queue.ts'
import type { Asking } from './requests/placed-cluster.ts'
import type { RequestScheduler } from './requests/request-scheduler.ts'
import type { Dependents } from './snapshot/dependents.ts'
import type { SitePolicy } from './snapshot/permits.ts'
import type { ServiceModel, ServiceSnapshot } from './snapshot/service-model.ts'
import type { Decryption } from './snapshot/wanted.ts'
import type { Autoscalers } from './snapshot/watch/autoscalers.ts'
import type { LackingObjects } from './snapshot/watch/causes.ts'
import type { Definitions } from './snapshot/watch/definitions.ts'
import type { FirstContacts } from './snapshot/watch/first-contacts.ts'
import type { LiveObject, Registrations } from './snapshot/watch/live-object.ts'
import type { ServedKinds } from './snapshot/watch/served-kinds.ts'
import type { Taker } from './snapshot/watch/service-registry.ts'
import type { Watches } from './snapshot/watch/watches.ts'

/** The cluster as this agent knows it, and where the agent runs. */
export interface Site extends Registrations {
  cluster: Cluster
  kinds: ServedKinds
  watches: Watches
  /** The autoscalers of objects of ours. */
  autoscalers: Autoscalers
  /** How services want the health of their objects evaluated. */
  healthChoices: {
    load(state: AgentState): Promise<void>
    /** Resolves when the rules of the fleet that arrived with the rows are in force. */
    rulesRead(): Promise<void>
    follow(model: ServiceModel, deps: Pick<Site, 'kinds' | 'watches'> & Pick<Storage, 'state'>): Promise<void>
  }
  /** LX1: the present policy of the site. Null means none. */
  policy(): SitePolicy | null
  /** SP4: opens SOPS documents with the age keys of the site. */
  sops: Decryption
  clock: Clock
  random: Random
  log: Logger
  signal: AbortSignal
}

/** The requests of a reconciliation to the API server, beyond the watches. */
export interface Requests {
  /** For the steps of plans. */
  scheduler: RequestScheduler
  /** For everything else. */
  asking(who: { service: string; purpose?: Ticket['purpose'] }): Asking
  /** Existing objects, for all services together. */
  firstContacts: FirstContacts
  /** Evidence that is read before a deletion or a removal from the inventory. */
  evidence: {
    /** IV9: the CRDs of custom kinds. */
    definitions: Definitions
    /** RM3: the content of a Namespace or CRD. */
    contents: ContentsReader
    /** IV6: marked objects in kinds that are not watched. */
    marked: MarkedSearch
  }
}

/** State that survives the process. */
export interface Storage {
  state: AgentState
  replica: Replica
}

/** The services of this cluster together. */
export interface Services {
  /** Keyed by refKey. */
  owners: Map<string, ServiceId>
  /** Whether a service other than `own` has an object in the namespace. */
  hasOthersIn(namespace: string, own: string): boolean
  /** Null if that service is unknown here. */
  modelOf(serviceKey: string): ServiceModel | null
  /** Services other than `model` whose revision names the object. */
  othersWanting(model: ServiceModel, key: string): ServiceModel[]
  /** RC11: services other than `model` that create the object, their namespace, if it does not exist. */
  othersNeeding(model: ServiceModel, key: string): ServiceModel[]
  /** IV3: live objects that carry the service's mark and were in no inventory. */
  unrecorded(model: ServiceModel): Iterable<{ key: string; apiVersion: string; live: LiveObject }>
  /** PR10: an object that a revision of some service names was applied under this UID. */
  isUidInForce(uid: string): boolean
  /** The state of the service that an object is handed over to. */
  taker(id: ServiceId): Taker
  /** The dependencies between services, and which service waits for which. */
  dependents: Dependents
  /** The number of arrivals of new rows. */
  revisionsSeen(): number
  /**
   * As `revisionsSeen`, without removal orders. After a change, another service may want an object that is about to be
   * deleted.
   */
  takersSeen(): number
  /** `model` has read its rows. */
  revisionRead(model: ServiceModel): void
  /** True: another service has rows that it did not read yet. `model` is woken when all are read. */
  waitsForOthers(model: ServiceModel): boolean
  /** `model` is woken when rows of another service were read. */
  wakeWhenRead(model: ServiceModel): void
  /** A failure that another object may have caused. */
  lacking: Pick<LackingObjects, 'add'>
  /** An object changed: objects that failed because of it are retried at once. */
  causeChanged(key: string, isHealthy: boolean): void
  /** Watches follow the kinds of all inventories; `model`: only this service's have changed. */
  followKinds(model?: ServiceModel): void
}

/** Whether and when a service reconciles, and what that may do. */
export interface Turns {
  /** Stopping, or another agent has the claim: nothing more begins. */
  isHalted(): boolean
  /** RC30: the reconciliation has used up its time and others wait: nothing more begins in it. */
  mustYield(serviceKey: string): boolean
  /** PR7: the replica is known not to be an older one. */
  isCurrent(): boolean
  /** Holds and windows. */
  times: TimeGates
  wake(serviceKey: string): void
  wakeAt(serviceKey: string, atMs: number): void
}

export interface StatusUpdate {
  kind: StatusKind
  key: string
  /** Null removes the key. */
  doc: unknown
}

/** The report of a turn. */
export interface Reports {
  emit(event: Omit<EventStatus, 'atMs'>): void
  /** Written only as a Kubernetes Event on the object, if those are enabled (KE2): too many for the server. */
  emitOnObject(event: Omit<EventStatus, 'atMs'>): void
  /** Stored in the agent's state at the end of the reconciliation, in one transaction. */
  report(rows: readonly StatusUpdate[]): void
  /** Stores at once what waits. */
  flushReports(): void
  /** Resolves when the record of a turn is stored with what was reported. Turns that end together share a transaction.
   */
  recordTurn(turn: TurnRecord): Promise<void>
  /** Explains unhealthy workloads. */
  explainer: {
    /** HE8: after a turn. */
    look(model: ServiceModel, deps: Site & Requests & Turns): void
    /** The status with further known facts. */
    say(model: ServiceSnapshot, key: string, status: ObjectStatus, previous: ObjectStatus | null): ObjectStatus
    explanation(service: string, key: string): string
  }
}
