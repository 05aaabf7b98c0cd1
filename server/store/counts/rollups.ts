// The port to counts: read from their table, so that an answer costs its own size and not that of the fleet. Values
// that depend on the time are counted on request: online clusters, and the age of drift.
import { setImmediate } from 'node:timers/promises'
import { type ExpressionBuilder, type SelectQueryBuilder, sql } from 'kysely'
import type { PlacementWords } from '../../../shared/model/placement-words.ts'
import { clusterSpecSchema, FLEET } from '../../../shared/model/resources.ts'
import { driftStatusSchema } from '../../../shared/model/status.ts'
import type { LivenessWord } from '../../../shared/model/views.ts'
import { type ClusterId, type ServiceId, serviceKey } from '../../../shared/runtime/ids.ts'
import { AFTER_EVERY_KEY } from '../byte-order.ts'
import { driftState, stateDigest, stateText } from '../status/status-columns.ts'
import type { ReadDb, StoreDb } from '../store-db.ts'
import type { Tables } from '../tables.ts'
import type { RollupDimension } from './rollup-dimensions.ts'
import { HOUR_MS, hourText } from './rollup-facts.ts'

/** The counts under one key, by value. */
export interface CountedKey {
  key: string
  counts: Record<string, number>
}

export interface CountQuery {
  dimension: RollupDimension
  /** The prefix of the keys. */
  prefix?: string | undefined
  limit: number
}

/** How long after its last request a cluster counts as online, by how long its agent's polls wait. */
export type OnlineWithin = (waitSeconds: number) => number

/** Clusters that are not online among those of a service. */
export interface AwayOfService {
  count: number
  /** The first of them by name. */
  names: string[]
}

export interface Rollups {
  /** In the order of keys; `next`: pass it as `after` for the next page. */
  page(query: CountQuery & { after?: string | undefined }): Promise<{ items: CountedKey[]; next: string | null }>
  /** Those that `weigh` most, the heaviest first, and how many others there are with how much together. Looks at all
   *  keys with the prefix, in slices. */
  top(
    query: CountQuery & { weigh(counts: Record<string, number>): number },
  ): Promise<{ items: CountedKey[]; rest: { keys: number; count: number } }>
  /** The counts of these keys. A key without counts is absent. */
  ofKeys(dimension: RollupDimension, keys: readonly string[]): Promise<Map<string, Record<string, number>>>
  /** How many drifts there are, by action, that are at least so old. */
  driftsSince(untilMs: number): Promise<Record<string, number>>
  /** The name of the first cluster by name that has the service in these words; `count`: about how many there are. Null
   *  means none. */
  firstIn(id: ServiceId, words: PlacementWords & { count: number }): Promise<string | null>
  /** Start of the newest state that agents reported of the service where it is placed. Null means none did. */
  youngestOf(id: ServiceId): Promise<number | null>
  liveness(nowMs: number, within: OnlineWithin): Promise<Record<LivenessWord, number>>
  /** By `project/service`; without those whose clusters are all online. Costs what clusters that are not online have.
   */
  awayOfServices(services: readonly ServiceId[], nowMs: number, within: OnlineWithin): Promise<Map<string, AwayOfService>>
}

/** Keys read at once. */
const SLICE_KEYS = 500
/** Clusters whose rows are read at once. */
const CLUSTERS_A_TIME = 50
const NAMES_KEPT = 5

export function createRollups(db: StoreDb): Rollups {
  const revokedNames = rememberRevoked()
  return {
    page: async ({ limit, after, ...query }) => {
      const keys = await readKeys(db.read, query, limit + 1, after)
      const items = keys.slice(0, limit)
      return { items, next: keys.length > limit ? (items.at(-1)?.key ?? null) : null }
    },
    top: ({ limit, weigh, ...query }) => top(db, query, limit, weigh),
    ofKeys: async (dimension, keys) => {
      if (keys.length === 0) return new Map()
      const rows = await db.read
        .selectFrom('rollups')
        .selectAll()
        .where('dimension', '=', dimension)
        .where('key', 'in', keys)
        .where('n', '!=', 0)
        .execute()
      return new Map(byKey(rows).map(({ key, counts }) => [key, counts]))
    },
    driftsSince: (untilMs) => driftsSince(db.read, untilMs),
    firstIn: (id, words) => firstIn(db.read, id, words),
    youngestOf: (id) => youngestOf(db.read, id),
    liveness: (nowMs, within) => liveness(db.read, { nowMs, within, revokedNames }),
    awayOfServices: (services, nowMs, within) => awayOfServices(db, services, { nowMs, within, revokedNames }),
  }
}

