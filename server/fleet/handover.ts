// Objects that a service loses and another one of the same cluster gains: written into the loser's row, so that its agent does not delete them in between. Pure.
import type { ServiceRow } from '../../shared/model/desired.ts'
import type { ClusterId, ServiceId } from '../../shared/model/ids.ts'

export type Handover = NonNullable<ServiceRow['handover']>[number]

/** What the server knows of a service that may gain. */
export interface Gainer {
  id: ServiceId
  /** What it renders to now, in that cluster. */
  names(object: string, clusterId: ClusterId): boolean
  /** Where it is, or is about to be. */
  targets: ReadonlySet<ClusterId>
  /** What its row says in a cluster, where it has one. */
  rows: ReadonlyMap<ClusterId, { digest: string; names(object: string): boolean }>
}

/** Beyond it the order of publishing alone keeps them (gainers first). */
const HANDOVERS_MAX = 1_000

/** PR8: sorted; the same facts give the same. `lost`: keys of objects. */
export function handoversTo(lost: Iterable<string>, gainers: readonly Gainer[], clusterId: ClusterId): Handover[] {
  const found: Handover[] = []
  for (const object of lost) {
    for (const { id, names, targets, rows } of gainers) {
      if (!targets.has(clusterId) || !names(object, clusterId)) continue
      const row = rows.get(clusterId)
      const { project, service } = id
      found.push({ object, project, service, ...(row !== undefined && !row.names(object) ? { after: row.digest } : {}) })
    }
  }
  const text = ({ object, project, service }: Handover) => `${object} ${project} ${service}`
  return found.sort((a, b) => (text(a) < text(b) ? -1 : 1)).slice(0, HANDOVERS_MAX)
}
