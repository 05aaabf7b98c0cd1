// The limit of one cluster in the event stream, so that no cluster displaces the events of others (ST18). In memory: a
// restart forgets all use, and gives every cluster its full share again.

import { warning } from '../../messages/event-messages.ts'
import { RecentMap } from '../recent-map.ts'
import type { Tx } from '../store-db.ts'
import type { NewEvent } from './store-events.ts'

/** Twice of what an agent that cannot reach its server gathers. */
export const EVENTS_BURST = 2_000
const EVENTS_AN_HOUR = 2_000
const HOUR_MS = 3_600_000
/** The limit of one cluster. */
export const EVENTS_PER_CLUSTER_MAX = 10_000
/** After so many new ones it is looked whether a cluster has too many. */
const EVENTS_A_LOOK = 500
/** That go at once. */
const DROPPED_MAX = 2_000
const CLUSTERS_MAX = 20_000

interface Bucket {
  left: number
  atMs: number
  /** When it was said that some were dropped. */
  saidMs: number
}

export class EventBounds {
  readonly #buckets = new RecentMap<Bucket>(CLUSTERS_MAX)
  readonly #fresh = new RecentMap<number>(CLUSTERS_MAX)
  /** The uses in the running transaction: one that is rolled back used nothing. */
  readonly #told = new Map<string, Bucket>()
  readonly #added = new Map<string, number>()

  /** With each transaction. There is one at a time. */
  begin(): void {
    this.#told.clear()
    this.#added.clear()
  }

  /** After its commit, and only then. */
  keep(): void {
    for (const [cluster, bucket] of this.#told) this.#buckets.set(cluster, bucket)
    for (const [cluster, fresh] of this.#added) this.#fresh.set(cluster, fresh)
    this.begin()
  }

  /** The newest of them, as many as there is room for; and once an hour one that says how many there was none for.
   *  `nowMs`: of the push. */
  admit(cluster: string, events: readonly NewEvent[], nowMs: number): readonly NewEvent[] {
    if (events.length === 0) return events
    const held = this.#told.get(cluster) ?? this.#buckets.get(cluster)
    const bucket = { ...(held ?? { left: EVENTS_BURST, atMs: nowMs, saidMs: Number.NEGATIVE_INFINITY }) }
    this.#told.set(cluster, bucket)
    bucket.left = Math.min(EVENTS_BURST, bucket.left + (Math.max(0, nowMs - bucket.atMs) * EVENTS_AN_HOUR) / HOUR_MS)
    bucket.atMs = nowMs
    const taken = Math.min(events.length, Math.floor(bucket.left))
    bucket.left -= taken
    const admitted = events.slice(events.length - taken)
    const [first] = events
    if (taken === events.length || first === undefined || Math.abs(nowMs - bucket.saidMs) < HOUR_MS) return admitted
    bucket.saidMs = nowMs
    const said = warning('EventsDropped', { most: EVENTS_AN_HOUR, count: events.length - taken })
    return [...admitted, { ...first, ...said, atMs: nowMs, project: null, service: null, object: null }]
  }

  /** In the transaction that wrote `count` events of the cluster. */
  async prune({ sql: trx }: Tx, cluster: string, count: number): Promise<void> {
    const fresh = (this.#added.get(cluster) ?? this.#fresh.get(cluster) ?? 0) + count
    this.#added.set(cluster, fresh % EVENTS_A_LOOK)
    if (fresh < EVENTS_A_LOOK) return
    const surplus = trx
      .selectFrom('events')
      .select('id')
      .where('cluster', '=', cluster)
      .orderBy('id', 'desc')
      .offset(EVENTS_PER_CLUSTER_MAX)
    const ids = (await surplus.limit(DROPPED_MAX).execute()).map(({ id }) => id)
    if (ids.length > 0) await trx.deleteFrom('events').where('id', 'in', ids).execute()
  }
}
