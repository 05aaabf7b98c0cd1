// Objects of the fleet by any filter, in any order, a page at a time. A plan says from which side
// (fleet-query-plan.ts); here it is carried out, and its rows become facts again.
import { HEALTH_WORST, objectStatusSchema } from '../../../shared/model/status.ts'
import type { ReadDb } from '../store-db.ts'
import { readNames } from '../tables.ts'
import { byText, type ClusterEntry, type FleetDictionary, type StateEntry } from './fleet-dictionary.ts'
import { isOpenDrift, ObjectMasks } from './fleet-filter.ts'
import { seenClusters } from './fleet-placements.ts'
import type { FleetPage, ObjectFacts, ObjectQuery, Position } from './fleet-queries.ts'
import { type Costs, type Driver, type Plan, planObjects } from './fleet-query-plan.ts'
import type { RowKey, RowPage, StatusRow, StatusRows } from './fleet-query-sql.ts'
import { compareRows, isBeyond, sincePosition, walkSince } from './fleet-since.ts'

/** A driver whose counts were too old, and that is far larger: it is walked after all. */
const COLLECT_ROWS_MAX = 200_000
/** Rows of one chunk of a walk. */
const CHUNK_ROWS_MIN = 2_000
const CHUNK_ROWS_MAX = 30_000
/** …and clusters or names, where counts say nothing. */
const CHUNK_KEYS_MAX = 500

type Matching = (rows: readonly StatusRow[]) => Promise<StatusRow[]>
type HealthState = Pick<StateEntry, 'health'>
const healthOf = ({ health }: HealthState) => (health === '' ? 'Unknown' : health)

/** A lookup of one row costs about as much as four that are read in order. */
const FEWER_BY = 4

export class ObjectReader {
  readonly #db: ReadDb
  readonly #dictionary: FleetDictionary
  readonly #costs: Costs
  readonly #rows: StatusRows
  readonly #query: ObjectQuery
  readonly #masks: ObjectMasks
  /** Objects with an open drift, by their pairs. Null means not requested, or so many that each object's own is read.
   */
  #drifting: Map<number, RowKey> | null = null
  /** States of open drifts. */
  readonly #driftStates: ReadonlyMap<number, StateEntry>

  constructor(db: ReadDb, dictionary: FleetDictionary, rows: StatusRows, costs: Costs, query: ObjectQuery) {
    this.#db = db
    this.#dictionary = dictionary
    this.#costs = costs
    this.#rows = rows
    this.#query = query
    this.#masks = new ObjectMasks(dictionary, query)
    this.#driftStates = new Map(query.drift === 'open' ? [...dictionary.states].filter(([, state]) => isOpenDrift(state)) : [])
  }

