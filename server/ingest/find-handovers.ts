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

/** By the row of a cluster: what its next revision, or its removal, hands over. */
export type HandoverOf = (row: DesiredService, deed: 'revision' | 'removal') => Handover[]

const NOTHING: HandoverOf = () => []
const NO_NAMES: ReadonlySet<string> = new Set()

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
    if (setSha === null) return NO_NAMES
    const known = sets.get(prefix + setSha)
    if (known !== undefined) return known
    const bytes = await content.get(setSha)
    const names = new Set(bytes === null ? [] : [...decodeRenderedSet(bytes).keys()].map((rowId) => rowId.slice(prefix.length)))
    sets.set(prefix + setSha, names)
    return names
  }
  const prefix = objectRowPrefix(id)
  const kept = new Set([...(rendered?.objects.keys() ?? [])].map((rowId) => rowId.slice(prefix.length)))
  const holds = namesHeld()
  const held = new Map<DesiredService, ReadonlySet<string>>()
  const lookedAt = { left: new Set<ReadonlySet<string>>(), kept: new Set<ReadonlySet<string>>() }
  const all = new Set<string>()
  for (const row of current) {
    if (row.doc === null) continue
    const names = holds(await namesOf(row.setSha, prefix), row.doc.handover)
    held.set(row, names)
    const seen = isLeft(row) ? lookedAt.left : lookedAt.kept
    if (seen.has(names)) continue
    seen.add(names)
    for (const name of names) if (isLeft(row) || !kept.has(name)) all.add(name)
  }
  const found = renderer.rendersNaming(all).filter(({ id: other }) => serviceKey(other) !== serviceKey(id))
  if (found.length === 0) return NOTHING
  const gainers: Gainer[] = []
  const states: Array<(clusterId: ClusterId) => string> = []
  for (const { id: other, names } of found) {
    const resource = await store.getResource({ kind: 'Service', project: other.project, name: other.service })
    if (resource === null || resource.deletingMs !== null) continue
    const spec = serviceSpecSchema.parse(JSON.parse(resource.spec))
    const rows = new Map<ClusterId, { digest: string; names(object: string): boolean }>()
    const sameRows = new Map<ClusterId, string>()
    for (const { clusterId, doc, setSha } of await store.desiredOfService(other)) {
      if (doc === null) continue
      const published = doc.removal === undefined ? await namesOf(setSha, objectRowPrefix(other)) : NO_NAMES
      rows.set(clusterId, { digest: doc.digest, names: (object) => published.has(object) })
      sameRows.set(clusterId, `${doc.digest} ${setSha} ${doc.removal === undefined}`)
    }
    const targets = new Set(targetsOf(spec.targets, clusters).map(({ clusterId }) => clusterId))
    gainers.push({ id: other, names, targets, rows })
    states.push((clusterId) => (targets.has(clusterId) ? (sameRows.get(clusterId) ?? 'none') : 'elsewhere'))
  }
  // One answer for all clusters that hold the same, as do the gainers there.
  const answers = new Map<ReadonlySet<string>, Map<string, Handover[]>>()
  return (row, deed) => {
    const names = held.get(row)
    if (names === undefined) return []
    const known = answers.get(names) ?? new Map<string, Handover[]>()
    answers.set(names, known)
    const key = [deed, ...states.map((state) => state(row.clusterId))].join('\n')
    const answer =
      known.get(key) ?? handoversTo(deed === 'removal' ? names : [...names].filter((name) => !kept.has(name)), gainers, row.clusterId)
    known.set(key, answer)
    return answer
  }
}

/** What was handed over before may be in the cluster still. One set for all rows that hold the same: there may be thousands. */
function namesHeld(): (names: ReadonlySet<string>, handover: ServiceRow['handover']) => ReadonlySet<string> {
  const made = new Map<ReadonlySet<string>, Map<ServiceRow['handover'], ReadonlySet<string>>>()
  return (names, handover) => {
    if (handover === undefined || handover.length === 0) return names
    const known = made.get(names) ?? new Map<ServiceRow['handover'], ReadonlySet<string>>()
    made.set(names, known)
    const both = known.get(handover) ?? new Set([...names, ...handover.map(({ object }) => object)])
    known.set(handover, both)
    return both
  }
}
