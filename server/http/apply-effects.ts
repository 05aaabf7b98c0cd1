// Effects of an apply on objects where a service stays, and objects that a new service takes over. It renders the old
// and the new spec for a few representative clusters: in a dry run all of them, before a write as many as fit in a
// short time.
import { canonicalJson } from '../../shared/kube/canonical.ts'
import type { ApplyEffectView } from '../../shared/model/apply-views.ts'
import { ANOTHER_SERVICE } from '../../shared/model/removal-views.ts'
import { type Applicable, type ServiceSpec, serviceSpecSchema } from '../../shared/model/resources.ts'
import { type ClusterId, type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import { keysWithout, objectEffects } from '../fleet/object-effects.ts'
import type { ClusterRecord, DesiredService, StoredResource } from '../fleet/records.ts'
import { isTarget } from '../fleet/targeting.ts'
import { takerOf } from '../ingest/object-owners.ts'
import { type IsShown, proposedSpecs } from './apply-moves.ts'
import type { AdminDeps } from './deps.ts'

/** Pairs of a service and a cluster that are rendered for one request, and of one service. */
const [PAIRS_MAX, PAIRS_OF_SERVICE_MAX] = [10, 3]
const CLUSTERS_NAMED = 10

interface Planned {
  resource: Applicable
  held: StoredResource | null
}

/** A service in a cluster, as both are and as they will be. */
interface Pair {
  resource: Extract<Applicable, { kind: 'Service' | 'Cluster' }>
  id: ServiceId
  /** Null for a new service. */
  before: { spec: ServiceSpec; cluster: ClusterRecord } | null
  after: { spec: ServiceSpec; cluster: ClusterRecord }
  /** That have the same render now; of a new service all that get it. */
  clusters: readonly ClusterRecord[]
}

/** `left`: resources whose effects were not looked at, or not in all clusters. */
export interface ApplyEffects {
  effects: ApplyEffectView[]
  left: number
}

/** Time that an apply spends on its effects before it writes. */
const WRITE_WAIT_MS = 2_000

type EffectsDeps = Pick<AdminDeps, 'store' | 'renders' | 'owners'> & { isShown?: IsShown }

/** TG20. In the order of the resources; new services come last. */
export const readEffects = (deps: EffectsDeps, planned: readonly Planned[]): Promise<ApplyEffects> => lookAtAll(deps, planned, null)

/** TG20, before a write: what is known in time. A failure here never refuses the write. */
export async function readEffectsInTime(
  { clock, log, ...deps }: EffectsDeps & Pick<AdminDeps, 'clock'> & { log?: Logger },
  planned: readonly Planned[],
): Promise<ApplyEffects> {
  const ended = new AbortController()
  const timeOver = clock.sleep(WRITE_WAIT_MS, ended.signal).then(() => null)
  try {
    return await lookAtAll(deps, planned, timeOver)
  } catch (error) {
    log?.warn('effects of an apply cannot be read', { error: describeError(error) })
    return { effects: [], left: candidatesOf(planned).length }
  } finally {
    ended.abort()
  }
}

/** `timeOver`: resolves when nothing more is looked at. Null means that everything within the limits is. */
async function lookAtAll(deps: EffectsDeps, planned: readonly Planned[], timeOver: Promise<null> | null): Promise<ApplyEffects> {
  const effects: ApplyEffectView[] = []
  const inTime = <T>(work: Promise<T>): Promise<T | null> => (timeOver === null ? work : Promise.race([work, timeOver]))
  let [left, pairsLeft, isOver] = [0, PAIRS_MAX, false]
  for (const candidate of candidatesOf(planned)) {
    const pairs = pairsOf(deps, planned, candidate)
    let isWhole = false
    while (!isOver && !isWhole) {
      const next = await inTime(pairs.next())
      isOver = next === null
      isWhole = next?.done === true
      if (next === null || next.done === true) break
      if (next.value === 'more' || pairsLeft === 0) break
      pairsLeft -= 1
      const found = await inTime(effectsOf(deps, planned, next.value))
      isOver = found === null
      effects.push(...(found ?? []))
    }
    if (!isWhole) left += 1
  }
  return { effects, left }
}

async function effectsOf(deps: EffectsDeps, planned: readonly Planned[], pair: Pair): Promise<ApplyEffectView[]> {
  const { renders, owners, isShown = () => true } = deps
  const { resource, id, before, after, clusters } = pair
  const about = { kind: resource.kind, name: resource.metadata.name, project: id.project, service: id.service }
  const shown = (by: ServiceId) => (isShown(by) ? serviceKey(by) : ANOTHER_SERVICE)
  const was = before === null ? NOTHING_RENDERED : await renders.objects(id, before.spec, before.cluster)
  const is = await renders.objects(id, after.spec, after.cluster)
  if (is.kind === 'failed') return before === null ? [] : [{ ...about, clusters: named(clusters), error: is.message }]
  if (was.kind === 'failed') return []
  const gained = keysWithout(is.objects, was.objects)
  if (before === null) {
    const held = await owners.holdersOf(id, clusters, gained)
    return held.flatMap(({ by, clusters: places, objects: keys }): ApplyEffectView[] => {
      const holder = (object: string) => (keys.has(object) ? shown(by) : null)
      const objects = objectEffects(was.objects, is.objects, { taker: () => null, holder })
      const where = { count: places.length, first: places.slice(0, CLUSTERS_NAMED) }
      return objects === null ? [] : [{ ...about, clusters: where, objects: { ...objects, created: NONE } }]
    })
  }
  const given = proposedSpecs(planned)
  const lost = keysWithout(was.objects, is.objects)
  const takers = await owners.takersOf(id, after.cluster, lost, (other) => given.get(serviceKey(other)) ?? null)
  const holders = await owners.holdersOf(id, [after.cluster], gained)
  const objects = objectEffects(was.objects, is.objects, {
    taker(object) {
      const by = takerOf(takers, object)
      return by === null ? null : shown(by)
    },
    holder(object) {
      const found = holders.find(({ objects: keys }) => keys.has(object))
      return found === undefined ? null : shown(found.by)
    },
  })
  return objects === null ? [] : [{ ...about, clusters: named(clusters), objects }]
}

const NOTHING_RENDERED = { kind: 'rendered', objects: new Map<string, string>() } as const
const NONE = { count: 0, first: [] }
const named = (clusters: readonly ClusterRecord[]) => ({
  count: clusters.length,
  first: clusters.slice(0, CLUSTERS_NAMED).map(({ name }) => name),
})

type Candidate = { resource: Extract<Applicable, { kind: 'Service' | 'Cluster' }>; held: StoredResource | null }

/** Resources that may have effects; new services come last. */
function candidatesOf(planned: readonly Planned[]): Candidate[] {
  const found: Candidate[] = []
  for (const { resource, held } of planned) {
    if (resource.kind === 'Service' && (held === null || (held.deletingMs === null && isChanged(resource.spec, specOf(held)))))
      found.push({ resource, held })
    if (resource.kind === 'Cluster' && held !== null) {
      const { labels } = resource.metadata
      if (isChanged(labels, held.labels) || isChanged(resource.spec, JSON.parse(held.spec))) found.push({ resource, held })
    }
  }
  return found.sort((a, b) => Number(a.held === null) - Number(b.held === null))
}

const isChanged = (a: unknown, b: unknown): boolean => canonicalJson(a) !== canonicalJson(b)
const specOf = ({ spec }: StoredResource): ServiceSpec => serviceSpecSchema.parse(JSON.parse(spec))
const byName = (a: ClusterRecord, b: ClusterRecord): number => (a.name < b.name ? -1 : 1)

/** `more`: others follow that are beyond the limit of one service. */
async function* pairsOf(deps: EffectsDeps, planned: readonly Planned[], candidate: Candidate): AsyncGenerator<Pair | 'more'> {
  const { resource, held } = candidate
  if (resource.kind === 'Cluster') yield* pairsOfCluster(deps, resource, proposedSpecs(planned))
  else if (held === null) yield* pairsOfNew(deps, resource)
  else yield* pairsOfService(deps, resource, held)
}

type ServiceResource = Extract<Applicable, { kind: 'Service' }>
const idOf = ({ metadata }: ServiceResource): ServiceId => ({ project: metadata.project, service: metadata.name })

async function* pairsOfNew({ store }: EffectsDeps, resource: ServiceResource): AsyncGenerator<Pair> {
  const { spec } = resource
  const clusters = (await store.listClusters()).filter(({ labels }) => isTarget(labels, spec.targets)).sort(byName)
  const [cluster] = clusters
  if (cluster !== undefined) yield { resource, id: idOf(resource), before: null, after: { spec, cluster }, clusters }
}

/** One for each render in force; those that most clusters have come first. */
async function* pairsOfService({ store }: EffectsDeps, resource: ServiceResource, held: StoredResource): AsyncGenerator<Pair | 'more'> {
  const [id, before] = [idOf(resource), specOf(held)]
  const bySet = new Map<string, ClusterId[]>()
  for (const { clusterId, doc, setSha } of await store.desiredOfService(id)) {
    if (doc === null || doc.removal !== undefined) continue
    const ids = bySet.get(setSha ?? '') ?? []
    bySet.set(setSha ?? '', ids)
    ids.push(clusterId)
  }
  const sets = [...bySet.values()].sort((a, b) => b.length - a.length)
  for (const ids of sets.slice(0, PAIRS_OF_SERVICE_MAX)) {
    const found = await store.findClusters({ ids })
    const clusters = found.filter(({ labels }) => isTarget(labels, resource.spec.targets)).sort(byName)
    const [cluster] = clusters
    if (cluster !== undefined) yield { resource, id, before: { spec: before, cluster }, after: { spec: resource.spec, cluster }, clusters }
  }
  if (sets.length > PAIRS_OF_SERVICE_MAX) yield 'more'
}

async function* pairsOfCluster(
  { store, isShown = () => true }: EffectsDeps,
  resource: Extract<Applicable, { kind: 'Cluster' }>,
  given: ReadonlyMap<string, ServiceSpec>,
): AsyncGenerator<Pair> {
  const { name, labels } = resource.metadata
  const before = await store.clusterByName(name)
  if (before === null) return
  const { config: _config, overrides: _overrides, ...bare } = before
  const { config, overrides } = resource.spec
  const after = { ...bare, labels, ...(config === undefined ? {} : { config }), ...(overrides === undefined ? {} : { overrides }) }
  const isHeld = (row: DesiredService) => row.doc !== null && row.doc.removal === undefined && isShown(row)
  for (const { project, service } of (await store.desiredInCluster(before.clusterId)).filter(isHeld)) {
    const stored = await store.getResource({ kind: 'Service', project, name: service })
    if (stored === null || stored.deletingMs !== null) continue
    const spec = specOf(stored)
    const next = given.get(serviceKey({ project, service })) ?? spec
    if (!isTarget(labels, next.targets)) continue
    const id: ServiceId = { project, service }
    yield { resource, id, before: { spec, cluster: before }, after: { spec: next, cluster: after }, clusters: [after] }
  }
}