  async page(): Promise<FleetPage<ObjectFacts>> {
    const plan = await this.plan()
    const { rows, next } = await this.#carryOut(plan)
    return { items: await this.#facts(rows), next }
  }

  /** Reads open drifts if they are asked for. */
  async plan(): Promise<Plan> {
    if (this.#masks.isEmpty) return { kind: 'nothing' }
    const drifts = this.#query.drift === 'open' ? await this.#readDrifts() : null
    const { needsState, counts } = this.#masks
    const { sort, limit } = this.#query
    if (drifts === 0) return { kind: 'nothing' }
    return planObjects({ ...counts, sort, limit, total: this.#dictionary.objectRows, drifts, needsState, costs: this.#costs })
  }

  async #carryOut(plan: Plan): Promise<RowPage> {
    if (plan.kind === 'nothing') return { rows: [], next: null }
    if (plan.kind === 'collect') {
      const rows = await this.#collect(plan.driver)
      if (rows !== null) return this.#sorted(await this.#matching(rows))
      const { sort } = this.#query
      const by = sort === 'cluster' ? 'clusters' : sort === 'name' ? 'names' : sort === 'health' ? 'health' : 'since'
      return this.#walk({ kind: 'walk', by, density: 0.01, rowsMax: COLLECT_ROWS_MAX })
    }
    return this.#walk(plan)
  }

  /** Those of the answer, in the same order. */
  #matching: Matching = async (rows) => {
    const [found, drifting] = [rows.filter(this.#masks.matches), this.#drifting]
    if (this.#query.drift === undefined) return found
    if (drifting !== null) return found.filter((row) => drifting.has(this.#dictionary.pairOf(row)))
    const twins = await this.#rows.ofPairs(found.flatMap((row) => this.#twinOf(row) ?? []))
    const open = new Set(twins.filter(this.#isOpen).map(this.#dictionary.pairOf))
    return found.filter((row) => {
      const twin = this.#twinOf(row)
      return twin !== undefined && open.has(this.#dictionary.pairOf(twin))
    })
  }

  /** The row of an object's drift, or of a drift's object. */
  #twinOf({ cluster_no, name_id }: RowKey): RowKey | undefined {
    const twin = this.#dictionary.twins.get(name_id)
    return twin === undefined ? undefined : { cluster_no, name_id: twin }
  }
  #isOpen = ({ state_id }: StatusRow): boolean => state_id !== null && this.#driftStates.has(state_id)

  /** How many there are: of too many only about. */
  async #readDrifts(): Promise<number> {
    const ids = [...this.#driftStates.keys()]
    const { driftsMax } = this.#costs
    let refs = 0
    for (const state of this.#driftStates.values()) refs += state.refs
    if (refs > driftsMax) return refs
    const rows = ids.length === 0 ? [] : await this.#rows.ofStates(ids, driftsMax + 1)
    // Counts were too old.
    if (rows.length > driftsMax) return rows.length
    const drifting = new Map<number, RowKey>()
    for (const row of rows) {
      const object = this.#dictionary.namesById.get(row.name_id)?.kind === 'drift' ? this.#twinOf(row) : undefined
      if (object !== undefined && this.#masks.passesName(object.name_id)) drifting.set(this.#dictionary.pairOf(object), object)
    }
    this.#drifting = drifting
    return drifting.size
  }

  /** Each row once. Null means that more than the counts said. */
  async #collect(driver: Driver): Promise<StatusRow[] | null> {
    const parts: StatusRow[][] = []
    const { passingNames, passingStates, clusters } = this.#masks
    switch (driver.kind) {
      case 'clusters':
        parts.push(await this.#ofClusters(clusters.map(({ no }) => no)))
        break
      case 'names':
        parts.push(await this.#ofNames(passingNames))
        break
      case 'states':
        parts.push(await this.#ofStates(passingStates))
        break
      case 'drifts':
        if (this.#drifting === null) return null
        parts.push(await this.#ofDrifts([...this.#drifting.values()]))
        break
      case 'split':
      case 'word': {
        const found = driver.kind === 'word' ? this.#masks.found[driver.word] : this.#masks.split
        if (found === undefined) return []
        parts.push(await this.#ofNames(found.names), await this.#ofClusters(found.clusters), await this.#ofStates(found.states))
        break
      }
    }
    if (parts.some((rows) => rows.length >= COLLECT_ROWS_MAX)) return null
    const [only] = parts
    if (parts.length === 1 && only !== undefined) return only
    const seen = new Map<number, StatusRow>()
    for (const rows of parts) for (const row of rows) seen.set(this.#dictionary.pairOf(row), row)
    return [...seen.values()]
  }

  /** Whether a row is looked for in the table because of its state or its time. */
  #needsWhole(): boolean {
    const { sort } = this.#query
    return this.#masks.needsState || (sort !== 'cluster' && sort !== 'name')
  }
  #ofClusters = async (numbers: readonly number[]) => (numbers.length === 0 ? [] : this.#rows.ofClusters(numbers, COLLECT_ROWS_MAX))
  #ofStates = async (ids: readonly number[]) => (ids.length === 0 ? [] : this.#rows.ofStates(ids, COLLECT_ROWS_MAX))
  async #ofNames(ids: readonly number[]): Promise<StatusRow[]> {
    if (ids.length === 0) return []
    const { sort } = this.#query
    const isBare =
      !this.#needsWhole() || (!this.#masks.asksState && (sort === 'cluster' || sort === 'name') && ids.every(this.#masks.hasAllWords))
    return isBare ? this.#rows.bareOfNames(ids, COLLECT_ROWS_MAX) : this.#rows.ofNames(ids, COLLECT_ROWS_MAX)
  }
  async #ofDrifts(objects: readonly RowKey[]): Promise<StatusRow[]> {
    if (this.#needsWhole()) return this.#rows.ofPairs(objects)
    return objects.map((object) => ({ ...object, state_id: null, since_ms: null }))
  }

  /** Sorts all rows of the answer and returns those of this page. */
  #sorted(rows: StatusRow[]): RowPage {
    const { sort, after, limit } = this.#query
    switch (sort) {
      case 'cluster':
        return this.#cut(this.#inClusterOrder(rows, after), limit, (row) => this.#clusterPosition(row))
      case 'name':
        return this.#cut(this.#inNameOrder(rows, after), limit, (row) => this.#namePosition(row))
      case 'newest':
      case 'oldest': {
        const sign = sort === 'newest' ? -1 : 1
        const rest = after === undefined ? rows : rows.filter((row) => isBeyond(row, after, sign))
        rest.sort((a, b) => sign * compareRows(a, b))
        return this.#cut(rest, limit, sincePosition)
      }
      case 'health': {
        const groups = HEALTH_WORST.map((): StatusRow[] => [])
        for (const row of rows) groups[this.#healthIndex(row)]?.push(row)
        const [from = 0, ...rest] = after ?? []
        const all = groups.flatMap((group, index) =>
          index < Number(from) ? [] : this.#inClusterOrder(group, index === Number(from) && rest.length > 0 ? rest : undefined),
        )
        return this.#cut(all, limit, (row) => [this.#healthIndex(row), ...this.#clusterPosition(row)])
      }
    }
  }

  #cut(rows: StatusRow[], limit: number, positionOf: (row: StatusRow) => Position): RowPage {
    const last = rows[limit - 1]
    return rows.length > limit && last !== undefined ? { rows: rows.slice(0, limit), next: positionOf(last) } : { rows, next: null }
  }

  async #walk(plan: Extract<Plan, { kind: 'walk' }>): Promise<RowPage> {
    const { after, limit, sort } = this.#query
    switch (plan.by) {
      case 'clusters':
        return this.#walkClusters(this.#matching, { after, limit, density: plan.density, rowsMax: plan.rowsMax })
      case 'names':
        return this.#walkNames(plan)
      case 'since': {
        const states = this.#masks.passingStates.flatMap((id) => this.#dictionary.states.get(id) ?? [])
        const order = sort === 'oldest' ? 'oldest' : 'newest'
        return walkSince(this.#rows, {
          states,
          matching: this.#matching,
          order,
          after,
          limit,
          rowsMax: plan.rowsMax,
          density: plan.density,
        })
      }
      case 'health':
        return this.#walkHealth(plan)
    }
  }

  async #walkClusters(
    matching: Matching,
    { after, limit, density, rowsMax }: { after: Position | undefined; limit: number; density: number; rowsMax: number },
  ): Promise<RowPage> {
    const { clusters } = this.#masks
    const { few, share } = this.#fewNames()
    const rows: StatusRow[] = []
    const until = this.#rows.fetched + rowsMax
    let at = after === undefined ? 0 : firstFrom(clusters, String(after[0]), after[1] === null)
    while (at < clusters.length) {
      const wanted = clamp(((limit + 1 - rows.length) / (density / share)) * 1.3, CHUNK_ROWS_MIN, CHUNK_ROWS_MAX)
      const chunk = takeUntil(clusters, at, wanted, ({ rows: n }) => (few === null ? n : few.length))
      at += chunk.length
      const numbers = chunk.map(({ no }) => no)
      const all = few === null ? this.#rows.ofClusters(numbers, Number.MAX_SAFE_INTEGER) : this.#rows.ofClustersAndNames(numbers, few)
      const found = await matching(await all)
      for (const row of this.#inClusterOrder(found, after)) rows.push(row)
      if (rows.length > limit) return this.#cut(rows, limit, (row) => this.#clusterPosition(row))
      const last = chunk.at(-1)
      if (this.#rows.fetched >= until && at < clusters.length && last !== undefined) return { rows, next: [last.name, null] }
    }
    return { rows, next: null }
  }

  /** Names that are looked up one by one in each cluster, because that is far less than all that it has; and their part
   *  of all rows. */
  #fewNames(): { few: readonly number[] | null; share: number } {
    const { counts, passingNames } = this.#masks
    const { objectRows, clusters } = this.#dictionary
    const isFew = counts.names !== null && passingNames.length * FEWER_BY <= objectRows / Math.max(1, clusters.length)
    return isFew ? { few: passingNames, share: Math.max(counts.names ?? 0, 1) / Math.max(1, objectRows) } : { few: null, share: 1 }
  }

  /** One walk (or collection) in the order of clusters for each health, the worst first. */
  async #walkHealth({ rowsMax, density }: { rowsMax: number; density: number }): Promise<RowPage> {
    const { after, limit } = this.#query
    const [from = 0, ...rest] = after ?? []
    const rows: StatusRow[] = []
    const until = this.#rows.fetched + rowsMax
    for (let index = Number(from); index < HEALTH_WORST.length; index++) {
      const word = HEALTH_WORST[index]
      const states = this.#masks.passingStates
        .flatMap((id) => this.#dictionary.states.get(id) ?? [])
        .filter((state) => healthOf(state) === word)
      if (states.length === 0) continue
      const ids = new Set(states.map(({ id }) => id))
      const matching: Matching = (some) => this.#matching(some.filter(({ state_id }) => state_id !== null && ids.has(state_id)))
      const wanted = limit - rows.length
      const start = index === Number(from) && rest.length > 0 ? rest : undefined
      const refs = states.reduce((sum, state) => sum + state.refs, 0)
      let page: RowPage
      if (refs * this.#costs.scan <= this.#costs.collectMax) {
        const found = await this.#rows.ofStates([...ids], COLLECT_ROWS_MAX)
        page = this.#cut(this.#inClusterOrder(await matching(found), start), wanted, (row) => this.#clusterPosition(row))
      } else {
        const share = Math.min(1, refs / Math.max(1, this.#dictionary.objectRows))
        const budget = Math.max(1, until - this.#rows.fetched)
        page = await this.#walkClusters(matching, { after: start, limit: wanted, density: Math.min(density, share), rowsMax: budget })
      }
      for (const row of page.rows) rows.push(row)
      if (page.next !== null) return { rows, next: [index, ...page.next] }
      if (index + 1 < HEALTH_WORST.length && (rows.length >= limit || this.#rows.fetched >= until)) return { rows, next: [index + 1] }
    }
    return { rows, next: null }
  }

  async #walkNames({ rowsMax, density }: { rowsMax: number; density: number }): Promise<RowPage> {
    const { after, limit } = this.#query
    const { needsState } = this.#masks
    const names = this.#dictionary.objectsByName.filter(({ id }) => this.#masks.canMatch(id))
    const rows: StatusRow[] = []
    const until = this.#rows.fetched + rowsMax
    const [name = '', key = '', cluster = ''] = after ?? []
    let at = 0
    if (after !== undefined) {
      at = lowerBound(names, (entry) => byText(entry.name, String(name)) || byText(entry.key, String(key)))
      if (cluster === null && names[at]?.name === name && names[at]?.key === key) at += 1
    }
    while (at < names.length) {
      const wanted = clamp(((limit + 1 - rows.length) / density) * 1.3, CHUNK_ROWS_MIN, CHUNK_ROWS_MAX)
      const chunk = takeUntil(names, at, wanted, ({ refs }) => refs)
      at += chunk.length
      const ids = chunk.map(({ id }) => id)
      const bare = (await this.#rows.bareOfNames(ids, Number.MAX_SAFE_INTEGER)).filter(this.#masks.mayMatch)
      const ordered = this.#inNameOrder(bare, after)
      if (!needsState) for (const row of await this.#matching(ordered)) rows.push(row)
      else {
        // Only as many are looked up as it takes.
        for (let start = 0; start < ordered.length && rows.length <= limit; ) {
          const some = ordered.slice(start, start + Math.ceil(wanted))
          start += some.length
          const whole = new Map((await this.#rows.ofPairs(some)).map((row) => [this.#dictionary.pairOf(row), row]))
          for (const row of await this.#matching(some.flatMap((row) => whole.get(this.#dictionary.pairOf(row)) ?? []))) rows.push(row)
          const last = some.at(-1)
          if (this.#rows.fetched >= until && rows.length <= limit && last !== undefined) return { rows, next: this.#namePosition(last) }
        }
      }
      if (rows.length > limit) return this.#cut(rows, limit, (row) => this.#namePosition(row))
      const last = chunk.at(-1)
      if (this.#rows.fetched >= until && at < names.length && last !== undefined) return { rows, next: [last.name, last.key, null] }
    }
    return { rows, next: null }
  }

  /** By the names of clusters, then keys; strictly after a position. */
  #inClusterOrder(rows: readonly StatusRow[], after: Position | undefined): StatusRow[] {
    const [cluster, key] = after ?? []
    const ranked = this.#ranked(rows, ({ cluster_no }) => this.#dictionary.clustersByNo.get(cluster_no)?.rank)
    const sorted: StatusRow[] = []
    for (const group of ranked) {
      const [first] = group
      const name = first === undefined ? '' : this.#clusterName(first)
      if (cluster !== undefined && (byText(name, String(cluster)) < 0 || (name === cluster && key === null))) continue
      const rest = name === cluster ? group.filter((row) => byText(this.#key(row), String(key)) > 0) : group
      for (const row of rest.sort((a, b) => byText(this.#key(a), this.#key(b)))) sorted.push(row)
    }
    return sorted
  }

  /** By the objects' own names, then keys, then the names of clusters. */
  #inNameOrder(rows: readonly StatusRow[], after: Position | undefined): StatusRow[] {
    const groups = new Map<number, StatusRow[]>()
    for (const row of rows) {
      const group = groups.get(row.name_id)
      if (group === undefined) groups.set(row.name_id, [row])
      else group.push(row)
    }
    const [name, key, cluster] = after ?? []
    const sorted: StatusRow[] = []
    const names = [...groups.keys()].flatMap((id) => this.#dictionary.namesById.get(id) ?? [])
    for (const entry of names.sort((a, b) => byText(a.name, b.name) || byText(a.key, b.key))) {
      const place = name === undefined ? 1 : byText(entry.name, String(name)) || byText(entry.key, String(key))
      if (place < 0 || (place === 0 && cluster === null)) continue
      const group = this.#ranked(groups.get(entry.id) ?? [], ({ cluster_no }) => this.#dictionary.clustersByNo.get(cluster_no)?.rank).flat()
      for (const row of group) if (place > 0 || byText(this.#clusterName(row), String(cluster)) > 0) sorted.push(row)
    }
    return sorted
  }

  /** Rows of equal rank together, in the order of ranks. As numbers they are sorted without a call for each comparison.
   */
  #ranked(rows: readonly StatusRow[], rankOf: (row: StatusRow) => number | undefined): StatusRow[][] {
    const keys = new Float64Array(rows.length)
    for (const [index, row] of rows.entries()) keys[index] = (rankOf(row) ?? 0) * RANK + index
    keys.sort()
    const groups: StatusRow[][] = []
    let rank = -1
    for (const key of keys) {
      const row = rows[key % RANK]
      if (row === undefined) continue
      const own = Math.floor(key / RANK)
      if (own === rank) groups.at(-1)?.push(row)
      else groups.push([row])
      rank = own
    }
    return groups
  }

  #clusterName = ({ cluster_no }: StatusRow): string => this.#dictionary.clustersByNo.get(cluster_no)?.name ?? ''
  #key = ({ name_id }: StatusRow): string => this.#dictionary.namesById.get(name_id)?.key ?? ''
  #healthIndex({ state_id }: StatusRow): number {
    const state = state_id === null ? undefined : this.#dictionary.states.get(state_id)
    return HEALTH_WORST.indexOf(state === undefined ? 'Unknown' : healthOf(state))
  }
  #clusterPosition = (row: StatusRow): Position => [this.#clusterName(row), this.#key(row)]
  #namePosition = (row: StatusRow): Position => [
    this.#dictionary.namesById.get(row.name_id)?.name ?? '',
    this.#key(row),
    this.#clusterName(row),
  ]

  /** The facts of the rows, in words. A row that was removed meanwhile is left out. */
  async #facts(rows: readonly StatusRow[]): Promise<ObjectFacts[]> {
    const bare = rows.filter(({ state_id }) => state_id === null)
    const looked = new Map((await this.#rows.ofPairs(bare)).map((row) => [this.#dictionary.pairOf(row), row]))
    // An object has a document of its own only if it says more than the columns hold.
    const found = await this.#rows.docsOfPairs([...rows, ...rows.flatMap((row) => this.#twinOf(row) ?? [])])
    const docs = new Map(found.map((row) => [this.#dictionary.pairOf(row), row.doc]))
    const stateIds = new Set(
      rows.flatMap((row) => (row.state_id === null ? looked.get(this.#dictionary.pairOf(row)) : row)?.state_id ?? []),
    )
    const texts = await this.#rows.textsOfStates([...stateIds])
    const clusters = await seenClusters(this.#db, this.#dictionary, new Set(rows.map(({ cluster_no }) => cluster_no)))
    return rows.flatMap((row): ObjectFacts[] => {
      const whole = row.state_id === null ? looked.get(this.#dictionary.pairOf(row)) : row
      const name = this.#dictionary.namesById.get(row.name_id)
      const cluster = clusters.get(row.cluster_no)
      const state = whole?.state_id == null ? undefined : this.#dictionary.states.get(whole.state_id)
      const said = state === undefined ? undefined : texts.get(state.id)
      if (name === undefined || cluster === undefined || state === undefined || said === undefined) return []
      const { project, service, api_group: group, object_kind: kind, namespace, name: own } = name
      const drift = this.#twinOf(row)
      const doc = drift === undefined ? undefined : docs.get(this.#dictionary.pairOf(drift))
      const warnings = warningsIn(docs.get(this.#dictionary.pairOf(row)))
      return [
        {
          cluster,
          id: { project, service },
          ref: { group, kind, namespace, name: own },
          status: {
            sync: state.sync === '' ? 'Unknown' : state.sync,
            health: healthOf(state),
            reason: state.reason,
            message: said.message,
            sinceMs: whole?.since_ms ?? 0,
            ...(said.images === null ? {} : { images: readNames(said.images) }),
            ...(warnings.length === 0 ? {} : { warnings }),
          },
          drift: doc === undefined ? null : JSON.parse(doc),
        },
      ]
    })
  }
}

/** `doc`: an object's status as its agent wrote it. Undefined means that the columns hold all of it. */
function warningsIn(doc: string | undefined): string[] {
  const status = doc === undefined ? null : objectStatusSchema.safeParse(JSON.parse(doc))
  return status?.data?.warnings ?? []
}

/** Above every number of rows that are sorted at once. */
const RANK = 2 ** 26
const clamp = (value: number, min: number, max: number): number => Math.min(max, Math.max(min, value))
/** From `at` on, as many as make up `wanted` rows; one at least. */
function takeUntil<T>(items: readonly T[], at: number, wanted: number, rowsOf: (item: T) => number): T[] {
  let rows = 0
  let end = at
  while (end < items.length && end - at < CHUNK_KEYS_MAX) {
    const item = items[end]
    if (item === undefined) break
    rows += rowsOf(item)
    end += 1
    if (rows >= wanted) break
  }
  return items.slice(at, end)
}

/** The first for which `place` is not negative. */
function lowerBound<T>(items: readonly T[], place: (item: T) => number): number {
  let [low, high] = [0, items.length]
  while (low < high) {
    const middle = (low + high) >> 1
    const item = items[middle]
    if (item !== undefined && place(item) < 0) low = middle + 1
    else high = middle
  }
  return low
}

/** Where a walk of clusters begins. */
function firstFrom(clusters: readonly ClusterEntry[], name: string, behind: boolean): number {
  const at = lowerBound(clusters, (cluster) => byText(cluster.name, name))
  return behind && clusters[at]?.name === name ? at + 1 : at
}
