// The slices of the store's retention: each begins with a read, which disturbs nobody, and writes only if there is
// something to remove.

import { setImmediate } from 'node:timers/promises'
import { sql } from 'kysely'
import { type Bulk, runBulk, runIn } from '../bulk.ts'
import { nextNumber } from '../counters.ts'
import { CHANGES_KEPT_MS } from '../feed/change-feed.ts'
import { pruneChanges } from '../feed/store-changes.ts'
import { DROP_HISTORY } from '../status/status-history.ts'
import { toEvent } from '../status/store-events.ts'
import type { Store } from '../store.ts'
import { forgetUses } from '../store-agents.ts'
import type { ReadDb, StoreDb, Tx } from '../store-db.ts'
import type { Tables } from '../tables.ts'
import { keepCauses, keepEntries } from './keep-causes.ts'
import type { KeepBounds, StoreUpkeep, UpkeepSlice, UpkeepTask } from './upkeep.ts'

/** That go in one transaction: a few milliseconds. */
const ROWS_MAX = 200
/** The limit of each service in each cluster. */
export const HISTORY_KEPT = 100
/** Clusters whose histories are read together. */
const CLUSTERS_A_TIME = 1
const SERVICES_A_TIME = 20
/** Names, or states, in one transaction: after each, every cache of their numbers is read again. */
const COLLECT_MAX = 5_000
/** Rows that are read together… */
const LOOK_ROWS = 2_000
/** …and that go together, after which others on this thread have a turn. */
const COLLECT_ROWS = 256
/** How long an expired token is still reported as expired, and not as unknown. */
const TOKENS_KEPT_MS = 30 * 86_400_000

type Slice = (db: StoreDb, keep: KeepBounds, from: string | null) => Promise<UpkeepSlice>

const SLICES: Record<UpkeepTask, Slice> = {
  events: (db, keep, from) => events(db, keep, Number(from ?? 0)),
  history: (db, keep, from) => history(db, keep, Number(from ?? 0)),
  revisions,
  changes: async (db, { changesMax, nowMs }) => {
    const bounds = { countMax: changesMax, sinceMs: nowMs - CHANGES_KEPT_MS }
    const removed = Number.isFinite(changesMax) ? await pruneChanges(db, bounds) : 0
    return { removed, next: removed > 0 ? 'on' : null }
  },
  tokens: (db, keep) => tokens(db, keep),
  names: (db, _, from) => unused(db, 'names', Number(from ?? 0)),
  states: (db, _, from) => unused(db, 'states', Number(from ?? 0)),
  counts: (db) => noneAnyMore(db),
}

export const createUpkeepStore = (db: StoreDb, attend: StoreUpkeep['attend']): Pick<Store, 'upkeep'> => ({
  upkeep: { attend, slice: (task, keep, from) => SLICES[task](db, keep, from) },
})

/** Agents' clocks are not in order: events are looked through from the oldest number on, until a part has no old one.
 */
async function events(db: StoreDb, { eventsMax, eventsSinceMs, nowMs }: KeepBounds, after: number): Promise<UpkeepSlice> {
  const counter = await db.read.selectFrom('counters').select('value').where('name', '=', 'event_id').executeTakeFirst()
  const upTo = Number.isFinite(eventsMax) ? (counter?.value ?? 0) - eventsMax : 0
  const rows = await db.read.selectFrom('events').selectAll().where('id', '>', after).orderBy('id').limit(ROWS_MAX).execute()
  const expired = rows.filter(({ id, at_ms }) => id <= upTo || at_ms < eventsSinceMs)
  const old = expired.map(({ id }) => id)
  if (old.length === 0) return { removed: 0, next: null }
  const upToMs = expired.reduce((latest, { at_ms }) => Math.max(latest, at_ms), 0)
  if ((await keepCauses(db, upToMs, nowMs)) > 0) return { removed: 0, next: String(after), pauses: true }
  await keepEntries(db, expired.map(toEvent))
  await db.write(({ sql: trx }) => trx.deleteFrom('events').where('id', 'in', old).execute())
  return { removed: old.length, next: String(rows.at(-1)?.id ?? after) }
}

interface OldChange extends Pick<Tables['status_history'], 'cluster_no' | 'project' | 'service' | 'at_ms'> {
  /** 1: the service is in that cluster no more. */
  gone: number
}

