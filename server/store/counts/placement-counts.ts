// The words of services in clusters, kept in their desired rows, and the counts of them: what changes when agents
// report, when a cluster's labels change and when it goes.
import type { ExpressionBuilder } from 'kysely'
import type { Labels } from '../../../shared/model/labels.ts'
import { type PlacementWords, placementWords, type ReportedService } from '../../../shared/model/placement-words.ts'
import { FLEET } from '../../../shared/model/resources.ts'
import { serviceStatusSchema } from '../../../shared/model/status.ts'
import type { ClusterId, ServiceId } from '../../../shared/runtime/ids.ts'
import { type Bulk, runBulk, runIn } from '../bulk.ts'
import type { Tx } from '../store-db.ts'
import { readLabels, type Tables } from '../tables.ts'
import { clusterFacts, placementFacts, wordsText } from './rollup-facts.ts'

/** The present report of an agent about one service. Null if it no longer reports it. */
export interface PlacementReport extends ServiceId {
  clusterId: ClusterId
  status: ReportedService | null
}

type Placed = Pick<Tables['desired'], 'cluster_id' | 'project' | 'service' | 'digest' | 'sync' | 'health'>

// A cross join: SQLite would otherwise read the whole table to meet a few values. Tombstones are not among them.
const PLACED: Bulk = {
  before: 'select d.cluster_id, d.project, d.service, d.digest, d.sync, d.health from (values',
  row: '(?, ?, ?)',
  after:
    ') as v cross join desired d where d.cluster_id = v.column1 and d.project = v.column2 and d.service = v.column3 and d.doc is not null',
  types: ['text', 'text', 'text'],
}
const SET_WORDS: Bulk = {
  before: 'update desired set sync = ?, health = ? where (cluster_id, project, service) in (values',
  row: '(?, ?, ?)',
  after: ')',
  types: ['text', 'text', 'text'],
}

/** To be called in the transaction that writes these reports, with those only that changed, once for each cluster and
 *  service. Returns (as `placementKey`) of which there is a desired row. */
export async function placementsReported(tx: Tx, reports: readonly PlacementReport[]): Promise<ReadonlySet<string>> {
  const { sql: trx, engine } = tx
  const statusOf = new Map(reports.map((report) => [placementKey(report.clusterId, report), report.status]))
  const keys = reports.map(({ clusterId, project, service }) => [clusterId, project, service])
  const changed: Array<{ row: Placed; words: PlacementWords }> = []
  const placed = new Set<string>()
  for (const row of await runBulk<Placed>(trx, engine, PLACED, keys)) {
    placed.add(placementKey(row.cluster_id, row))
    const words = placementWords(row, statusOf.get(placementKey(row.cluster_id, row)) ?? null)
    if (words !== null && (words.sync !== row.sync || words.health !== row.health)) changed.push({ row, words })
  }
  if (changed.length === 0) return placed
  const labelsOf = await labelsOfClusters(tx, new Set(changed.map(({ row }) => row.cluster_id)))
  for (const { row, words } of changed) {
    const labels = labelsOf.get(row.cluster_id) ?? {}
    tx.rollups.add(placementFacts({ ...row, labels, words: wordsOf(row) }), -1)
    tx.rollups.add(placementFacts({ ...row, labels, words }), 1)
  }
  for (const rows of Map.groupBy(changed, ({ words }) => wordsText(words)).values()) {
    const rowKeys = rows.map(({ row }) => [row.cluster_id, row.project, row.service])
    const [first] = rows
    if (first !== undefined) await runBulk(trx, engine, SET_WORDS, rowKeys, [first.words.sync, first.words.health])
  }
  return placed
}

export const placementKey = (clusterId: ClusterId, { project, service }: ServiceId): string => `${clusterId} ${project}/${service}`

