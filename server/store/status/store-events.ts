// The event stream: what agents and this server tell of, numbered in the order of commits.
import { setImmediate } from 'node:timers/promises'
import { type ExpressionBuilder, type SqlBool, sql } from 'kysely'
import { eventStatusSchema } from '../../../shared/model/status.ts'
import { type ClusterId, parseServiceKey } from '../../../shared/runtime/ids.ts'
import { withTrace } from '../../../shared/runtime/trace-id.ts'
import type { FleetEvent } from '../../fleet/records.ts'
import { isEverywhere, type Scope } from '../../fleet/rights.ts'
import { type Bulk, runBulk } from '../bulk.ts'
import { nextNumber } from '../counters.ts'
import type { Engine } from '../engines/engine.ts'
import { scopeFilter } from '../scope-filter.ts'
import type { Store } from '../store.ts'
import type { StoreDb, Tx } from '../store-db.ts'
import type { Tables } from '../tables.ts'
import { storable } from './storable-text.ts'

/** ST8: that there can be. What goes earlier goes with the upkeep. */
export const EVENTS_MAX = 1_000_000

/** Events of a cluster that are looked through between two turns of everybody else, and for one page. */
const SLICE = 5_000
const SLICES_MAX = 40

type Within = Parameters<Store['listEvents']>[0]['within']

/** The condition for events that a caller may read: whole places, and services in clusters. Null means every event. */
function readable({ scope, within = [] }: { scope: Scope | undefined; within: Within | undefined }) {
  if (scope === undefined || isEverywhere(scope)) return null
  return (eb: ExpressionBuilder<Tables, 'events'>) =>
    eb.or([
      scopeFilter(scope, 'project', 'service')(eb),
      ...within.map(({ place, clusters }) =>
        eb.and([
          eb('service', 'is not', null),
          clusters.length === 0 ? sql<SqlBool>`1 = 0` : eb('cluster', 'in', [...clusters]),
          scopeFilter([place], 'project', 'service')(eb),
        ]),
      ),
    ])
}

export function createEventStore(db: StoreDb): Pick<Store, 'appendEvents' | 'listEvents' | 'listObjectEvents'> {
  return {
    appendEvents: (events) => db.write((tx) => appendEvents(tx, db.engine, events)),

    listEvents: async ({ scope, within, after, before, cluster, project, service, trace, sinceMs, untilMs, limit }) => {
      const seen = readable({ scope, within })
      let query = db.read.selectFrom('events').selectAll()
      if (seen !== null) query = query.where(seen)
      if (after !== undefined) query = query.where('id', '>', after)
      if (before !== undefined) query = query.where('id', '<', before)
      if (cluster !== undefined) query = query.where('cluster', '=', cluster)
      if (project !== undefined) query = query.where('project', '=', project)
      if (service !== undefined) query = query.where('service', '=', service)
      if (trace !== undefined) query = query.where('trace', '=', trace)
      if (sinceMs !== undefined) query = query.where('at_ms', '>=', sinceMs)
      if (untilMs !== undefined) query = query.where('at_ms', '<=', untilMs)
      const rows = await query
        .orderBy('id', after === undefined ? 'desc' : 'asc')
        .limit(limit)
        .execute()
      return rows.map(toEvent).sort((a, b) => a.id - b.id)
    },

    listObjectEvents: async ({ scope, within, cluster, object, before, limit }) => {
      const ofCluster = db.read.selectFrom('events').where('cluster', '=', cluster)
      const seen = readable({ scope, within })
      const isOfAnyGroup = object.split('/').length === 3
      const items: FleetEvent[] = []
      let upTo = before ?? Number.MAX_SAFE_INTEGER
      for (let slice = 0; slice < SLICES_MAX; slice++) {
        if (slice > 0) await setImmediate()
        const older = ofCluster.select('id').where('id', '<', upTo).orderBy('id', 'desc')
        const from = (await older.limit(1).offset(SLICE).executeTakeFirst())?.id ?? 0
        let found = ofCluster.selectAll().where('id', '<', upTo).where('id', '>', from)
        if (seen !== null) found = found.where(seen)
        found = isOfAnyGroup
          ? found.where(sql<SqlBool>`substr(object, length(object) - ${object.length}) = ${`/${object}`}`)
          : found.where('object', '=', object)
        const rows = await found
          .orderBy('id', 'desc')
          .limit(limit - items.length)
          .execute()
        items.push(...rows.map(toEvent))
        const last = items.at(-1)
        if (last !== undefined && items.length === limit) return { items, next: last.id }
        if (from === 0) return { items, next: null }
        upTo = from + 1
      }
      return { items, next: upTo }
    },
  }
}

const WRITE_EVENTS: Bulk = {
  before: 'insert into events (id, at_ms, type, reason, message, cluster, project, service, object, trace) values',
  row: '(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
  after: '',
  types: ['bigint', 'bigint', 'text', 'text', 'text', 'text', 'text', 'text', 'text', 'text'],
}

/** `clusterId`: of the agent that it is from. */
export type NewEvent = Omit<FleetEvent, 'id'> & { clusterId?: ClusterId }

export async function appendEvents({ sql: trx, changes }: Tx, engine: Engine, events: readonly NewEvent[]): Promise<void> {
  if (events.length === 0) return
  const last = await nextNumber(trx, 'event_id', events.length)
  const first = last - events.length + 1
  const values = events.map((event, index) => {
    const { atMs, type, reason, message, cluster, project, service, object, trace = null } = event
    return [first + index, atMs, type, storable(reason), storable(message), cluster, project, service, object && storable(object), trace]
  })
  await runBulk(trx, engine, WRITE_EVENTS, values)
  if (last > EVENTS_MAX)
    await trx
      .deleteFrom('events')
      .where('id', '<=', last - EVENTS_MAX)
      .execute()
  for (const cluster of new Set(events.map(({ clusterId }) => clusterId)))
    changes.add({ topic: 'event', ...(cluster === undefined ? {} : { cluster }) })
}

export function fromStatus(cluster: string, doc: unknown): Omit<FleetEvent, 'id'> {
  const { atMs, type, reason, message: said, service, object, count = 1, trace } = eventStatusSchema.parse(doc)
  const id = service === undefined ? null : parseServiceKey(service)
  const message = count > 1 ? `${said} (${count} times)` : said
  return {
    atMs,
    type,
    reason,
    message,
    cluster,
    project: id?.project ?? null,
    service: id?.service ?? null,
    object: object ?? null,
    ...withTrace(trace),
  }
}

export function toEvent({ at_ms: atMs, trace, ...row }: Tables['events']): FleetEvent {
  return { ...row, atMs, ...withTrace(trace ?? undefined) }
}
