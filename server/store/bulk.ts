// Statements over many rows, as text that is made once for each number of rows: compiling hundreds of values each time
// costs more than writing them.
import { CompiledQuery, type Transaction } from 'kysely'
import type { Engine } from './engines/engine.ts'
import type { Tables } from './tables.ts'

type ColumnType = 'bigint' | 'text'

export interface Bulk {
  /** Up to the first row: it ends with `values`, or with `in (`. */
  before: string
  /** One row, each parameter as `?`. */
  row: string
  /** The text after the last row. */
  after: string
  /**
   * The types of its parameters. PostgreSQL gets an array for each, and the same text whatever the number of rows:
   * parsing a long text costs more than writing the rows.
   */
  types: readonly ColumnType[]
}

/** Rows in one statement: at most 14 parameters each, databases take at least 32,766. A power of two, as the numbers of
 *  rows that statements are made for. */
const BULK_ROWS_MAX = 512

const texts = new WeakMap<Bulk, Map<string | number, string>>()

function remembered(bulk: Bulk, key: string | number, make: () => string): string {
  const held = texts.get(bulk) ?? new Map<string | number, string>()
  texts.set(bulk, held)
  const text = held.get(key) ?? make()
  held.set(key, text)
  return text
}

const listed = (bulk: Bulk, rows: number): string =>
  remembered(bulk, rows, () => `${bulk.before} ${Array.from({ length: rows }, () => bulk.row).join(', ')} ${bulk.after}`)

function numbered(text: string): string {
  let parameters = 0
  return text.replaceAll('?', () => `$${++parameters}`)
}

const unnested = (bulk: Bulk): string =>
  remembered(bulk, 'unnest', () => {
    const { before, row, after, types } = bulk
    let column = 0
    const columns = row.slice(1, -1).replaceAll(/cast\(\? as \w+\)|\?/g, () => `u.column${++column}`)
    const arrays = types.map((type) => `?::${type}[]`).join(', ')
    const names = types.map((_, index) => `column${index + 1}`).join(', ')
    return numbered(`${before.replace(/values$/, `select ${columns} from unnest(${arrays}) as u (${names})`)} ${after}`)
  })

const anyOf = (bulk: Bulk): string =>
  remembered(bulk, 'any', () => numbered(`${bulk.before.replace(/in \($/, '= any (')} ?::${bulk.types[0]}[] ${bulk.after}`))

const compiled = new Map<string, CompiledQuery>()

/** As `CompiledQuery.raw`, which freezes its parameters: of thousands, that costs half of what it costs to write them.
 */
function queryOf(text: string, parameters: readonly unknown[]): CompiledQuery {
  const query = compiled.get(text) ?? CompiledQuery.raw(text)
  compiled.set(text, query)
  return { ...query, parameters }
}

/** On SQLite one statement for each power of two. `first`: parameters that stand before the rows; `rows`: each with its
 *  parameters. */
export async function runBulk<R>(
  trx: Transaction<Tables>,
  engine: Engine,
  bulk: Bulk,
  rows: ReadonlyArray<readonly unknown[]>,
  first: readonly unknown[] = [],
): Promise<R[]> {
  const found: R[] = []
  for (let start = 0; start < rows.length; ) {
    const left = Math.min(BULK_ROWS_MAX, rows.length - start)
    const count = engine === 'postgres' ? left : 2 ** Math.floor(Math.log2(left))
    const some = rows.slice(start, start + count)
    const [text, parameters] = engine === 'postgres' ? [unnested(bulk), columnsOf(bulk, some)] : [listed(bulk, count), some.flat()]
    const answer = await trx.executeQuery<R>(queryOf(text, first.length === 0 ? parameters : [...first, ...parameters]))
    for (const row of answer.rows) found.push(row)
    start += count
  }
  return found
}

const columnsOf = ({ types }: Bulk, rows: ReadonlyArray<readonly unknown[]>): unknown[][] =>
  types.map((_, index) => rows.map((row) => row[index]))

/** The same for a list of values to be found or deleted, where one that comes twice does no harm: a single statement
 *  for each 512. `last`: parameters that stand after the list. */
export async function runIn<R>(
  trx: Transaction<Tables>,
  engine: Engine,
  bulk: Bulk,
  values: readonly unknown[],
  first: readonly unknown[] = [],
  last: readonly unknown[] = [],
): Promise<R[]> {
  const found: R[] = []
  for (let start = 0; start < values.length; start += BULK_ROWS_MAX) {
    const some = values.slice(start, start + BULK_ROWS_MAX)
    const count = 2 ** Math.ceil(Math.log2(some.length))
    const padded = [...some, ...Array.from({ length: count - some.length }, () => some[0])]
    const [text, parameters] = engine === 'postgres' ? [anyOf(bulk), [some]] : [listed(bulk, count), padded]
    const { rows } = await trx.executeQuery<R>(queryOf(text, [...first, ...parameters, ...last]))
    for (const row of rows) found.push(row)
  }
  return found
}
