// All clusters as small rows: what the chart and its numbers are made of. Read whole once; after that only clusters
// that changed are read again.
import { computed, signal } from '@preact/signals'
import type { ANY_LABEL as ANY, ChartCluster, ChartView } from '../../../../shared/model/chart.ts'
import { call } from './api.ts'
import { awaitPosition, type Change, onChanges, onReturn } from './live.ts'
import { MARKS_BY_URGENCY, type Mark, markOfCluster } from './mark-of.ts'
import { LiveResource } from './resource.ts'

const GROUP_KEY = 'skerry-group-by'
/** Above it, all of them are read again: one request instead of many. */
const SINGLE_MAX = 300
/** As long as the person has not chosen a label, the server does. */
const ANY_LABEL: typeof ANY = '*'

export interface Fleet {
  clusters: Map<string, ChartCluster>
  labels: ChartView['labels']
  /** Null if they are not grouped. */
  by: string | null
}

export const groupBy = signal<string | null>(localStorage.getItem(GROUP_KEY))

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
      const told = new Set(answer.items.map(({ id }) => id))
      for (const id of asked) if (!told.has(id)) clusters.delete(id)
      for (const cluster of answer.items) clusters.set(cluster.id, cluster)
      current = { clusters, labels: answer.labels, by: answer.by }
      return current
    }
    const clusters = new Map<string, ChartCluster>()
    const first = early?.(by) ?? chart({ by }, signal)
    early = null
    let answer = await first
    for (;;) {
      for (const cluster of answer.items) clusters.set(cluster.id, cluster)
      if (answer.continue === null) break
      answer = await chart({ by, continue: answer.continue }, signal)
    }
    await nextTask() // parsing was one task, drawing is another one
    signal.throwIfAborted() // the session ended meanwhile
    current = { clusters, labels: answer.labels, by: answer.by }
    return current
  } catch (error) {
    const meanwhile = pending as Set<string> | 'all'
    pending = asked === 'all' || meanwhile === 'all' ? 'all' : new Set([...asked, ...meanwhile])
    throw error
  }
}

const nextTask = (): Promise<void> =>
  new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = () => {
      port1.close()
      resolve()
    }
    port2.postMessage(null)
  })

const chart = (query: Record<string, string | null>, signal: AbortSignal) => call('GET /chart', { query, signal })

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

export function chooseGroup(key: string): void {
  localStorage.setItem(GROUP_KEY, key)
  showGroup(key)
}

/** For this page only: an address that somebody shared changes no choice of this browser. */
export function showGroup(key: string): void {
  groupBy.value = key
  pending = 'all'
  fleet.refresh()
}

export function forgetFleet(): void {
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
