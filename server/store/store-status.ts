// What agents reported, and the event stream. A row of status has one writer, its agent; `rev` decides which of two copies is newer (PU2), never the
// order of arrival.
import { sql, type Transaction } from 'kysely'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { type ClusterId, parseServiceKey, type ServiceId, serviceKey } from '../../shared/model/ids.ts'
import { eventStatusSchema, type StatusKind } from '../../shared/model/status.ts'
import { type InventoryRange, inRange } from '../../shared/protocol/status.ts'
import { nextNumber } from './counters.ts'
import { createGroupCommit } from './group-commit.ts'
import { readSlices, SLICE_ROWS } from './read-slices.ts'
import type { FleetEvent, StatusEntry, StatusWrite, Store } from './store.ts'
import type { StoreDb, Tx } from './store-db.ts'
import type { Tables } from './tables.ts'

type StatusStore = Pick<Store, 'upsertStatus' | 'listStatus' | 'deleteStatusOfService' | 'appendEvents' | 'listEvents'>
type RowKind = Exclude<StatusKind, 'event'>
type RowWrite = StatusWrite & { kind: RowKind }

/** Rows in one statement: 6 parameters each, databases take at least 32,766. */
const BATCH_ROWS = 500
/** ST8: older events are dropped. */
export const EVENTS_KEPT_MAX = 100_000
/** Sorts after every key that begins with the prefix before it. */
const AFTER_EVERY_KEY = '\u{10ffff}'

export function createStatusStore(db: StoreDb): StatusStore {
  const together = createGroupCommit(db)
  return {
    upsertStatus: (clusterId, rows, options) => together((tx) => upsertStatus(tx, clusterId, rows, options), rows.length),

    listStatus: async ({ clusterId, kind, key, keyPrefix }) => {
      let query = db.read.selectFrom('statuses').selectAll().where('kind', '=', kind).where('doc', 'is not', null)
      if (clusterId !== undefined) query = query.where('cluster_id', '=', clusterId)
      if (key !== undefined) query = query.where('key', '=', key)
      if (keyPrefix !== undefined) query = query.where('key', '>=', keyPrefix).where('key', '<', keyPrefix + AFTER_EVERY_KEY)
      const ordered = query.orderBy('key').orderBy('cluster_id').limit(SLICE_ROWS)
      const read = (after: Tables['statuses'] | null) => {
        if (after === null) return ordered.execute()
        // With one key the index leads straight to where the last slice ended.
        if (key !== undefined) return ordered.where('cluster_id', '>', after.cluster_id).execute()
        return ordered.where(sql<boolean>`(key, cluster_id) > (${after.key}, ${after.cluster_id})`).execute()
      }
      return readSlices(read, toEntry)
    },

    deleteStatusOfService: (clusterId, id) => together((tx) => deleteStatusOfService(tx, clusterId, id), 1),
    appendEvents: (events) => db.write((tx) => appendEvents(tx, events)),

    listEvents: async ({ after, cluster, project, service, limit }) => {
      let query = db.read.selectFrom('events').selectAll()
      if (after !== undefined) query = query.where('id', '>', after)
      if (cluster !== undefined) query = query.where('cluster', '=', cluster)
      if (project !== undefined) query = query.where('project', '=', project)
      if (service !== undefined) query = query.where('service', '=', service)
      const rows = await query
        .orderBy('id', after === undefined ? 'desc' : 'asc')
        .limit(limit)
        .execute()
      return rows.map(toEvent).sort((a, b) => a.id - b.id)
    },
  }
}

