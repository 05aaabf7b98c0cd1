// Numbers that only grow. Taken by the transaction that uses them, so that their order is the order of commits on every database: whoever resumes
// after a number misses nothing.
import type { Transaction } from 'kysely'
import type { Tables } from './tables.ts'

/** The last of the next `count` numbers. */
export async function nextNumber(trx: Transaction<Tables>, name: Tables['counters']['name'], count = 1): Promise<number> {
  const row = await trx
    .updateTable('counters')
    .set((eb) => ({ value: eb('value', '+', count) }))
    .where('name', '=', name)
    .returning('value')
    .executeTakeFirstOrThrow()
  return row.value
}
