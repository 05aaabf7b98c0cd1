// Every cluster with the worst words of its services, counted in one walk over an index: what a chart of the fleet is
// drawn from.
import { sql } from 'kysely'
import { ANY_LABEL, type ChartCluster, type ChartColumns } from '../../../shared/model/chart.ts'
import { matchesSelector } from '../../../shared/model/labels.ts'
import { livenessOf } from '../../fleet/liveness.ts'
import { type ChartWords, counted, idsIn, wordsOf } from './chart-words.ts'
import type { ClusterEntry } from './fleet-dictionary.ts'
import { clusterTest, isOpenDrift } from './fleet-filter.ts'
import type { Source } from './fleet-placements.ts'
import type { ChartQuery, FleetChart } from './fleet-queries.ts'

const LABELS_MAX = 50
/** Labels that people group by, the most usual first. */
const USUAL_LABELS = ['region', 'topology.kubernetes.io/region', 'site', 'store', 'country', 'env']
const USUAL_VALUES_MAX = 40

type ChartSource = Pick<Source, 'db' | 'engine' | 'dictionary'> & { words: ChartWords }

export async function readChart({ db, engine, dictionary, words: kept }: ChartSource, query: ChartQuery): Promise<FleetChart> {
  const { clusters: asked, visible, projects, after, limit } = query
  const wanted = asked === undefined ? null : new Set(asked)
  const isOne = clusterTest({ labels: query.labels })
  const seenClusters =
    visible === undefined
      ? dictionary.clusters
      : dictionary.clusters.filter(({ labels }) => visible.some((selector) => matchesSelector(labels, selector)))
  const found = seenClusters.filter(
    (one) => (wanted === null || wanted.has(one.clusterId)) && (after === undefined || one.name > after) && isOne(one),
  )
  const page = found.slice(0, limit)
  const ids = page.map(({ clusterId }) => clusterId)
  const list = idsIn(engine, ids)
  const isWhole = page.length === dictionary.clusters.length
  const { words: ofAll, held } = await kept.at(db, dictionary.clustersById)
  // Callers with limited rights have counts of their own.
  const words = projects === undefined ? ofAll : wordsOf(await counted(db, isWhole ? null : list, projects))
  const seen = await db
    .selectFrom('clusters')
    .select(['no', 'last_seen_ms', 'wait_s'])
    .$if(!isWhole, (chosen) => chosen.where(sql<boolean>`cluster_id in ${list}`))
    .execute()
  const seenOf = new Map(seen.map((row) => [row.no, row]))
  const drifts = projects === undefined ? await openDrifts(db, dictionary) : new Map<number, number>()
  const last = page.at(-1)
  const { suspended } = query
  const names = new Set(suspended === 'all' ? [] : suspended)
  const isSuspended = (name: string): boolean => suspended === 'all' || names.has(name)
  const labels = labelsOf(seenClusters)
  const by = query.by === ANY_LABEL ? usualLabel(labels, seenClusters.length) : (query.by ?? null)
  const items = page.map((cluster): ChartCluster => {
    const { clusterId, name, no, revoked } = cluster
    const row = seenOf.get(no)
    const own = words.get(clusterId)
    const facts = { revoked, lastSeenMs: row?.last_seen_ms ?? null, waitSeconds: row?.wait_s ?? 0 }
    return {
      ...{ id: clusterId, name, group: by === null ? null : (cluster.labels[by] ?? null), liveness: livenessOf(facts, query.nowMs) },
      ...{ sync: own?.worst.sync ?? null, health: own?.worst.health ?? null, services: own?.services ?? 0, bad: own?.bad ?? 0 },
      ...{ drifts: drifts.get(no) ?? 0, suspended: isSuspended(name), held: held.has(no) },
    }
  })
  return {
    by,
    labels,
    items: JSON.stringify(query.columns === true ? columnsOf(items) : items),
    count: items.length,
    next: found.length > page.length && last !== undefined ? last.name : null,
  }
}

/** A usual label that most clusters have and that makes some groups, not hundreds; else the first of the kind. */
function usualLabel(labels: FleetChart['labels'], total: number): string | null {
  const fitting = labels.filter(({ values, clusters }) => values > 1 && values <= USUAL_VALUES_MAX && clusters * 2 > total)
  return USUAL_LABELS.find((key) => fitting.some((label) => label.key === key)) ?? fitting[0]?.key ?? null
}

/** By number of the cluster: objects that drifted and were not put back. */
async function openDrifts(db: ChartSource['db'], dictionary: ChartSource['dictionary']): Promise<Map<number, number>> {
  const states = [...dictionary.states.values()].filter(isOpenDrift).map(({ id }) => id)
  if (states.length === 0) return new Map()
  const rows = await db
    .selectFrom('status_rows')
    .select(({ fn }) => ['cluster_no', fn.countAll<number | string>().as('n')])
    .where('state_id', 'in', states)
    .groupBy('cluster_no')
    .execute()
  return new Map(rows.map(({ cluster_no, n }) => [cluster_no, Number(n)]))
}

function labelsOf(clusters: readonly ClusterEntry[]): FleetChart['labels'] {
  const known = new Map<string, { clusters: number; values: Set<string> }>()
  for (const { labels } of clusters)
    for (const [key, value] of Object.entries(labels)) {
      const one = known.get(key) ?? { clusters: 0, values: new Set() }
      one.clusters += 1
      one.values.add(value)
      known.set(key, one)
    }
  return [...known]
    .map(([key, { clusters, values }]) => ({ key, clusters, values: values.size }))
    .sort((a, b) => b.clusters - a.clusters || (a.key < b.key ? -1 : 1))
    .slice(0, LABELS_MAX)
}

/** A column for each field. */
export const columnsOf = (rows: readonly ChartCluster[]): ChartColumns => ({
  id: rows.map(({ id }) => id),
  name: rows.map(({ name }) => name),
  group: rows.map(({ group }) => group),
  word: rows.map(({ liveness }) => liveness.word),
  lastSeenMs: rows.map(({ liveness }) => liveness.lastSeenMs),
  sync: rows.map(({ sync }) => sync),
  health: rows.map(({ health }) => health),
  services: rows.map(({ services }) => services),
  bad: rows.map(({ bad }) => bad),
  drifts: rows.map(({ drifts }) => drifts),
  suspended: rows.map(({ suspended }) => suspended),
  held: rows.map(({ held }) => held),
})
