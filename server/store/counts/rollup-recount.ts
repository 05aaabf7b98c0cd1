// Counts from the rows alone, to compare with the kept ones, and to compute them again: some clusters at a time, with
// no more in memory than the counts themselves.
import { type Kysely, sql, type Transaction } from 'kysely'
import { serviceRowSchema } from '../../../shared/model/desired.ts'
import { type PlacementWords, placementWords } from '../../../shared/model/placement-words.ts'
import { clusterStatusSchema } from '../../../shared/model/status.ts'
import type { Engine } from '../engines/engine.ts'
import type { ReadDb } from '../store-db.ts'
import { readLabels, type Tables } from '../tables.ts'
import { labelsIn, readReport, wordsOf } from './placement-counts.ts'
import { RollupDeltas } from './rollup-deltas.ts'
import { clusterFacts, driftFacts, HOUR_MS, objectFacts, placementFacts, versionFacts, wordsText } from './rollup-facts.ts'

/** Clusters whose rows one statement counts: a few milliseconds. */
const CLUSTERS_A_TIME = 50
const ROWS_A_TIME = 500

/**
 * Counts all rows again. While others write to the store, it is right only inside a transaction that sees one moment.
 */
export async function recount(db: ReadDb): Promise<RollupDeltas> {
  const counts = new RollupDeltas()
  await countDrifts(db, counts)
  for await (const slice of clusterSlices(db)) {
    await countClusters(db, slice, counts)
    await countObjects(db, slice, counts)
    await countVersions(db, slice, counts)
  }
  return counts
}

interface Slice {
  first: number
  last: number
}

async function* clusterSlices(db: ReadDb): AsyncGenerator<Slice> {
  for (let after = 0; ; ) {
    const rows = await db.selectFrom('clusters').select('no').where('no', '>', after).orderBy('no').limit(CLUSTERS_A_TIME).execute()
    const [first, last] = [rows[0], rows.at(-1)]
    if (first === undefined || last === undefined) return
    yield { first: first.no, last: last.no }
    after = last.no
  }
}

async function countClusters(db: ReadDb, { first, last }: Slice, counts: RollupDeltas): Promise<void> {
  const clusters = await db
    .selectFrom('clusters')
    .select('cluster_id')
    .select((eb) => labelsIn(eb).as('labels'))
    .where('no', '>=', first)
    .where('no', '<=', last)
    .execute()
  const labels = new Map(clusters.map((cluster) => [cluster.cluster_id, readLabels(cluster.labels ?? '{}')]))
  for (const some of labels.values()) counts.add(clusterFacts(some), 1)
  const placements = await db
    .selectFrom('desired')
    .select(['cluster_id', 'project', 'service', 'sync', 'health'])
    .where('cluster_id', 'in', [...labels.keys()])
    .execute()
  for (const { cluster_id, project, service, ...row } of placements)
    counts.add(placementFacts({ project, service, labels: labels.get(cluster_id) ?? {}, words: wordsOf(row) }), 1)
}

async function countObjects(db: ReadDb, { first, last }: Slice, counts: RollupDeltas): Promise<void> {
  const said = db
    .selectFrom('status_rows')
    .select((eb) => ['name_id', 'state_id', eb.fn.countAll<number>().as('count')])
    .where('cluster_no', '>=', first)
    .where('cluster_no', '<=', last)
    .where('state_id', 'is not', null)
    .groupBy(['name_id', 'state_id'])
  const groups = await db
    .selectFrom(said.as('g'))
    .innerJoin('names as n', 'n.id', 'g.name_id')
    .innerJoin('states as s', 's.id', 'g.state_id')
    .select(['n.project', 'n.service', 's.sync', 's.health', 's.images', 'g.count'])
    .where('n.kind', '=', 'object')
    .execute()
  for (const { count, ...row } of groups) counts.add(objectFacts(row, row), count)
}

/** By their states, which are few. */
async function countDrifts(db: ReadDb, counts: RollupDeltas): Promise<void> {
  const states = await db.selectFrom('states').select(['id', 'reason']).where('sync', '=', '').where('health', '=', '').execute()
  for (const { id, reason } of states) {
    const hours = await db
      .selectFrom('status_rows as r')
      .innerJoin('names as n', 'n.id', 'r.name_id')
      .select((eb) => [sql<number>`r.since_ms / ${sql.lit(HOUR_MS)}`.as('hour'), eb.fn.countAll<number>().as('count')])
      .where('r.state_id', '=', id)
      .where('n.kind', '=', 'drift')
      .groupBy('hour')
      .execute()
    for (const { hour, count } of hours) counts.add(driftFacts(hour * HOUR_MS, { reason }), count)
  }
}

async function countVersions(db: ReadDb, { first, last }: Slice, counts: RollupDeltas): Promise<void> {
  const rows = await db
    .selectFrom('names as n')
    .innerJoin('status_rows as r', 'r.name_id', 'n.id')
    .select('r.doc')
    .where('n.kind', '=', 'cluster')
    .where('r.doc', 'is not', null)
    .where('r.cluster_no', '>=', first)
    .where('r.cluster_no', '<=', last)
    .execute()
  for (const { doc } of rows) {
    const said = clusterStatusSchema.safeParse(JSON.parse(doc ?? 'null'))
    if (said.success) counts.add(versionFacts(said.data), 1)
  }
}