async function upsertStatus(
  tx: Tx,
  clusterId: ClusterId,
  rows: readonly StatusWrite[],
  { complete, olderThan = 0, nowMs }: Parameters<Store['upsertStatus']>[2],
): Promise<{ ack: number; had: number; changed: StatusWrite[] }> {
  const { sql: trx } = tx
  const cluster = await trx.selectFrom('clusters').selectAll().where('cluster_id', '=', clusterId).executeTakeFirst()
  if (cluster === undefined) return { ack: 0, had: 0, changed: [] }
  const newest = rows.reduce((max, row) => Math.max(max, row.rev), 0)
  /** What an inventory is about: a row that it does not name is gone if its rev is no greater. */
  const bound = complete === false ? 0 : Math.max(newest, olderThan - 1)

  const current = newestOfEachKey(rows.filter(isRow))
  const changed: StatusWrite[] = await writeRows(
    trx,
    clusterId,
    current.filter((row) => row.rev > cluster.status_floor),
    nowMs,
  )
  const sweeps = complete !== false && bound > cluster.status_floor
  if (sweeps && complete === true) changed.push(...(await removeOthers(trx, clusterId, current, bound)))
  if (sweeps && complete !== true) changed.push(...(await removeOthersOfRange(trx, clusterId, current, bound, complete)))
  const swept = sweeps ? nextSweep(cluster, complete, bound) : sweepOf(cluster)
  if (swept.floor > cluster.status_floor && complete !== true) await forgetRemoved(trx, clusterId, swept.floor)

  const events = rows.filter((row) => row.kind === 'event' && row.doc !== null && row.rev > cluster.event_rev).sort((a, b) => a.rev - b.rev)
  await appendEvents(
    tx,
    events.map((row) => fromStatus(cluster.name, row.doc)),
  )
  changed.push(...events)

  const ack = Math.max(cluster.status_rev, newest)
  const eventRev = events.at(-1)?.rev ?? cluster.event_rev
  await trx
    .updateTable('clusters')
    .set({
      status_rev: ack,
      status_floor: swept.floor,
      sweep_from: swept.from,
      sweep_floor: swept.pending,
      event_rev: eventRev,
    })
    .where('cluster_id', '=', clusterId)
    .execute()
  return { ack, had: cluster.status_rev, changed }
}

const isRow = (row: StatusWrite): row is RowWrite => row.kind !== 'event'
const rowKey = (row: { kind: string; key: string }): string => `${row.kind} ${row.key}`

/** One statement cannot touch a row twice on PostgreSQL. */
function newestOfEachKey(rows: readonly RowWrite[]): RowWrite[] {
  const byKey = new Map<string, RowWrite>()
  for (const row of rows) {
    const held = byKey.get(rowKey(row))
    if (held === undefined || row.rev > held.rev) byKey.set(rowKey(row), row)
  }
  return [...byKey.values()]
}

async function writeRows(trx: Transaction<Tables>, clusterId: ClusterId, rows: readonly RowWrite[], nowMs: number): Promise<StatusWrite[]> {
  const written = new Set<string>()
  for (let start = 0; start < rows.length; start += BATCH_ROWS) {
    const batch = rows.slice(start, start + BATCH_ROWS).map((row) => ({
      cluster_id: clusterId,
      kind: row.kind,
      key: row.key,
      rev: row.rev,
      doc: (row.doc ?? null) === null ? null : canonicalJson(row.doc),
      received_ms: nowMs,
    }))
    const touched = await trx
      .insertInto('statuses')
      .values(batch)
      .onConflict((on) =>
        on
          .columns(['cluster_id', 'kind', 'key'])
          .doUpdateSet((eb) => ({ rev: eb.ref('excluded.rev'), doc: eb.ref('excluded.doc'), received_ms: eb.ref('excluded.received_ms') }))
          .where(sql<boolean>`excluded.rev > statuses.rev`),
      )
      .returning(['kind', 'key'])
      .execute()
    for (const row of touched) written.add(rowKey(row))
  }
  return rows.filter((row) => written.has(rowKey(row)))
}

/** PU4: what a complete inventory does not name is gone, and so is the memory of earlier removals: the floor stands for both. */
async function removeOthers(
  trx: Transaction<Tables>,
  clusterId: ClusterId,
  named: readonly RowWrite[],
  floor: number,
): Promise<StatusWrite[]> {
  const keep = new Set(named.filter((row) => row.doc !== null).map(rowKey))
  const held = await trx
    .selectFrom('statuses')
    .select(['kind', 'key', sql<number>`case when doc is null then 1 else 0 end`.as('removed')])
    .where('cluster_id', '=', clusterId)
    .where('rev', '<=', floor)
    .execute()
  const gone = held.filter((row) => !keep.has(rowKey(row)))
  for (const kind of new Set(gone.map((row) => row.kind))) {
    const keys = gone.filter((row) => row.kind === kind).map((row) => row.key)
    for (let start = 0; start < keys.length; start += BATCH_ROWS) {
      await trx
        .deleteFrom('statuses')
        .where('cluster_id', '=', clusterId)
        .where('kind', '=', kind)
        .where('key', 'in', keys.slice(start, start + BATCH_ROWS))
        .execute()
    }
  }
  return gone.filter((row) => row.removed === 0).map(({ kind, key }) => ({ kind, key, rev: floor, doc: null }))
}

interface Sweep {
  /** `status_floor`. */
  floor: number
  /** Where the next range has to begin; null: none is under way. */
  from: string | null
  /** The floor when the last range has come. */
  pending: number
}
const sweepOf = (cluster: Tables['clusters']): Sweep => ({
  floor: cluster.status_floor,
  from: cluster.sweep_from,
  pending: cluster.sweep_floor,
})

