// Services in clusters by any filter, in any order, a page at a time. There are ten times fewer of them than objects: a
// small answer is fetched and sorted, others are walked cluster by cluster or service by service.
import { type SelectQueryBuilder, sql } from 'kysely'
import type { HealthWord } from '../../../shared/kube/health-object.ts'
import { type ServiceRow, serviceRowSchema } from '../../../shared/model/desired.ts'
import { HEALTH_WORST } from '../../../shared/model/status.ts'
import { type ClusterId, serviceKey } from '../../../shared/runtime/ids.ts'
import { serviceInScope } from '../../fleet/rights.ts'
import type { Engine } from '../engines/engine.ts'
import { RecentMap } from '../recent-map.ts'
import { scopeFilter } from '../scope-filter.ts'
import type { ReadDb } from '../store-db.ts'
import type { Tables } from '../tables.ts'
import type { ClusterEntry, FleetDictionary } from './fleet-dictionary.ts'
import { clusterTest, limiting } from './fleet-filter.ts'
import type { FleetPage, Placed, PlacementFacts, PlacementQuery, Position, SeenCluster, UnrenderedFacts } from './fleet-queries.ts'
import type { Costs } from './fleet-query-plan.ts'
import type { RowKey, StatusRows } from './fleet-query-sql.ts'
import { type FailureList, type Unrendered, unrenderedOf } from './fleet-unrendered.ts'
import { compareKeys, placeOf } from './positions.ts'

const CHUNK_CLUSTERS_MIN = 25
const CHUNK_CLUSTERS_MAX = 500

export interface Source {
  db: ReadDb
  engine: Engine
  dictionary: FleetDictionary
  costs: Costs
  statuses: StatusRows
}
export interface PlacementSource extends Source {
  failures: FailureList
}
interface Page {
  rows: Placed[]
  next: Position | null
}

export class PlacementReader {
  readonly #db: ReadDb
  readonly #dictionary: FleetDictionary
  readonly #source: Omit<Source, 'costs'>
  readonly #costs: Costs
  readonly #failures: FailureList
  readonly #query: PlacementQuery
  /** Matching ones, in the order of their names. */
  #clusters: ClusterEntry[]
  readonly #byId: ReadonlyMap<ClusterId, ClusterEntry>
  #looked = 0

  constructor({ db, engine, dictionary, costs, statuses, failures }: PlacementSource, query: PlacementQuery) {
    this.#source = { db, engine, dictionary, statuses }
    this.#costs = costs
    this.#failures = failures
    this.#db = db
    this.#dictionary = dictionary
    this.#query = query
    this.#clusters = dictionary.clusters.filter(clusterTest(query))
    const isWhole = this.#clusters.length === dictionary.clusters.length
    this.#byId = isWhole ? dictionary.clustersById : new Map(this.#clusters.map((cluster) => [cluster.clusterId, cluster]))
  }

