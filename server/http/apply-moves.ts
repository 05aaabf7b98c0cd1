// What an apply moves: read before anything is written, and told with its answer.
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { type ServiceId, serviceKey } from '../../shared/model/ids.ts'
import { type Applicable, projectOf, serviceSpecSchema } from '../../shared/model/resources.ts'
import { LIST_LIMIT_MAX, type MoveView } from '../../shared/model/views.ts'
import { createPace, type Pace } from '../../shared/runtime/pace.ts'
import { type MovingCluster, type MovingService, moveOf, moveView, whyLeavingWaits } from '../fleet/moves.ts'
import { leaveSubject } from '../fleet/plan-service.ts'
import type { Leaver, PlannedRemoval } from '../fleet/removal-plans.ts'
import type { ClusterRecord, DesiredService, StoredResource } from '../store/records.ts'
import type { AdminDeps } from './deps.ts'

/** Services of which it is looked whether leaving waits: all rows of each are read. */
const LOOKED_MAX = 50

interface Planned {
  resource: Applicable
  held: StoredResource | null
}
interface Moved {
  service: MovingService
  cluster: string
}

/** `moves`: in the order given; of resources that move nothing there is none. */
export async function readMoves(
  { store, removals, clock }: Pick<AdminDeps, 'store' | 'removals' | 'clock'>,
  planned: readonly Planned[],
): Promise<{ moves: MoveView[]; removals: PlannedRemoval[] }> {
  const retargeted = planned.flatMap((one) => retargetedService(one) ?? [])
  const relabelled = new Map(planned.flatMap(({ resource, held }) => relabelledCluster(resource, held)))
  if (retargeted.length + relabelled.size === 0) return { moves: [], removals: [] }
  const pace = createPace(clock)
  const clusters = await store.listClusters()
  const moving = clusters.flatMap((cluster): MovingCluster[] => {
    const after = relabelled.get(cluster.name)
    return after === undefined ? [] : [{ clusterId: cluster.clusterId, name: cluster.name, before: cluster.labels, after }]
  })
  const changed = new Map(retargeted.map((service) => [serviceKey(service.id), service]))
  const services = moving.length === 0 ? retargeted : await allServices(store, changed)

  const moves = new Map<string, { leaves: Moved[]; comes: Moved[]; leavers: Leaver[] }>()
  const note = (
    key: string,
    service: MovingService,
    cluster: Pick<MovingCluster, 'name' | 'before' | 'after'>,
    row: DesiredService | undefined,
  ) => {
    const held = moves.get(key) ?? { leaves: [], comes: [], leavers: [] }
    moves.set(key, held)
    const move = moveOf(service, cluster, row !== undefined)
    if (move !== null) held[move].push({ service, cluster: cluster.name })
    if (move === 'leaves' && row !== undefined)
      held.leavers.push({ id: service.id, cluster: cluster.name, row, policy: service.after.deletionPolicy })
  }
  for (const cluster of moving) {
    const rows = new Map((await store.desiredInCluster(cluster.clusterId)).filter(isHeld).map((row) => [serviceKey(row), row]))
    for (const service of services) note(`Cluster/${cluster.name}`, service, cluster, rows.get(serviceKey(service.id)))
    await pace()
  }
  for (const service of retargeted) {
    const rows = new Map((await store.desiredOfService(service.id)).filter(isHeld).map((row) => [row.clusterId, row]))
    for (const { clusterId, name, labels } of clusters)
      if (!relabelled.has(name))
        note(`Service/${serviceKey(service.id)}`, service, { name, before: labels, after: labels }, rows.get(clusterId))
    await pace()
  }
  const leaving = new Map(
    [...moves.values()].flatMap(({ leaves }) => leaves.map(({ service }) => [serviceKey(service.id), service] as const)),
  )
  const waiting = await whyWaiting(store, [...leaving.values()], clusters, relabelled, pace)
  const views: MoveView[] = []
  const removed: PlannedRemoval[] = []
  for (const { resource } of planned) {
    const { kind, metadata } = resource
    const project = projectOf(resource)
    const {
      leaves = [],
      comes = [],
      leavers = [],
    } = moves.get(kind === 'Service' ? `Service/${project}/${metadata.name}` : `${kind}/${metadata.name}`) ?? {}
    const view = moveView({ kind, project, name: metadata.name }, leaves, comes, waiting)
    if (view === null) continue
    const effects = leavers.length === 0 ? [] : await removals.of(leavers)
    removed.push(...effects)
    views.push(effects.length === 0 ? view : { ...view, removals: effects.map((effect) => effect.view) })
  }
  return { moves: views, removals: removed }
}

const isHeld = ({ doc }: DesiredService): boolean => doc !== null && doc.removal === undefined

function retargetedService({ resource, held }: Planned): MovingService | null {
  if (resource.kind !== 'Service' || held === null || held.deletingMs !== null) return null
  const before = serviceSpecSchema.parse(JSON.parse(held.spec))
  const isSame = canonicalJson(before.targets) === canonicalJson(resource.spec.targets)
  // Clusters that it is leaving already, where that waits, are left in another way.
  if (isSame && before.deletionPolicy === resource.spec.deletionPolicy) return null
  return { id: { project: held.project, service: held.name }, before, after: resource.spec }
}

function relabelledCluster(resource: Applicable, held: StoredResource | null): Array<[string, Record<string, string>]> {
  if (resource.kind !== 'Cluster' || held === null) return []
  const { name, labels } = resource.metadata
  return canonicalJson(held.labels) === canonicalJson(labels) ? [] : [[name, labels]]
}

/** Those that are changed as they will be; none that is being deleted. */
async function allServices(store: AdminDeps['store'], changed: ReadonlyMap<string, MovingService>): Promise<MovingService[]> {
  const services: MovingService[] = []
  let after: string | undefined
  do {
    const page = await store.listResources('Service', { limit: LIST_LIMIT_MAX, ...(after === undefined ? {} : { after }) })
    for (const { project, name, spec, deletingMs } of page.items) {
      if (deletingMs !== null) continue
      const id: ServiceId = { project, service: name }
      const known = changed.get(serviceKey(id))
      const held = known?.before ?? serviceSpecSchema.parse(JSON.parse(spec))
      services.push(known ?? { id, before: held, after: held })
    }
    after = page.next ?? undefined
  } while (after !== undefined)
  return services
}

/** By key. */
async function whyWaiting(
  store: AdminDeps['store'],
  leaving: readonly MovingService[],
  clusters: readonly ClusterRecord[],
  relabelled: ReadonlyMap<string, Record<string, string>>,
  pace: Pace,
): Promise<Map<string, string>> {
  const waiting = new Map<string, string>()
  const asTheyWillBe = clusters.map((cluster) => ({ ...cluster, labels: relabelled.get(cluster.name) ?? cluster.labels }))
  for (const service of leaving.slice(0, LOOKED_MAX)) {
    const asked = await store.confirmationFor(leaveSubject(service.id))
    const why = whyLeavingWaits(service, await store.desiredOfService(service.id), asTheyWillBe, asked)
    if (why !== null) waiting.set(serviceKey(service.id), why)
    await pace()
  }
  return waiting
}
