// Pages of histories: rows of the store joined with the events that explain them.
import { writtenByOf } from '../../shared/model/commits.ts'
import type { TimelineView } from '../../shared/model/history.ts'
import { type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import { CAUSE_AFTER_MS, CAUSE_BEFORE_MS, type CausedEntry, isCause, ofEvent, seenEntry, withCauses } from '../fleet/history/causes.ts'
import type { ClusterRecord, FleetEvent, HistoryEntry, KeptCause } from '../fleet/records.ts'
import { type Scope, serviceInScope, withoutClusters } from '../fleet/rights.ts'
import type { AdminDeps } from './deps.ts'

type HistoryStore = Pick<AdminDeps['store'], 'statusHistory' | 'clusterHistory' | 'listEvents' | 'commitsOf'>

/** Events that are read for one page: of the cluster, and of the service. */
const EVENTS_READ = 2_000
const SERVICE_EVENTS_READ = 500
/** Rows of a cluster that are read for one page; a row has its cause by the row before it. */
const ROWS_READ = 5_000

interface Sight {
  cluster: ClusterRecord
  scope: Scope
  /** Whether the caller may read the cluster itself. */
  mayRead: boolean
}
interface Range {
  before?: number
  limit: number
}

export const commitsIn = (store: HistoryStore, project: string, items: readonly { commit: string | null }[]) =>
  store.commitsOf(
    project,
    items.flatMap(({ commit }) => commit ?? []),
  )

/** One placement, which the caller may read. */
export async function causedPage(
  store: HistoryStore,
  { cluster, id, scope, mayRead }: Sight & { id: ServiceId },
  { since = 0, ...range }: Range & { since?: number | undefined },
): Promise<{ items: CausedEntry[]; isLast: boolean }> {
  const read = await store.statusHistory(cluster.clusterId, id, { ...range, limit: range.limit + 1 })
  const rows = read.slice(0, range.limit)
  const oldest = rows.at(-1)
  if (oldest === undefined) return { items: [], isLast: true }
  const window = { sinceMs: oldest.atMs - CAUSE_BEFORE_MS, ...untilOf(range) }
  const ofCluster = await store.listEvents({ cluster: cluster.name, ...window, limit: EVENTS_READ })
  const ofService = serviceInScope(withoutClusters(scope), id)
    ? await store.listEvents({ ...id, ...window, limit: SERVICE_EVENTS_READ })
    : []
  const events = [
    ...ofCluster.filter(({ project, service }) => (service === null ? mayRead : project === id.project && service === id.service)),
    ...ofService.filter((event) => event.cluster === null),
  ]
  const notes = await commitsIn(store, id.project, rows)
  const noteOf = (commit: string) => writtenByOf(notes.get(commit))
  // Events before the oldest row belong to the next page.
  const mayReadService = serviceInScope(withoutClusters(scope), id)
  const sees = (of: KeptCause['of']) => (of === 'cluster' ? mayRead : of === 'service' ? mayReadService : true)
  const entries = withCauses(rows, read[range.limit] ?? null, events, noteOf)
    .filter(({ atMs }) => atMs >= oldest.atMs)
    .map((entry) => seenEntry(entry, sees))
  const page = cut(entries, range, read.length > range.limit)
  const items = page.items.filter(({ atMs }) => atMs >= since)
  return { items, isLast: page.isLast || items.length < page.items.length }
}

/** A whole cluster: what the caller may read of it. */
export async function timelinePage(
  store: HistoryStore,
  { cluster, scope, mayRead }: Sight,
  { since = 0, ...range }: Range & { since?: number | undefined },
): Promise<{ items: TimelineView[]; isLast: boolean }> {
  const read = await store.clusterHistory(cluster.clusterId, { ...range, limit: ROWS_READ })
  const window = { sinceMs: Math.max(since - CAUSE_BEFORE_MS, 0), ...untilOf(range) }
  const events = (await store.listEvents({ cluster: cluster.name, ...window, limit: EVENTS_READ })).filter(isCause)
  const placements = new Map<string, { id: ServiceId; rows: HistoryEntry[] }>()
  for (const { project, service, ...row } of read) {
    const id = { project, service }
    if (!serviceInScope(scope, id, cluster.labels)) continue
    const held = placements.get(serviceKey(id)) ?? { id, rows: [] }
    held.rows.push(row)
    placements.set(serviceKey(id), held)
  }
  const ownEvents = mayRead ? events.filter(({ service }) => service === null) : []
  const items: TimelineView[] = ownEvents.map(clusterEntry)
  const ofService = Map.groupBy(
    events.filter(({ service }) => service !== null),
    ({ project, service }) => `${project}/${service}`,
  )
  for (const [key, { id, rows }] of placements) {
    // The row before the first one inside the range tells what changed with it.
    const inside = rows.filter(({ atMs }) => atMs >= since)
    const notes = await commitsIn(store, id.project, inside)
    const noteOf = (commit: string) => writtenByOf(notes.get(commit))
    const told = [...(ofService.get(key) ?? []), ...ownEvents.filter(({ reason }) => reason === 'ClusterRelabelled')]
    const mayReadService = serviceInScope(withoutClusters(scope), id)
    const sees = (of: KeptCause['of']) => (of === 'cluster' ? mayRead : of === 'service' ? mayReadService : true)
    const caused = withCauses(inside, rows[inside.length] ?? null, told, noteOf).map((entry) => seenEntry(entry, sees))
    items.push(...caused.map((entry) => ({ ...entry, ...id, ...writtenByOf(notes.get(entry.commit ?? '')) })))
  }
  const fresh = items.filter(({ atMs }) => atMs >= since).sort((a, b) => b.atMs - a.atMs || compare(rank(a), rank(b)))
  return cut(fresh, range, read.length === ROWS_READ)
}

function clusterEntry(event: FleetEvent): TimelineView {
  const { of: _, ...cause } = ofEvent(event)
  return { atMs: event.atMs, project: null, service: null, sync: null, health: null, reason: event.reason, commit: null, cause }
}
const rank = ({ project, service }: TimelineView): string => `${project ?? ''}/${service ?? ''}`
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
const untilOf = ({ before }: Range): { untilMs?: number } => (before === undefined ? {} : { untilMs: before - 1 + CAUSE_AFTER_MS })

/** At most `limit` entries, and further ones of the same time: the next page begins strictly before it. */
function cut<T extends { atMs: number }>(entries: readonly T[], { limit, before }: Range, more: boolean): { items: T[]; isLast: boolean } {
  const found = before === undefined ? entries : entries.filter(({ atMs }) => atMs < before)
  const last = found[limit - 1]
  const items = last === undefined ? [...found] : found.filter(({ atMs }) => atMs >= last.atMs)
  return { items, isLast: items.length === 0 || (items.length === found.length && !more) }
}