  async page(): Promise<FleetPage<PlacementFacts | UnrenderedFacts>> {
    const page = await this.#rows()
    if (this.#failures.all.length === 0) return { items: await placementFacts(this.#source, page.rows), next: page.next }
    const { rows, next } = await this.#withUnrendered(page)
    return { items: await this.#facts(rows), next }
  }

  /** Services without a row are put at their place in the order. */
  async #withUnrendered({ rows, next }: Page): Promise<{ rows: Array<Placed | Unrendered>; next: Position | null }> {
    const { sort, limit } = this.#query
    const key = this.#keyOf(sort)
    const walk = unrenderedOf(this.#failures, this.#clusters, this.#query)
    const found: Unrendered[] = []
    let end = next
    for (let isDone = false; !isDone && found.length <= limit; ) {
      const some: Unrendered[] = []
      const upTo = placeOf(end, sort)
      for (isDone = true; some.length <= limit; ) {
        const { value } = walk.next()
        if (value === undefined || (upTo !== null && compareKeys(key(value), upTo) > 0)) break
        some.push(value)
        isDone = some.length <= limit
      }
      for (const one of await this.#withoutRow(some)) found.push(one)
      this.#looked += some.length
      const last = some.at(-1)
      if (!isDone && last !== undefined && this.#looked >= this.#costs.placementsWalk) {
        end = key(last)
        isDone = true
      }
    }
    const upTo = placeOf(end, sort)
    const all = [...rows, ...found].map((row) => ({ row, key: key(row) })).filter((one) => upTo === null || compareKeys(one.key, upTo) <= 0)
    all.sort((a, b) => compareKeys(a.key, b.key))
    const last = all.length > limit ? all[limit - 1] : undefined
    return { rows: all.slice(0, limit).map(({ row }) => row), next: last?.key ?? end }
  }

  async #withoutRow(some: readonly Unrendered[]): Promise<Unrendered[]> {
    if (some.length === 0) return []
    const placed = await this.#db
      .selectFrom('desired')
      .select(['cluster_id', 'project', 'service'])
      .where(sql<boolean>`(cluster_id, project, service) in (${keyList(this.#source.engine, some)})`)
      .where('doc', 'is not', null)
      .execute()
    const keys = new Set(placed.map(keyOfPlaced))
    return some.filter((one) => !keys.has(keyOfPlaced(one)))
  }

  async #facts(rows: ReadonlyArray<Placed | Unrendered>): Promise<Array<PlacementFacts | UnrenderedFacts>> {
    const { db, dictionary } = this.#source
    const facts = await placementFacts(
      this.#source,
      rows.filter((row) => !('note' in row)),
    )
    const byKey = new Map(facts.map((one) => [keyOfPlaced({ ...one.desired, cluster_id: one.desired.clusterId }), one]))
    const numberOf = ({ cluster_id }: Placed) => this.#byId.get(cluster_id)?.no ?? -1
    const seen = await seenClusters(db, dictionary, new Set(rows.flatMap((row) => ('note' in row ? [numberOf(row)] : []))))
    return rows.flatMap((row): Array<PlacementFacts | UnrenderedFacts> => {
      if ('note' in row) {
        const cluster = seen.get(numberOf(row))
        return cluster === undefined ? [] : [{ cluster, id: { project: row.project, service: row.service }, failed: row.note }]
      }
      const found = byKey.get(keyOfPlaced(row))
      if (found === undefined) return []
      const failed = this.#failures.keeping(serviceKey(row), found.cluster.name)
      return [failed === undefined ? found : { ...found, failed }]
    })
  }

  async #rows(): Promise<Page> {
    await this.#leaveOut()
    const { sort, after, health, sync } = this.#query
    if (this.#clusters.length === 0 || health?.length === 0 || sync?.length === 0) return { rows: [], next: null }
    const all = await this.#collect()
    if (all !== null) return this.#sorted(all)
    if (sort === 'name') return this.#walkServices()
    if (sort === 'cluster') return this.#walkClusters(health, after, this.#query.limit)
    return this.#walkHealth()
  }

  /** A word that is in no service's name has to be in the cluster's. */
  async #leaveOut(): Promise<void> {
    const { words = [] } = this.#query
    if (words.length === 0) return
    const services = await this.#db.selectFrom('resources').select(['project', 'name']).where('kind', '=', 'Service').execute()
    const only = words.filter((word) => !services.some(({ project, name }) => project.includes(word) || name.includes(word)))
    this.#clusters = this.#clusters.filter(({ name }) => only.every((word) => name.includes(word)))
  }

  /** Those that match by columns. */
  #asked(health: readonly HealthWord[] | undefined, clusters?: readonly ClusterEntry[]) {
    const { project, service, sync, revision } = this.#query
    const { db, engine } = this.#source
    const all = clusters === undefined ? db.selectFrom('desired') : desiredIn(db, engine, clusters)
    let asked = all.where('sync', 'is not', null)
    const scope = limiting(this.#query.scope)
    if (scope !== null) asked = asked.where(scopeFilter(scope, 'project', 'service'))
    if (project !== undefined) asked = asked.where('project', '=', project)
    if (service !== undefined) asked = asked.where('service', '=', service)
    if (sync !== undefined) asked = asked.where('sync', 'in', [...sync])
    if (health !== undefined) asked = asked.where('health', 'in', [...health])
    if (revision !== undefined) {
      const commits = this.#db
        .selectFrom('revisions')
        .select('digest')
        .where('commit_id', '>=', revision)
        .where('commit_id', '<', `${revision}~`)
      asked = asked.where((eb) =>
        eb.or([eb.and([eb('digest', '>=', revision), eb('digest', '<', `${revision}~`)]), eb('digest', 'in', commits)]),
      )
    }
    return asked
  }

