// All clusters as small rows: what the chart and its numbers are made of. Read whole once; after that only clusters
// that changed are read again.
import { computed, signal } from '@preact/signals'
import type { ChartCluster, ChartView } from '../../../../shared/model/chart.ts'
import { call } from './api.ts'
import { rowsOf } from './cluster-list.ts'
import { ANY_LABEL, chosenGroup, keepGroup } from './first-requests.ts'
import { awaitPosition, type Change, onChanges, onReturn } from './live.ts'
import { MARKS_BY_URGENCY, type Mark, markOfCluster } from './mark-of.ts'
import { nextTask } from './pause.ts'
import { LiveResource } from './resource.ts'

/** Above it, all of them are read again: one request instead of many. */
const SINGLE_MAX = 300

export interface Fleet {
  clusters: Map<string, ChartCluster>
  labels: ChartView['labels']
  /** Null if they are not grouped. */
  by: string | null
}

export const groupBy = signal<string | null>(chosenGroup())

let current: Fleet | null = null
let pending: Set<string> | 'all' = 'all'

async function read(signal: AbortSignal): Promise<Fleet> {
  const asked = pending
  pending = new Set()
  const by = groupBy.peek() ?? ANY_LABEL
  try {
    if (asked !== 'all' && asked.size <= SINGLE_MAX && current !== null && (by === ANY_LABEL || current.by === by)) {
      if (asked.size === 0) return current
      const answer = await chart({ by: current.by, cluster: [...asked].join(',') }, signal)
      const clusters = new Map(current.clusters)
      const rows = rowsOf(answer)
      const told = new Set(rows.map(({ id }) => id))
      for (const id of asked) if (!told.has(id)) clusters.delete(id)
      for (const cluster of rows) clusters.set(cluster.id, cluster)
      current = { clusters, labels: answer.labels, by: answer.by }
      return current
    }
    const clusters = new Map<string, ChartCluster>()
    const first = early?.(by) ?? chart({ by }, signal)
    early = null
    let answer = await first
    for (;;) {
      await nextTask() // parsing was one task
      for (const cluster of rowsOf(answer)) {
        clusters.set(cluster.id, cluster)
        markOfCluster(cluster) // is kept for drawing
      }
      if (answer.continue === null) break
      answer = await chart({ by, continue: answer.continue }, signal)
    }
    await nextTask() // drawing is another one
    signal.throwIfAborted() // the session ended meanwhile
    current = { clusters, labels: answer.labels, by: answer.by }
    return current
  } catch (error) {
    const meanwhile = pending as Set<string> | 'all'
    pending = asked === 'all' || meanwhile === 'all' ? 'all' : new Set([...asked, ...meanwhile])
    throw error
  }
}

const chart = (query: Record<string, string | null>, signal: AbortSignal) =>
  call('GET /chart', { query: { columns: 'true', ...query }, signal })

export const fleet = new LiveResource<Fleet>(read)

/** The first answer of the chart, asked for while the page is still being built. */
let early: ((by: string) => Promise<ChartView> | null) | null = null

/** Asks before anything shows it: nearly every page needs it, and it takes the longest. */
export function hurryFleet(): void {
  const asked = groupBy.peek() ?? ANY_LABEL
  const { signal } = new AbortController()
  const answer = chart({ by: asked }, signal)
  const position = answer.then((view) => view.position)
  for (const one of [answer, position]) one.catch(() => {}) // whoever uses them is told
  awaitPosition(position)
  early = (by) => (by === asked ? answer : null)
}

/** For as long as the session lasts, because every page shows a part of it. Begins before the first page is drawn. */
export function followFleet(): void {
  stopFollowing ??= fleet.use()
}
let stopFollowing: (() => void) | null = null

export function chooseGroup(key: string): void {
  keepGroup(key)
  showGroup(key)
}

/** For this page only: an address that somebody shared changes no choice of this browser. */
export function showGroup(key: string): void {
  groupBy.value = key
  pending = 'all'
  fleet.refresh()
}

export function forgetFleet(): void {
  stopFollowing?.()
  stopFollowing = null
  early = null
  current = null
  pending = 'all'
  fleet.forget()
}

/** Events tell of clusters that went offline or came back. */
const CONCERNS = new Set(['status', 'desired', 'cluster', 'event'])
onChanges((changes) => {
  if (note(changes)) fleet.changed()
})
onReturn(() => fleet.returned())

function note(changes: readonly Change[] | 'all'): boolean {
  if (changes === 'all' || changes.some(isOfAll)) {
    pending = 'all'
    return true
  }
  let isNew = false
  for (const change of changes) {
    if (!CONCERNS.has(change.topic)) continue
    const ids = change.cluster !== null ? [change.cluster] : (change.keys ?? [])
    for (const id of ids) if (pending !== 'all') pending.add(id)
    isNew ||= ids.length > 0
  }
  return isNew
}

const isOfAll = ({ topic, cluster, keys, name }: Change): boolean =>
  topic === 'restore' ||
  (topic === 'resource' && (name === null || name.startsWith('Cluster/') || name.startsWith('Suspension'))) ||
  ((topic === 'desired' || topic === 'cluster') && cluster === null && keys === null)

/** In the order in which people want to see them: by mark, then by name. One walk, because rows come in the order of
 *  names. */
export const worstFirst = computed<readonly ChartCluster[]>(() => {
  const { value } = fleet.state.value
  const byMark = new Map<Mark, ChartCluster[]>(MARKS_BY_URGENCY.map((mark) => [mark, []]))
  for (const cluster of value?.clusters.values() ?? []) byMark.get(markOfCluster(cluster))?.push(cluster)
  return [...byMark.values()].flatMap(inOrder)
})

/** Clusters that joined since the list was read are at its end. */
function inOrder(clusters: ChartCluster[]): ChartCluster[] {
  const isSorted = clusters.every(({ name }, at) => at === 0 || (clusters[at - 1]?.name ?? '') <= name)
  return isSorted ? clusters : clusters.sort((a, b) => (a.name < b.name ? -1 : 1))
}

export interface Numbers {
  total: number
  marks: Record<Mark, number>
}

export const numbers = computed<Numbers | null>(() => {
  const { value } = fleet.state.value
  if (value === null) return null
  const marks: Record<Mark, number> = { ok: 0, changing: 0, drift: 0, bad: 0, held: 0, suspended: 0, offline: 0, unknown: 0 }
  for (const cluster of value.clusters.values()) marks[markOfCluster(cluster)] += 1
  return { total: value.clusters.size, marks }
})
