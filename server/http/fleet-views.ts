// Reads what a view needs from the store and leaves the words to server/fleet/status-view.ts.
import { parseRefKey } from '../../shared/kube/object.ts'
import { type ClusterId, parseServiceKey, serviceKey } from '../../shared/model/ids.ts'
import { API_VERSION, clusterSpecSchema, FLEET, repositorySpecSchema, serviceSpecSchema } from '../../shared/model/resources.ts'
import { clusterStatusSchema, driftStatusSchema, objectStatusSchema, serviceStatusSchema } from '../../shared/model/status.ts'
import type { ClusterView, ObjectView, PlacementView, RepositoryView, ServiceView } from '../../shared/model/views.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { clusterStatusView, livenessOf, objectView, placementView, repositoryStatusView, serviceStatusView } from '../fleet/status-view.ts'
import type { ClusterRecord, Confirmation, DesiredService, StatusEntry, Store, StoredResource } from '../store/store.ts'

type AnyView = RepositoryView | ServiceView | ClusterView

export interface FleetViews {
  resource(resource: StoredResource): Promise<AnyView | null>
  placementsOfService(id: { project: string; service: string }): Promise<PlacementView[]>
  placementsInCluster(cluster: ClusterRecord): Promise<PlacementView[]>
  /** Ordered by cluster, then key. */
  objects(query: { cluster?: string; project?: string; service?: string }): Promise<ObjectView[]>
}

