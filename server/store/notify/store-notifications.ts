// The outbox of notifications over Kysely.
import type { NewNotification, NotificationRecord } from '../../fleet/notification-records.ts'
import { nextNumber } from '../counters.ts'
import type { StoreDb, Tx } from '../store-db.ts'
import type { Tables } from '../tables.ts'
import { NOTIFICATIONS_KEPT_MAX, type NotificationOutbox } from './notification-outbox.ts'

const CURSOR = 'notification_cursor'
/** Rows of one statement. */
const ROWS = 50
const PRUNED_AT_ONCE = 500

export function createNotificationStore(db: StoreDb): NotificationOutbox {
  const pendingRows = () => db.read.selectFrom('notifications').selectAll().where('state', '=', 'open').orderBy('id')
  return {
    async cursor() {
      const held = await db.read.selectFrom('meta').select('value').where('key', '=', CURSOR).executeTakeFirst()
      if (held !== undefined) return Number(held.value)
      return db.write(async (tx) => (await readCursor(tx)) ?? beginAtNewest(tx))
    },

    plan: ({ cursor, created, changed }) =>
      db.write(async (tx) => {
        if (cursor !== undefined && (await readCursor(tx)) !== cursor.from) return null
        if (cursor !== undefined && cursor.to !== cursor.from) await writeCursor(tx, cursor.to)
        for (const record of changed) await update(tx, record)
        if (created.length === 0) return noteOf(tx, changed.length > 0, [])
        const last = await nextNumber(tx.sql, 'notification', created.length)
        const rows = created.map((one, index) => ({ ...toColumns(one), id: last - created.length + 1 + index }))
        for (let at = 0; at < rows.length; at += ROWS)
          await tx.sql
            .insertInto('notifications')
            .values(rows.slice(at, at + ROWS))
            .execute()
        return noteOf(
          tx,
          true,
          rows.map(({ id }) => id),
        )
      }),

    async skipToNewest() {
      const held = await db.read.selectFrom('meta').select('value').where('key', '=', CURSOR).executeTakeFirst()
      if (held !== undefined) await db.write((tx) => beginAtNewest(tx))
    },

    pending: async () => (await pendingRows().execute()).map(toRecord),

    async settle(record) {
      await db.write(async (tx) => {
        await update(tx, record)
        noteOf(tx, true, [])
      })
    },

    async get(id) {
      const row = await db.read.selectFrom('notifications').selectAll().where('id', '=', id).executeTakeFirst()
      return row === undefined ? null : toRecord(row)
    },

    async list({ project, sink, route, state, before, limit }) {
      let query = db.read.selectFrom('notifications').selectAll()
      if (project !== undefined) query = query.where('project', '=', project)
      if (sink !== undefined) query = query.where('sink', '=', sink)
      if (route !== undefined) query = query.where('route', '=', route)
      if (state !== undefined) query = query.where('state', '=', state)
      if (before !== undefined) query = query.where('id', '<', before)
      return (await query.orderBy('id', 'desc').limit(limit).execute()).map(toRecord)
    },

    async countsOf(project, sink) {
      const of = () => db.read.selectFrom('notifications').where('project', '=', project).where('sink', '=', sink)
      const totals = await of()
        .select((eb) => [
          eb.fn.countAll<number | bigint>().filterWhere('state', '=', 'dead').as('dead'),
          eb.fn
            .countAll<number | bigint>()
            .filterWhere(eb.and([eb('state', '=', 'open'), eb('next_ms', 'is not', null)]))
            .as('waiting'),
          eb.fn.max('sent_ms').as('sent'),
        ])
        .executeTakeFirstOrThrow()
      const failed = await of()
        .select(['error', 'updated_ms'])
        .where('error', 'is not', null)
        .orderBy('updated_ms', 'desc')
        .limit(1)
        .execute()
      const sent = totals.sent === null ? null : Number(totals.sent)
      const [newest] = failed
      const isNews = newest !== undefined && (sent === null || newest.updated_ms >= sent)
      return { waiting: Number(totals.waiting), dead: Number(totals.dead), lastSentMs: sent, error: isNews ? newest.error : null }
    },

    async totals() {
      const undelivered = db.read.selectFrom('notifications').where('state', 'in', ['open', 'dead'])
      const counted = await undelivered
        .select((eb) => [
          eb.fn
            .countAll<number | bigint>()
            .filterWhere(eb.and([eb('state', '=', 'open'), eb('next_ms', 'is not', null), eb('attempts', '=', 0)]))
            .as('waiting'),
          eb.fn
            .countAll<number | bigint>()
            .filterWhere(eb.and([eb('state', '=', 'open'), eb('attempts', '>', 0)]))
            .as('failed'),
          eb.fn.countAll<number | bigint>().filterWhere('state', '=', 'dead').as('dead'),
          eb.fn
            .min('tried_ms')
            .filterWhere(eb.and([eb('state', '=', 'open'), eb('attempts', '>', 0), eb('tried_ms', '>', 0)]))
            .as('since'),
        ])
        .executeTakeFirstOrThrow()
      const { waiting, failed, dead, since } = counted
      return {
        ...{ waiting: Number(waiting), failed: Number(failed), dead: Number(dead) },
        failingSinceMs: since === null ? null : Number(since),
      }
    },

    async openOf(project, route) {
      const of = db.read.selectFrom('notifications').where('project', '=', project).where('route', '=', route).where('state', '=', 'open')
      return Number((await of.select((eb) => eb.fn.countAll<number | bigint>().as('count')).executeTakeFirstOrThrow()).count)
    },

    prune: () =>
      db.write(async ({ sql: trx }) => {
        const settled = trx.selectFrom('notifications').select('id').where('state', '!=', 'open')
        const [oldestKept] = await settled.orderBy('id', 'desc').offset(NOTIFICATIONS_KEPT_MAX).limit(1).execute()
        if (oldestKept === undefined) return 0
        const surplus = trx.selectFrom('notifications').select('id').where('state', '!=', 'open').where('id', '<=', oldestKept.id)
        const ids = (await surplus.orderBy('id').limit(PRUNED_AT_ONCE).execute()).map(({ id }) => id)
        await trx.deleteFrom('notifications').where('id', 'in', ids).execute()
        return ids.length
      }),
  }
}

