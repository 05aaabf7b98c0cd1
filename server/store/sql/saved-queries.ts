// Saved queries in the fleet store, for everybody who may query the fleet.
import { SAVED_QUERIES_MAX, type SavedQueryView } from '../../../shared/model/saved-queries.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import type { ChangeNote } from '../feed/change-log.ts'
import { storable } from '../status/storable-text.ts'
import type { StoreDb } from '../store-db.ts'
import type { Tables } from '../tables.ts'

export interface SavedQueries {
  /** By name. */
  list(): Promise<SavedQueryView[]>
  get(name: string): Promise<SavedQueryView | null>
  /** In place of the one with that name. True: there was none. Throws `conflict` when there are SAVED_QUERIES_MAX
   *  others. */
  save(query: SavedQueryView): Promise<boolean>
  /** False: there was none. */
  delete(name: string): Promise<boolean>
}

export function createSavedQueries(db: StoreDb): SavedQueries {
  const rows = () => db.read.selectFrom('saved_queries').selectAll()
  return {
    list: async () => (await rows().orderBy('name').execute()).map(toView),
    async get(name) {
      const row = await rows().where('name', '=', name).executeTakeFirst()
      return row === undefined ? null : toView(row)
    },
    save: (query) =>
      db.write(async ({ sql: trx, audit, changes }) => {
        const { name, sql, about, savedBy, updatedMs } = query
        const columns = { query: storable(sql), about: storable(about), saved_by: storable(savedBy), updated_ms: updatedMs }
        const before = await trx.selectFrom('saved_queries').selectAll().where('name', '=', name).executeTakeFirst()
        if (before === undefined) {
          const { count } = await trx
            .selectFrom('saved_queries')
            .select((eb) => eb.fn.countAll<number | bigint>().as('count'))
            .executeTakeFirstOrThrow()
          if (Number(count) >= SAVED_QUERIES_MAX) throw tooMany(name)
          await trx
            .insertInto('saved_queries')
            .values({ name, ...columns })
            .execute()
        } else await trx.updateTable('saved_queries').set(columns).where('name', '=', name).execute()
        changes.add(noteOf(name))
        audit.add({
          ...deed(before === undefined ? 'create' : 'update', name),
          before: before === undefined ? null : textOf(before),
          after: textOf(columns),
        })
        return before === undefined
      }),
    delete: (name) =>
      db.write(async ({ sql: trx, audit, changes }) => {
        const before = await trx.deleteFrom('saved_queries').where('name', '=', name).returningAll().executeTakeFirst()
        if (before === undefined) return false
        changes.add(noteOf(name))
        audit.add({ ...deed('delete', name), before: textOf(before), after: null })
        return true
      }),
  }
}

const tooMany = (name: string) =>
  new AppError('conflict', {
    doing: `save the query ${name}`,
    detail: `there are ${SAVED_QUERIES_MAX} saved queries, the maximum`,
    remedy: 'Delete one that is no longer needed: `skerry get saved-queries`.',
  })

const noteOf = (name: string): ChangeNote => ({ topic: 'resource', name: `SavedQuery/${name}` })
const deed = (verb: 'create' | 'update' | 'delete', name: string) => ({ verb, kind: 'SavedQuery', name })
const textOf = ({ query, about }: Pick<Tables['saved_queries'], 'query' | 'about'>): string => JSON.stringify({ sql: query, about })

const toView = ({ name, query, about, saved_by, updated_ms }: Tables['saved_queries']): SavedQueryView => ({
  ...{ name, sql: query, about },
  savedBy: saved_by,
  updatedMs: updated_ms,
})
