// Every cluster with the worst words of its services, counted in one walk over an index: what a chart of the fleet is drawn from.
import { sql } from 'kysely'
import { ANY_LABEL } from '../../../shared/model/chart.ts'
import { matchesSelector } from '../../../shared/model/labels.ts'
import type { HealthWord, SyncWord } from '../../../shared/model/status.ts'
import { isFine, severity } from '../../fleet/placements-summary.ts'
import type { ClusterEntry } from './fleet-dictionary.ts'
import { clusterTest, isOpenDrift } from './fleet-filter.ts'
import type { Source } from './fleet-placements.ts'
import type { ChartFacts, ChartQuery, FleetChart } from './fleet-queries.ts'

const LABELS_MAX = 50
/** Labels that people group by, the most usual first. */
const USUAL_LABELS = ['region', 'topology.kubernetes.io/region', 'site', 'store', 'country', 'env']
const USUAL_VALUES_MAX = 40

type ChartSource = Pick<Source, 'db' | 'engine' | 'dictionary'>
interface Words {
  worst: { sync: SyncWord; health: HealthWord }
  services: number
  bad: number
}

export async function readChart({ db, engine, dictionary }: ChartSource, query: ChartQuery): Promise<FleetChart> {
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
  const list = engine === 'sqlite' ? sql`(select value from json_each(${JSON.stringify(ids)}))` : sql`(select unnest(${ids}::text[]))`
  const isWhole = page.length === dictionary.clusters.length
  const placed = await db
    .selectFrom('desired')
    .select(({ fn }) => ['cluster_id', 'sync', 'health', fn.countAll<number | string>().as('n')])
    .where('sync', 'is not', null)
    .$if(!isWhole, (chosen) => chosen.where(sql<boolean>`cluster_id in ${list}`))
    .$if(projects !== undefined, (chosen) => chosen.where('project', 'in', [...(projects ?? []), '']))
    .groupBy(['cluster_id', 'sync', 'health'])
    .execute()
  const words = new Map<string, Words>()
  for (const { cluster_id, sync, health, n } of placed) {
    const one = { sync: sync as SyncWord, health: health as HealthWord }
    const count = Number(n)
    const held = words.get(cluster_id)
    if (held === undefined) words.set(cluster_id, { worst: one, services: count, bad: isFine(one) ? 0 : count })
    else {
      if (isFine(held.worst) || (!isFine(one) && severity(one) < severity(held.worst))) held.worst = one
      held.services += count
      held.bad += isFine(one) ? 0 : count
    }
  }
  const seen = await db
    .selectFrom('clusters')
    .select(['no', 'last_seen_ms', 'wait_s'])
    .$if(!isWhole, (chosen) => chosen.where(sql<boolean>`cluster_id in ${list}`))
    .execute()
  const seenOf = new Map(seen.map((row) => [row.no, row]))
  const held = await heldClusters(db)
  const drifts = projects === undefined ? await openDrifts(db, dictionary) : new Map<number, number>()
  const last = page.at(-1)
  const labels = labelsOf(seenClusters)
  const by = query.by === ANY_LABEL ? usualLabel(labels, seenClusters.length) : (query.by ?? null)
  return {
    by,
    labels,
    items: page.map((cluster): ChartFacts => {
      const { clusterId, name, no, revoked } = cluster
      const row = seenOf.get(no)
      const own = words.get(clusterId)
      return {
        clusterId,
        name,
        group: by === null ? null : (cluster.labels[by] ?? null),
        cluster: { name, revoked, lastSeenMs: row?.last_seen_ms ?? null, waitSeconds: row?.wait_s ?? 0 },
        words: own?.worst ?? null,
        services: own?.services ?? 0,
        bad: own?.bad ?? 0,
        drifts: drifts.get(no) ?? 0,
        held: held.has(no),
      }
    }),
    next: found.length > page.length && last !== undefined ? last.name : null,
  }
}

/** A usual label that most clusters have and that makes some groups, not hundreds; else the first of the kind. */
function usualLabel(labels: FleetChart['labels'], total: number): string | null {
  const fitting = labels.filter(({ values, clusters }) => values > 1 && values <= USUAL_VALUES_MAX && clusters * 2 > total)
  return USUAL_LABELS.find((key) => fitting.some((label) => label.key === key)) ?? fitting[0]?.key ?? null
}

/** Clusters whose agents report a hold; the text is looked for first, because nearly none does. */
async function heldClusters(db: ChartSource['db']): Promise<Set<number>> {
  const rows = await db
    .selectFrom('status_rows')
    .select('cluster_no')
    .where('name_id', 'in', (eb) => eb.selectFrom('names').select('id').where('kind', '=', 'cluster'))
    .where('doc', 'like', '%"code":"held"%')
    .execute()
  return new Set(rows.map(({ cluster_no }) => cluster_no))
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
