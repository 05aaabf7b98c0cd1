// What waits for a person, and the tokens that people come with.
import type { ChangeNote } from './feed/change-log.ts'
import type { Confirmation } from './records.ts'
import type { Store } from './store.ts'
import type { StoreDb } from './store-db.ts'
import { readNames, type Tables } from './tables.ts'

type PeopleStore = Pick<
  Store,
  | 'openConfirmation'
  | 'confirmation'
  | 'confirmationFor'
  | 'confirmationsOfService'
  | 'listConfirmations'
  | 'askedServices'
  | 'confirm'
  | 'closeConfirmation'
  | 'createApiToken'
  | 'apiTokenByHash'
  | 'retireReplaced'
  | 'countApiTokens'
>

export function createPeopleStore(db: StoreDb, newConfirmationId: () => string): PeopleStore {
  const find = (column: 'id' | 'subject', value: string) =>
    db.read.selectFrom('confirmations').selectAll().where(column, '=', value).executeTakeFirst()
  const readBy = async (column: 'id' | 'subject', value: string) => {
    const row = await find(column, value)
    return row === undefined ? null : toConfirmation(row)
  }
  return {
    openConfirmation: (confirmation) =>
      db.write(async ({ sql: trx, changes }) => {
        const { subject, token } = confirmation
        const held = await trx.selectFrom('confirmations').selectAll().where('subject', '=', subject).executeTakeFirst()
        // The same question, or about fewer of the same names, keeps its id, its age and a yes that was given. Another one gets a new id: who typed the
        // old id meant the old names.
        const asked = new Set(held === undefined ? [] : readNames(held.names))
        const same = held !== undefined && held.token === token && confirmation.names.every((name) => asked.has(name))
        const row: Tables['confirmations'] = {
          ...fromConfirmation(confirmation),
          ...(same && held.confirmed_ms !== null ? { names: held.names } : {}),
          id: same ? held.id : newConfirmationId(),
          created_ms: same ? held.created_ms : confirmation.createdMs,
          confirmed_ms: same ? held.confirmed_ms : null,
          confirmed_by: same ? held.confirmed_by : null,
        }
        if (held !== undefined && (Object.keys(row) as Array<keyof typeof row>).every((column) => held[column] === row[column]))
          return toConfirmation(held)
        changes.add({ ...confirmationNote(row), keys: held === undefined || held.id === row.id ? [row.id] : [held.id, row.id] })
        await trx
          .insertInto('confirmations')
          .values(row)
          .onConflict((on) => on.column('subject').doUpdateSet(row))
          .execute()
        return toConfirmation(row)
      }),
    confirmation: (id) => readBy('id', id),
    confirmationFor: (subject) => readBy('subject', subject),
    confirmationsOfService: async ({ project, service }) => {
      const rows = await db.read
        .selectFrom('confirmations')
        .selectAll()
        .where('project', '=', project)
        .where('service', '=', service)
        .execute()
      return rows.map(toConfirmation)
    },
    askedServices: () =>
      db.read.selectFrom('confirmations').select(['project', 'service']).distinct().where('kind', '!=', 'prune').execute(),
    listConfirmations: async () => {
      const rows = await db.read
        .selectFrom('confirmations')
        .selectAll()
        .where('confirmed_ms', 'is', null)
        .orderBy('created_ms')
        .orderBy('id')
        .execute()
      return rows.map(toConfirmation)
    },
    confirm: async (id, by, nowMs) => {
      await db.write(async ({ sql: trx, changes }) => {
        const confirmed = await trx
          .updateTable('confirmations')
          .set({ confirmed_ms: nowMs, confirmed_by: by })
          .where('id', '=', id)
          .where('confirmed_ms', 'is', null)
          .returning(['id', 'project', 'service'])
          .executeTakeFirst()
        if (confirmed !== undefined) changes.add(confirmationNote(confirmed))
      })
      return readBy('id', id)
    },
    closeConfirmation: async (subject) => {
      await db.write(async ({ sql: trx, changes }) => {
        const closed = trx.deleteFrom('confirmations').where('subject', '=', subject).returning(['id', 'project', 'service'])
        for (const question of await closed.execute()) changes.add(confirmationNote(question))
      })
    },

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

export const confirmationNote = ({ id, project, service }: Pick<Tables['confirmations'], 'id' | 'project' | 'service'>): ChangeNote => ({
  topic: 'confirmation',
  project,
  name: service,
  keys: [id],
})

function fromConfirmation(value: Omit<Confirmation, 'id' | 'confirmedMs' | 'confirmedBy'>): Omit<Tables['confirmations'], 'id'> {
  const { createdMs, names, ...rest } = value
  return { ...rest, names: JSON.stringify(names), created_ms: createdMs, confirmed_ms: null, confirmed_by: null }
}

function toConfirmation(row: Tables['confirmations']): Confirmation {
  const { created_ms: createdMs, confirmed_ms: confirmedMs, confirmed_by: confirmedBy, names, ...rest } = row
  return { ...rest, names: readNames(names), createdMs, confirmedMs, confirmedBy }
}
