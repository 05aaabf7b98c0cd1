// The mark and the words of one cluster whose whole view is at hand.
import { moment } from '../format.ts'
import { type Seen, seenOf } from '../state/mark-of.ts'
import { nowMs } from '../state/now.ts'
import type { ClusterView } from '../state/reads.ts'
import { text } from '../words/first.ts'

export const clusterSeen = ({ status }: ClusterView): Seen => seenOf(status)

/** `offline since Tue 14:02, last known: in sync`. Null means that the agent of the cluster is in contact. */
export function awayWord({ liveness }: { liveness: ClusterView['status']['liveness'] }, { mark, was }: Seen): string | null {
  if (liveness.word === 'Revoked') return text.clusters.revoked
  if (liveness.word === 'NeverSeen') return text.clusters.neverSeen
  if (mark !== 'offline' || liveness.lastSeenMs === null) return null
  const since = moment(liveness.lastSeenMs, nowMs.value)
  return was === null ? text.clusters.offlineSince(since) : text.clusters.offlineWas(since, text.marks[was])
}

export function clusterWord(view: ClusterView): string {
  const seen = clusterSeen(view)
  return awayWord(view.status, seen) ?? text.marks[seen.mark]
}
