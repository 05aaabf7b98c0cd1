// Clusters by labels, liveness, version and name: all of them are in the dictionary, what changes from minute to minute is read.
import { sql } from 'kysely'
import { livenessOf } from '../fleet/status-view.ts'
import { byText, type ClusterEntry, type FleetDictionary } from './fleet-dictionary.ts'
import { clusterTest } from './fleet-filter.ts'
import { compareKeys } from './fleet-placements.ts'
import type { ClusterQuery, FleetPage, Position } from './fleet-queries.ts'
import type { Engine, ReadDb } from './store-db.ts'

/** Names, in the order asked for. */
export async function findClusters(
  db: ReadDb,
  engine: Engine,
  dictionary: FleetDictionary,
  query: ClusterQuery,
): Promise<FleetPage<string>> {
  const { words = [], liveness, version, sort, after, limit, nowMs } = query
  const isOne = clusterTest({ labels: query.labels })
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
  const keyed = found.map((cluster) => ({ name: cluster.name, key: keyOf(cluster) }))
  const rest = after === undefined ? keyed : keyed.filter(({ key }) => compareKeys(key, after) > 0)
  if (sort === 'seen') rest.sort((a, b) => compareKeys(a.key, b.key) || byText(a.name, b.name))
  const last = rest[limit - 1]
  return { items: rest.slice(0, limit).map(({ name }) => name), next: rest.length > limit && last !== undefined ? last.key : null }
}

async function readSeen(db: ReadDb): Promise<Map<number, { lastSeenMs: number | null; waitSeconds: number }>> {
  const rows = await db.selectFrom('clusters').select(['no', 'last_seen_ms', 'wait_s']).execute()
  return new Map(rows.map(({ no, last_seen_ms, wait_s }) => [no, { lastSeenMs: last_seen_ms, waitSeconds: wait_s }]))
}

/** What agents said last of themselves and their cluster; `1.34` is Kubernetes v1.34.2, too. */
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
