// Reads the objects that the removal of services deletes in their clusters, before it is ordered: for the person, and
// to check a confirmation by name.
import { type K8sObject, type ObjectRef, parseRefKey, refKey } from '../../shared/kube/object.ts'
import { deletes, objectRowPrefix, parseRowId } from '../../shared/model/desired.ts'
import type { Labels } from '../../shared/model/labels.ts'
import { ANOTHER_SERVICE, type RemovalView } from '../../shared/model/removal-views.ts'
import { type ServiceSpec, serviceSpecSchema } from '../../shared/model/resources.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { type ClusterId, type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import { createPace, type Pace } from '../../shared/runtime/pace.ts'
import { decodeRenderedSet } from '../desired/rendered-set.ts'
import { firstByKey } from '../fleet/placements-summary.ts'
import type { Confirmation, DesiredService, StatusEntry } from '../fleet/records.ts'
import { type ConfirmedData, type HeldObjects, removalEffect } from '../fleet/removal-effect.ts'
import { type ObjectOwners, type ObjectTakers, type ProposedSpecs, takerOf } from '../ingest/object-owners.ts'
import type { ContentStore } from '../store/content/content-store.ts'
import type { Store } from '../store/store.ts'

/** A service that a cluster is about to lose. */
export interface Leaver {
  id: ServiceId
  cluster: string
  row: DesiredService
  policy: ServiceSpec['deletionPolicy']
}

export interface PlannedRemoval {
  view: RemovalView
  clusterIds: readonly ClusterId[]
}

/** `mayName`: services that the answer may name, besides those that are removed. */
export interface RemovalPlans {
  /** For each group: equal parts of many clusters appear once; by service, then by the first cluster. */
  of(groups: ReadonlyArray<readonly Leaver[]>, mayName: MayName, proposed?: Proposed): Promise<PlannedRemoval[][]>
  /** The removal of the whole service; `isShown`: only in these clusters, by name. Null if there is no such service. */
  ofService(id: ServiceId, mayName: MayName, isShown?: (cluster: string) => boolean): Promise<PlannedRemoval[] | null>
  /** The removals of several services. `missing`: the first one that does not exist. */
  ofServices(ids: readonly ServiceId[], mayName: MayName): Promise<PlannedRemoval[] | { missing: ServiceId }>
  /** The removals that an open confirmation asks about. There are none for another kind of confirmation. */
  ofConfirmation(confirmation: Confirmation, mayName: MayName): Promise<PlannedRemoval[]>
}

export type MayName = (id: ServiceId) => boolean
/** For plans that no answer shows. */
export const NAMES_NOBODY: MayName = () => false

/** Labels and specs that a request is about to write. */
export interface Proposed {
  /** New labels by name of a cluster. */
  labels: ReadonlyMap<string, Labels>
  specs: ProposedSpecs
}
const NOTHING_PROPOSED: Proposed = { labels: new Map(), specs: () => null }

/** Placements of which the agents' reports are read; of more, only what they were sent. */
const REPORTS_READ_MAX = 500
/** Clusters whose reports are read cluster by cluster, even where that takes more reads than service by service. */
const CLUSTERS_READ_SINGLY = 50
const CLUSTERS_NAMED = 10
const NAMES_MAX = 200

export interface RemovalPlansDeps {
  store: Pick<Store, 'listStatus' | 'listClusters' | 'findClusters' | 'desiredOfService' | 'getResource'>
  content: Pick<ContentStore, 'get'>
  owners: Pick<ObjectOwners, 'takersOfAll'>
  clock: Pick<Clock, 'nowMs'>
  /** Default: removalEffect. */
  effectOf?: typeof removalEffect
}

export function createRemovalPlans(deps: RemovalPlansDeps): RemovalPlans {
  const { store } = deps
  const clusterNames = async () => new Map((await store.listClusters()).map(({ clusterId, name }) => [clusterId, name]))
  const leaversOf = async (
    id: ServiceId,
    isMeant: (cluster: string) => boolean,
    known?: Awaited<ReturnType<typeof clusterNames>>,
  ): Promise<Leaver[] | null> => {
    const resource = await store.getResource({ kind: 'Service', project: id.project, name: id.service })
    if (resource === null) return null
    const { deletionPolicy } = serviceSpecSchema.parse(JSON.parse(resource.spec))
    const names = known ?? (await clusterNames())
    const pace = createPace(deps.clock)
    const leavers: Leaver[] = []
    for (const row of await store.desiredOfService(id)) {
      const turn = pace()
      if (turn !== undefined) await turn
      const cluster = names.get(row.clusterId)
      if (cluster === undefined || row.doc === null || !isMeant(cluster)) continue
      const { removal } = row.doc
      leavers.push({ id, cluster, row, policy: removal === undefined ? deletionPolicy : deletes(removal) ? 'prune' : 'orphan' })
    }
    return leavers
  }
  return {
    async of(groups, mayName, proposed) {
      const read = removalReader(deps, mayName, proposed)
      const planned: PlannedRemoval[][] = []
      for (const leavers of groups) planned.push(await read(leavers))
      return planned
    },
    async ofService(id, mayName, isShown = () => true) {
      const leavers = await leaversOf(id, isShown)
      return leavers === null ? null : removalReader(deps, mayName)(leavers)
    },
    async ofServices(ids, mayName) {
      const leavers: Leaver[] = []
      const names = await clusterNames()
      for (const id of ids) {
        const of = await leaversOf(id, () => true, names)
        if (of === null) return { missing: id }
        for (const leaver of of) leavers.push(leaver)
      }
      return removalReader(deps, mayName)(leavers)
    },
    async ofConfirmation({ kind, project, service, names }, mayName) {
      if (kind !== 'remove_service' && kind !== 'leave_targets') return []
      const meant = new Set(names)
      return removalReader(deps, mayName)((await leaversOf({ project, service }, (cluster) => meant.has(cluster))) ?? [])
    },
  }
}

