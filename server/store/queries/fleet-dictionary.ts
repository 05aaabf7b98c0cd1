// The meaning of the numbers in status rows, in the memory of a process that answers fleet queries: clusters, names and
// states of a fleet are few beside its rows. Updated at each query: new ones are read, and all of them again when
// clusters or labels changed or some were collected. Counts may be some seconds old: they choose the path, not the
// answer.
import { sql } from 'kysely'
import type { Labels } from '../../../shared/model/labels.ts'
import { clusterSpecSchema, FLEET } from '../../../shared/model/resources.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { type ClusterId, hideServices } from '../../../shared/runtime/ids.ts'
import type { ReadDb } from '../store-db.ts'
import type { Tables } from '../tables.ts'
import { DensePlaces } from './dense-places.ts'
import type { RowKey } from './fleet-query-sql.ts'

export interface ClusterEntry {
  no: number
  clusterId: ClusterId
  name: string
  labels: Labels
  revoked: boolean
  rows: number
  /** Place among all in the order of names. */
  rank: number
}

export type NameEntry = Omit<Tables['names'], 'id'> & {
  id: number
  /** The searched text. A word has no line feed in it. */
  text: string
}

/**
 * Only the beginning of long texts: one hostile cluster must not fill the memory of everybody's queries. Whole texts
 * are read for a page.
 */
export type StateEntry = Pick<Tables['states'], 'sync' | 'health' | 'reason' | 'images' | 'refs'> & { id: number; text: string }

/** The searched part of a state's message, and of its images as JSON. */
const MESSAGE_CHARS = 512
const IMAGES_CHARS = 2_048

/** Rows of one statement: where there is no Worker, others have a turn in between. */
const SLICE_ROWS = 5_000
/** For so long counts are good enough. */
const COUNTS_MS = 10_000

/** Order of text as both databases have it. Names are of the lower half of Unicode, where code units and bytes agree.
 */
export const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

interface Everything {
  clusters: Uint16Array
  names: Uint16Array
  nameIds: number[]
  states: Uint16Array
  stateIds: number[]
}

/** Names of which two clusters' pairs are apart: more than fit into memory. */
const NAMES_MAX = 2 ** 31

export class FleetDictionary {
  /** In the order of their names. */
  clusters: ClusterEntry[] = []
  readonly clustersByNo = new Map<number, ClusterEntry>()
  /** Replaced together with `clusters`: a reader that holds one of them holds the other. */
  clustersById: ReadonlyMap<ClusterId, ClusterEntry> = new Map()
  /** In the order of their numbers. */
  names: NameEntry[] = []
  readonly namesById = new Map<number, NameEntry>()
  /** Number of the name of a service, by its key. */
  readonly serviceNames = new Map<string, number>()
  /** For names that a drift and an object share: the number of the other one. */
  readonly twins = new Map<number, number>()
  readonly states = new Map<number, StateEntry>()
  /** The number of names of objects. */
  objectRows = 0
  /** They outlive their entries: a running query finds its entries while others update the dictionary. */
  readonly places = { clusters: new DensePlaces(), names: new DensePlaces(), states: new DensePlaces() }
  readonly #clock: Clock
  #byName: NameEntry[] | null = null
  #everything: Everything | null = null
  #generation = -1
  #fleet = ''
  #nameMax = 0
  #stateMax = 0
  readonly #texts = new Map<string, string>()
  #countAtMs = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Objects in the order of their own names, then keys. */
  get objectsByName(): NameEntry[] {
    this.#byName ??= this.names.filter(({ kind }) => kind === 'object').sort((a, b) => byText(a.name, b.name) || byText(a.key, b.key))
    return this.#byName
  }

  /** A cluster and a name in one number below 2^53. */
  pairOf = ({ cluster_no, name_id }: RowKey): number => this.places.clusters.of(cluster_no) * NAMES_MAX + this.places.names.of(name_id)

