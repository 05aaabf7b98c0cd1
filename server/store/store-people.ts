// The tokens that people come with.
import type { Selectable } from 'kysely'
import { TOKEN_ROLES } from '../../shared/model/access.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { ApiTokenRecord } from '../fleet/records.ts'
import { SYSTEM } from './audit/caller.ts'
import type { ChangeNote } from './feed/change-log.ts'
import type { Store } from './store.ts'
import type { StoreDb } from './store-db.ts'
import { readNames, type Tables } from './tables.ts'

type PeopleStore = Pick<
  Store,
  'createApiToken' | 'apiTokenByHash' | 'retireReplaced' | 'countAdminTokens' | 'listApiTokens' | 'deleteApiToken' | 'noteApiTokenUse'
>

export function createPeopleStore(db: StoreDb): PeopleStore {
  return {
    createApiToken: async ({ id, tokenHash, name, role, createdMs, createdBy, expiresMs, replaces, projects = null }) => {
      const row = {
        id,
        token_hash: tokenHash,
        name,
        role,
        created_ms: createdMs,
        created_by: createdBy,
        expires_ms: expiresMs ?? 0,
        replaces,
        projects: projects && JSON.stringify(projects),
      }
      await db.write(async ({ sql: trx, changes, audit }) => {
        const expired = trx.deleteFrom('api_tokens').where('expires_ms', '!=', 0).where('expires_ms', '<=', createdMs)
        for (const gone of await expired.returning(['id', 'name', 'role']).execute()) {
          changes.add(apiTokenNote(gone.id))
          audit.add({
            verb: 'expire',
            kind: 'ApiToken',
            name: gone.id,
            detail: `${gone.name}, role ${gone.role ?? 'admin'}`,
            actor: SYSTEM,
          })
        }
        const isThere = replaces === null || (await trx.selectFrom('api_tokens').select('id').where('id', '=', replaces).executeTakeFirst())
        if (!isThere) throw new AppError('unauthorized') // it was revoked after the request was let in
        // AP12: of several exchanges whose answers were lost, only the newest token is good.
        if (replaces !== null) await trx.deleteFrom('api_tokens').where('replaces', '=', replaces).execute()
        await trx.insertInto('api_tokens').values(row).execute()
        changes.add(apiTokenNote(id))
        const expires = expiresMs === null ? 'does not expire' : `expires ${new Date(expiresMs).toISOString()}`
        const verb = replaces === null ? 'create' : 'exchange'
        audit.add({ verb, kind: 'ApiToken', name: id, detail: `${name}, role ${role}, ${expires}` })
      })
    },
    apiTokenByHash: async (tokenHash) => {
      const row = await db.read.selectFrom('api_tokens').select(API_TOKEN_COLUMNS).where('token_hash', '=', tokenHash).executeTakeFirst()
      return row === undefined ? null : apiTokenRecord(row)
    },
    listApiTokens: async () => {
      const rows = await db.read.selectFrom('api_tokens').select(API_TOKEN_COLUMNS).orderBy('created_ms').orderBy('id').execute()
      return rows.map(apiTokenRecord)
    },
    deleteApiToken: async (id) => {
      let deleted = false
      await db.write(async ({ sql: trx, changes, audit }) => {
        const [gone] = await trx.deleteFrom('api_tokens').where('id', '=', id).returning(['name', 'role']).execute()
        deleted = gone !== undefined
        if (gone === undefined) return
        // The owner may keep a token that was exchanged for it and not used yet.
        await trx.deleteFrom('api_tokens').where('replaces', '=', id).execute()
        changes.add(apiTokenNote(id))
        audit.add({ verb: 'revoke', kind: 'ApiToken', name: id, detail: `${gone.name}, role ${gone.role ?? 'admin'}` })
      })
      return deleted
    },
    noteApiTokenUse: async (id, atMs, from) => {
      await db.write(async ({ sql: trx }) => {
        await trx.updateTable('api_tokens').set({ last_used_ms: atMs, last_used_from: from }).where('id', '=', id).execute()
      })
    },
    retireReplaced: async (id) => {
      await db.write(async ({ sql: trx, changes, audit }) => {
        const token = await trx.selectFrom('api_tokens').select('replaces').where('id', '=', id).executeTakeFirst()
        if (token === undefined || token.replaces === null) return
        const { replaces } = token
        await trx.updateTable('api_tokens').set({ replaces: null }).where('id', '=', id).execute()
        await trx
          .deleteFrom('api_tokens')
          .where((eb) => eb.or([eb('id', '=', replaces), eb('replaces', '=', replaces)]))
          .execute()
        changes.add(apiTokenNote(id))
        audit.add({ verb: 'retire', kind: 'ApiToken', name: replaces, detail: `replaced by ${id}` })
      })
    },
    countAdminTokens: async (nowMs) => {
      const row = await db.read
        .selectFrom('api_tokens')
        .select((eb) => eb.fn.countAll<number>().as('count'))
        .where((eb) => eb.or([eb('expires_ms', '=', 0), eb('expires_ms', '>', nowMs)]))
        .where((eb) => eb.or([eb('role', 'is', null), eb('role', 'in', ['admin', 'fleet-admin'])]))
        .where('projects', 'is', null)
        .executeTakeFirstOrThrow()
      return Number(row.count)
    },
  }
}

const API_TOKEN_COLUMNS = [
  'id',
  'name',
  'expires_ms',
  'replaces',
  'role',
  'created_ms',
  'created_by',
  'last_used_ms',
  'last_used_from',
  'projects',
] as const

/** A token of an earlier version has no role: it is an admin's. One with an unknown role, which a later version wrote,
 *  may only read. */
function apiTokenRecord(row: Pick<Selectable<Tables['api_tokens']>, (typeof API_TOKEN_COLUMNS)[number]>): ApiTokenRecord {
  const { id, name, replaces } = row
  return {
    id,
    name,
    replaces,
    role: row.role === null ? 'admin' : (TOKEN_ROLES.find((role) => role === row.role) ?? 'viewer'),
    expiresMs: row.expires_ms === 0 ? null : row.expires_ms,
    createdMs: row.created_ms,
    createdBy: row.created_by,
    lastUsedMs: row.last_used_ms === 0 ? null : row.last_used_ms,
    lastUsedFrom: row.last_used_from,
    projects: row.projects === null ? null : readNames(row.projects),
  }
}

const apiTokenNote = (id: string): ChangeNote => ({ topic: 'token', name: `ApiToken/${id}` })