/** Throws `bad_request` for a name that is not shown. */
export function confirmedData(removals: readonly PlannedRemoval[], given: readonly string[]): ConfirmedData {
  const wanted = new Set(given)
  const known = new Set(removals.flatMap(({ view }) => view.holding.map(({ name }) => name)))
  const unknown = [...wanted].filter((name) => !known.has(name))
  if (unknown.length > 0) {
    const shown =
      known.size === 0 ? 'the removal affects no object that holds data' : `objects that hold data: ${[...known].sort().join(', ')}`
    throw new AppError('bad_request', { detail: `cannot confirm ${unknown.map((name) => JSON.stringify(name)).join(', ')}; ${shown}` })
  }
  const confirmed = new Map<string, Map<ClusterId, readonly string[]>>()
  for (const { view, clusterIds } of removals) {
    const names = view.holding.map(({ name }) => name).filter((name) => wanted.has(name))
    if (names.length === 0) continue
    const key = serviceKey(view)
    const clusters = confirmed.get(key) ?? new Map<ClusterId, readonly string[]>()
    confirmed.set(key, clusters)
    for (const clusterId of clusterIds) clusters.set(clusterId, names)
  }
  return confirmed
}

/** Objects that were read and evaluated for one group of leaving clusters are reused for the next. */
function removalReader(
  { store, content, owners, clock, effectOf = removalEffect }: RemovalPlansDeps,
  mayName: MayName,
  proposed = NOTHING_PROPOSED,
) {
  const pace = createPace(clock)
  const sent = sentSets(content, pace)
  const told = toldEffects(effectOf)
  return async (leavers: readonly Leaver[]): Promise<PlannedRemoval[]> => {
    const reports = await readReports(store, leavers)
    const takers = await readTakers({ store, owners }, leavers, proposed)
    const groups = new Map<string, { view: RemovalView; clusters: Array<{ clusterId: ClusterId; name: string }> }>()
    for (const { id, cluster, row, policy } of leavers) {
      const turn = pace()
      if (turn !== undefined) await turn
      if (row.doc === null) continue
      const reported = reports.get(row.clusterId)?.get(serviceKey(id)) ?? []
      const taken = takers(id, row)
      const takenBy = taken.size === 0 ? undefined : (object: string) => serviceText(takerOf(taken, object), mayName)
      const { key, effect } = told(id, row.setSha, taken, { row: row.doc, policy, sent: await sent(id, row.setSha), reported, takenBy })
      const group = groups.get(key) ?? { view: { ...id, clusters: { count: 0, first: [] }, ...effect }, clusters: [] }
      groups.set(key, group)
      group.clusters.push({ clusterId: row.clusterId, name: cluster })
    }
    const planned = [...groups.values()].map(({ view, clusters }) => {
      const first = firstByKey(clusters, ({ name }) => name, CLUSTERS_NAMED).map(({ name }) => name)
      return { view: { ...view, clusters: { count: clusters.length, first } }, clusterIds: clusters.map(({ clusterId }) => clusterId) }
    })
    const place = ({ view }: PlannedRemoval) => `${serviceKey(view)} ${view.clusters.first[0] ?? ''}`
    return planned.sort((a, b) => (place(a) < place(b) ? -1 : 1))
  }
}

/** In clusters that lose the service, by its row. */
async function readTakers(
  { store, owners }: Pick<RemovalPlansDeps, 'store' | 'owners'>,
  leavers: readonly Leaver[],
  { labels, specs }: Proposed,
): Promise<(id: ServiceId, row: DesiredService) => ObjectTakers> {
  const rows = new Map<string, { id: ServiceId; rows: DesiredService[] }>()
  for (const { id, row } of leavers) {
    const of = rows.get(serviceKey(id)) ?? { id, rows: [] }
    rows.set(serviceKey(id), of)
    of.rows.push(row)
  }
  const readClusters = async () => {
    const found = await store.findClusters({ ids: [...new Set(leavers.map(({ row }) => row.clusterId))] })
    return found.map((cluster) => ({ ...cluster, labels: labels.get(cluster.name) ?? cluster.labels }))
  }
  let reading: ReturnType<typeof readClusters> | null = null
  const clusters = () => {
    reading ??= readClusters()
    return reading
  }
  const takers = new Map<string, (row: DesiredService) => ObjectTakers>()
  for (const [key, of] of rows) takers.set(key, await owners.takersOfAll(of.id, of.rows, clusters, specs))
  return (id, row) => takers.get(serviceKey(id))?.(row) ?? NOBODY
}