async function readCursor({ sql: trx }: Tx): Promise<number | null> {
  const held = await trx.selectFrom('meta').select('value').where('key', '=', CURSOR).executeTakeFirst()
  return held === undefined ? null : Number(held.value)
}

async function writeCursor({ sql: trx }: Tx, to: number): Promise<void> {
  const value = String(to)
  await trx
    .insertInto('meta')
    .values({ key: CURSOR, value })
    .onConflict((on) => on.column('key').doUpdateSet({ value }))
    .execute()
}

async function beginAtNewest(tx: Tx): Promise<number> {
  const { value } = await tx.sql.selectFrom('counters').select('value').where('name', '=', 'event_id').executeTakeFirstOrThrow()
  await writeCursor(tx, value)
  return value
}

function noteOf<T>({ changes }: Tx, changed: boolean, result: T): T {
  if (changed) changes.add({ topic: 'notification' })
  return result
}

async function update({ sql: trx }: Tx, record: NotificationRecord): Promise<void> {
  await trx.updateTable('notifications').set(toColumns(record)).where('id', '=', record.id).execute()
}

const toColumns = (one: NewNotification): Omit<Tables['notifications'], 'id'> => ({
  project: one.project,
  route: one.route,
  sink: one.sink,
  group_key: one.groupKey,
  state: one.state,
  version: one.version,
  sent_version: one.sentVersion,
  attempts: one.attempts,
  next_ms: one.nextMs,
  created_ms: one.createdMs,
  updated_ms: one.updatedMs,
  sent_ms: one.sentMs,
  tried_ms: one.triedMs,
  error: one.error,
  ref: one.ref,
  doc: JSON.stringify(one.doc),
})

const toRecord = (row: Tables['notifications']): NotificationRecord => ({
  id: row.id,
  project: row.project,
  route: row.route,
  sink: row.sink,
  groupKey: row.group_key,
  state: row.state,
  version: row.version,
  sentVersion: row.sent_version,
  attempts: row.attempts,
  nextMs: row.next_ms,
  createdMs: row.created_ms,
  updatedMs: row.updated_ms,
  sentMs: row.sent_ms,
  triedMs: row.tried_ms,
  error: row.error,
  ref: row.ref,
  doc: JSON.parse(row.doc),
})
