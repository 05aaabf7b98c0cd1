// Effects of an apply on objects where a service stays. It renders the old and the new spec for a few representative
// clusters: in a dry run all of them, before a write as many as fit in a short time.
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { type ClusterId, type ServiceId, serviceKey } from '../../shared/model/ids.ts'
import { type Applicable, type ServiceSpec, serviceSpecSchema } from '../../shared/model/resources.ts'
import type { ApplyEffectView } from '../../shared/model/views.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import { objectEffects } from '../fleet/object-effects.ts'
import type { ClusterRecord, DesiredService, StoredResource } from '../fleet/records.ts'
import { isTarget } from '../fleet/targeting.ts'
import type { IsShown } from './apply-moves.ts'
import type { AdminDeps } from './deps.ts'

/** Pairs of a service and a cluster that are rendered for one dry run, and of one service. */
const [PAIRS_MAX, PAIRS_OF_SERVICE_MAX] = [10, 3]
const CLUSTERS_NAMED = 10

interface Planned {
  resource: Applicable
  held: StoredResource | null
}

/** A service in a cluster that keeps it, as both are and as they will be. */
interface Pair {
  resource: Applicable
  id: ServiceId
  before: { spec: ServiceSpec; cluster: ClusterRecord }
  after: { spec: ServiceSpec; cluster: ClusterRecord }
  /** That have the same render now. */
  clusters: readonly string[]
}

/** Time that an apply spends on its effects before it writes. */
const WRITE_WAIT_MS = 2_000

type EffectsDeps = Pick<AdminDeps, 'store' | 'renders'> & { isShown?: IsShown }

/** TG20. In the order of the resources. */
export async function readEffects(deps: EffectsDeps, planned: readonly Planned[]): Promise<ApplyEffectView[]> {
  return await Array.fromAsync(effectsOf(deps, planned))
}

/** TG20, before a write: what is known in time. A failure here never refuses the write. */
export async function readEffectsInTime(
  { clock, log, ...deps }: EffectsDeps & Pick<AdminDeps, 'clock'> & { log?: Logger },
  planned: readonly Planned[],
): Promise<ApplyEffectView[]> {
  const views: ApplyEffectView[] = []
  const ended = new AbortController()
  const timeOver = clock.sleep(WRITE_WAIT_MS, ended.signal).then(() => null)
  const effects = effectsOf(deps, planned)
  try {
    for (;;) {
      const next = await Promise.race([effects.next(), timeOver])
      if (next === null || next.done === true) break
      views.push(next.value)
    }
  } catch (error) {
    log?.warn('effects of an apply cannot be read', { error: describeError(error) })
  } finally {
    ended.abort()
    void effects.return(undefined).catch(() => {}) // after the render that is under way
  }
  return views
}

async function* effectsOf(
  { store, renders, isShown = () => true }: EffectsDeps,
  planned: readonly Planned[],
): AsyncGenerator<ApplyEffectView> {
  let left = PAIRS_MAX
  for await (const pair of pairsOf(store, planned, isShown)) {
    if (left === 0) break
    left -= 1
    const { resource, id, clusters } = pair
    const about = {
      ...{ kind: resource.kind, name: resource.metadata.name, project: id.project, service: id.service },
      clusters: { count: clusters.length, first: clusters.slice(0, CLUSTERS_NAMED) },
    }
    const before = await renders.objects(id, pair.before.spec, pair.before.cluster)
    const after = await renders.objects(id, pair.after.spec, pair.after.cluster)
    if (after.kind === 'failed') yield { ...about, error: after.message }
    else if (before.kind === 'rendered') {
      const objects = objectEffects(before.objects, after.objects)
      if (objects !== null) yield { ...about, objects }
    }
  }
}

async function* pairsOf(store: AdminDeps['store'], planned: readonly Planned[], isShown: IsShown): AsyncGenerator<Pair> {
  const given = new Map<string, ServiceSpec>()
  for (const { resource } of planned)
    if (resource.kind === 'Service')
      given.set(serviceKey({ project: resource.metadata.project, service: resource.metadata.name }), resource.spec)
  for (const { resource, held } of planned) {
    if (held === null || held.deletingMs !== null) continue
    if (resource.kind === 'Service') yield* pairsOfService(store, resource, held)
    if (resource.kind === 'Cluster') yield* pairsOfCluster(store, resource, held, { given, isShown })
  }
}

async function* pairsOfService(
  store: AdminDeps['store'],
  resource: Extract<Applicable, { kind: 'Service' }>,
  held: StoredResource,
): AsyncGenerator<Pair> {
  const before = serviceSpecSchema.parse(JSON.parse(held.spec))
  if (canonicalJson(before) === canonicalJson(resource.spec)) return
  const id: ServiceId = { project: held.project, service: held.name }
  const bySet = new Map<string, ClusterId[]>()
  for (const { clusterId, doc, setSha } of await store.desiredOfService(id))
    if (doc !== null && doc.removal === undefined) bySet.set(setSha ?? '', [...(bySet.get(setSha ?? '') ?? []), clusterId])
  for (const ids of [...bySet.values()].slice(0, PAIRS_OF_SERVICE_MAX)) {
    const found = await store.findClusters({ ids })
    const kept = found.filter(({ labels }) => isTarget(labels, resource.spec.targets)).sort((a, b) => (a.name < b.name ? -1 : 1))
    const [cluster] = kept
    if (cluster === undefined) continue
    const clusters = kept.map(({ name }) => name)
    yield { resource, id, before: { spec: before, cluster }, after: { spec: resource.spec, cluster }, clusters }
  }
}

async function* pairsOfCluster(
  store: AdminDeps['store'],
  resource: Extract<Applicable, { kind: 'Cluster' }>,
  held: StoredResource,
  { given, isShown }: { given: ReadonlyMap<string, ServiceSpec>; isShown: IsShown },
): AsyncGenerator<Pair> {
  const { name, labels } = resource.metadata
  if (canonicalJson(held.labels) === canonicalJson(labels) && canonicalJson(JSON.parse(held.spec)) === canonicalJson(resource.spec)) return
  const before = await store.clusterByName(name)
  if (before === null) return
  const { config: _config, overrides: _overrides, ...bare } = before
  const { config, overrides } = resource.spec
  const after = { ...bare, labels, ...(config === undefined ? {} : { config }), ...(overrides === undefined ? {} : { overrides }) }
  const isHeld = (row: DesiredService) => row.doc !== null && row.doc.removal === undefined && isShown(row)
  for (const { project, service } of (await store.desiredInCluster(before.clusterId)).filter(isHeld)) {
    const stored = await store.getResource({ kind: 'Service', project, name: service })
    if (stored === null || stored.deletingMs !== null) continue
    const spec = serviceSpecSchema.parse(JSON.parse(stored.spec))
    const next = given.get(serviceKey({ project, service })) ?? spec
    if (!isTarget(labels, next.targets)) continue
    const id: ServiceId = { project, service }
    yield { resource, id, before: { spec, cluster: before }, after: { spec: next, cluster: after }, clusters: [name] }
  }
}
