// The mark of a cluster, a placement or an object. Shape first: each is distinguishable without its colour. Pure.
import type { ChartCluster } from '../../../../shared/model/chart.ts'

export const MARKS = ['ok', 'changing', 'drift', 'bad', 'held', 'suspended', 'offline', 'unknown'] as const
export type Mark = (typeof MARKS)[number]

interface Words {
  sync: string
  health: string
}

export function markOfWords({ sync, health }: Words, reason = ''): Mark {
  if (reason === 'Suspended') return 'suspended'
  if (reason === 'Held') return 'held'
  if (reason === 'PruneRefused' || reason === 'RenderFailed') return 'bad'
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
  const { word } = cluster.liveness
  const mark = word === 'NeverSeen' || word === 'Revoked' ? 'unknown' : word === 'Offline' ? 'offline' : lastKnownMark(cluster)
  marks.set(cluster, mark)
  return mark
}

/** In which order people want to see them. */
const URGENCY: Readonly<Record<Mark, number>> = { bad: 0, drift: 1, changing: 2, held: 3, suspended: 4, unknown: 5, offline: 6, ok: 7 }
export const MARKS_BY_URGENCY: readonly Mark[] = MARKS.toSorted((a, b) => URGENCY[a] - URGENCY[b])
export const byUrgency = (a: Mark, b: Mark): number => URGENCY[a] - URGENCY[b]

/** Mark of a service over all its clusters. */
export const serviceMark = ({ status }: { status: Words & { reason: string } }): Mark => markOfWords(status, status.reason)