/** The newest row stays whatever its age, while the service is there: it says since when things are as they are. */
async function history(db: StoreDb, { historySinceMs }: KeepBounds, after: number): Promise<UpkeepSlice> {
  const clusters = await db.read
    .selectFrom('status_history')
    .select('cluster_no')
    .distinct()
    .where('cluster_no', '>', after)
    .orderBy('cluster_no')
    .limit(CLUSTERS_A_TIME)
    .execute()
  const [first, last] = [clusters[0]?.cluster_no, clusters.at(-1)?.cluster_no]
  if (first === undefined || last === undefined) return { removed: 0, next: null }
  const { rows } = await sql<OldChange>`select cluster_no, project, service, at_ms, case when place > 1 then 0 else 1 end as gone from (
        select cluster_no, project, service, at_ms,
          row_number() over (partition by cluster_no, project, service order by at_ms desc) as place
        from status_history where cluster_no >= ${first} and cluster_no <= ${last}) as placed
      where place > ${HISTORY_KEPT} or (at_ms < ${historySinceMs} and (place > 1 or not exists (
        select 1 from clusters c, desired d where c.no = placed.cluster_no and d.cluster_id = c.cluster_id
          and d.project = placed.project and d.service = placed.service and d.doc is not null)))
      order by cluster_no, project, service, at_ms limit ${ROWS_MAX}`.execute(db.read)
  if (rows.length === 0) return { removed: 0, next: String(last) }
  const keys = (gone: number) => rows.filter((row) => row.gone === gone).map((row) => [row.cluster_no, row.project, row.service, row.at_ms])
  await db.write(async ({ sql: trx }) => {
    await runBulk(trx, db.engine, DROP_CHANGES, keys(0))
    await runBulk(trx, db.engine, DROP_HISTORY, keys(1))
  })
  return { removed: rows.length, next: String(rows.length < ROWS_MAX ? last : first - 1) }
}

/** Asked again, because a newer one may have been taken back since. */
const DROP_CHANGES: Bulk = {
  ...DROP_HISTORY,
  after: `) and at_ms < (select max(newest.at_ms) from status_history as newest where newest.cluster_no = status_history.cluster_no
    and newest.project = status_history.project and newest.service = status_history.service)`,
}

type RevisionKey = Pick<Tables['revisions'], 'project' | 'service' | 'number'>

/** Keeps desired revisions, and the newest of each service. */
async function revisions(db: StoreDb, { revisionsMax }: KeepBounds, from: string | null): Promise<UpkeepSlice> {
  if (!Number.isFinite(revisionsMax)) return { removed: 0, next: null }
  const [project = '', service = ''] = (from ?? '').split('/')
  const services = await db.read
    .selectFrom('revisions')
    .select(['project', 'service'])
    .distinct()
    .where(sql<boolean>`(project, service) > (${project}, ${service})`)
    .orderBy('project')
    .orderBy('service')
    .limit(SERVICES_A_TIME)
    .execute()
  const [first, last] = [services[0], services.at(-1)]
  if (first === undefined || last === undefined) return { removed: 0, next: null }
  const find = async (read: ReadDb): Promise<RevisionKey[]> => {
    const { rows } = await sql<RevisionKey>`select project, service, number from (
        select project, service, number, digest, set_sha, row_number() over (partition by project, service order by number desc) as place
        from revisions where (project, service) >= (${first.project}, ${first.service}) and (project, service) <= (${last.project}, ${last.service})) as r
      where place > ${revisionsMax}
        and not exists (select 1 from desired d where r.set_sha is not null and d.set_sha = r.set_sha)
        and not exists (select 1 from desired d where r.set_sha is null and d.project = r.project and d.service = r.service and d.digest = r.digest)
      order by project, service, number limit ${ROWS_MAX}`.execute(read)
    return rows
  }
  const on = `${last.project}/${last.service}`
  if ((await find(db.read)).length === 0) return { removed: 0, next: on }
  const removed = await db.write(async ({ sql: trx }) => {
    const old = await find(trx)
    for (const { project, service, number } of old)
      for (const table of ['revisions', 'revision_variants'] as const)
        await trx.deleteFrom(table).where('project', '=', project).where('service', '=', service).where('number', '=', number).execute()
    return old.length
  })
  return { removed, next: removed < ROWS_MAX ? on : from }
}