  /** All of a small answer, in no order. Null means that it is large, or what leads to it is. */
  async #collect(): Promise<Placed[] | null> {
    const { project, service, sync, health, revision } = this.#query
    const columns = ['cluster_id', 'project', 'service', 'sync', 'health'] as const
    if (this.#clusters.length <= CHUNK_CLUSTERS_MAX && this.#clusters.length < this.#dictionary.clusters.length)
      return this.#matching(await this.#ofClusters(this.#clusters, health))
    // A filter that most rows match leads nowhere.
    const isWord = (sync !== undefined && !sync.includes('Synced')) || (health !== undefined && !health.includes('Healthy'))
    const isService = project !== undefined && service !== undefined
    if (!isWord && !isService && revision === undefined) return null
    const rows = await this.#asked(health).select(columns).limit(this.#costs.placementsCollect).execute()
    this.#looked += rows.length
    return rows.length < this.#costs.placementsCollect ? this.#matching(rows as Placed[]) : null
  }

  #matching(rows: readonly Placed[]): Placed[] {
    const { words = [] } = this.#query
    const scope = limiting(this.#query.scope)
    return rows.filter((row) => {
      const cluster = this.#byId.get(row.cluster_id)
      if (cluster === undefined || (scope !== null && !serviceInScope(scope, row, cluster.labels))) return false
      const text = words.length === 0 ? '' : `${cluster.name}\n${row.project}\n${row.service}`
      return words.every((word) => text.includes(word))
    })
  }

