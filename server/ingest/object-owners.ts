// Which other service takes over an object, and which one manages it now: asked before a person removes or changes a
// service. The answers are those that the next reconciliations come to (PR8), as far as the other services were
// rendered.
import { keyOutsideNamespaces } from '../../shared/kube/object.ts'
import type { ServiceSpec } from '../../shared/model/resources.ts'
import type { ClusterId, ServiceId } from '../../shared/runtime/ids.ts'
import { type Handover, handoversTo } from '../fleet/handover.ts'
import { isOfUnknownScope } from '../fleet/named-objects.ts'
import type { DesiredService } from '../fleet/records.ts'
import type { TargetCluster } from '../fleet/targeting.ts'
import { type ClustersToRead, findGainers, findHandovers, type HandoverDeps } from './find-handovers.ts'

/** By the key of an object. */
export type ObjectTakers = ReadonlyMap<string, ServiceId>

/** Objects of a service that another one manages now, in these clusters. */
export interface HeldByOther {
  by: ServiceId
  clusters: string[]
  objects: ReadonlySet<string>
}

export interface ObjectOwners {
  /** For rows of the service in clusters that lose all of it. `clusters`: these clusters, as they will be. Equal
   *  answers are one map. */
  takersOfAll(
    id: ServiceId,
    rows: readonly DesiredService[],
    clusters: ClustersToRead,
    specs?: ProposedSpecs,
  ): Promise<(row: DesiredService) => ObjectTakers>
  /** For a cluster that keeps the service and loses these objects. */
  takersOf(id: ServiceId, cluster: TargetCluster, lost: ReadonlySet<string>, specs?: ProposedSpecs): Promise<ObjectTakers>
  /** For objects that the service gets in these clusters. */
  holdersOf(id: ServiceId, clusters: readonly TargetCluster[], gained: ReadonlySet<string>): Promise<HeldByOther[]>
}

/** Specs that a request is about to write. Null means as they are stored. */
export type ProposedSpecs = (id: ServiceId) => ServiceSpec | null

const AS_STORED: ProposedSpecs = () => null

/** The service that takes over an object. */
export function takerOf(takers: ObjectTakers, object: string): ServiceId | null {
  return takers.get(object) ?? (isOfUnknownScope(object) ? takers.get(keyOutsideNamespaces(object)) : undefined) ?? null
}

export function createObjectOwners(deps: HandoverDeps): ObjectOwners {
  return {
    async takersOfAll(id, rows, clusters, specs = AS_STORED) {
      const handovers = await findHandovers(proposing(deps, specs), id, rows, clusters, null, new Set())
      const made = new Map<readonly Handover[], ObjectTakers>()
      return (row) => {
        const handed = handovers(row, 'removal')
        if (handed.length === 0) return NOBODY
        const takers = made.get(handed) ?? takersIn(handed)
        made.set(handed, takers)
        return takers
      }
    },
    async takersOf(id, cluster, lost, specs = AS_STORED) {
      const { gainers } = await findGainers(proposing(deps, specs), id, lost, [cluster])
      return takersIn(handoversTo(lost, gainers, cluster.clusterId))
    },
    async holdersOf(id, clusters, gained) {
      const { gainers } = await findGainers(deps, id, gained, clusters)
      const found: HeldByOther[] = []
      for (const { id: by, rows } of gainers) {
        const names = new Map<ClusterId, string[]>()
        for (const { clusterId } of clusters) {
          const row = rows.get(clusterId)
          const held = row === undefined ? [] : [...gained].filter((object) => row.names.has(object))
          if (held.length > 0) names.set(clusterId, held)
        }
        if (names.size === 0) continue
        const places = clusters.filter(({ clusterId }) => names.has(clusterId)).map(({ name }) => name)
        found.push({ by, clusters: places.sort(), objects: new Set([...names.values()].flat()) })
      }
      return found
    },
  }
}

const NOBODY: ObjectTakers = new Map()

const takersIn = (handovers: readonly Handover[]): ObjectTakers =>
  new Map(handovers.map(({ object, project, service }) => [object, { project, service }]))

function proposing(deps: HandoverDeps, specs: ProposedSpecs): HandoverDeps {
  const getResource: HandoverDeps['store']['getResource'] = async (key) => {
    const held = await deps.store.getResource(key)
    const spec = key.kind === 'Service' ? specs({ project: key.project, service: key.name }) : null
    return held === null || spec === null ? held : { ...held, spec: JSON.stringify(spec) }
  }
  return { ...deps, store: { desiredOfService: deps.store.desiredOfService, getResource } }
}