type Keys = Pick<CountQuery, 'dimension' | 'prefix'>

/** The next `count` keys with all their values. */
async function readKeys(db: ReadDb, { dimension, prefix = '' }: Keys, count: number, after: string | undefined): Promise<CountedKey[]> {
  let keys = db.selectFrom('rollups').select('key').distinct().where('dimension', '=', dimension).where('n', '!=', 0)
  if (prefix !== '') keys = keys.where('key', '>=', prefix).where('key', '<', prefix + AFTER_EVERY_KEY)
  if (after !== undefined) keys = keys.where('key', '>', after)
  const found = await keys.orderBy('key').limit(count).execute()
  const [first, last] = [found[0], found.at(-1)]
  if (first === undefined || last === undefined) return []
  const rows = await db
    .selectFrom('rollups')
    .selectAll()
    .where('dimension', '=', dimension)
    .where('n', '!=', 0)
    .where('key', '>=', first.key)
    .where('key', '<=', last.key)
    .orderBy('key')
    .execute()
  return byKey(rows)
}

/** Rows of one dimension, those of a key together. */
function byKey(rows: readonly Tables['rollups'][]): CountedKey[] {
  const keys = new Map<string, Record<string, number>>()
  for (const { key, value, n } of rows) {
    const counts = keys.get(key) ?? {}
    counts[value] = n
    keys.set(key, counts)
  }
  return [...keys].map(([key, counts]) => ({ key, counts }))
}

async function top(db: StoreDb, keys: Keys, limit: number, weigh: (counts: Record<string, number>) => number): ReturnType<Rollups['top']> {
  let best: Array<CountedKey & { weight: number }> = []
  const all = { keys: 0, count: 0 }
  for (let after: string | undefined; ; ) {
    const slice = await readKeys(db.read, keys, SLICE_KEYS, after)
    const weighed = slice.map((item) => ({ ...item, weight: weigh(item.counts) }))
    all.keys += weighed.length
    all.count += weighed.reduce((sum, { weight }) => sum + weight, 0)
    best = [...best, ...weighed].sort((a, b) => b.weight - a.weight || (a.key < b.key ? -1 : 1)).slice(0, limit)
    after = slice.at(-1)?.key
    if (slice.length < SLICE_KEYS) break
    await setImmediate()
  }
  const told = best.reduce((sum, { weight }) => sum + weight, 0)
  return {
    items: best.map(({ key, counts }) => ({ key, counts })),
    rest: { keys: all.keys - best.length, count: all.count - told },
  }
}

/** Actions that agents may report for a drift. */
const DRIFT_STATES = driftStatusSchema.shape.action.unwrap().options.map((action) => stateDigest(stateText(driftState(action))))

/** Whole hours are counted already; of the hour that `untilMs` is in, the rows are. */
async function driftsSince(db: ReadDb, untilMs: number): Promise<Record<string, number>> {
  const hours = await db
    .selectFrom('rollups')
    .select(['value as action', sql<number>`cast(sum(n) as bigint)`.as('n')])
    .where('dimension', '=', 'drift_hour')
    .where('n', '!=', 0)
    .where('key', '<', hourText(untilMs))
    .groupBy('value')
    .execute()
  const hour = await db
    .selectFrom('states')
    .innerJoin('status_rows', 'status_rows.state_id', 'states.id')
    .select((eb) => ['states.reason as action', eb.fn.countAll<number>().as('n')])
    .where('states.digest', 'in', DRIFT_STATES)
    .where('status_rows.since_ms', '>=', Math.floor(untilMs / HOUR_MS) * HOUR_MS)
    .where('status_rows.since_ms', '<=', untilMs)
    .groupBy('states.reason')
    .execute()
  const counts: Record<string, number> = {}
  for (const { action, n } of [...hours, ...hour]) counts[action] = (counts[action] ?? 0) + n
  return counts
}

