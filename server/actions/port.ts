// The port to what happens because of a write: targeting, removal orders, the guard. Routes ask, they never decide.

import type { ObjectOrder } from '../../shared/model/object-order.ts'
import type { SyncAnswer, SyncPlanView, SyncRequest } from '../../shared/model/sync.ts'
import type { ClusterId, ServiceId } from '../../shared/runtime/ids.ts'
import type { ClusterRecord, Confirmation, ResourceKey } from '../fleet/records.ts'
import type { ConfirmedData } from '../fleet/removal-effect.ts'

export type DeleteOutcome =
  | { kind: 'not_found' }
  /** It was in no cluster. */
  | { kind: 'deleted' }
  /** Removal orders are on their way to these clusters, by name. */
  | { kind: 'removing'; clusters: string[] }
  /** The guard wants a person: nothing has happened yet. */
  | { kind: 'waiting'; confirmation: Confirmation }

export interface ChangedResource extends ResourceKey {
  /** For a Cluster: only the labels count, and its spec stays. */
  labelsOnly?: boolean
  /** Nothing of a Cluster but what the server asks of its agent: nothing is reconciled. Absent means false. */
  agentOnly?: true
}

export interface FleetActions {
  /** `confirmed`: what goes with it although it holds data. Throws `conflict` for another version than `ifVersion`. */
  deleteService(id: ServiceId, by: string, confirmed?: ConfirmedData, ifVersion?: number): Promise<DeleteOutcome>
  /**
   * For a service whose deletion waits for a confirmation; false when none waits (any more). The caller writes the
   * service then.
   */
  takeBackDeletion(id: ServiceId, by: string): Promise<boolean>
  /** Objects that are applied in the cluster stay. Resolves to false if there is no cluster of that name. Throws
   *  `conflict` for another version than `ifVersion`. */
  deleteCluster(name: string, by: string, ifVersion?: number): Promise<boolean>
  /** Null if nothing of that id waits. `upTo`: as `Store.confirm` has it. */
  confirm(id: string, by: string, confirmed?: ConfirmedData, upTo?: number): Promise<Confirmation | null>
  /** The objects stay. The deletion of a service is taken back. Null means that nothing of that id waits. */
  refuse(id: string, no: { by: string; why: string; upTo?: number | undefined }): Promise<Confirmation | null>
  /** The changes of a sync by hand in the wanted clusters. Null if there is no such service. */
  planSync(id: ServiceId, wanted: (cluster: ClusterRecord) => boolean): Promise<SyncPlanView | null>
  /** Waves and phases of the objects of a service in a cluster. Null means that the cluster does not have it. */
  objectOrder(id: ServiceId, clusterId: ClusterId): Promise<ObjectOrder[] | null>
  /** Throws `conflict` for a digest that is not current. Null means that there is no such service. */
  allowSync(id: ServiceId, request: SyncRequest, by: string): Promise<SyncAnswer | null>
  /** Suspensions were ordered or lifted. Resolves when the rows of every cluster have them. */
  suspensionsChanged(): Promise<void>
  /** Resources were created, changed or (a repository) deleted: all that one request did. Returns at once; the work
   *  follows. */
  onChanged(changed: readonly ChangedResource[], confirmed?: ConfirmedData): void
}
