// The mark and the words of one cluster whose whole view is at hand.
import { moment } from '../format.ts'
import { type Mark, markOfWords } from '../state/mark-of.ts'
import { nowMs } from '../state/now.ts'
import type { ClusterView } from '../state/reads.ts'
import { text } from '../words.ts'

export function clusterMark({ status }: ClusterView): Mark {
  const { word } = status.liveness
  if (word === 'NeverSeen' || word === 'Revoked') return 'unknown'
  return word === 'Offline' ? 'offline' : markOfWords(status, status.reason)
}

export function clusterWord(view: ClusterView): string {
  const { liveness } = view.status
  if (liveness.word === 'Revoked') return text.clusters.revoked
  if (liveness.word === 'NeverSeen') return text.clusters.neverSeen
  if (liveness.word === 'Offline' && liveness.lastSeenMs !== null)
    return text.clusters.offlineSince(moment(liveness.lastSeenMs, nowMs.value))
  return text.marks[clusterMark(view)]
}