async function tokens(db: StoreDb, { nowMs }: KeepBounds): Promise<UpkeepSlice> {
  const old = await db.read
    .selectFrom('join_tokens')
    .select(['id', 'token_hash'])
    .where('expires_ms', '<', nowMs - TOKENS_KEPT_MS)
    .limit(ROWS_MAX)
    .execute()
  if (old.length === 0) return { removed: 0, next: null }
  const ids = old.map(({ id }) => id)
  await db.write(async ({ sql: trx, changes }) => {
    await trx.deleteFrom('join_tokens').where('id', 'in', ids).execute()
    await forgetUses(
      trx,
      old.map(({ token_hash }) => token_hash),
    )
    for (const id of ids) changes.add({ topic: 'token', name: `JoinToken/${id}` })
  })
  return { removed: old.length, next: old.length < ROWS_MAX ? null : 'on' }
}

const DROP_COUNTS: Bulk = {
  before: 'delete from rollups where n = 0 and (dimension, key, value) in (values',
  row: '(?, ?, ?)',
  after: ')',
  types: ['text', 'text', 'text'],
}

/** Counts that came down to none, of images and labels that are gone. */
async function noneAnyMore(db: StoreDb): Promise<UpkeepSlice> {
  const none = await db.read.selectFrom('rollups').select(['dimension', 'key', 'value']).where('n', '=', 0).limit(ROWS_MAX).execute()
  if (none.length === 0) return { removed: 0, next: null }
  const keys = none.map(({ dimension, key, value }) => [dimension, key, value])
  await db.write(({ sql: trx }) => runBulk(trx, db.engine, DROP_COUNTS, keys))
  return { removed: none.length, next: none.length < ROWS_MAX ? null : 'on' }
}

/** Looks first, far and wide: however far apart they are, they go together. */
async function unused(db: StoreDb, table: 'names' | 'states', after: number): Promise<UpkeepSlice> {
  const idle: number[] = []
  let next: number | null = after
  while (next !== null && idle.length < COLLECT_MAX) {
    const rows: Array<{ id: number; refs: number }> = await db.read
      .selectFrom(table)
      .select(['id', 'refs'])
      .where('id', '>', next)
      .orderBy('id')
      .limit(LOOK_ROWS)
      .execute()
    const found = rows.flatMap(({ id, refs }) => (refs === 0 ? [id] : [])).slice(0, COLLECT_MAX - idle.length)
    idle.push(...found)
    const last = idle.length === COLLECT_MAX ? idle.at(-1) : rows.length < LOOK_ROWS ? undefined : rows.at(-1)?.id
    next = last ?? null
    await setImmediate()
  }
  const removed = idle.length === 0 ? 0 : await db.write((tx) => collect(tx, table, idle))
  return { removed, next: next === null ? null : String(next) }
}

/** Checked again, and on the rows themselves too: since the read, a row may have begun to use it. */
const dropUnused = (table: 'names' | 'states', column: 'name_id' | 'state_id'): Bulk => ({
  before: `delete from ${table} where refs = 0 and not exists (select 1 from status_rows r where r.${column} = ${table}.id) and id in (`,
  row: '?',
  after: ') returning id',
  types: ['bigint'],
})
const DROP_UNUSED = { names: dropUnused('names', 'name_id'), states: dropUnused('states', 'state_id') }

/**
 * One transaction, although it is a long one, and the counter `dictionary` moves with it. A user of a cached number
 * reads that counter first, in the transaction that would use the number. That transaction comes before this one and
 * finds all numbers, or after it and finds the counter moved. There is no commit in between in which some numbers are
 * deleted and the counter is unchanged, or changed too early.
 */
async function collect({ sql: trx, engine }: Tx, table: 'names' | 'states', ids: readonly number[]): Promise<number> {
  let removed = 0
  for (let start = 0; start < ids.length; start += COLLECT_ROWS) {
    removed += (await runIn(trx, engine, DROP_UNUSED[table], ids.slice(start, start + COLLECT_ROWS))).length
    await setImmediate()
  }
  if (removed > 0) await nextNumber(trx, 'dictionary')
  return removed
}
