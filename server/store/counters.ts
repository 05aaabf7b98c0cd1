// Numbers that only grow. Taken by the transaction that uses them, so that their order is the order of commits on every
// database: a reader that resumes after a number misses nothing.
import { sql, type Transaction } from 'kysely'
import type { Tables } from './tables.ts'

/** The last of the next `count` numbers. Almost every transaction takes one: text costs half of what it costs to build
 *  this statement. */
export async function nextNumber(trx: Transaction<Tables>, name: Tables['counters']['name'], count = 1): Promise<number> {
  const { rows } = await sql<{ value: number }>`update counters set value = value + ${count} where name = ${name} returning value`.execute(
    trx,
  )
  const [row] = rows
  if (row === undefined) throw new Error(`the store has no counter ${name}`)
  return row.value
}