  /** Everything that there is, with one mark at each place: for filters that ask nothing of a side. */
  everything(mark: number): Everything {
    if (this.#everything !== null) return this.#everything
    const { clusters, names, states } = this.places
    const nameIds = this.names.flatMap(({ kind, id }) => (kind === 'object' ? [id] : []))
    const stateIds = [...this.states.keys()]
    const numbers = this.clusters.map(({ no }) => no)
    this.#everything = {
      clusters: clusters.marks(numbers, mark),
      names: names.marks(nameIds, mark),
      nameIds,
      states: states.marks(stateIds, mark),
      stateIds,
    }
    return this.#everything
  }

  /** Inside of the snapshot that is read afterwards. False: numbers mean something else now, another dictionary is
   *  needed. */
  async refresh(db: ReadDb): Promise<boolean> {
    const { rows } = await sql<{ generation: number; version: number; clusters: number; newest: number | null }>`
      select (select value from counters where name = 'dictionary') as generation, (select value from counters where name = 'resource_version') as version,
        (select count(*) from clusters) as clusters, (select max(no) from clusters) as newest`.execute(db)
    const [now] = rows
    if (now === undefined) return false
    if (now.generation !== this.#generation && this.#generation >= 0) return false
    this.#generation = now.generation
    const fleet = `${now.version} ${now.clusters} ${now.newest}`
    if (fleet !== this.#fleet) await this.#readClusters(db)
    this.#fleet = fleet
    const isNew = this.#nameMax === 0
    await this.#readNames(db)
    await this.#readStates(db)
    if (this.#clock.nowMs() >= this.#countAtMs) await this.#count(db, isNew)
    return true
  }

  async #readClusters(db: ReadDb): Promise<void> {
    const rows = await db
      .selectFrom('clusters')
      .innerJoin('resources', (on) =>
        on.onRef('resources.name', '=', 'clusters.name').on('resources.kind', '=', 'Cluster').on('resources.project', '=', FLEET),
      )
      .select(['no', 'cluster_id', 'clusters.name', 'row_count', 'resources.labels', 'resources.spec'])
      .execute()
    const revoked = new Map<string, boolean>()
    const isRevoked = (spec: string): boolean => {
      const held = revoked.get(spec) ?? clusterSpecSchema.parse(JSON.parse(spec)).revoked
      revoked.set(spec, held)
      return held
    }
    rows.sort((a, b) => byText(a.name, b.name))
    this.clusters = rows.map(({ no, cluster_id, name, row_count, labels, spec }, rank) => {
      this.places.clusters.of(no)
      return { no, clusterId: cluster_id, name, labels: JSON.parse(labels) as Labels, revoked: isRevoked(spec), rows: row_count, rank }
    })
    this.clustersById = new Map(this.clusters.map((cluster) => [cluster.clusterId, cluster]))
    this.#everything = null
    this.clustersByNo.clear()
    for (const cluster of this.clusters) this.clustersByNo.set(cluster.no, cluster)
  }

  /** One text for all equal ones: a database creates each again. */
  #same(text: string): string {
    const held = this.#texts.get(text)
    if (held !== undefined) return held
    this.#texts.set(text, text)
    return text
  }

  async #readNames(db: ReadDb): Promise<void> {
    const before = this.#nameMax
    const read = () => db.selectFrom('names').selectAll().where('id', '>', this.#nameMax).orderBy('id').limit(SLICE_ROWS).execute()
    for (let rows = await read(); rows.length > 0; rows = rows.length < SLICE_ROWS ? [] : await read()) this.#addNames(rows)
    if (this.#nameMax === before) return
    this.#byName = this.#everything = null
    await this.#readTwins(db)
  }

  #addNames(rows: ReadonlyArray<Omit<Tables['names'], 'id'> & { id: number }>): void {
    for (const row of rows) {
      this.places.names.of(row.id)
      const { name } = row
      const [project, service, object_kind] = [this.#same(row.project), this.#same(row.service), this.#same(row.object_kind)]
      const [api_group, namespace] = [this.#same(row.api_group), this.#same(row.namespace)]
      // A row without the form of an object is skipped.
      if (row.kind === 'object' && (object_kind === '' || name === '' || name.includes('/'))) continue
      const parts = { project, service, api_group, object_kind, namespace }
      const entry: NameEntry = { ...row, ...parts, text: `${name}\n${namespace}\n${object_kind}\n${service}\n${project}`.toLowerCase() }
      this.names.push(entry)
      this.namesById.set(row.id, entry)
      if (row.kind === 'service') this.serviceNames.set(row.key, row.id)
    }
    this.#nameMax = rows.at(-1)?.id ?? this.#nameMax
  }

  async #readTwins(db: ReadDb): Promise<void> {
    const twins = await db
      .selectFrom('names as drift')
      .innerJoin('names as object', (on) => on.onRef('object.key', '=', 'drift.key').on('object.kind', '=', 'object'))
      .select(['drift.id as driftId', 'object.id as objectId'])
      .where('drift.kind', '=', 'drift')
      .execute()
    for (const { driftId, objectId } of twins) {
      this.twins.set(driftId, objectId)
      this.twins.set(objectId, driftId)
    }
  }

  async #readStates(db: ReadDb): Promise<void> {
    const read = () =>
      db
        .selectFrom('states')
        .select(['id', 'sync', 'health', 'reason', 'refs'])
        .select([sql<string>`substr(message, 1, ${sql.lit(MESSAGE_CHARS)})`.as('message')])
        .select([sql<string | null>`substr(images, 1, ${sql.lit(IMAGES_CHARS)})`.as('images')])
        .where('id', '>', this.#stateMax)
        .orderBy('id')
        .limit(SLICE_ROWS)
        .execute()
    for (let rows = await read(); rows.length > 0; rows = rows.length < SLICE_ROWS ? [] : await read()) {
      for (const { message, images, ...row } of rows) {
        // AZ4: a name that a message has is found by nobody: a search would say what the message hides.
        const text = `${row.reason}\n${hideServices(message, () => false)}`.toLowerCase()
        this.places.states.of(row.id)
        this.states.set(row.id, { ...row, text, images: images === null ? null : this.#same(images) })
      }
      this.#stateMax = rows.at(-1)?.id ?? this.#stateMax
      this.#everything = null
    }
  }

  /** `isNew`: what was read a moment ago has its counts. */
  async #count(db: ReadDb, isNew: boolean): Promise<void> {
    const startMs = this.#clock.nowMs()
    if (!isNew) await this.#readCounts(db)
    this.objectRows = this.names.reduce((sum, { kind, refs }) => (kind === 'object' ? sum + refs : sum), 0)
    const nowMs = this.#clock.nowMs()
    // A hundredth of the time at most.
    this.#countAtMs = nowMs + Math.max(COUNTS_MS, 100 * (nowMs - startMs))
  }

  async #readCounts(db: ReadDb): Promise<void> {
    const ofNames = db.selectFrom('names').select(['id', 'refs']).orderBy('id').limit(SLICE_ROWS)
    for (let after = 0; ; ) {
      const rows = await ofNames.where('id', '>', after).execute()
      for (const { id, refs } of rows) {
        const entry = this.namesById.get(id)
        if (entry !== undefined) entry.refs = refs
      }
      const last = rows.at(-1)
      if (last === undefined || rows.length < SLICE_ROWS) break
      after = last.id
    }
    for (const { id, refs } of await db.selectFrom('states').select(['id', 'refs']).execute()) {
      const entry = this.states.get(id)
      if (entry !== undefined) entry.refs = refs
    }
    for (const { no, row_count } of await db.selectFrom('clusters').select(['no', 'row_count']).execute()) {
      const entry = this.clustersByNo.get(no)
      if (entry !== undefined) entry.rows = row_count
    }
  }
}
