// Looks up what the removal of services deletes in their clusters, before it is ordered: for whoever is asked, and to hold a confirmation by name against.
import { type K8sObject, type ObjectRef, parseRefKey, refKey } from '../../shared/kube/object.ts'
import { deletes, objectRowPrefix, parseRowId } from '../../shared/model/desired.ts'
import { type ClusterId, type ServiceId, serviceKey } from '../../shared/model/ids.ts'
import type { RemovalView } from '../../shared/model/removal-views.ts'
import { type ServiceSpec, serviceSpecSchema } from '../../shared/model/resources.ts'
import { AppError } from '../../shared/protocol/error.ts'
import { decodeRenderedSet } from '../desired/rendered-set.ts'
import type { ContentStore } from '../store/content/content-store.ts'
import type { Confirmation, DesiredService, StatusEntry } from '../store/records.ts'
import type { Store } from '../store/store.ts'
import { type HeldObjects, removalEffect } from './removal-effect.ts'

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

/** Names that a person confirmed with what is lost, by service key and cluster: of objects that were shown, and no others. */
export type ConfirmedData = ReadonlyMap<string, ReadonlyMap<ClusterId, readonly string[]>>

export interface RemovalPlans {
  /** The same in many clusters is told once; by service, then by the first cluster. */
  of(leavers: readonly Leaver[]): Promise<PlannedRemoval[]>
  /** The removal of the whole service. Null if there is no such service. */
  ofService(id: ServiceId): Promise<PlannedRemoval[] | null>
  /** The removals of several services. `missing`: the first one that does not exist. */
  ofServices(ids: readonly ServiceId[]): Promise<PlannedRemoval[] | { missing: ServiceId }>
  /** Of what a confirmation that is open asks; of another kind than a removal there is none. */
  ofConfirmation(confirmation: Confirmation): Promise<PlannedRemoval[]>
}

/** Placements of which the agents' reports are read; of more, only what they were sent. */
const REPORTS_READ_MAX = 500
const CLUSTERS_NAMED = 10
const NAMES_MAX = 200

export interface RemovalPlansDeps {
  store: Pick<Store, 'listStatus' | 'listClusters' | 'desiredOfService' | 'getResource'>
  content: Pick<ContentStore, 'get'>
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
    return (await store.desiredOfService(id)).flatMap((row) => {
      const cluster = names.get(row.clusterId)
      if (cluster === undefined || row.doc === null || !isMeant(cluster)) return []
      const { removal } = row.doc
      return [{ id, cluster, row, policy: removal === undefined ? deletionPolicy : deletes(removal) ? 'prune' : 'orphan' }]
    })
  }
  return {
    of: (leavers) => readRemovals(deps, leavers),
    async ofService(id) {
      const leavers = await leaversOf(id, () => true)
      return leavers === null ? null : readRemovals(deps, leavers)
    },
    async ofServices(ids) {
      const leavers: Leaver[] = []
      const names = await clusterNames()
      for (const id of ids) {
        const of = await leaversOf(id, () => true, names)
        if (of === null) return { missing: id }
        leavers.push(...of)
      }
      return readRemovals(deps, leavers)
    },
    async ofConfirmation({ kind, project, service, names }) {
      if (kind !== 'remove_service' && kind !== 'leave_targets') return []
      const meant = new Set(names)
      return readRemovals(deps, (await leaversOf({ project, service }, (cluster) => meant.has(cluster))) ?? [])
    },
  }
}

/** Throws `bad_request` for a name that is not shown. */
export function confirmedData(removals: readonly PlannedRemoval[], given: readonly string[]): ConfirmedData {
  const wanted = new Set(given)
  const known = new Set(removals.flatMap(({ view }) => view.holding.map(({ name }) => name)))
  const unknown = [...wanted].filter((name) => !known.has(name))
  if (unknown.length > 0) {
    const shown = known.size === 0 ? 'this removes no object that holds data' : `objects that hold data: ${[...known].sort().join(', ')}`
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

async function readRemovals({ store, content }: RemovalPlansDeps, leavers: readonly Leaver[]): Promise<PlannedRemoval[]> {
  const reports = await readReports(store, leavers)
  const sent = sentSets(content)
  const groups = new Map<string, { view: RemovalView; clusters: Array<{ clusterId: ClusterId; name: string }> }>()
  for (const { id, cluster, row, policy } of leavers) {
    if (row.doc === null) continue
    const {
      deletes: goes,
      holding,
      stays,
    } = removalEffect({
      row: row.doc,
      policy,
      sent: await sent(id, row.setSha),
      reported: reports.get(row.clusterId)?.get(serviceKey(id)) ?? [],
    })
    const effect = {
      deletes: { count: goes.count, first: goes.names.slice(0, NAMES_MAX) },
      holding,
      stays: { count: stays.count, first: stays.first.slice(0, NAMES_MAX) },
    }
    const key = JSON.stringify([serviceKey(id), goes, holding, stays])
    const group = groups.get(key) ?? { view: { ...id, clusters: { count: 0, first: [] }, ...effect }, clusters: [] }
    groups.set(key, group)
    group.clusters.push({ clusterId: row.clusterId, name: cluster })
  }
  const planned = [...groups.values()].map(({ view, clusters }) => {
    clusters.sort((a, b) => (a.name < b.name ? -1 : 1))
    const first = clusters.slice(0, CLUSTERS_NAMED).map(({ name }) => name)
    return { view: { ...view, clusters: { count: clusters.length, first } }, clusterIds: clusters.map(({ clusterId }) => clusterId) }
  })
  const place = ({ view }: PlannedRemoval) => `${serviceKey(view)} ${view.clusters.first[0] ?? ''}`
  return planned.sort((a, b) => (place(a) < place(b) ? -1 : 1))
}

type Reports = Map<ClusterId, Map<string, Array<HeldObjects['reported'][number]>>>

/** By whichever takes fewer reads: all of a service, or all of a cluster. */
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
  if (services.size <= clusters.size)
    for (const key of services.keys()) for (const entry of await store.listStatus({ kind: 'object', keyPrefix: `${key}/` })) note(entry)
  else for (const clusterId of clusters) for (const entry of await store.listStatus({ kind: 'object', clusterId })) note(entry)
  return reports
}

const reasonOf = (doc: unknown): string => {
  const reason = typeof doc === 'object' && doc !== null && 'reason' in doc ? doc.reason : ''
  return typeof reason === 'string' ? reason : ''
}

/** Each set is read once. */
function sentSets(content: Pick<ContentStore, 'get'>) {
  const known = new Map<string, HeldObjects['sent']>()
  return async (id: ServiceId, setSha: string | null): Promise<HeldObjects['sent']> => {
    if (setSha === null) return null
    const key = `${objectRowPrefix(id)}${setSha}`
    const held = known.get(key)
    if (held !== undefined) return held
    const bytes = await content.get(setSha)
    const objects = bytes === null ? null : new Map<string, { ref: ObjectRef; object: K8sObject }>()
    for (const [rowId, doc] of bytes === null ? [] : decodeRenderedSet(bytes)) {
      const row = parseRowId(rowId)
      if (row.kind === 'object') objects?.set(refKey(row.ref), { ref: row.ref, object: JSON.parse(doc) as K8sObject })
    }
    known.set(key, objects)
    return objects
  }
}
