// Clusters by labels, liveness, version and name: all of them are in the dictionary, what changes from minute to minute
// is read.
import { sql } from 'kysely'
import { FLEET } from '../../../shared/model/resources.ts'
import { type ClusterId, serviceKey } from '../../../shared/runtime/ids.ts'
import { livenessOf } from '../../fleet/liveness.ts'
import { isFine, severity } from '../../fleet/placements-summary.ts'
import { clusterInScope, type Scope, serviceInScope } from '../../fleet/rights.ts'
import type { Engine } from '../engines/engine.ts'
import type { ReadDb } from '../store-db.ts'
import { toResource } from '../store-resources.ts'
import { byText, type ClusterEntry } from './fleet-dictionary.ts'
import { clusterTest, limiting } from './fleet-filter.ts'
import { desiredIn, placementFacts, type Source } from './fleet-placements.ts'
import type { ClusterFacts, ClusterQuery, FleetPage, Placed, Position } from './fleet-queries.ts'
import type { RowKey } from './fleet-query-sql.ts'
import { compareKeys } from './positions.ts'

/** In the order asked for. */
export async function findClusters(source: Omit<Source, 'costs'>, query: ClusterQuery): Promise<FleetPage<ClusterFacts>> {
  const { db, engine, dictionary } = source
  const { words = [], liveness, version, sort, after, limit, nowMs } = query
  const named = clusterTest({ labels: query.labels })
  const visible = limiting(query.visible)
  const isOne = (cluster: ClusterEntry) => named(cluster) && (visible === null || clusterInScope(visible, cluster.labels))
  let found = dictionary.clusters.filter((cluster) => isOne(cluster) && words.every((word) => cluster.name.includes(word)))
  const seen = liveness === undefined && sort === 'name' ? null : await readSeen(db)
  if (seen !== null && liveness !== undefined) {
    found = found.filter(({ no, revoked }) => {
      const at = seen.get(no)
      return at !== undefined && liveness.includes(livenessOf({ revoked, ...at }, nowMs).word)
    })
  }
  if (version !== undefined) {
    const numbers = await ofVersion(db, engine, version)
    found = found.filter(({ no }) => numbers.has(no))
  }
  const keyOf = ({ no, name }: ClusterEntry): Position => (sort === 'name' ? [name] : [-(seen?.get(no)?.lastSeenMs ?? 0), name])
  const isAfter = (cluster: ClusterEntry) => after === undefined || compareKeys(keyOf(cluster), after) > 0
  const rest = after === undefined ? found : found.filter(isAfter)
  if (sort === 'seen') {
    const keys = new Map(rest.map((cluster) => [cluster, keyOf(cluster)]))
    rest.sort((a, b) => compareKeys(keys.get(a) ?? [], keys.get(b) ?? []))
  }
  const last = rest[limit - 1]
  return {
    items: await clusterFacts(source, rest.slice(0, limit), limiting(query.services)),
    next: rest.length > limit && last !== undefined ? keyOf(last) : null,
  }
}

async function readSeen(db: ReadDb): Promise<Map<number, { lastSeenMs: number | null; waitSeconds: number }>> {
  const rows = await db.selectFrom('clusters').select(['no', 'last_seen_ms', 'wait_s']).execute()
  return new Map(rows.map(({ no, last_seen_ms, wait_s }) => [no, { lastSeenMs: last_seen_ms, waitSeconds: wait_s }]))
}

/** The clusters whose agent last reported that version; `1.34` also finds Kubernetes v1.34.2. */
async function ofVersion(db: ReadDb, engine: Engine, version: string): Promise<Set<number>> {
  const member = (name: string) =>
    engine === 'sqlite' ? sql<string>`doc ->> ${sql.lit(name)}` : sql<string>`doc::json ->> ${sql.lit(name)}`
  const rows = await db
    .selectFrom('status_rows')
    .select(['cluster_no', member('agentVersion').as('agent'), member('kubernetesVersion').as('kubernetes')])
    .where('name_id', 'in', (eb) => eb.selectFrom('names').select('id').where('kind', '=', 'cluster'))
    .where('doc', 'is not', null)
    .execute()
  const wanted = version.replace(/^v/, '')
  const begins = (text: string | null) => text?.replace(/^v/, '').startsWith(wanted) ?? false
  return new Set(rows.filter(({ agent, kubernetes }) => begins(agent) || begins(kubernetes)).map(({ cluster_no }) => cluster_no))
}