/** Ranges from the open beginning to the open end, each beginning where the one before it ended, are as good as one whole inventory. */
function nextSweep(cluster: Tables['clusters'], complete: true | InventoryRange, bound: number): Sweep {
  const { floor, from, pending } = sweepOf(cluster)
  if (complete === true) return { floor: bound, from: null, pending: 0 }
  const { after, upTo } = complete
  if (after !== null && after !== from) return { floor, from, pending } // a repeated one, or one of another sweep
  const reached = after === null ? bound : Math.min(pending, bound)
  return upTo === null ? { floor: Math.max(floor, reached), from: null, pending: 0 } : { floor, from: upTo, pending: reached }
}

/** PU4: as above, but only of a part. What goes stays as removed until a whole inventory, or ranges that make one, stand for it. */
async function removeOthersOfRange(
  trx: Transaction<Tables>,
  clusterId: ClusterId,
  named: readonly RowWrite[],
  bound: number,
  range: InventoryRange,
): Promise<StatusWrite[]> {
  const keep = new Set(named.filter((row) => row.doc !== null).map(rowKey))
  const held = await trx
    .selectFrom('statuses')
    .select(['kind', 'key'])
    .where('cluster_id', '=', clusterId)
    .where('rev', '<=', bound)
    .where('doc', 'is not', null)
    .execute()
  // Compared here: databases order text by their own rules.
  const gone = held.filter((row) => !keep.has(rowKey(row)) && inRange(`${row.kind}/${row.key}`, range))
  for (const kind of new Set(gone.map((row) => row.kind))) {
    const keys = gone.filter((row) => row.kind === kind).map((row) => row.key)
    for (let start = 0; start < keys.length; start += BATCH_ROWS) {
      await trx
        .updateTable('statuses')
        .set({ doc: null, rev: bound })
        .where('cluster_id', '=', clusterId)
        .where('kind', '=', kind)
        .where('key', 'in', keys.slice(start, start + BATCH_ROWS))
        .execute()
    }
  }
  return gone.map(({ kind, key }) => ({ kind, key, rev: bound, doc: null }))
}

const forgetRemoved = (trx: Transaction<Tables>, clusterId: ClusterId, floor: number) =>
  trx.deleteFrom('statuses').where('cluster_id', '=', clusterId).where('doc', 'is', null).where('rev', '<=', floor).execute()

async function deleteStatusOfService({ sql: trx }: Tx, clusterId: ClusterId, id: ServiceId): Promise<void> {
  const key = serviceKey(id)
  const ofCluster = () => trx.deleteFrom('statuses').where('cluster_id', '=', clusterId)
  await ofCluster().where('kind', '=', 'service').where('key', '=', key).execute()
  await ofCluster()
    .where('kind', 'in', ['object', 'drift'])
    .where('key', '>=', `${key}/`)
    .where('key', '<', `${key}/${AFTER_EVERY_KEY}`)
    .execute()
}

async function appendEvents({ sql: trx }: Tx, events: ReadonlyArray<Omit<FleetEvent, 'id'>>): Promise<void> {
  if (events.length === 0) return
  const last = await nextNumber(trx, 'event_id', events.length)
  const first = last - events.length + 1
  const rows = events.map(({ atMs, ...event }, index) => ({ ...event, at_ms: atMs, id: first + index }))
  for (let start = 0; start < rows.length; start += BATCH_ROWS)
    await trx
      .insertInto('events')
      .values(rows.slice(start, start + BATCH_ROWS))
      .execute()
  await trx
    .deleteFrom('events')
    .where('id', '<=', last - EVENTS_KEPT_MAX)
    .execute()
}

function fromStatus(cluster: string, doc: unknown): Omit<FleetEvent, 'id'> {
  const { atMs, type, reason, message: said, service, object, count = 1 } = eventStatusSchema.parse(doc)
  const id = service === undefined ? null : parseServiceKey(service)
  const message = count > 1 ? `${said} (${count} times)` : said
  return { atMs, type, reason, message, cluster, project: id?.project ?? null, service: id?.service ?? null, object: object ?? null }
}

function toEvent({ at_ms: atMs, ...row }: Tables['events']): FleetEvent {
  return { ...row, atMs }
}

const toEntry = (row: Tables['statuses']): StatusEntry => ({
  clusterId: row.cluster_id,
  kind: row.kind,
  key: row.key,
  rev: row.rev,
  doc: row.doc === null ? null : JSON.parse(row.doc),
  receivedMs: row.received_ms,
})