/** Up to this many are read to find the first of them by name; among more, one is soon found among all by name. */
const FEW = 200

async function firstIn(db: ReadDb, { project, service }: ServiceId, words: PlacementWords & { count: number }): Promise<string | null> {
  const { sync, health, count } = words
  const placed = db.selectFrom('desired').select('desired.cluster_id').where('desired.project', '=', project)
  const inWords = placed.where('desired.service', '=', service).where('desired.sync', '=', sync).where('desired.health', '=', health)
  const byName = db.selectFrom('clusters').select('clusters.name').orderBy('clusters.name').limit(1)
  if (count > FEW) {
    const found = byName.where(({ exists }) => exists(inWords.where(sql<boolean>`desired.cluster_id = clusters.cluster_id`)))
    return (await found.executeTakeFirst())?.name ?? null
  }
  const ids = (await inWords.limit(FEW).execute()).map(({ cluster_id }) => cluster_id)
  if (ids.length === 0) return null
  return (await byName.where('clusters.cluster_id', 'in', ids).executeTakeFirst())?.name ?? null
}

async function youngestOf(db: ReadDb, { project, service }: ServiceId): Promise<number | null> {
  const found = await db
    .selectFrom('names')
    .innerJoin('status_rows', 'status_rows.name_id', 'names.id')
    .innerJoin('clusters', 'clusters.no', 'status_rows.cluster_no')
    .innerJoin('desired', 'desired.cluster_id', 'clusters.cluster_id')
    .select((eb) => eb.fn.max('status_rows.since_ms').as('since'))
    .where('names.kind', '=', 'service')
    .where('names.key', '=', serviceKey({ project, service }))
    .where('desired.project', '=', project)
    .where('desired.service', '=', service)
    .where('desired.sync', 'is not', null)
    .executeTakeFirst()
  return found?.since == null ? null : Number(found.since)
}

type RevokedNames = (db: ReadDb) => Promise<string[]>

/** Reads the specs of all clusters again only after a resource changed: the version is read first, so that a change in
 *  between is seen next time. */
function rememberRevoked(): RevokedNames {
  let known: { version: number; names: string[] } | null = null
  return async (db) => {
    const { value: version } = await db
      .selectFrom('counters')
      .select('value')
      .where('name', '=', 'resource_version')
      .executeTakeFirstOrThrow()
    if (known?.version !== version) known = { version, names: await revokedClusters(db) }
    return known.names
  }
}

/** The text narrows it down; what a variable of that name says means nothing. */
async function revokedClusters(db: ReadDb): Promise<string[]> {
  const rows = await db
    .selectFrom('resources')
    .select(['name', 'spec'])
    .where('kind', '=', 'Cluster')
    .where('project', '=', FLEET)
    .where('spec', 'like', '%"revoked":true%')
    .execute()
  return rows.filter(({ spec }) => clusterSpecSchema.safeParse(JSON.parse(spec)).data?.revoked === true).map(({ name }) => name)
}

type OfCluster = ExpressionBuilder<Tables, 'clusters'>

interface LivenessAsked {
  nowMs: number
  within: OnlineWithin
  revokedNames: RevokedNames
}