const NOBODY: ObjectTakers = new Map()

const serviceText = (id: ServiceId | null, mayName: MayName): string | null =>
  id === null ? null : mayName(id) ? serviceKey(id) : ANOTHER_SERVICE

interface ToldEffect {
  /** Equal for equal effects on the same service. */
  key: string
  effect: Pick<RemovalView, 'deletes' | 'holding' | 'stays' | 'takenOver'>
}

/** Clusters that hold the same revision and reported nothing of it share one evaluation. */
function toldEffects(effectOf: typeof removalEffect) {
  const known = new Map<string, ToldEffect>()
  const evaluate = (id: ServiceId, held: HeldObjects): ToldEffect => {
    const { deletes, holding, stays, takenOver } = effectOf(held)
    return {
      key: JSON.stringify([serviceKey(id), deletes, holding, stays, takenOver]),
      effect: {
        deletes: { count: deletes.count, first: deletes.names.slice(0, NAMES_MAX) },
        holding,
        stays: { count: stays.count, first: stays.first.slice(0, NAMES_MAX) },
        ...(takenOver.length === 0 ? {} : { takenOver: { count: takenOver.length, first: takenOver.slice(0, NAMES_MAX) } }),
      },
    }
  }
  const numbers = new Map<ObjectTakers, number>()
  return (id: ServiceId, setSha: string | null, takers: ObjectTakers, held: HeldObjects): ToldEffect => {
    if (held.reported.length > 0) return evaluate(id, held)
    const { row, policy } = held
    const number = numbers.get(takers) ?? numbers.size
    numbers.set(takers, number)
    const input = [serviceKey(id), setSha, policy, row.count, row.namespace, row.sync.deleteNamespace, number].join(' ')
    const told = known.get(input) ?? evaluate(id, held)
    known.set(input, told)
    return told
  }
}

type Reports = Map<ClusterId, Map<string, Array<HeldObjects['reported'][number]>>>

/** Cluster by cluster for few clusters: a service may have reports of the whole fleet. Otherwise by whichever takes
 *  fewer reads. */
async function readReports(store: Pick<Store, 'listStatus'>, leavers: readonly Leaver[]): Promise<Reports> {
  const reports: Reports = new Map()
  if (leavers.length > REPORTS_READ_MAX) return reports
  const services = new Map(leavers.map(({ id }) => [serviceKey(id), id]))
  const clusters = new Set(leavers.map(({ row }) => row.clusterId))
  const note = ({ clusterId, key, doc }: StatusEntry) => {
    const [project = '', service = '', ...rest] = key.split('/')
    const ref = parseRefKey(rest.join('/'))
    const of = serviceKey({ project, service } as ServiceId)
    if (ref === null || !clusters.has(clusterId) || !services.has(of)) return
    const ofCluster = reports.get(clusterId) ?? new Map()
    reports.set(clusterId, ofCluster)
    const objects = ofCluster.get(of) ?? []
    ofCluster.set(of, objects)
    objects.push({ ref, reason: reasonOf(doc) })
  }
  if (services.size <= clusters.size && clusters.size > CLUSTERS_READ_SINGLY)
    for (const key of services.keys()) for (const entry of await store.listStatus({ kind: 'object', keyPrefix: `${key}/` })) note(entry)
  else for (const clusterId of clusters) for (const entry of await store.listStatus({ kind: 'object', clusterId })) note(entry)
  return reports
}

const reasonOf = (doc: unknown): string => {
  const reason = typeof doc === 'object' && doc !== null && 'reason' in doc ? doc.reason : ''
  return typeof reason === 'string' ? reason : ''
}

/** Each set is read once. */
function sentSets(content: Pick<ContentStore, 'get'>, pace: Pace) {
  const known = new Map<string, HeldObjects['sent']>()
  const read = async (setSha: string): Promise<HeldObjects['sent']> => {
    const bytes = await content.get(setSha)
    if (bytes === null) return null
    const objects = new Map<string, { ref: ObjectRef; object: K8sObject }>()
    for (const [rowId, doc] of decodeRenderedSet(bytes)) {
      await pace()
      const row = parseRowId(rowId)
      if (row.kind === 'object') objects.set(refKey(row.ref), { ref: row.ref, object: JSON.parse(doc) as K8sObject })
    }
    return objects
  }
  return async (id: ServiceId, setSha: string | null): Promise<HeldObjects['sent']> => {
    if (setSha === null) return null
    const key = `${objectRowPrefix(id)}${setSha}`
    const held = known.get(key)
    if (held !== undefined) return held
    const objects = await read(setSha)
    known.set(key, objects)
    return objects
  }
}