export interface CountDifference extends Omit<Tables['rollups'], 'n'> {
  kept: number
  counted: number
}

/** Where the counts that are kept are not what the rows count. */
export async function* countDifferences(db: ReadDb): AsyncGenerator<CountDifference> {
  const counted = new Map((await recount(db)).rows().map((row) => [rollupKey(row), row]))
  for await (const kept of keptSlices(db))
    for (const { n, ...row } of kept) {
      const again = counted.get(rollupKey(row))?.n ?? 0
      counted.delete(rollupKey(row))
      if (again !== n) yield { ...row, kept: n, counted: again }
    }
  for (const { n, ...row } of counted.values()) yield { ...row, kept: 0, counted: n }
}

type Kept = Pick<Tables['rollups'], 'dimension' | 'key' | 'value'>
const rollupKey = ({ dimension, key, value }: Kept): string => `${dimension}\n${key}\n${value}`

async function* keptSlices(db: ReadDb): AsyncGenerator<Array<Tables['rollups']>> {
  for (let after: Kept | null = null; ; ) {
    let query = db.selectFrom('rollups').selectAll().where('n', '!=', 0)
    if (after !== null) query = query.where(sql<boolean>`(dimension, key, value) > (${after.dimension}, ${after.key}, ${after.value})`)
    const rows: Array<Tables['rollups']> = await query.orderBy('dimension').orderBy('key').orderBy('value').limit(ROWS_A_TIME).execute()
    yield rows
    after = rows.at(-1) ?? null
    if (rows.length < ROWS_A_TIME) return
  }
}

export interface WordDifference extends Pick<Tables['desired'], 'cluster_id' | 'project' | 'service' | 'digest'> {
  /** `Synced/Healthy`; empty: none. */
  kept: string
  counted: string
  words: PlacementWords | null
}

/** Desired rows whose digest or words are not those of their document and of what the agent says. */
export async function* wordDifferences(db: ReadDb): AsyncGenerator<WordDifference> {
  for await (const { first, last } of clusterSlices(db)) {
    const rows = await db
      .selectFrom('desired as d')
      .innerJoin('clusters as c', 'c.cluster_id', 'd.cluster_id')
      .select(['d.cluster_id', 'd.project', 'd.service', 'd.doc', 'd.digest', 'd.sync', 'd.health'])
      .select(
        sql<string | null>`(select r.doc from status_rows r where r.cluster_no = c.no
        and r.name_id = (select n.id from names n where n.kind = 'service' and n.key = d.project || '/' || d.service))`.as('report'),
      )
      .where('c.no', '>=', first)
      .where('c.no', '<=', last)
      .execute()
    for (const { doc, report, ...row } of rows) {
      const digest = doc === null ? null : digestOf(doc)
      const words = placementWords(doc === null ? null : { digest }, readReport(report))
      const [kept, counted] = [wordsOf(row), words].map((some) => (some === null ? '' : wordsText(some)))
      const { cluster_id, project, service } = row
      if (kept !== counted || digest !== row.digest)
        yield { cluster_id, project, service, digest, kept: kept ?? '', counted: counted ?? '', words }
    }
  }
}

/** Null for an order to remove it, and for a row that this version does not understand. */
function digestOf(text: string): string | null {
  const { data } = serviceRowSchema.safeParse(JSON.parse(text))
  return data === undefined || data.removal !== undefined ? null : data.digest
}

/** In one transaction: what is kept is what is counted. */
export async function rebuildCounts(trx: Transaction<Tables>, engine: Engine): Promise<void> {
  for await (const { cluster_id, project, service, digest, words } of wordDifferences(trx))
    await trx
      .updateTable('desired')
      .set({ digest, ...(words ?? { sync: null, health: null }) })
      .where('cluster_id', '=', cluster_id)
      .where('project', '=', project)
      .where('service', '=', service)
      .execute()
  await trx.deleteFrom('rollups').execute()
  const counts = await recount(trx)
  await counts.write(trx, engine)
}

/** …and how many rows refer to each name and state, and are of each cluster. */
export async function rebuildAll(trx: Transaction<Tables>, engine: Engine): Promise<void> {
  for (const [table, column] of [
    ['names', 'name_id'],
    ['states', 'state_id'],
  ] as const)
    await sql`update ${sql.table(table)} set refs = (select count(*) from status_rows where ${sql.ref(column)} = ${sql.ref(`${table}.id`)})`.execute(
      trx,
    )
  await sql`update clusters set row_count = (select count(*) from status_rows where cluster_no = clusters.no)`.execute(trx)
  await rebuildCounts(trx, engine)
}

/** Raised with every change of what is counted and how. */
const COUNTS_VERSION = '1'
const COUNTS_KEY = 'counts'

/** Once after each migration to, and each version with, other counts. */
export async function bringCounts(db: Kysely<Tables>, engine: Engine): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const held = await trx.selectFrom('meta').select('value').where('key', '=', COUNTS_KEY).executeTakeFirst()
    if (held?.value === COUNTS_VERSION) return
    await rebuildCounts(trx, engine)
    await trx
      .insertInto('meta')
      .values({ key: COUNTS_KEY, value: COUNTS_VERSION })
      .onConflict((on) => on.column('key').doUpdateSet({ value: COUNTS_VERSION }))
      .execute()
  })
}
