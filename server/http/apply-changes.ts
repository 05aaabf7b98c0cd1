// The changes of an apply in the clusters that keep a service: read before the write, and part of its answer.
import { canonicalJson } from '../../shared/kube/canonical.ts'
import type { ChangeInPlaceView, KeptChange } from '../../shared/model/apply-views.ts'
import { type Labels, matchesSelector, selectorText } from '../../shared/model/labels.ts'
import { type Applicable, type ServiceSpec, serviceSpecSchema } from '../../shared/model/resources.ts'
import { serviceKey } from '../../shared/runtime/ids.ts'
import { createPace } from '../../shared/runtime/pace.ts'
import type { DesiredService, StoredResource } from '../fleet/records.ts'
import { isTarget } from '../fleet/targeting.ts'
import type { IsShown } from './apply-moves.ts'
import type { AdminDeps } from './deps.ts'

/** Named of each resource. */
const FIRST_MAX = 10

interface Planned {
  resource: Applicable
  held: StoredResource | null
}

/** TG19. In the order of the resources; of those that change nothing of this kind there is none. `left`: changes beyond
 *  the first of each resource. */
export async function readChangesInPlace(
  { store, clock, isShown = () => true }: Pick<AdminDeps, 'store' | 'clock'> & { isShown?: IsShown },
  planned: readonly Planned[],
): Promise<{ changes: ChangeInPlaceView[]; left: number }> {
  const pace = createPace(clock)
  const given = new Map(planned.flatMap(({ resource }) => (resource.kind === 'Service' ? [[keyOf(resource), resource.spec] as const] : [])))
  const specs = new Map<string, ServiceSpec | null>()
  const specOf = async ({ project, service }: DesiredService): Promise<ServiceSpec | null> => {
    const key = serviceKey({ project, service })
    const known = specs.get(key) ?? given.get(key)
    if (known !== undefined || specs.has(key)) return known ?? null
    const held = await store.getResource({ kind: 'Service', project, name: service })
    const spec = held === null || held.deletingMs !== null ? null : serviceSpecSchema.parse(JSON.parse(held.spec))
    specs.set(key, spec)
    return spec
  }
  const views: ChangeInPlaceView[] = []
  let left = 0
  const note = (resource: Applicable, all: ReadonlyArray<KeptChange & { project: string; service: string; clusters: string[] }>) => {
    const { name } = resource.metadata
    left += Math.max(0, all.length - FIRST_MAX)
    for (const { clusters, ...change } of all.slice(0, FIRST_MAX))
      views.push({ kind: resource.kind, name, ...change, clusters: { count: clusters.length, first: clusters.slice(0, FIRST_MAX) } })
  }
  for (const { resource, held } of planned) {
    if (held === null || held.deletingMs !== null) continue
    const { name, labels } = resource.metadata
    if (resource.kind === 'Cluster' && canonicalJson(held.labels) !== canonicalJson(labels)) {
      const cluster = await store.clusterByName(name)
      const rows = cluster === null ? [] : (await store.desiredInCluster(cluster.clusterId)).filter((row) => isHeld(row) && isShown(row))
      const found: Parameters<typeof note>[1][number][] = []
      for (const row of rows) {
        const spec = await specOf(row)
        if (spec !== null && isTarget(labels, spec.targets))
          found.push(
            ...changedOverrides(spec, held.labels, labels).map((change) => ({
              ...{ ...change, project: row.project, service: row.service, clusters: [name] },
            })),
          )
        await pace()
      }
      note(resource, found)
    }
    if (resource.kind === 'Service') {
      const changes = changedNamespace(serviceSpecSchema.parse(JSON.parse(held.spec)), resource.spec)
      if (changes.length === 0) continue
      const id = { project: held.project, service: name }
      const rows = (await store.desiredOfService(id)).filter(isHeld)
      const found = await store.findClusters({ ids: rows.map(({ clusterId }) => clusterId) })
      const clusters = found.filter((cluster) => isTarget(cluster.labels, resource.spec.targets)).map((cluster) => cluster.name)
      if (clusters.length > 0)
        note(
          resource,
          changes.map((change) => ({ ...change, ...id, clusters: clusters.sort() })),
        )
    }
  }
  return { changes: views, left }
}

const isHeld = ({ doc }: DesiredService): boolean => doc !== null && doc.removal === undefined
const keyOf = ({ metadata }: Extract<Applicable, { kind: 'Service' }>): string =>
  serviceKey({ project: metadata.project, service: metadata.name })

/** By the place in `spec.overrides`, as errors name it. */
export function changedOverrides({ overrides = [] }: Pick<ServiceSpec, 'overrides'>, before: Labels, after: Labels): KeptChange[] {
  return overrides.flatMap(({ selector }, index): KeptChange[] => {
    const [was, is] = [matchesSelector(before, selector), matchesSelector(after, selector)]
    if (was === is) return []
    return [
      { what: was ? 'override_lost' : 'override_gained', detail: `overrides[${index}] (${selectorText(selector) || 'every cluster'})` },
    ]
  })
}

/** Objects without a namespace of their own are created in the new one, and the former ones are pruned. */
export function changedNamespace(before: Pick<ServiceSpec, 'namespace'>, after: Pick<ServiceSpec, 'namespace'>): KeptChange[] {
  if (before.namespace === after.namespace) return []
  return [{ what: 'namespace', detail: `from ${before.namespace ?? 'none'} to ${after.namespace ?? 'none'}` }]
}