// A subquery: SQLite would begin with the resources of all clusters where a join asks for eight.
const LABELS: Bulk = {
  before: `select c.cluster_id, (select r.labels from resources r where r.kind = 'Cluster' and r.project = '${FLEET}' and r.name = c.name) as labels
    from clusters c where c.cluster_id in (`,
  row: '?',
  after: ')',
  types: ['text'],
}

async function labelsOfClusters({ sql: trx, engine }: Tx, ids: ReadonlySet<ClusterId>): Promise<Map<ClusterId, Labels>> {
  const rows = await runIn<{ cluster_id: ClusterId; labels: string | null }>(trx, engine, LABELS, [...ids])
  const texts = new Map<string, Labels>()
  return new Map(
    rows.map(({ cluster_id, labels: json }) => {
      const text = json ?? '{}'
      const labels = texts.get(text) ?? readLabels(text)
      texts.set(text, labels)
      return [cluster_id, labels]
    }),
  )
}

/** The words of a desired row. Null if nothing of it is left there, or it never was. */
export function wordsOf(row: Pick<Tables['desired'], 'sync' | 'health'> | undefined): PlacementWords | null {
  const { sync = null, health = null } = row ?? {}
  return sync === null || health === null ? null : { sync, health }
}

/** The change of a service's words in a cluster by a publication. */
export interface WordMove {
  clusterId: ClusterId
  before: PlacementWords | null
  after: PlacementWords | null
}

/** Counts at once the same change in many clusters. */
export async function countMoves(tx: Tx, id: ServiceId, moves: readonly WordMove[]): Promise<void> {
  const changed = moves.filter(({ before, after }) => before?.sync !== after?.sync || before?.health !== after?.health)
  if (changed.length === 0) return
  const labelsOf = await labelsOfClusters(tx, new Set(changed.map(({ clusterId }) => clusterId)))
  const alike = new Map<Labels, Map<string, WordMove & { n: number }>>()
  for (const move of changed) {
    const labels = labelsOf.get(move.clusterId) ?? NO_LABELS
    const ofLabels = alike.get(labels) ?? new Map<string, WordMove & { n: number }>()
    alike.set(labels, ofLabels)
    const text = `${move.before?.sync}/${move.before?.health}/${move.after?.sync}/${move.after?.health}`
    const held = ofLabels.get(text)
    if (held === undefined) ofLabels.set(text, { ...move, n: 1 })
    else held.n += 1
  }
  for (const [labels, ofLabels] of alike)
    for (const { before, after, n } of ofLabels.values()) {
      tx.rollups.add(placementFacts({ ...id, labels, words: before }), -n)
      tx.rollups.add(placementFacts({ ...id, labels, words: after }), n)
    }
}

const NO_LABELS: Labels = {}

/** For the rows of a statement that has `clusters`: its labels. A subquery, because planners that may choose begin with
 *  all clusters. */
export const labelsIn = (eb: ExpressionBuilder<Tables, 'clusters'>) =>
  eb
    .selectFrom('resources')
    .select('resources.labels')
    .where('resources.kind', '=', 'Cluster')
    .where('resources.project', '=', FLEET)
    .whereRef('resources.name', '=', 'clusters.name')

const reportSchema = serviceStatusSchema.pick({ sync: true, health: true, received: true, applied: true, refusal: true })
/** Null if there is none. */
export const readReport = (doc: string | null): ReportedService | null =>
  doc === null ? null : (reportSchema.safeParse(JSON.parse(doc)).data ?? null)

export function clusterJoined(tx: Tx, labels: Labels): void {
  tx.rollups.add(clusterFacts(labels), 1)
}

export async function clusterRelabelled(tx: Tx, name: string, labels: { before: Labels; after: Labels }): Promise<void> {
  const cluster = await tx.sql.selectFrom('clusters').select('cluster_id').where('name', '=', name).executeTakeFirst()
  if (cluster === undefined) return
  tx.rollups.add(clusterFacts(labels.before), -1)
  tx.rollups.add(clusterFacts(labels.after), 1)
  for (const { words, ...id } of await wordsInCluster(tx, cluster.cluster_id)) {
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
