// Worst words of the services of each cluster, kept between the charts of one process: counting 200,000 placements for
// each chart is most of its work. What changed since the last chart is read again, by the feed of changes; all of it
// after a minute, because repairs of the store change words without a change in the feed.
import { sql } from 'kysely'
import type { HealthWord } from '../../../shared/kube/health-object.ts'
import type { SyncWord } from '../../../shared/model/status.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { isFine, severity } from '../../fleet/placements-summary.ts'
import type { Engine } from '../engines/engine.ts'
import type { ReadDb } from '../store-db.ts'
import type { Tables } from '../tables.ts'

export interface ClusterWords {
  worst: { sync: SyncWord; health: HealthWord }
  services: number
  bad: number
}

export interface FleetWords {
  /** By id of the cluster; clusters without services are not in it. */
  words: ReadonlyMap<string, ClusterWords>
  /** Numbers of the clusters whose agents report a hold. */
  held: ReadonlySet<number>
}

interface Kept extends FleetWords {
  /** Number of the newest change in the snapshot that was read. */
  position: number
  readAtMs: number
}

/** More changes, or more clusters that changed: all of them are counted again. */
const CHANGES_MAX = 5_000
const CLUSTERS_MAX = 400
const KEPT_MS_MAX = 60_000

type Place = Pick<Tables['changes'], 'topic' | 'cluster' | 'name' | 'keys'>
type Numbers = ReadonlyMap<string, { no: number }>

export class ChartWords {
  readonly #engine: Engine
  readonly #clock: Clock
  #kept: Kept | null = null

  constructor(engine: Engine, clock: Clock) {
    this.#engine = engine
    this.#clock = clock
  }

  /** In the snapshot of `db`. */
  async at(db: ReadDb, clusters: Numbers): Promise<FleetWords> {
    const row = await db.selectFrom('counters').select('value').where('name', '=', 'change').executeTakeFirst()
    const position = row?.value ?? 0
    const before = this.#kept
    const changed = before === null ? null : await this.#changedSince(db, before, position)
    const now =
      before === null || changed === null ? await this.#all(db, position) : await this.#some(db, before, position, changed, clusters)
    // Another question may have read a newer snapshot meanwhile.
    if (this.#kept === null || this.#kept.position <= position) this.#kept = now
    return now
  }

  /** Null if they are too many to name. */
  async #changedSince(db: ReadDb, { position, readAtMs }: Kept, newest: number): Promise<Set<string> | null> {
    if (newest === position && this.#clock.nowMs() - readAtMs < KEPT_MS_MAX) return new Set()
    // A snapshot older than what is kept, and a store that was restored.
    if (newest < position || newest - position > CHANGES_MAX || this.#clock.nowMs() - readAtMs >= KEPT_MS_MAX) return null
    const rows = await db
      .selectFrom('changes')
      .select(['topic', 'cluster', 'name', 'keys'])
      .where('id', '>', position)
      .where('id', '<=', newest)
      .execute()
    if (rows.length !== newest - position) return null // some were deleted
    return clustersOf(rows)
  }

  async #all(db: ReadDb, position: number): Promise<Kept> {
    return {
      words: wordsOf(await counted(db, null)),
      held: await heldAmong(db, null),
      position,
      readAtMs: this.#clock.nowMs(),
    }
  }

  async #some(db: ReadDb, kept: Kept, position: number, changed: ReadonlySet<string>, clusters: Numbers): Promise<Kept> {
    if (changed.size === 0) return { ...kept, position }
    const [words, held] = [new Map(kept.words), new Set(kept.held)]
    for (const id of changed) words.delete(id)
    for (const [id, one] of wordsOf(await counted(db, idsIn(this.#engine, [...changed])))) words.set(id, one)
    const numbers = [...changed].flatMap((id) => clusters.get(id)?.no ?? [])
    for (const no of numbers) held.delete(no)
    for (const no of await heldAmong(db, numbers)) held.add(no)
    return { words, held, position, readAtMs: kept.readAtMs }
  }
}

const CONCERNS: ReadonlySet<string> = new Set(['status', 'desired', 'cluster'])

function clustersOf(rows: readonly Place[]): Set<string> | null {
  const ids = new Set<string>()
  for (const { topic, cluster, name, keys } of rows) {
    if (topic === 'restore' || (topic === 'resource' && (name === null || name.startsWith('Cluster/')))) return null
    if (!CONCERNS.has(topic)) continue
    if (cluster !== null) ids.add(cluster)
    else if (keys === null) return null
    else for (const id of JSON.parse(keys) as string[]) ids.add(id)
    if (ids.size > CLUSTERS_MAX) return null
  }
  return ids
}

export const idsIn = (engine: Engine, ids: readonly string[]) =>
  engine === 'sqlite' ? sql`(select value from json_each(${JSON.stringify(ids)}))` : sql`(select unnest(${ids}::text[]))`

type Counted = Array<{ cluster_id: string; sync: string | null; health: string | null; n: number | string }>

/** Placements by cluster and words. `list`: only of these clusters; `projects`: only of these. */
export function counted(db: ReadDb, list: ReturnType<typeof idsIn> | null, projects?: readonly string[]): Promise<Counted> {
  return db
    .selectFrom('desired')
    .select(({ fn }) => ['cluster_id', 'sync', 'health', fn.countAll<number | string>().as('n')])
    .where('sync', 'is not', null)
    .$if(list !== null, (chosen) => chosen.where(sql<boolean>`cluster_id in ${list}`))
    .$if(projects !== undefined, (chosen) => chosen.where('project', 'in', [...(projects ?? []), '']))
    .groupBy(['cluster_id', 'sync', 'health'])
    .execute()
}

export function wordsOf(rows: Counted): Map<string, ClusterWords> {
  const words = new Map<string, ClusterWords>()
  for (const { cluster_id, sync, health, n } of rows) {
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
  return words
}

/** Clusters whose agents report a hold; the text is looked for first, because nearly none does. */
async function heldAmong(db: ReadDb, clusters: readonly number[] | null): Promise<Set<number>> {
  if (clusters !== null && clusters.length === 0) return new Set()
  const rows = await db
    .selectFrom('status_rows')
    .select('cluster_no')
    .$if(clusters !== null, (chosen) => chosen.where('cluster_no', 'in', clusters ?? []))
    .where('name_id', 'in', (eb) => eb.selectFrom('names').select('id').where('kind', '=', 'cluster'))
    .where('doc', 'like', '%"code":"held"%')
    .execute()
  return new Set(rows.map(({ cluster_no }) => cluster_no))
}
