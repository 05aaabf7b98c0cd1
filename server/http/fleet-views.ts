// Reads what a view needs from the store and leaves the words to server/fleet/status-view.ts.
import { parseRowId } from '../../shared/model/desired.ts'
import { type ServiceId, serviceKey } from '../../shared/model/ids.ts'
import { API_VERSION, clusterSpecSchema, FLEET, repositorySpecSchema, serviceSpecSchema } from '../../shared/model/resources.ts'
import { clusterStatusSchema, driftStatusSchema, objectStatusSchema, serviceStatusSchema } from '../../shared/model/status.ts'
import type { ClusterView, ObjectView, PlacementView, RepositoryView, ServiceView } from '../../shared/model/views.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { leaveSubject, pruneSubject, removeSubject } from '../fleet/plan-service.ts'
import type { RestoreActions } from '../fleet/restore-actions.ts'
import { clusterStatusView, livenessOf, objectView, placementView, repositoryStatusView, serviceStatusView } from '../fleet/status-view.ts'
import type { ClusterRecord, DesiredService, StatusEntry, Store, StoredResource } from '../store/store.ts'

type AnyView = RepositoryView | ServiceView | ClusterView

export interface ObjectQuery {
  cluster?: string
  project?: string
  service?: string
  /** Strictly after what the page before ended with. */
  after?: string
  limit: number
}
export interface ObjectPage {
  items: ObjectView[]
  next: string | null
}

export interface FleetViews {
  /** Those that were deleted while we looked are left out. */
  resources(resources: readonly StoredResource[]): Promise<AnyView[]>
  placementsOfService(id: ServiceId): Promise<PlacementView[]>
  placementsInCluster(cluster: ClusterRecord): Promise<PlacementView[]>
  /** Ordered by cluster, then key. */
  objects(query: ObjectQuery): Promise<ObjectPage>
}

export function createFleetViews(store: Store, clock: Clock, restore: Pick<RestoreActions, 'pendingSinceMs'>): FleetViews {
  const reading = () => new FleetReading(store, clock, restore)
  return {
    async resources(resources) {
      const shared = reading()
      const views = await Promise.all(resources.map((resource) => shared.resource(resource)))
      return views.filter((view) => view !== null)
    },
    placementsOfService: (id) => reading().placementsOfService(id),
    placementsInCluster: (cluster) => reading().placementsInCluster(cluster),
    objects: (query) => reading().objects(query),
  }
}

/** One answer's worth of reading: what many of its items need is read once. */
class FleetReading {
  private readonly store: Store
  private readonly restore: Pick<RestoreActions, 'pendingSinceMs'>
  private readonly nowMs: number
  private readonly memo = new Map<string, Promise<unknown>>()

  constructor(store: Store, clock: Clock, restore: Pick<RestoreActions, 'pendingSinceMs'>) {
    this.store = store
    this.restore = restore
    this.nowMs = clock.nowMs()
  }

  private once<T>(key: string, read: () => Promise<T>): Promise<T> {
    const held = this.memo.get(key) ?? read()
    this.memo.set(key, held)
    return held as Promise<T>
  }

  private readonly clusters = () =>
    this.once('clusters', async () => new Map((await this.store.listClusters()).map((cluster) => [cluster.clusterId, cluster])))
  private readonly questions = () =>
    this.once('questions', async () => new Map((await this.store.listConfirmations()).map((item) => [item.subject, item])))
  /** Null: there is none of that name. */
  private readonly repository = (project: string, name: string) =>
    this.once(`repository ${project}/${name}`, async () => {
      const held = await this.store.getResource({ kind: 'Repository', project, name })
      return held === null ? null : this.store.repositoryState(project, name)
    })

  async resource(resource: StoredResource): Promise<AnyView | null> {
    const head = { apiVersion: API_VERSION, metadata: metadataOf(resource) } as const
    const spec: unknown = JSON.parse(resource.spec)
    switch (resource.kind) {
      case 'Repository': {
        const status = repositoryStatusView(await this.store.repositoryState(resource.project, resource.name))
        return { ...head, kind: 'Repository', spec: repositorySpecSchema.parse(spec), status }
      }
      case 'Service':
        return { ...head, kind: 'Service', spec: serviceSpecSchema.parse(spec), status: await this.serviceStatus(resource) }
      case 'Cluster': {
        const status = await this.clusterStatus(resource.name)
        return status === null ? null : { ...head, kind: 'Cluster', spec: clusterSpecSchema.parse(spec), status }
      }
    }
  }

  private async clusterStatus(name: string): Promise<ClusterView['status'] | null> {
    const cluster = [...(await this.clusters()).values()].find((candidate) => candidate.name === name)
    if (cluster === undefined) return null
    const [entry] = await this.store.listStatus({ clusterId: cluster.clusterId, kind: 'cluster' })
    const placements = await this.placementsInCluster(cluster)
    const report = clusterStatusSchema.safeParse(entry?.doc).data ?? null
    const restoreSinceMs = await this.once('restore', () => this.restore.pendingSinceMs())
    return clusterStatusView({ cluster, liveness: livenessOf(cluster, this.nowMs), report, placements, restoreSinceMs })
  }

