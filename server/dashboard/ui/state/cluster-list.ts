// The rows of the list of clusters: made from the columns of the chart, filtered, sorted and grouped. Pure.
import type { ChartCluster, ChartColumns, ChartView } from '../../../../shared/model/chart.ts'
import type { SortBy } from './list-view.ts'
import { type Mark, markOfCluster } from './mark-of.ts'

export interface ClusterFilter {
  q: string
  state: string
  /** Ids that a label selector chose. Null means that it chose nothing out. */
  ids: ReadonlySet<string> | null
}

export function filterClusters(all: readonly ChartCluster[], { q, state, ids }: ClusterFilter): readonly ChartCluster[] {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0 && state === '' && ids === null) return all
  return all.filter(
    (one) =>
      words.every((word) => one.name.includes(word)) &&
      (state === '' || markOfCluster(one) === (state as Mark)) &&
      (ids === null || ids.has(one.id)),
  )
}

const byName = (a: ChartCluster, b: ChartCluster): number => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0)
const ORDERS: Readonly<Record<string, (a: ChartCluster, b: ChartCluster) => number>> = {
  name: byName,
  /** Those with the most trouble first, then those with the most services. */
  services: (a, b) => b.bad - a.bad || b.services - a.services || byName(a, b),
  /** Never in contact first, then the longest silence. */
  seen: (a, b) => (a.liveness.lastSeenMs ?? -1) - (b.liveness.lastSeenMs ?? -1) || byName(a, b),
}

/** `worst`: in the order of marks, which is the order `state`. */
export function sortClusters(worst: readonly ChartCluster[], { key, isDown }: SortBy): readonly ChartCluster[] {
  const order = ORDERS[key]
  const sorted = order === undefined ? worst : worst.toSorted(order)
  return isDown ? sorted.toReversed() : sorted
}

/** Groups follow each other by name, clusters without the label last; inside a group the order stays. */
export function groupClusters(sorted: readonly ChartCluster[]): readonly ChartCluster[] {
  const groups = new Map<string | null, ChartCluster[]>()
  for (const one of sorted) {
    const held = groups.get(one.group)
    if (held === undefined) groups.set(one.group, [one])
    else held.push(one)
  }
  return [...groups]
    .sort(([a], [b]) => Number(a === null) - Number(b === null) || ((a ?? '') < (b ?? '') ? -1 : 1))
    .flatMap(([, some]) => some)
}

/** The rows themselves, if the server sends no columns. */
export const rowsOf = ({ items, columns }: Pick<ChartView, 'items' | 'columns'>): readonly ChartCluster[] =>
  columns === undefined ? items : columns.id.map((id, at) => rowAt(columns, id, at))

/** Columns have equal lengths; what is missing in a damaged one is not known. */
const rowAt = (of: ChartColumns, id: string, at: number): ChartCluster => ({
  id,
  name: of.name[at] ?? '',
  group: of.group[at] ?? null,
  liveness: { word: of.word[at] ?? 'Offline', lastSeenMs: of.lastSeenMs[at] ?? null },
  sync: of.sync[at] ?? null,
  health: of.health[at] ?? null,
  services: of.services[at] ?? 0,
  bad: of.bad[at] ?? 0,
  drifts: of.drifts[at] ?? 0,
  suspended: of.suspended[at] ?? false,
  held: of.held[at] ?? false,
})
