// The mark of a cluster, a placement or an object. Shape first: each is distinguishable without its colour. Pure.
// An offline cluster is neither green nor red: what it reported last is shown as such, inside the mark of the offline.
import type { ChartCluster } from '../../../../shared/model/chart.ts'

export const MARKS = ['ok', 'changing', 'drift', 'bad', 'held', 'suspended', 'offline', 'unknown'] as const
export type Mark = (typeof MARKS)[number]

interface Words {
  sync: string
  health: string
}
/** Words as a cluster reported them. */
interface Reported extends Words {
  reason: string
  liveness: { word: string }
}

/** `was`: the last known mark behind a cluster that is offline. Null means that the mark is of now, or nothing is
 *  known. */
export interface Seen {
  mark: Mark
  was: Mark | null
}

/** Null if the cluster is online, and its words are of now. */
export const awayMark = ({ word }: { word: string }): Mark | null => (word === 'Online' ? null : word === 'Offline' ? 'offline' : 'unknown')

export function seenOf(item: Reported, last: Mark = markOfWords(item, item.reason)): Seen {
  const away = awayMark(item.liveness)
  return away === null ? { mark: last, was: null } : { mark: away, was: away === 'offline' ? last : null }
}

export function markOfWords({ sync, health }: Words, reason = ''): Mark {
  if (reason === 'Suspended') return 'suspended'
  if (reason === 'Held') return 'held'
  if (reason === 'PruneBlocked' || reason === 'RenderFailed') return 'bad'
  if (health === 'Degraded') return 'bad'
  if (CHANGING.has(reason)) return 'changing'
  if (health === 'Suspended') return sync === 'Synced' ? 'ok' : 'changing'
  if (health === 'Missing') return 'bad'
  if (health === 'Progressing') return 'changing'
  if (sync === 'OutOfSync') return DRIFTS.has(reason) ? 'drift' : 'changing'
  if (sync === 'Unknown' || health === 'Unknown') return 'unknown'
  return 'ok'
}

const DRIFTS: ReadonlySet<string> = new Set(['Drifted', 'Contested', 'Conflict', 'OutOfSync'])
/** On their way, by themselves. */
const CHANGING: ReadonlySet<string> = new Set([
  ...['NotReceived', 'NotApplied', 'NotReported', 'Removing', 'Resuming', 'WaitingForWave', 'WaitingForHook', 'Rendering'],
  ...['WaitingForFacts', 'BlockedBy', 'OutsideWindow', 'Pending'],
])

/** The mark of an event: that of the state which it reports. */
export function markOfEvent({ type, reason }: { type: string; reason: string }): Mark {
  if (reason === 'Suspended') return 'suspended'
  if (reason === 'Held') return 'held'
  if (type !== 'Warning') return 'ok'
  if (reason === 'ClusterOffline') return 'offline'
  return DRIFTS.has(reason) ? 'drift' : 'bad'
}

/** As it last was, whether the cluster is online or not. */
export function lastKnownMark({ sync, health, drifts, suspended, held }: ChartCluster): Mark {
  if (held) return 'held'
  if (suspended) return 'suspended'
  if (sync === null || health === null) return 'ok' // nothing is placed there, and nothing is wrong
  if (health === 'Degraded') return 'bad'
  if (drifts > 0) return 'drift'
  if (health === 'Progressing' || health === 'Missing' || sync === 'OutOfSync') return 'changing'
  return sync === 'Unknown' || health === 'Unknown' ? 'unknown' : 'ok'
}

/** Rows never change, others come in their place; each is looked at many times. */
const marks = new WeakMap<ChartCluster, Mark>()
export function markOfCluster(cluster: ChartCluster): Mark {
  const known = marks.get(cluster)
  if (known !== undefined) return known
  const mark = awayMark(cluster.liveness) ?? lastKnownMark(cluster)
  marks.set(cluster, mark)
  return mark
}

/** In which order people want to see them. */
const URGENCY: Readonly<Record<Mark, number>> = { bad: 0, drift: 1, changing: 2, held: 3, suspended: 4, unknown: 5, offline: 6, ok: 7 }
export const MARKS_BY_URGENCY: readonly Mark[] = MARKS.toSorted((a, b) => URGENCY[a] - URGENCY[b])
export const byUrgency = (a: Mark, b: Mark): number => URGENCY[a] - URGENCY[b]

interface ServiceWords {
  status: Words & { reason: string; clusters: { total: number; offline: number } }
}

/** Reasons that the server knows by itself, whether a cluster is online or not. */
const OF_SERVER: ReadonlySet<string> = new Set([
  ...['RenderFailed', 'RepositoryNotFound', 'RepositoryUnreadable', 'RepositoryNotRead', 'WaitingForConfirmation', 'Deleting'],
  ...['Suspended', 'Rendering'],
])

/** The mark of a service over all its clusters. When none of them is online, nothing of now is known of it. */
export function serviceSeen({ status }: ServiceWords): Seen {
  const { reason, clusters } = status
  const last = markOfWords(status, reason)
  const isAway = clusters.total > 0 && clusters.offline >= clusters.total && !OF_SERVER.has(reason)
  return isAway ? { mark: 'offline', was: last } : { mark: last, was: null }
}