export function createFleetViews(store: Store, clock: Clock): FleetViews {
  const placement = async (cluster: ClusterRecord, desired: DesiredService, entry: StatusEntry | undefined): Promise<PlacementView> => {
    const { project, service } = desired
    const parsed = entry === undefined ? null : serviceStatusSchema.safeParse(entry.doc)
    return placementView({
      cluster,
      liveness: livenessOf(cluster, clock.nowMs()),
      desired,
      status: parsed?.success ? parsed.data : null,
      confirmation: await store.confirmationFor(`prune/${cluster.clusterId}/${project}/${service}`),
    })
  }

  const views: FleetViews = {
    async resource(resource) {
      const head = { apiVersion: API_VERSION, metadata: metadataOf(resource) } as const
      const spec: unknown = JSON.parse(resource.spec)
      switch (resource.kind) {
        case 'Repository': {
          const status = repositoryStatusView(await store.repositoryState(resource.project, resource.name))
          return { ...head, kind: 'Repository', spec: repositorySpecSchema.parse(spec), status }
        }
        case 'Service':
          return { ...head, kind: 'Service', spec: serviceSpecSchema.parse(spec), status: await serviceStatus(resource) }
        case 'Cluster': {
          const cluster = await store.clusterByName(resource.name)
          if (cluster === null) return null // deleted while we looked
          const [entry] = await store.listStatus({ clusterId: cluster.clusterId, kind: 'cluster' })
          const report = clusterStatusSchema.safeParse(entry?.doc)
          const status = clusterStatusView({
            cluster,
            liveness: livenessOf(cluster, clock.nowMs()),
            report: report.success ? report.data : null,
            placements: await views.placementsInCluster(cluster),
          })
          return { ...head, kind: 'Cluster', spec: clusterSpecSchema.parse(spec), status }
        }
      }
    },

    async placementsOfService(id) {
      const desired = (await store.desiredOfService(id)).filter((row) => row.doc !== null)
      if (desired.length === 0) return []
      const clusters = byId(await store.listClusters())
      const entries = new Map((await store.listStatus({ kind: 'service', key: serviceKey(id) })).map((entry) => [entry.clusterId, entry]))
      const placements: PlacementView[] = []
      for (const row of desired) {
        const cluster = clusters.get(row.clusterId)
        if (cluster !== undefined) placements.push(await placement(cluster, row, entries.get(row.clusterId)))
      }
      return placements.sort((a, b) => order(a.cluster, b.cluster))
    },

    async placementsInCluster(cluster) {
      const desired = (await store.desiredInCluster(cluster.clusterId)).filter((row) => row.doc !== null)
      const entries = await store.listStatus({ clusterId: cluster.clusterId, kind: 'service' })
      const byKey = new Map(entries.map((entry) => [entry.key, entry]))
      const placements = await Promise.all(desired.map((row) => placement(cluster, row, byKey.get(serviceKey(row)))))
      return placements.sort((a, b) => order(serviceKey(a), serviceKey(b)))
    },

    async objects(query) {
      const all = await store.listClusters()
      const clusters = byId(query.cluster === undefined ? all : all.filter((cluster) => cluster.name === query.cluster))
      const [only] = clusters.size === 1 ? clusters.keys() : []
      const keyPrefix =
        query.project === undefined ? undefined : `${query.project}/${query.service === undefined ? '' : `${query.service}/`}`
      const narrowed = { ...(only === undefined ? {} : { clusterId: only }), ...(keyPrefix === undefined ? {} : { keyPrefix }) }
      const drifts = new Map(
        (await store.listStatus({ kind: 'drift', ...narrowed })).map((entry) => [`${entry.clusterId} ${entry.key}`, entry.doc]),
      )
      const found: ObjectView[] = []
      for (const entry of await store.listStatus({ kind: 'object', ...narrowed })) {
        const cluster = clusters.get(entry.clusterId)
        const view = cluster === undefined ? null : toObject(cluster, entry, drifts.get(`${entry.clusterId} ${entry.key}`))
        if (view !== null && (query.service === undefined || view.service === query.service)) found.push(view)
      }
      return found.sort((a, b) => order(objectKey(a), objectKey(b)))
    },
  }

  async function serviceStatus(resource: StoredResource): Promise<ServiceView['status']> {
    const { project, name: service } = resource
    const id = { project, service }
    const { source } = serviceSpecSchema.parse(JSON.parse(resource.spec))
    const repository = await store.getResource({ kind: 'Repository', project, name: source.repository })
    const open = await Promise.all([
      store.confirmationFor(`remove_service/${project}/${service}`),
      store.confirmationFor(`leave_targets/${project}/${service}`),
    ])
    return serviceStatusView({
      id,
      generation: resource.generation,
      deletingMs: resource.deletingMs,
      repository: { name: source.repository, state: repository === null ? null : await store.repositoryState(project, source.repository) },
      render: await store.renderState(id),
      placements: await views.placementsOfService(id),
      confirmations: open.filter((item): item is Confirmation => item !== null && item.confirmedMs === null),
    })
  }

  function toObject(cluster: ClusterRecord, entry: StatusEntry, driftDoc: unknown): ObjectView | null {
    const [project, service, ...rest] = entry.key.split('/')
    const ref = parseRefKey(rest.join('/'))
    const status = objectStatusSchema.safeParse(entry.doc)
    if (ref === null || !status.success) return null
    const drift = driftStatusSchema.safeParse(driftDoc)
    return objectView({
      cluster,
      liveness: livenessOf(cluster, clock.nowMs()),
      id: parseServiceKey(`${project}/${service}`),
      ref,
      status: status.data,
      drift: drift.success ? drift.data : null,
    })
  }

  return views
}

function metadataOf(resource: StoredResource): AnyView['metadata'] {
  const { name, project, labels, uid, generation, version, createdMs, updatedMs, deletingMs } = resource
  return {
    name,
    ...(project === FLEET ? {} : { project }),
    labels,
    uid,
    generation,
    version,
    createdMs,
    updatedMs,
    ...(deletingMs === null ? {} : { deletingMs }),
  }
}

const byId = (clusters: readonly ClusterRecord[]): Map<ClusterId, ClusterRecord> =>
  new Map(clusters.map((cluster) => [cluster.clusterId, cluster]))
const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
export const objectKey = (view: ObjectView): string =>
  [view.cluster, view.project, view.service, view.group, view.kind, view.namespace, view.name].join('/')
