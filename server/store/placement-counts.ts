// The words of services in clusters, kept in their desired rows, and the counts of them: what changes when agents report, when a cluster's labels change and when it goes.
import { sql } from 'kysely'
import type { ClusterId, ServiceId } from '../../shared/model/ids.ts'
import type { Labels } from '../../shared/model/labels.ts'
import { type PlacementWords, placementWords, type ReportedService } from '../../shared/model/placement-words.ts'
import { FLEET } from '../../shared/model/resources.ts'
import { clusterFacts, placementFacts, wordsText } from './rollup-facts.ts'
import type { Tx } from './store-db.ts'
import { readLabels, type Tables } from './tables.ts'

/** What an agent says now of one service; null: nothing any more. */
export interface PlacementReport extends ServiceId {
  clusterId: ClusterId
  status: ReportedService | null
}

/** Rows in one statement: 3 parameters each, databases take at least 32,766. */
const BATCH_ROWS = 500

/** To be called in the transaction that writes these reports, with those only that changed, once for each cluster and service. */
export async function placementsReported(tx: Tx, reports: readonly PlacementReport[]): Promise<void> {
  for (let start = 0; start < reports.length; start += BATCH_ROWS) await reported(tx, reports.slice(start, start + BATCH_ROWS))
}

async function reported(tx: Tx, reports: readonly PlacementReport[]): Promise<void> {
  const statusOf = new Map(reports.map((report) => [placementKey(report.clusterId, report), report.status]))
  const changed = new Map<string, { words: PlacementWords; rows: Placed[] }>()
  for (const row of await placedRows(tx, reports)) {
    const words = placementWords(row, statusOf.get(placementKey(row.cluster_id, row)) ?? null)
    if (words === null || (words.sync === row.sync && words.health === row.health)) continue
    count(tx, row, wordsOf(row), -1)
    count(tx, row, words, 1)
    const group = changed.get(wordsText(words)) ?? { words, rows: [] }
    group.rows.push(row)
    changed.set(wordsText(words), group)
  }
  for (const { words, rows } of changed.values())
    await tx.sql
      .updateTable('desired')
      .set(words)
      .where(isOneOf(rows.map((row) => [row.cluster_id, row.project, row.service])))
      .execute()
}

type Placed = Pick<Tables['desired'], 'cluster_id' | 'project' | 'service' | 'digest' | 'sync' | 'health'> & { labels: string }
const placementKey = (clusterId: ClusterId, { project, service }: ServiceId): string => `${clusterId} ${project}/${service}`
const wordsOf = ({ sync, health }: Pick<Placed, 'sync' | 'health'>): PlacementWords | null =>
  sync === null || health === null ? null : { sync, health }

function count(tx: Tx, { project, service, labels }: Placed, words: PlacementWords | null, n: number): void {
  tx.rollups.add(placementFacts({ project, service, labels: readLabels(labels), words }), n)
}

/** `(a, b, c) in (values …)` is looked up by both engines' primary keys. */
const isOneOf = (keys: ReadonlyArray<readonly [string, string, string]>) =>
  sql<boolean>`(desired.cluster_id, desired.project, desired.service) in (values ${sql.join(keys.map(([a, b, c]) => sql`(${a}, ${b}, ${c})`))})`

/** Tombstones are not among them. */
const placedRows = ({ sql: trx }: Tx, reports: readonly PlacementReport[]): Promise<Placed[]> =>
  trx
    .selectFrom('desired')
    .innerJoin('clusters', 'clusters.cluster_id', 'desired.cluster_id')
    .innerJoin('resources', (on) =>
      on.onRef('resources.name', '=', 'clusters.name').on('resources.kind', '=', 'Cluster').on('resources.project', '=', FLEET),
    )
    .select(['desired.cluster_id', 'desired.project', 'desired.service', 'digest', 'sync', 'health', 'resources.labels'])
    .where(isOneOf(reports.map(({ clusterId, project, service }) => [clusterId, project, service])))
    .where('desired.doc', 'is not', null)
    .execute()

export function clusterJoined(tx: Tx, labels: Labels): void {
  tx.rollups.add(clusterFacts(labels), 1)
}

export async function clusterRelabelled(tx: Tx, clusterId: ClusterId, labels: { before: Labels; after: Labels }): Promise<void> {
  tx.rollups.add(clusterFacts(labels.before), -1)
  tx.rollups.add(clusterFacts(labels.after), 1)
  for (const { words, ...id } of await wordsInCluster(tx, clusterId)) {
    tx.rollups.add(placementFacts({ ...id, words, labels: labels.before }), -1)
    tx.rollups.add(placementFacts({ ...id, words, labels: labels.after }), 1)
  }
}

/** Before its rows go. */
export async function clusterLeaves(tx: Tx, clusterId: ClusterId, labels: Labels): Promise<void> {
  tx.rollups.add(clusterFacts(labels), -1)
  for (const placement of await wordsInCluster(tx, clusterId)) tx.rollups.add(placementFacts({ ...placement, labels }), -1)
}

async function wordsInCluster({ sql: trx }: Tx, clusterId: ClusterId): Promise<Array<ServiceId & { words: PlacementWords | null }>> {
  const rows = await trx
    .selectFrom('desired')
    .select(['project', 'service', 'sync', 'health'])
    .where('cluster_id', '=', clusterId)
    .where('sync', 'is not', null)
    .execute()
  return rows.map(({ project, service, sync, health }) => ({ project, service, words: wordsOf({ sync, health }) }))
}
