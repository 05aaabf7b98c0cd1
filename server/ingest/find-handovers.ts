// Looks up who gains what a service is about to lose. Asked only when it loses something: most commits change objects and move none.
import { objectRowPrefix, type ServiceRow } from '../../shared/model/desired.ts'
import { type ClusterId, type ServiceId, serviceKey } from '../../shared/model/ids.ts'
import { serviceSpecSchema } from '../../shared/model/resources.ts'
import { decodeRenderedSet } from '../desired/rendered-set.ts'
import { type Gainer, type Handover, handoversTo } from '../fleet/handover.ts'
import { type TargetCluster, targetsOf } from '../fleet/targeting.ts'
import type { ContentStore } from '../store/content/content-store.ts'
import type { DesiredService } from '../store/records.ts'
import type { Store } from '../store/store.ts'
import type { ServiceRenderer } from './service-render.ts'

export interface HandoverDeps {
  store: Pick<Store, 'desiredOfService' | 'getResource'>
  content: Pick<ContentStore, 'get'>
  renderer: Pick<ServiceRenderer, 'rendersNaming'>
}

/** For a cluster, by the row that it holds: what its next revision, or its removal, hands over. */
export type HandoverOf = (held: ServiceRow, row: DesiredService, deed: 'revision' | 'removal') => Handover[]

const NOTHING: HandoverOf = () => []

export async function findHandovers(
  { store, content, renderer }: HandoverDeps,
  id: ServiceId,
  current: readonly DesiredService[],
  clusters: readonly TargetCluster[],
  /** Null: the service is being deleted. */
  rendered: { digest: string; objects: ReadonlyMap<string, string> } | null,
  targets: ReadonlySet<ClusterId>,
): Promise<HandoverOf> {
  const isLeft = ({ clusterId }: DesiredService) => rendered === null || !targets.has(clusterId)
  if (current.every((row) => row.doc === null || (!isLeft(row) && row.doc.digest === rendered?.digest))) return NOTHING
  const sets = new Map<string, ReadonlySet<string>>()
  const namesOf = async (setSha: string | null, prefix: string): Promise<ReadonlySet<string>> => {
    if (setSha === null) return new Set()
    const known = sets.get(prefix + setSha)
    if (known !== undefined) return known
    const bytes = await content.get(setSha)
    const names = new Set(bytes === null ? [] : [...decodeRenderedSet(bytes).keys()].map((rowId) => rowId.slice(prefix.length)))
    sets.set(prefix + setSha, names)
    return names
  }
  const prefix = objectRowPrefix(id)
  const kept = new Set([...(rendered?.objects.keys() ?? [])].map((rowId) => rowId.slice(prefix.length)))
  const held = new Map<DesiredService, ReadonlySet<string>>()
  const all = new Set<string>()
  for (const row of current) {
    if (row.doc === null) continue
    // What was handed over before may be in the cluster still.
    const names = new Set([...(await namesOf(row.setSha, prefix)), ...(row.doc.handover ?? []).map(({ object }) => object)])
    held.set(row, names)
    for (const name of names) if (isLeft(row) || !kept.has(name)) all.add(name)
  }
  const found = renderer.rendersNaming(all).filter(({ id: other }) => serviceKey(other) !== serviceKey(id))
  if (found.length === 0) return NOTHING
  const gainers: Gainer[] = []
  for (const { id: other, names } of found) {
    const resource = await store.getResource({ kind: 'Service', project: other.project, name: other.service })
    if (resource === null || resource.deletingMs !== null) continue
    const spec = serviceSpecSchema.parse(JSON.parse(resource.spec))
    const rows = new Map<ClusterId, { digest: string; names(object: string): boolean }>()
    for (const { clusterId, doc, setSha } of await store.desiredOfService(other)) {
      if (doc === null) continue
      const published = doc.removal === undefined ? await namesOf(setSha, objectRowPrefix(other)) : new Set<string>()
      rows.set(clusterId, { digest: doc.digest, names: (object) => published.has(object) })
    }
    const targets = new Set(targetsOf(spec.targets, clusters).map(({ clusterId }) => clusterId))
    gainers.push({ id: other, names, targets, rows })
  }
  return (_, row, deed) => {
    const lost = [...(held.get(row) ?? [])].filter((name) => deed === 'removal' || !kept.has(name))
    return lost.length === 0 ? [] : handoversTo(lost, gainers, row.clusterId)
  }
}
