// The port to ingest: what sets off reconciliations, and what other rooms read of it.
import type { ClusterId, ServiceId } from '../../shared/runtime/ids.ts'
import type { StatusWrite } from '../fleet/records.ts'
import type { ConfirmedData } from '../fleet/removal-effect.ts'
import type { ClusterChange } from './cluster-changes.ts'
import type { KnownFacts } from './cluster-facts.ts'
import type { RepositoryReadTimes } from './read-times.ts'
import type { ServiceRenderer } from './render/service-render.ts'

export interface Ingest {
  /** Until the server stops; then what was begun is finished. */
  run(): Promise<void>
  /**
   * It was written or deleted, or a webhook reported a change. Resolves when it was read and its services were
   * reconciled.
   */
  repositoryChanged(project: string, name: string): Promise<void>
  /** Resolves when a reconciliation that began after this call is done; rejects if it failed (and is retried). */
  serviceChanged(id: ServiceId): Promise<void>
  /**
   * RM1: names that a person confirmed together with a change, passed on after the change was written and before its
   * consequences. They count in the next reconciliation of each service alone.
   */
  dataConfirmed(confirmed: ConfirmedData): Promise<void>
  /**
   * These clusters joined or were written. Absent means any of them. Resolves when reconciliations that began after
   * this call covered every service that one of them has or should have.
   */
  clustersChanged(changes?: readonly ClusterChange[]): Promise<void>
  /** A cluster was deleted that had these services. */
  clusterDeleted(clusterId: ClusterId, services: readonly ServiceId[]): Promise<void>
  /** A rule was written or deleted. Resolves when its clusters have it; `clusterNames`: only these, which joined. */
  healthRulesChanged(clusterNames?: readonly string[]): Promise<void>
  /** SU1: suspensions changed. Resolves when their clusters have the rows; `clusterNames`: only these, which joined. */
  suspensionsChanged(clusterNames?: readonly string[]): Promise<void>
  /** SC1: a service or clusters were written, or anything else that decides which ConfigMaps a cluster reports.
   *  Resolves when the clusters have the rows. */
  siteConfigsChanged(what: { service?: ServiceId; clusters?: readonly string[] }): Promise<void>
  /** Status rows of a cluster, written just now; what it says of itself may change renders (FA5). Returns at once. */
  statusReported(clusterId: ClusterId, rows: readonly StatusWrite[]): void
  /** Null if there is no such repository, as far as is known. */
  readTimesOf(project: string, name: string): RepositoryReadTimes | null
  /** Without any consequence. `renderBy`: by other workers, with another cache; rows are not sealed. */
  readonly render: ServiceRenderer['render']
  readonly renderBy: ServiceRenderer['renderBy']
  readonly rendersNaming: ServiceRenderer['rendersNaming']
  /** CG9: explains the values of Helm charts. */
  readonly helmValues: ServiceRenderer['helmValues']
  /** RH8: finds the file that an object is made of. */
  readonly originOf: ServiceRenderer['originOf']
  /** Facts of clusters, for other renders. */
  readonly factsOf: KnownFacts['of']
  /** Values that clusters report of their ConfigMaps, for other renders. */
  readonly siteOf: KnownFacts['siteOf']
}
