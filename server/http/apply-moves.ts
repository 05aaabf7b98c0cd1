// The placements that an apply moves: read before the write, and part of its answer.
import { canonicalJson } from '../../shared/kube/canonical.ts'
import type { MoveView } from '../../shared/model/apply-views.ts'
import type { Labels } from '../../shared/model/labels.ts'
import type { ProjectSpec } from '../../shared/model/projects.ts'
import { type Applicable, projectOf, type ServiceSpec, serviceSpecSchema } from '../../shared/model/resources.ts'
import { LIST_LIMIT_MAX } from '../../shared/model/views.ts'
import { type ClusterId, type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import { createPace, type Pace } from '../../shared/runtime/pace.ts'
import type { Leaver, PlannedRemoval } from '../actions/removal-plans.ts'
import {
  type LeavingFacts,
  leavingTally,
  type MovingCluster,
  type MovingService,
  moveOf,
  moveView,
  whyLeavingWaits,
} from '../fleet/moves.ts'
import { leaveSubject } from '../fleet/plan-service.ts'
import type { DesiredService, StoredResource } from '../fleet/records.ts'
import { createTargetMemo, isTarget, type TargetCluster, type TargetTest, withDestinations } from '../fleet/targeting.ts'
import { parseServiceSpec } from '../ingest/known-specs.ts'
import { readProject } from '../ingest/projects.ts'
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

interface Moves {
  leaves: Moved[]
  comes: Moved[]
  leavers: Leaver[]
}
type AskedCluster = Pick<MovingCluster, 'name' | 'before' | 'after'>

/** AZ4: whether an answer may name a service, its clusters and its objects. */
export type IsShown = (id: ServiceId) => boolean

/**
 * `moves`: in the order given; of resources that move nothing there is none. Services that are not shown count, without
 * a name, and there is no removal of them.
 */
export async function readMoves(
  { store, removals, clock, isShown = () => true }: Pick<AdminDeps, 'store' | 'removals' | 'clock'> & { isShown?: IsShown },
  planned: readonly Planned[],
  evaluate: TargetTest = isTarget,
): Promise<{ moves: MoveView[]; removals: PlannedRemoval[] }> {
  const pace = createPace(clock)
  const bounded = createBounded(store, planned)
  const retargeted = await retargetedServices(planned, bounded, pace)
  const relabelled = relabelledClusters(planned)
  if (retargeted.length + relabelled.size === 0) return { moves: [], removals: [] }
  const takes = createTargetMemo(evaluate)
  // Where no service gets other targets, nothing is asked of the clusters that keep their labels.
  const clusters = retargeted.length === 0 ? [] : await store.listClusters()
  const moving = (await store.findClusters({ names: [...relabelled.keys()] })).flatMap((cluster): MovingCluster[] => {
    const after = relabelled.get(cluster.name)
    return after === undefined ? [] : [{ clusterId: cluster.clusterId, name: cluster.name, before: cluster.labels, after }]
  })
  const changed = new Map(retargeted.map((service) => [serviceKey(service.id), service]))
  const services = moving.length === 0 ? retargeted : await allServices(store, changed, bounded, pace)

  const moves = new Map<string, Moves>()
  const leaving = new Map<MovingService, DesiredService[]>()
  const note = async (key: string, service: MovingService, cluster: AskedCluster, row: DesiredService | undefined) => {
    const turn = pace()
    if (turn !== undefined) await turn
    const move = moveOf(service, cluster, row !== undefined, takes)
    if (move === null) return
    const held = moves.get(key) ?? { leaves: [], comes: [], leavers: [] }
    moves.set(key, held)
    held[move].push({ service, cluster: cluster.name })
    if (move !== 'leaves' || row === undefined || !isShown(service.id)) return
    const rows = leaving.get(service) ?? []
    leaving.set(service, rows)
    rows.push(row)
    held.leavers.push({ id: service.id, cluster: cluster.name, row, policy: service.after.deletionPolicy })
  }
  for (const cluster of moving) {
    const rows = new Map((await store.desiredInCluster(cluster.clusterId)).filter(isHeld).map((row) => [serviceKey(row), row]))
    for (const service of services) await note(`Cluster/${cluster.name}`, service, cluster, rows.get(serviceKey(service.id)))
  }
  for (const service of retargeted) {
    const rows = new Map((await store.desiredOfService(service.id)).filter(isHeld).map((row) => [row.clusterId, row]))
    await pace()
    for (const { clusterId, name, labels } of clusters)
      if (!relabelled.has(name))
        await note(`Service/${serviceKey(service.id)}`, service, { name, before: labels, after: labels }, rows.get(clusterId))
  }
  const { waiting, looked } = await whyWaiting({ store, pace, takes, relabelled, changed }, leaving)
  const moved = planned.map(({ resource }) => moves.get(moveKey(resource)) ?? NO_MOVES)
  const given = proposedSpecs(planned)
  const effects = await removals.of(
    moved.map(({ leavers }) => leavers),
    isShown,
    { labels: relabelled, specs: (id) => given.get(serviceKey(id)) ?? null },
  )
  const views: MoveView[] = []
  for (const [index, { resource }] of planned.entries()) {
    const { leaves, comes } = moved[index] ?? NO_MOVES
    const about = { kind: resource.kind, project: projectOf(resource), name: resource.metadata.name }
    const view = moveView(about, leaves, comes, waiting, isShown, (key) => looked.has(key))
    const removed = effects[index] ?? []
    await pace()
    if (view !== null) views.push(removed.length === 0 ? view : { ...view, removals: removed.map((effect) => effect.view) })
  }
  return { moves: views, removals: effects.flat() }
}

/** Specs of the services of a request, by key. */
export const proposedSpecs = (planned: readonly Planned[]): Map<string, ServiceSpec> =>
  new Map(
    planned.flatMap(({ resource }) =>
      resource.kind === 'Service'
        ? [[serviceKey({ project: resource.metadata.project, service: resource.metadata.name }), resource.spec] as const]
        : [],
    ),
  )

const NO_MOVES: Moves = { leaves: [], comes: [], leavers: [] }

const moveKey = (resource: Applicable): string =>
  resource.kind === 'Service' ? `Service/${projectOf(resource)}/${resource.metadata.name}` : `${resource.kind}/${resource.metadata.name}`

const isHeld = ({ doc }: DesiredService): boolean => doc !== null && doc.removal === undefined

/** PJ3: a service whose targets include the destinations of its project, which the same request may change. */
type Bounded = (service: MovingService) => Promise<MovingService>

function createBounded(store: AdminDeps['store'], planned: readonly Planned[]): Bounded {
  const coming = new Map(planned.flatMap(({ resource }) => (resource.kind === 'Project' ? [[resource.metadata.name, resource.spec]] : [])))
  const held = new Map<string, ReturnType<typeof readProject>>()
  return async ({ id, before, after }) => {
    const reading = held.get(id.project) ?? readProject(store, id.project)
    held.set(id.project, reading)
    const project = await reading
    const next = coming.get(id.project)
    if (project === null && next === undefined) return { id, before, after }
    const within = (spec: ServiceSpec, by: ProjectSpec | undefined) =>
      by === undefined ? spec : { ...spec, targets: withDestinations(spec.targets, { spec: by }) }
    const bounds = [project?.spec, next ?? project?.spec] as const
    const was = within(before, bounds[0])
    return { id, before: was, after: before === after && bounds[0] === bounds[1] ? was : within(after, bounds[1]) }
  }
}

async function retargetedServices(planned: readonly Planned[], bounded: Bounded, pace: Pace): Promise<MovingService[]> {
  const services: MovingService[] = []
  for (const { resource, held } of planned) {
    if (resource.kind !== 'Service' || held === null || held.deletingMs !== null) continue
    await pace()
    const before = serviceSpecSchema.parse(JSON.parse(held.spec))
    const isSame = canonicalJson(before.targets) === canonicalJson(resource.spec.targets)
    // Clusters that it is leaving already, where that waits, are left in another way.
    if (isSame && before.deletionPolicy === resource.spec.deletionPolicy) continue
    services.push(await bounded({ id: { project: held.project, service: held.name }, before, after: resource.spec }))
  }
  return services
}

/** New labels by name; labels that are equal are one object. */
function relabelledClusters(planned: readonly Planned[]): Map<string, Labels> {
  const shared = new Map<string, Labels>()
  const relabelled = new Map<string, Labels>()
  for (const { resource, held } of planned) {
    if (resource.kind !== 'Cluster' || held === null) continue
    const { name, labels } = resource.metadata
    const text = canonicalJson(labels)
    if (canonicalJson(held.labels) === text) continue
    const known = shared.get(text) ?? labels
    shared.set(text, known)
    relabelled.set(name, known)
  }
  return relabelled
}

/** Those that are changed as they will be; none that is being deleted. */
async function allServices(
  store: AdminDeps['store'],
  changed: ReadonlyMap<string, MovingService>,
  bounded: Bounded,
  pace: Pace,
): Promise<MovingService[]> {
  const services: MovingService[] = []
  let after: string | undefined
  do {
    const page = await store.listResources('Service', { limit: LIST_LIMIT_MAX, ...(after === undefined ? {} : { after }) })
    for (const { project, name, spec, deletingMs } of page.items) {
      if (deletingMs !== null) continue
      await pace()
      const id: ServiceId = { project, service: name }
      const known = changed.get(serviceKey(id))
      const held = known?.before ?? parseServiceSpec(spec)
      services.push(known ?? (await bounded({ id, before: held, after: held })))
    }
    after = page.next ?? undefined
  } while (after !== undefined)
  return services
}

interface Asking {
  store: AdminDeps['store']
  pace: Pace
  takes: TargetTest
  relabelled: ReadonlyMap<string, Labels>
  changed: ReadonlyMap<string, MovingService>
}

/** By key. `leaving`: rows of the clusters that leave. */
async function whyWaiting(
  asking: Asking,
  leaving: ReadonlyMap<MovingService, readonly DesiredService[]>,
): Promise<{ waiting: Map<string, string>; looked: ReadonlySet<string> }> {
  const waiting = new Map<string, string>()
  const looked = new Set<string>()
  const everyone = lazy(() => asTheyWillBe(asking))
  for (const [service, rows] of [...leaving].slice(0, LOOKED_MAX)) {
    looked.add(serviceKey(service.id))
    const asked = await asking.store.confirmationFor(leaveSubject(service.id))
    // Otherwise only relabelled clusters leave.
    const facts =
      (asked === null ? await relabelledFacts(asking, service, rows) : null) ?? (await fleetFacts(asking, service, await everyone()))
    const why = whyLeavingWaits(service, facts, asked)
    if (why !== null) waiting.set(serviceKey(service.id), why)
  }
  return { waiting, looked }
}

async function asTheyWillBe({ store, relabelled, pace }: Asking): Promise<Map<ClusterId, TargetCluster>> {
  const clusters = new Map<ClusterId, TargetCluster>()
  for (const { clusterId, name, labels } of await store.listClusters())
    clusters.set(clusterId, { clusterId, name, labels: relabelled.get(name) ?? labels })
  await pace()
  return clusters
}

/** Costs as much as there are clusters. */
async function fleetFacts(
  { store, pace, takes }: Asking,
  service: MovingService,
  clusters: ReadonlyMap<ClusterId, TargetCluster>,
): Promise<LeavingFacts> {
  const tally = leavingTally(service, clusters, takes)
  for (const row of await store.desiredOfService(service.id)) {
    tally.addRow(row)
    const turn = pace()
    if (turn !== undefined) await turn
  }
  for (const cluster of clusters.values()) {
    tally.addCluster(cluster)
    const turn = pace()
    if (turn !== undefined) await turn
  }
  return tally.facts()
}

/** Costs as much as clusters leave, or have an order to. Null means that the service has other targets than those that
 *  placed it, and all clusters are to be asked. */
async function relabelledFacts(
  { store, takes, relabelled, changed }: Asking,
  service: MovingService,
  leaving: readonly DesiredService[],
): Promise<LeavingFacts | null> {
  if (changed.has(serviceKey(service.id))) return null
  const { holders, orders } = await store.placementTotals(service.id)
  const rows = [...leaving, ...orders]
  const found = await store.findClusters({ ids: rows.map(({ clusterId }) => clusterId) })
  const clusters = new Map(
    found.map(({ clusterId, name, labels }) => [clusterId, { clusterId, name, labels: relabelled.get(name) ?? labels }]),
  )
  const tally = leavingTally(service, clusters, takes)
  for (const row of rows) tally.addRow(row)
  const facts = tally.facts()
  return facts.leftByNewTargets > 0 ? null : { ...facts, holders }
}

function lazy<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null
  return () => {
    made ??= make()
    return made
  }
}
