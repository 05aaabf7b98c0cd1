// RP2: the changes that a restored server would make in each cluster, from its rows and the agents' reports. Pure: the
// same rows give the same plan and the same token, and a confirmation is for that token only.
import { canonicalJson, sha256Hex } from '../../shared/kube/canonical.ts'
import { deletes, type ServiceRow } from '../../shared/model/desired.ts'
import type { ServiceStatus } from '../../shared/model/status.ts'
import type { RestoreClusterView, RestoreServiceView } from '../../shared/model/views.ts'
import { type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import type { DesiredService, RestoreProof } from './records.ts'

export interface RestoreInput {
  cluster: string
  lastSeenMs: number | null
  /** Its agent made contact since the matter was found out. */
  heard: boolean
  /** The proof of its agent, with what the store has instead. Null if there is none (yet). */
  ahead: { proof: Pick<RestoreProof, 'epoch' | 'ordinal'>; epoch: number; ordinal: number } | null
  desired: readonly DesiredService[]
  /** By a suspension that the store has. */
  isSuspended(id: ServiceId): boolean
  /** By service key: the last report of its agent. It may be the one in the backup. */
  reports: ReadonlyMap<string, ServiceStatus>
}

export interface PlannedRestore {
  view: RestoreClusterView
  /** Rows to be marked `restored`: all of them. An agent that reports the same revision proves nothing: its disk may
   *  have lost the same revisions as the server, or the turn that brings a newer one is not over yet. Where nothing has
   *  to be deleted the mark changes nothing. */
  marked: DesiredService[]
}

/** The document of a marked row. A confirmation in the backup was for the cluster at that time. */
export const restoredDoc = ({ pruneConfirmed: _, confirmed: __, ...doc }: ServiceRow): ServiceRow => ({ ...doc, restored: true })

export function planRestore(input: RestoreInput): PlannedRestore {
  const services: RestoreServiceView[] = []
  const marked: DesiredService[] = []
  let same = 0
  const known = new Set<string>()
  for (const row of input.desired) {
    if (row.doc === null) continue
    const key = serviceKey(row)
    known.add(key)
    const found = compare(row.doc, input.reports.get(key) ?? null)
    if (found === 'same') same += 1
    else services.push({ project: row.project, service: row.service, ...found })
    if (row.doc.restored !== true) marked.push(row)
    // SU10: it was suspended after the backup was made.
    if (input.reports.get(key)?.reason === 'Suspended' && !input.isSuspended(row))
      services.push({ project: row.project, service: row.service, what: 'resume', from: null, to: row.doc.commit })
  }
  for (const [key, status] of input.reports) {
    if (known.has(key) || status.removed === true) continue
    const slash = key.indexOf('/')
    const [project, service] = [key.slice(0, slash), key.slice(slash + 1)]
    services.push({ project, service, what: 'unclaimed', from: status.received?.commit ?? null, to: null })
  }
  const order = (a: RestoreServiceView, b: RestoreServiceView) => (serviceKey(a) < serviceKey(b) ? -1 : 1)
  const { cluster, lastSeenMs, heard, ahead } = input
  const behind =
    ahead === null
      ? null
      : { epoch: ahead.epoch, ordinal: ahead.ordinal, provenEpoch: ahead.proof.epoch, provenOrdinal: ahead.proof.ordinal }
  return { view: { cluster, lastSeenMs, heard, behind, same, services: services.sort(order) }, marked }
}

function compare(doc: ServiceRow, status: ServiceStatus | null): 'same' | Pick<RestoreServiceView, 'what' | 'from' | 'to'> {
  const from = status?.received?.commit ?? null
  if (doc.removal !== undefined) {
    if (status?.removed === true && status.removedOrderMs === doc.removal.atMs) return 'same'
    return { what: deletes(doc.removal) ? 'remove' : 'let go', from, to: null }
  }
  if (status === null || status.received === undefined || status.removed === true) return { what: 'place', from: null, to: doc.commit }
  return status.received.digest === doc.digest ? 'same' : { what: 'change', from, to: doc.commit }
}

/**
 * Covers the changes, not the times of the last contact: otherwise the token would change before anybody could confirm.
 */
export function restoreToken(clusters: readonly RestoreClusterView[]): string {
  const shown = clusters.map(({ cluster, behind, services }) => ({
    cluster,
    behind: behind === null ? null : behind.provenOrdinal,
    services,
  }))
  return sha256Hex(canonicalJson(shown)).slice(0, 32)
}