  private async serviceStatus(resource: StoredResource): Promise<ServiceView['status']> {
    const { project, name: service } = resource
    const id = { project, service }
    const { source } = serviceSpecSchema.parse(JSON.parse(resource.spec))
    const questions = await this.questions()
    const open = [removeSubject(id), leaveSubject(id)].map((subject) => questions.get(subject))
    return serviceStatusView({
      id,
      generation: resource.generation,
      deletingMs: resource.deletingMs,
      repository: { name: source.repository, state: await this.repository(project, source.repository) },
      render: await this.store.renderState(id),
      placements: await this.placementsOfService(id),
      confirmations: open.filter((item) => item !== undefined),
    })
  }

  async placementsOfService(id: ServiceId): Promise<PlacementView[]> {
    const desired = (await this.store.desiredOfService(id)).filter((row) => row.doc !== null)
    if (desired.length === 0) return []
    const clusters = await this.clusters()
    const entries = new Map(
      (await this.store.listStatus({ kind: 'service', key: serviceKey(id) })).map((entry) => [entry.clusterId, entry]),
    )
    const placements: PlacementView[] = []
    for (const row of desired) {
      const cluster = clusters.get(row.clusterId)
      if (cluster !== undefined) placements.push(await this.placement(cluster, row, entries.get(row.clusterId)))
    }
    return placements.sort((a, b) => order(a.cluster, b.cluster))
  }

  async placementsInCluster(cluster: ClusterRecord): Promise<PlacementView[]> {
    const desired = (await this.store.desiredInCluster(cluster.clusterId)).filter((row) => row.doc !== null)
    const entries = await this.store.listStatus({ clusterId: cluster.clusterId, kind: 'service' })
    const byKey = new Map(entries.map((entry) => [entry.key, entry]))
    const placements = await Promise.all(desired.map((row) => this.placement(cluster, row, byKey.get(serviceKey(row)))))
    return placements.sort((a, b) => order(serviceKey(a), serviceKey(b)))
  }

  private async placement(cluster: ClusterRecord, desired: DesiredService, entry: StatusEntry | undefined): Promise<PlacementView> {
    const questions = await this.questions()
    return placementView({
      cluster,
      liveness: livenessOf(cluster, this.nowMs),
      desired,
      status: serviceStatusSchema.safeParse(entry?.doc).data ?? null,
      confirmation: questions.get(pruneSubject(cluster.clusterId, desired)) ?? null,
    })
  }

  /** Cluster by cluster, so that a page costs what is on it and not what the whole fleet has. */
  async objects({ cluster: only, project, service, after, limit }: ObjectQuery): Promise<ObjectPage> {
    const keyPrefix = project === undefined ? undefined : `${project}/${service === undefined ? '' : `${service}/`}`
    const afterCluster = after === undefined ? '' : `${after.split('/')[0]}/`
    const clusters = [...(await this.clusters()).values()]
      .filter(({ name }) => (only === undefined || name === only) && `${name}/` >= afterCluster)
      .sort((a, b) => order(`${a.name}/`, `${b.name}/`))
    const items: ObjectView[] = []
    for (const cluster of clusters) {
      const views = (await this.objectsIn(cluster, keyPrefix)).filter((view) => service === undefined || view.service === service)
      const rest = after === undefined ? views : views.filter((view) => objectKey(view) > after)
      items.push(...rest.sort((a, b) => order(objectKey(a), objectKey(b))))
      const last = items[limit - 1]
      if (items.length > limit && last !== undefined) return { items: items.slice(0, limit), next: objectKey(last) }
    }
    return { items, next: null }
  }

  private async objectsIn(cluster: ClusterRecord, keyPrefix: string | undefined): Promise<ObjectView[]> {
    const narrowed = { clusterId: cluster.clusterId, ...(keyPrefix === undefined ? {} : { keyPrefix }) }
    const entries = await this.store.listStatus({ kind: 'object', ...narrowed })
    if (entries.length === 0) return []
    const drifts = new Map((await this.store.listStatus({ kind: 'drift', ...narrowed })).map(({ key, doc }) => [key, doc]))
    return entries.map((entry) => this.object(cluster, entry, drifts.get(entry.key))).filter((view) => view !== null)
  }

  private object(cluster: ClusterRecord, entry: StatusEntry, driftDoc: unknown): ObjectView | null {
    const row = parseRowId(`object/${entry.key}`)
    const status = objectStatusSchema.safeParse(entry.doc)
    if (row.kind !== 'object' || !status.success) return null
    const drift = driftStatusSchema.safeParse(driftDoc).data ?? null
    return objectView({ cluster, liveness: livenessOf(cluster, this.nowMs), id: row.id, ref: row.ref, status: status.data, drift })
  }
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

const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
const objectKey = (view: ObjectView): string =>
  [view.cluster, view.project, view.service, view.group, view.kind, view.namespace, view.name].join('/')