async function clusterFacts(source: Omit<Source, 'costs'>, page: readonly ClusterEntry[], services: Scope | null): Promise<ClusterFacts[]> {
  if (page.length === 0) return []
  const { db, engine, dictionary, statuses } = source
  const list = (texts: readonly string[]) =>
    engine === 'sqlite' ? sql`(select value from json_each(${JSON.stringify(texts)}))` : sql`(select unnest(${texts}::text[]))`
  const ids = list(page.map(({ clusterId }) => clusterId))
  const names = list(page.map(({ name }) => name))
  const rows = await db
    .selectFrom('clusters')
    .innerJoin('agents', 'agents.cluster_id', 'clusters.cluster_id')
    .select(['clusters.cluster_id', 'clusters.joined_ms', 'last_seen_ms', 'wait_s', 'agent_id'])
    .where(sql<boolean>`clusters.cluster_id in ${ids}`)
    .execute()
  const resources = await db
    .selectFrom('resources')
    .selectAll()
    .where('kind', '=', 'Cluster')
    .where('project', '=', FLEET)
    .where(sql<boolean>`name in ${names}`)
    .execute()
  const placed = (await desiredIn(db, engine, page)
    .select(['cluster_id', 'project', 'service', 'sync', 'health'])
    .where('sync', 'is not', null)
    .execute()) as Placed[]
  const records = new Map(rows.map((row) => [row.cluster_id, row]))
  const resourceOf = new Map(resources.map((row) => [row.name, toResource(row)]))
  const placements = new Map<ClusterId, Placed[]>()
  const labelsOf = new Map(page.map(({ clusterId, labels }) => [clusterId, labels]))
  const seen = services === null ? placed : placed.filter((row) => serviceInScope(services, row, labelsOf.get(row.cluster_id)))
  for (const row of seen) placements.set(row.cluster_id, [...(placements.get(row.cluster_id) ?? []), row])
  const worst = [...placements.values()].flatMap((some) => worstOf(some) ?? [])
  const worstFacts = new Map((await placementFacts(source, worst)).map((facts) => [facts.desired.clusterId, facts]))
  const reportName = dictionary.names.find(({ kind }) => kind === 'cluster')?.id ?? 0
  const docs = await statuses.docsOfPairs(page.map(({ no }) => ({ cluster_no: no, name_id: reportName })))
  const reports = new Map(docs.map(({ cluster_no, doc }) => [cluster_no, doc]))
  const youngest = await youngestReports(source, page, placements)
  return page.flatMap(({ clusterId, name, no, labels, revoked }): ClusterFacts[] => {
    const [record, resource] = [records.get(clusterId), resourceOf.get(name)]
    if (record === undefined || resource === undefined) return []
    const { joined_ms: joinedMs, last_seen_ms: lastSeenMs, wait_s: waitSeconds, agent_id: agentId } = record
    const own = placements.get(clusterId) ?? []
    const report = reports.get(no)
    return [
      {
        resource,
        cluster: { clusterId, name, labels, revoked, joinedMs, lastSeenMs, waitSeconds, agentId },
        report: report === undefined ? null : JSON.parse(report),
        services: own.map(serviceKey).sort(byText),
        counts: own.map(({ sync, health }) => ({ sync, health, count: 1 })),
        worst: worstFacts.get(clusterId) ?? null,
        sinceMs: youngest.get(no) ?? null,
      },
    ]
  })
}

/** The first by its key of those that are as bad. Null means that all are well. */
function worstOf(placed: readonly Placed[]): Placed | null {
  const bad = placed.filter((row) => !isFine(row))
  const [worst] = bad.sort((a, b) => severity(a) - severity(b) || byText(serviceKey(a), serviceKey(b)))
  return worst ?? null
}

/** For clusters without problems: this value is read nowhere else. */
async function youngestReports(
  { dictionary, statuses }: Omit<Source, 'costs'>,
  page: readonly ClusterEntry[],
  placements: ReadonlyMap<ClusterId, readonly Placed[]>,
): Promise<Map<number, number>> {
  const pairs = page.flatMap(({ clusterId, no }): RowKey[] => {
    const own = placements.get(clusterId) ?? []
    if (own.some((row) => !isFine(row))) return []
    return own.flatMap((row) => {
      const id = dictionary.serviceNames.get(serviceKey(row))
      return id === undefined ? [] : [{ cluster_no: no, name_id: id }]
    })
  })
  const youngest = new Map<number, number>()
  for (const { cluster_no, since_ms } of await statuses.ofPairs(pairs))
    youngest.set(cluster_no, Math.max(youngest.get(cluster_no) ?? 0, since_ms ?? 0))
  return youngest
}
