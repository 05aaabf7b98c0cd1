// Objects that a service loses and another one of the same cluster gains: written into the loser's row, so that its
// agent does not delete them in between. Pure.
import { keyOutsideNamespaces } from '../../shared/kube/object.ts'
import type { ServiceRow } from '../../shared/model/desired.ts'
import type { ClusterId, ServiceId } from '../../shared/runtime/ids.ts'
import type { ObjectNames } from './named-objects.ts'

export type Handover = NonNullable<ServiceRow['handover']>[number]

/** The server's knowledge of a service that may gain objects. */
export interface Gainer {
  id: ServiceId
  /** The objects of its present render for that cluster. Null if unknown. */
  namesIn(clusterId: ClusterId): ObjectNames | null
  /** Where it is, or is about to be. */
  targets: ReadonlySet<ClusterId>
  /** The rows of the clusters that have one. */
  rows: ReadonlyMap<ClusterId, { digest: string; names: ObjectNames }>
}

/** Beyond it the order of publishing alone keeps them (gainers first). */
const HANDOVERS_MAX = 1_000
/** An object outside namespaces is wanted by one service or two; a name that more of them have in other namespaces is
 *  of a kind that lives in one. */
const NAMESAKES_MAX = 3

/** PR8: sorted; the same facts give the same. `lost`: keys of objects. */
export function handoversTo(lost: Iterable<string>, gainers: readonly Gainer[], clusterId: ClusterId): Handover[] {
  const found = new Map<string, Handover>()
  const add = (object: string, { id: { project, service }, rows }: Gainer, isNamedIn: (names: ObjectNames) => boolean) => {
    const row = rows.get(clusterId)
    const after = row !== undefined && !isNamedIn(row.names) ? { after: row.digest } : {}
    found.set(`${object} ${project} ${service}`, { object, project, service, ...after })
  }
  const there = gainers.flatMap((gainer) => {
    const names = gainer.targets.has(clusterId) ? gainer.namesIn(clusterId) : null
    return names === null ? [] : [{ gainer, names }]
  })
  for (const object of lost) {
    for (const { gainer, names } of there) if (names.has(object)) add(object, gainer, (of) => of.has(object))
    const namesakes = there.filter(({ names }) => !names.has(object) && names.hasAnywhere(object))
    if (namesakes.length > NAMESAKES_MAX) continue
    for (const { gainer } of namesakes) add(keyOutsideNamespaces(object), gainer, (of) => of.hasAnywhere(object))
  }
  const sorted = [...found].sort(([a], [b]) => (a < b ? -1 : 1))
  return sorted.slice(0, HANDOVERS_MAX).map(([, handover]) => handover)
}
