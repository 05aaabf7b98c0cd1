// Sessions of people and pipelines. The store has hashes of their secrets, and the provider's tokens sealed.
import type { Selectable, Updateable } from 'kysely'
import { z } from 'zod'
import type { AuditActor } from '../../shared/model/audit.ts'
import type { SessionChange, SessionRecord } from '../fleet/records.ts'
import { SYSTEM } from './audit/caller.ts'
import type { ChangeNote } from './feed/change-log.ts'
import type { Store } from './store.ts'
import type { StoreDb } from './store-db.ts'
import type { Tables } from './tables.ts'

type SessionStore = Pick<
  Store,
  'createSession' | 'sessionByAccess' | 'sessionByRefresh' | 'listSessions' | 'changeSession' | 'deleteSession' | 'deleteExpiredSessions'
>

type Row = Selectable<Tables['sessions']>

export function createSessionStore(db: StoreDb): SessionStore {
  const one = async (column: 'access_hash' | 'refresh_hash' | 'earlier_refresh_hash', hash: string) => {
    const row = await db.read.selectFrom('sessions').selectAll().where(column, '=', hash).executeTakeFirst()
    return row === undefined ? null : sessionRecord(row)
  }
  return {
    createSession: (session) =>
      db.write(async ({ sql: trx, changes, audit }) => {
        await trx.insertInto('sessions').values(rowOf(session)).execute()
        const { id, kind, name, provider, subject, lastUsedFrom: from } = session
        const actor: AuditActor = { kind: kind === 'workload' ? 'workload' : 'user', id: subject, name, provider, verified: true }
        audit.add({ verb: 'sign-in', kind: 'Session', name: id, detail: `${kind} through ${provider}`, actor, from })
        changes.add(sessionNote(session.id))
      }),
    sessionByAccess: (hash) => one('access_hash', hash),
    sessionByRefresh: async (hash) => (await one('refresh_hash', hash)) ?? one('earlier_refresh_hash', hash),
    listSessions: async () => {
      const rows = await db.read.selectFrom('sessions').selectAll().orderBy('created_ms').orderBy('id').execute()
      return rows.map(sessionRecord)
    },
    changeSession: async (id, change) => {
      const columns = columnsOf(change)
      if (Object.keys(columns).length === 0) return
      await db.write(async ({ sql: trx, changes, audit }) => {
        const before = await trx.selectFrom('sessions').select(['name', 'group_names']).where('id', '=', id).executeTakeFirst()
        if (before === undefined) return
        const after = columns.group_names ?? before.group_names
        if (after !== before.group_names)
          audit.add({ verb: 'change-groups', kind: 'Session', name: id, detail: `${before.name}: ${before.group_names} became ${after}` })
        await trx.updateTable('sessions').set(columns).where('id', '=', id).execute()
        // The last use of a session is no entry of the change feed.
        if (after !== before.group_names) changes.add(sessionNote(id))
      })
    },
    deleteSession: (id, { verb, detail }) =>
      db.write(async ({ sql: trx, changes, audit }) => {
        const [gone] = await trx.deleteFrom('sessions').where('id', '=', id).returning(['name', 'provider']).execute()
        if (gone === undefined) return false
        const whose = `${gone.name} (${gone.provider})`
        audit.add({ verb, kind: 'Session', name: id, detail: detail === undefined ? whose : `${whose}: ${detail}` })
        changes.add(sessionNote(id))
        return true
      }),
    deleteExpiredSessions: (nowMs) =>
      db.write(async ({ sql: trx, changes, audit }) => {
        const gone = await trx.deleteFrom('sessions').where('expires_ms', '<=', nowMs).returning(['id', 'name', 'provider']).execute()
        for (const { id, name, provider } of gone) {
          changes.add(sessionNote(id))
          audit.add({ verb: 'expire', kind: 'Session', name: id, detail: `${name} (${provider})`, actor: SYSTEM })
        }
        return gone.length
      }),
  }
}

const names = z.array(z.string())

function sessionRecord(row: Row): SessionRecord {
  return {
    id: row.id,
    kind: row.kind,
    provider: row.provider,
    subject: row.subject,
    name: row.name,
    email: row.email,
    groups: names.parse(JSON.parse(row.group_names)),
    accessHash: row.access_hash,
    accessExpiresMs: row.access_expires_ms,
    refreshHash: row.refresh_hash,
    earlierRefreshHash: row.earlier_refresh_hash,
    rotatedMs: row.rotated_ms,
    createdMs: row.created_ms,
    expiresMs: row.expires_ms,
    checkedMs: row.checked_ms,
    lastUsedMs: row.last_used_ms,
    lastUsedFrom: row.last_used_from,
    sealed: row.sealed,
  }
}

const rowOf = (session: SessionRecord): Row => ({
  id: session.id,
  kind: session.kind,
  provider: session.provider,
  subject: session.subject,
  created_ms: session.createdMs,
  expires_ms: session.expiresMs,
  name: session.name,
  email: session.email,
  group_names: JSON.stringify(session.groups),
  access_hash: session.accessHash,
  access_expires_ms: session.accessExpiresMs,
  refresh_hash: session.refreshHash,
  earlier_refresh_hash: session.earlierRefreshHash,
  rotated_ms: session.rotatedMs,
  checked_ms: session.checkedMs,
  last_used_ms: session.lastUsedMs,
  last_used_from: session.lastUsedFrom,
  sealed: session.sealed,
})

const COLUMN_OF = {
  name: 'name',
  email: 'email',
  accessHash: 'access_hash',
  accessExpiresMs: 'access_expires_ms',
  refreshHash: 'refresh_hash',
  earlierRefreshHash: 'earlier_refresh_hash',
  rotatedMs: 'rotated_ms',
  checkedMs: 'checked_ms',
  lastUsedMs: 'last_used_ms',
  lastUsedFrom: 'last_used_from',
  sealed: 'sealed',
} as const satisfies Record<Exclude<keyof SessionChange, 'groups'>, keyof Row>

function columnsOf({ groups, ...change }: SessionChange): Updateable<Tables['sessions']> {
  const columns = Object.entries(change).map(([field, value]) => [COLUMN_OF[field as keyof typeof COLUMN_OF], value] as const)
  return { ...Object.fromEntries(columns), ...(groups === undefined ? {} : { group_names: JSON.stringify(groups) }) }
}

const sessionNote = (id: string): ChangeNote => ({ topic: 'token', name: `Session/${id}` })
