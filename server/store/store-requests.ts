// Requests that must not be performed twice: writes with an Idempotency-Key, and credentials that may be used once.
import type { Store } from './store.ts'
import type { StoreDb, Tx } from './store-db.ts'

type RequestStore = Pick<Store, 'beginRequest' | 'endRequest' | 'forgetRequest' | 'useOnce'>

/** Kept requests, and bytes of their answers together. */
export const KEPT_REQUESTS_MAX = 5_000
export const KEPT_BYTES_MAX = 32 * 1_024 * 1_024
/** Removed at once when there are too many. */
const REMOVED_AT_ONCE = 100

export function createRequestStore(db: StoreDb): RequestStore {
  return {
    beginRequest: ({ id, digest, untilMs, nowMs }) =>
      db.write(async ({ sql: trx }) => {
        await trx.deleteFrom('kept_requests').where('until_ms', '<=', nowMs).execute()
        const held = await trx.selectFrom('kept_requests').select(['digest', 'answer']).where('id', '=', id).executeTakeFirst()
        if (held !== undefined) return held
        await makeRoom(trx)
        await trx.insertInto('kept_requests').values({ id, digest, until_ms: untilMs, answer: null, bytes: 0 }).execute()
        return null
      }),
    endRequest: async (id, answer) => {
      await db.write(({ sql: trx }) =>
        trx.updateTable('kept_requests').set({ answer, bytes: answer.length }).where('id', '=', id).execute(),
      )
    },
    forgetRequest: async (id) => {
      await db.write(({ sql: trx }) => trx.deleteFrom('kept_requests').where('id', '=', id).execute())
    },
    useOnce: (id, { untilMs, nowMs }) =>
      db.write(async ({ sql: trx }) => {
        await trx.deleteFrom('used_once').where('until_ms', '<=', nowMs).execute()
        const used = await trx.selectFrom('used_once').select('id').where('id', '=', id).executeTakeFirst()
        if (used !== undefined) return false
        await trx.insertInto('used_once').values({ id, until_ms: untilMs }).execute()
        return true
      }),
  }
}

/** The oldest go first. */
async function makeRoom(trx: Tx['sql']): Promise<void> {
  for (;;) {
    const { count, bytes } = await trx
      .selectFrom('kept_requests')
      .select(({ fn }) => [fn.countAll<number>().as('count'), fn.sum<number | null>('bytes').as('bytes')])
      .executeTakeFirstOrThrow()
    if (Number(count) < KEPT_REQUESTS_MAX && Number(bytes) <= KEPT_BYTES_MAX) return
    const oldest = await trx.selectFrom('kept_requests').select('id').orderBy('until_ms').orderBy('id').limit(REMOVED_AT_ONCE).execute()
    await trx
      .deleteFrom('kept_requests')
      .where(
        'id',
        'in',
        oldest.map(({ id }) => id),
      )
      .execute()
  }
}
