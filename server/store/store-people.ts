// The tokens that people come with.
import type { ChangeNote } from './feed/change-log.ts'
import type { Store } from './store.ts'
import type { StoreDb } from './store-db.ts'

type PeopleStore = Pick<Store, 'createApiToken' | 'apiTokenByHash' | 'retireReplaced' | 'countApiTokens'>

export function createPeopleStore(db: StoreDb): PeopleStore {
  return {
    createApiToken: async ({ id, tokenHash, name, createdMs, expiresMs, replaces }) => {
      const row = { id, token_hash: tokenHash, name, created_ms: createdMs, expires_ms: expiresMs ?? 0, replaces }
      await db.write(async ({ sql: trx, changes }) => {
        await trx.deleteFrom('api_tokens').where('expires_ms', '!=', 0).where('expires_ms', '<=', createdMs).execute()
        await trx.insertInto('api_tokens').values(row).execute()
        changes.add(apiTokenNote(id))
      })
    },
    apiTokenByHash: async (tokenHash) => {
      const columns = ['id', 'name', 'expires_ms', 'replaces'] as const
      const row = await db.read.selectFrom('api_tokens').select(columns).where('token_hash', '=', tokenHash).executeTakeFirst()
      if (row === undefined) return null
      return { id: row.id, name: row.name, expiresMs: row.expires_ms === 0 ? null : row.expires_ms, replaces: row.replaces }
    },
    retireReplaced: async (id) => {
      await db.write(async ({ sql: trx, changes }) => {
        const token = await trx.selectFrom('api_tokens').select('replaces').where('id', '=', id).executeTakeFirst()
        if (token === undefined || token.replaces === null) return
        const { replaces } = token
        await trx.updateTable('api_tokens').set({ replaces: null }).where('id', '=', id).execute()
        await trx
          .deleteFrom('api_tokens')
          .where((eb) => eb.or([eb('id', '=', replaces), eb('replaces', '=', replaces)]))
          .execute()
        changes.add(apiTokenNote(id))
      })
    },
    countApiTokens: async (nowMs) => {
      const row = await db.read
        .selectFrom('api_tokens')
        .select((eb) => eb.fn.countAll<number>().as('count'))
        .where((eb) => eb.or([eb('expires_ms', '=', 0), eb('expires_ms', '>', nowMs)]))
        .executeTakeFirstOrThrow()
      return Number(row.count)
    },
  }
}

const apiTokenNote = (id: string): ChangeNote => ({ topic: 'token', name: `ApiToken/${id}` })
