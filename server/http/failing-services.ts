// Services that cannot be rendered for some of their clusters, as what people see of clusters and counts takes them.

import { serviceSpecSchema } from '../../shared/model/resources.ts'
import { type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import type { StoredError } from '../fleet/records.ts'
import { countWithout, type FailingService, failingIn } from '../fleet/unrendered.ts'
import type { Store } from '../store/store.ts'
import type { UnrenderedBy } from './fleet-counts.ts'

export const readFailing = async (store: Pick<Store, 'renderErrors'>): Promise<FailingService[]> =>
  (await store.renderErrors()).flatMap(({ id, error, spec }) => failing(id, error, spec) ?? [])

/** The failure of one service. Null if it can be rendered, or is being deleted. */
export async function failingService(store: Pick<Store, 'renderState' | 'getResource'>, id: ServiceId): Promise<FailingService | null> {
  const { error } = await store.renderState(id)
  if (error?.failing === undefined) return null
  const held = await store.getResource({ kind: 'Service', project: id.project, name: id.service })
  return held === null || held.deletingMs !== null ? null : failing(id, error, held.spec)
}

const failing = (id: ServiceId, error: StoredError, spec: string): FailingService | null =>
  error.failing === undefined
    ? null
    : { id, sinceMs: error.sinceMs, failing: failingIn(error, () => serviceSpecSchema.parse(JSON.parse(spec)).targets) }

/** How many services in clusters there are that have no row, because they cannot be rendered there. Clusters are read
 *  only for labels, and only when some fail. */
export async function unrenderedCounts(
  store: Pick<Store, 'renderErrors' | 'listClusters' | 'desiredOfService'>,
  by: UnrenderedBy,
): Promise<Map<string, number>> {
  const counts = new Map<string, number>()
  const errors = (await store.renderErrors()).filter(({ error }) => countWithout(error) > 0)
  if (by === 'service') {
    for (const { id, error } of errors) counts.set(serviceKey(id), countWithout(error))
    return counts
  }
  const clusters = errors.length === 0 ? [] : await store.listClusters()
  for (const { id, error, spec } of errors) {
    const one = failing(id, error, spec)?.failing
    // Unnamed clusters are targets without the service: their rows alone show which clusters have it.
    const rows = one?.isCut === true ? await store.desiredOfService(id) : []
    const held = new Set(rows.flatMap(({ clusterId, doc }) => (doc === null ? [] : [clusterId])))
    for (const cluster of clusters) {
      if (one?.without(cluster) === undefined || held.has(cluster.clusterId)) continue
      for (const [key, value] of Object.entries(cluster.labels)) counts.set(`${key}=${value}`, (counts.get(`${key}=${value}`) ?? 0) + 1)
    }
  }
  return counts
}