/** The word of each cluster's liveness. There are few different waits. */
async function livenessWord(db: ReadDb, { nowMs, within, revokedNames }: LivenessAsked) {
  const waits = await db.selectFrom('clusters').select('wait_s').distinct().execute()
  const revoked = await revokedNames(db)
  const isRevoked = revoked.length === 0 ? sql<boolean>`1 = 0` : sql<boolean>`clusters.name in (${sql.join(revoked)})`
  const since = waits.map(({ wait_s }) => sql`when ${sql.lit(wait_s)} then cast(${nowMs - within(wait_s)} as bigint)`)
  return (eb: OfCluster) =>
    eb
      .case()
      .when(isRevoked)
      .then(sql.lit<LivenessWord>('Revoked'))
      .when('clusters.last_seen_ms', 'is', null)
      .then(sql.lit<LivenessWord>('NeverSeen'))
      .when('clusters.last_seen_ms', '>=', sql<number>`case clusters.wait_s ${sql.join(since, sql` `)} end`)
      .then(sql.lit<LivenessWord>('Online'))
      .else(sql.lit<LivenessWord>('Offline'))
      .end()
}

async function liveness(db: ReadDb, asked: LivenessAsked): Promise<Record<LivenessWord, number>> {
  const counts: Record<LivenessWord, number> = { Online: 0, Offline: 0, NeverSeen: 0, Revoked: 0 }
  for await (const { word, between } of livenessSlices(db, asked)) {
    const rows = await between(db.selectFrom('clusters'))
      .select((eb) => [word(eb).as('word'), eb.fn.countAll<number>().as('n')])
      .groupBy('word')
      .execute()
    for (const row of rows) counts[row.word] += row.n
  }
  return counts
}

/** Numbers of clusters that one statement looks at: about a millisecond. */
const NUMBERS_A_TIME = 1_000

/** Others have a turn in between. */
async function* livenessSlices(db: ReadDb, asked: LivenessAsked) {
  const last = await db.selectFrom('clusters').select('no').orderBy('no', 'desc').limit(1).executeTakeFirst()
  if (last === undefined) return
  const word = await livenessWord(db, asked)
  for (let from = 0; from <= last.no; from += NUMBERS_A_TIME) {
    if (from > 0) await setImmediate()
    const between = <O>(query: SelectQueryBuilder<Tables, 'clusters', O>) =>
      query.where('clusters.no', '>=', from).where('clusters.no', '<', from + NUMBERS_A_TIME)
    yield { word, between }
  }
}

async function awayOfServices(
  { read: db }: StoreDb,
  services: readonly ServiceId[],
  asked: LivenessAsked,
): Promise<Map<string, AwayOfService>> {
  const away = new Map(services.map((id): [string, AwayOfService] => [serviceKey(id), { count: 0, names: [] }]))
  if (away.size === 0) return away
  const clusters: Array<{ cluster_id: ClusterId; name: string }> = []
  for await (const { word, between } of livenessSlices(db, asked)) {
    const some = between(db.selectFrom('clusters')).select(['cluster_id', 'name'])
    clusters.push(...(await some.where(word, '!=', 'Online').execute()))
  }
  clusters.sort((a, b) => (a.name < b.name ? -1 : 1))
  for (let start = 0; start < clusters.length; start += CLUSTERS_A_TIME) {
    if (start > 0) await setImmediate()
    await countAway(db, clusters.slice(start, start + CLUSTERS_A_TIME), away)
  }
  for (const [key, { count }] of away) if (count === 0) away.delete(key)
  return away
}

/** `clusters`: in the order of their names. */
async function countAway(
  db: ReadDb,
  clusters: ReadonlyArray<{ cluster_id: ClusterId; name: string }>,
  away: ReadonlyMap<string, AwayOfService>,
): Promise<void> {
  const rows = await db
    .selectFrom('desired')
    .select(['cluster_id', 'project', 'service'])
    .where(
      'cluster_id',
      'in',
      clusters.map(({ cluster_id }) => cluster_id),
    )
    .where('sync', 'is not', null)
    .execute()
  const placed = Map.groupBy(rows, ({ cluster_id }) => cluster_id)
  for (const { cluster_id, name } of clusters)
    for (const id of placed.get(cluster_id) ?? []) {
      const held = away.get(serviceKey(id))
      if (held === undefined) continue
      held.count += 1
      if (held.names.length < NAMES_KEPT) held.names.push(name)
    }
}