  #sorted(rows: Placed[]): Page {
    const { sort, after, limit } = this.#query
    if (sort === 'cluster') return this.#byCluster(rows)
    const key = this.#keyOf(sort)
    const keyed = rows.map((row) => ({ row, key: key(row) }))
    const rest = after === undefined ? keyed : keyed.filter((one) => compareKeys(one.key, after) > 0)
    rest.sort((a, b) => compareKeys(a.key, b.key))
    const last = rest[limit - 1]
    return { rows: rest.slice(0, limit).map(({ row }) => row), next: rest.length > limit && last !== undefined ? last.key : null }
  }

  /** By the ranks of clusters, so that a page of a service that is in all of them makes no keys but for the rows that
   *  share a cluster. */
  #byCluster(rows: readonly Placed[]): Page {
    const { after, limit } = this.#query
    const key = this.#keyOf('cluster')
    const ranked = rows.map((row) => ({ row, rank: this.#byId.get(row.cluster_id)?.rank ?? -1 }))
    const rest = after === undefined ? ranked : ranked.filter(({ row }) => compareKeys(key(row), after) > 0)
    rest.sort((a, b) => a.rank - b.rank || compareKeys(key(a.row), key(b.row)))
    const last = rest[limit - 1]
    return { rows: rest.slice(0, limit).map(({ row }) => row), next: rest.length > limit && last !== undefined ? key(last.row) : null }
  }

  #keyOf(sort: PlacementQuery['sort']): (row: Placed) => Position {
    const name = (row: Placed) => this.#byId.get(row.cluster_id)?.name ?? ''
    switch (sort) {
      case 'cluster':
        return (row) => [name(row), serviceKey(row)]
      case 'name':
        return (row) => [row.service, row.project, name(row)]
      case 'health':
        return (row) => [HEALTH_WORST.indexOf(row.health), name(row), serviceKey(row)]
    }
  }

  async #ofClusters(clusters: readonly ClusterEntry[], health: readonly HealthWord[] | undefined): Promise<Placed[]> {
    if (clusters.length === 0) return []
    const rows = await this.#asked(health, clusters).select(['cluster_id', 'project', 'service', 'sync', 'health']).execute()
    this.#looked += rows.length + clusters.length
    return rows as Placed[]
  }

  async #walkClusters(health: readonly HealthWord[] | undefined, after: Position | undefined, limit: number): Promise<Page> {
    const rows: Placed[] = []
    const key = this.#keyOf('cluster')
    let at =
      after === undefined
        ? 0
        : this.#clusters.findIndex(({ name }) => (after[1] === null ? name > String(after[0]) : name >= String(after[0])))
    if (at < 0) return { rows, next: null }
    for (let size = CHUNK_CLUSTERS_MIN; at < this.#clusters.length; size = Math.min(CHUNK_CLUSTERS_MAX, size * 2)) {
      const chunk = this.#clusters.slice(at, at + size)
      at += chunk.length
      const found = this.#matching(await this.#ofClusters(chunk, health)).map((row) => ({ row, key: key(row) }))
      const rest = after === undefined || after[1] === null ? found : found.filter((one) => compareKeys(one.key, after) > 0)
      for (const { row } of rest.sort((a, b) => compareKeys(a.key, b.key))) rows.push(row)
      const last = rows[limit - 1]
      if (rows.length > limit && last !== undefined) return { rows: rows.slice(0, limit), next: key(last) }
      const end = chunk.at(-1)
      if (this.#looked >= this.#costs.placementsWalk && at < this.#clusters.length && end !== undefined)
        return { rows, next: [end.name, null] }
    }
    return { rows, next: null }
  }

  async #walkHealth(): Promise<Page> {
    const { after, limit, health } = this.#query
    const [from = 0, ...rest] = after ?? []
    const rows: Placed[] = []
    for (let index = Number(from); index < HEALTH_WORST.length; index++) {
      const word = HEALTH_WORST[index]
      if (word === undefined || (health !== undefined && !health.includes(word))) continue
      const start = index === Number(from) && rest.length > 0 ? rest : undefined
      const page =
        (await this.#someOfHealth(word, start, limit - rows.length)) ?? (await this.#walkClusters([word], start, limit - rows.length))
      for (const row of page.rows) rows.push(row)
      if (page.next !== null) return { rows, next: [index, ...page.next] }
      if (index + 1 < HEALTH_WORST.length && (rows.length >= limit || this.#looked >= this.#costs.placementsWalk))
        return { rows, next: [index + 1] }
    }
    return { rows, next: null }
  }

  /** Null if there are too many. */
  async #someOfHealth(word: HealthWord, after: Position | undefined, limit: number): Promise<Page | null> {
    if (word === 'Healthy') return null
    const columns = ['cluster_id', 'project', 'service', 'sync', 'health'] as const
    const rows = (await this.#asked([word]).select(columns).limit(this.#costs.placementsCollect).execute()) as Placed[]
    this.#looked += rows.length
    if (rows.length >= this.#costs.placementsCollect) return null
    const key = this.#keyOf('cluster')
    const keyed = this.#matching(rows).map((row) => ({ row, key: key(row) }))
    const rest = keyed.filter((one) => after === undefined || compareKeys(one.key, after) > 0).sort((a, b) => compareKeys(a.key, b.key))
    const last = rest[limit - 1]
    return { rows: rest.slice(0, limit).map(({ row }) => row), next: rest.length > limit && last !== undefined ? last.key : null }
  }

  async #walkServices(): Promise<Page> {
    const { after, limit, project, service, words = [] } = this.#query
    let asked = this.#db.selectFrom('resources').select(['project', 'name']).where('kind', '=', 'Service')
    if (project !== undefined) asked = asked.where('project', '=', project)
    if (service !== undefined) asked = asked.where('name', '=', service)
    const scope = limiting(this.#query.scope)
    if (scope !== null) asked = asked.where(scopeFilter(scope))
    const services = (await asked.execute()).map(({ project, name }) => ({ project, service: name, key: [name, project] as const }))
    const key = this.#keyOf('name')
    const rows: Placed[] = []
    const inClusters = words.map((word) => this.#clusters.some(({ name }) => name.includes(word)))
    for (const one of services.sort((a, b) => compareKeys(a.key, b.key))) {
      if (after !== undefined && compareKeys([...one.key, null], after) <= 0) continue
      // A word that is in no cluster's name must be in the service's.
      if (words.some((word, index) => inClusters[index] === false && !one.service.includes(word) && !one.project.includes(word))) continue
      const found = (await this.#asked(this.#query.health)
        .where('project', '=', one.project)
        .where('service', '=', one.service)
        .select(['cluster_id', 'project', 'service', 'sync', 'health'])
        .execute()) as Placed[]
      this.#looked += found.length
      const keyed = this.#matching(found).map((row) => ({ row, key: key(row) }))
      const rest = keyed.filter((item) => after === undefined || compareKeys(item.key, after) > 0).sort((a, b) => compareKeys(a.key, b.key))
      for (const { row } of rest) rows.push(row)
      const last = rows[limit - 1]
      if (rows.length > limit && last !== undefined) return { rows: rows.slice(0, limit), next: key(last) }
      if (this.#looked >= this.#costs.placementsWalk) return { rows, next: [...one.key, null] }
    }
    return { rows, next: null }
  }
}

/**
 * Reads these clusters one after the other: a planner with a free choice would scan all of them in an index that has
 * the words.
 */
export function desiredIn(db: ReadDb, engine: Engine, clusters: readonly ClusterEntry[]): SelectQueryBuilder<Tables, 'desired', object> {
  const ids = clusters.map(({ clusterId }) => clusterId)
  const one =
    engine === 'sqlite'
      ? sql<{ value: ClusterId }>`json_each(${JSON.stringify(ids)})`.as<'one'>(sql`one`)
      : sql<{ value: ClusterId }>`unnest(${ids}::text[])`.as<'one'>(sql`one(value)`)
  return db.selectFrom(one).crossJoin('desired').whereRef('desired.cluster_id', '=', 'one.value') as unknown as SelectQueryBuilder<
    Tables,
    'desired',
    object
  >
}

type RowId = Pick<Placed, 'cluster_id' | 'project' | 'service'>
const keyOfPlaced = (row: RowId): string => `${row.cluster_id} ${serviceKey(row)}`

/** One text for any number of rows. */
function keyList(engine: Engine, rows: readonly RowId[]) {
  const keys = rows.map((row) => [row.cluster_id, row.project, row.service])
  return engine === 'sqlite'
    ? sql`select value ->> 0, value ->> 1, value ->> 2 from json_each(${JSON.stringify(keys)})`
    : sql`select * from unnest(${keys.map(([id]) => id)}::text[], ${keys.map(([, of]) => of)}::text[], ${keys.map(([, , of]) => of)}::text[])`
}

/**
 * Clusters share most documents, and the same pages are requested again and again. Values are shared and never changed.
 */
const PARSED_MAX = 2_000
const parsedRows = new RecentMap<ServiceRow>(PARSED_MAX)
function parseRow(doc: string): ServiceRow {
  const held = parsedRows.get(doc)
  if (held !== undefined) return held
  const row = serviceRowSchema.parse(JSON.parse(doc))
  parsedRows.set(doc, row)
  return row
}

/** The facts of the found rows, in the same order. A row that was removed meanwhile is left out. */
export async function placementFacts(
  { db, engine, dictionary, statuses }: Omit<Source, 'costs'>,
  rows: readonly Placed[],
): Promise<PlacementFacts[]> {
  if (rows.length === 0) return []
  const { clustersById: clusters, serviceNames: nameIds } = dictionary
  const wanted = new Map(rows.map((row) => [keyOfPlaced(row), row]))
  const list = keyList(engine, rows)
  const found = await db.selectFrom('desired').selectAll().where(sql<boolean>`(cluster_id, project, service) in (${list})`).execute()
  const desired = new Map(found.map((row) => [keyOfPlaced(row), row]))
  const pairs = new Map<string, RowKey>()
  for (const [key, row] of wanted) {
    const [name, cluster] = [nameIds.get(serviceKey(row)), clusters.get(row.cluster_id)]
    if (name !== undefined && cluster !== undefined) pairs.set(key, { cluster_no: cluster.no, name_id: name })
  }
  const docs = new Map((await statuses.docsOfPairs([...pairs.values()])).map((found) => [dictionary.pairOf(found), found.doc]))
  const seen = await seenClusters(db, dictionary, new Set(rows.flatMap((row) => clusters.get(row.cluster_id)?.no ?? [])))
  return [...wanted].flatMap(([key, row]): PlacementFacts[] => {
    const [held, cluster] = [desired.get(key), seen.get(clusters.get(row.cluster_id)?.no ?? -1)]
    if (held === undefined || held.doc === null || cluster === undefined) return []
    const pair = pairs.get(key)
    const doc = pair === undefined ? undefined : docs.get(dictionary.pairOf(pair))
    const { project, service, ordinal, set_sha: setSha, placed_by: placedBy } = held
    return [
      {
        cluster,
        desired: { clusterId: held.cluster_id, project, service, ordinal, doc: parseRow(held.doc), setSha, placedBy },
        status: doc === undefined ? null : JSON.parse(doc),
      },
    ]
  })
}

/** The time of the last contact of clusters, by number. */
export async function seenClusters(
  db: ReadDb,
  dictionary: FleetDictionary,
  numbers: ReadonlySet<number>,
): Promise<Map<number, SeenCluster>> {
  const seen = new Map<number, SeenCluster>()
  if (numbers.size === 0) return seen
  const rows = await db
    .selectFrom('clusters')
    .select(['no', 'last_seen_ms', 'wait_s'])
    .where('no', 'in', [...numbers])
    .execute()
  for (const { no, last_seen_ms, wait_s } of rows) {
    const cluster = dictionary.clustersByNo.get(no)
    if (cluster !== undefined) seen.set(no, { name: cluster.name, revoked: cluster.revoked, lastSeenMs: last_seen_ms, waitSeconds: wait_s })
  }
  return seen
}
