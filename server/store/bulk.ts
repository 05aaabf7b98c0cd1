// Statements over many rows, as text that is made once for each number of rows: to compile hundreds of values anew each time costs more than to write them.
import { CompiledQuery, type Transaction } from 'kysely'
import type { Engine } from './store-db.ts'
import type { Tables } from './tables.ts'

export interface Bulk {
  /** Up to the first row. */
  before: string
  /** One row, each parameter as `?`. */
  row: string
  /** What comes after the last row. */
  after: string
}

/** Rows in one statement: at most 7 parameters each, databases take at least 32,766. A power of two: so are the numbers of rows that statements are made for. */
const BULK_ROWS_MAX = 512

const compiled = new WeakMap<Bulk, Map<string, CompiledQuery>>()

/** With its parameters in it, which `CompiledQuery.raw` would freeze: of thousands, that costs more than to write them. */
function queryFor(bulk: Bulk, engine: Engine, rows: number, parameters: readonly unknown[]): CompiledQuery {
  const held = compiled.get(bulk) ?? new Map<string, CompiledQuery>()
  compiled.set(bulk, held)
  const key = `${engine} ${rows}`
  const query = held.get(key) ?? CompiledQuery.raw(textFor(bulk, engine, rows))
  held.set(key, query)
  return { ...query, parameters }
}

function textFor(bulk: Bulk, engine: Engine, rows: number): string {
  const plain = `${bulk.before} ${Array.from({ length: rows }, () => bulk.row).join(', ')} ${bulk.after}`
  let parameters = 0
  return engine === 'sqlite' ? plain : plain.replaceAll('?', () => `$${++parameters}`)
}

/** One statement for each power of two. `first`: parameters that stand before the rows; `rows`: each with its parameters. */
export async function runBulk<R>(
  trx: Transaction<Tables>,
  engine: Engine,
  bulk: Bulk,
  rows: ReadonlyArray<readonly unknown[]>,
  first: readonly unknown[] = [],
): Promise<R[]> {
  const found: R[] = []
  for (let start = 0; start < rows.length; ) {
    const count = Math.min(BULK_ROWS_MAX, 2 ** Math.floor(Math.log2(rows.length - start)))
    const parameters = [...first]
    for (let at = start; at < start + count; at++) for (const value of rows[at] ?? []) parameters.push(value)
    const { rows: some } = await trx.executeQuery<R>(queryFor(bulk, engine, count, parameters))
    for (const row of some) found.push(row)
    start += count
  }
  return found
}

/** The same for a list of values to be found or deleted, where one that comes twice does no harm: a single statement for each 512. */
export async function runIn<R>(
  trx: Transaction<Tables>,
  engine: Engine,
  bulk: Bulk,
  values: readonly unknown[],
  first: readonly unknown[] = [],
): Promise<R[]> {
  const found: R[] = []
  for (let start = 0; start < values.length; start += BULK_ROWS_MAX) {
    const some = values.slice(start, start + BULK_ROWS_MAX)
    const count = 2 ** Math.ceil(Math.log2(some.length))
    const parameters = [...first, ...some]
    for (let at = some.length; at < count; at++) parameters.push(some[0])
    const { rows } = await trx.executeQuery<R>(queryFor(bulk, engine, count, parameters))
    for (const row of rows) found.push(row)
  }
  return found
}
