// query: sends SQL to the server and prints the rows, of a text or of a saved query.
import { type SqlAnswer, type SqlCell, sqlAnswerSchema, sqlViewSchema } from '../../shared/model/fleet-sql.ts'
import { savedQueryViewSchema } from '../../shared/model/saved-queries.ts'
import { listOf } from '../../shared/model/views.ts'
import { csvText } from '../../shared/runtime/csv.ts'
import { path } from './client.ts'
import { type Column, renderTable } from './columns.ts'
import type { QUERY_OUTPUTS } from './commands/query.ts'
import { type Context, usesColour } from './context.ts'
import { UsageError } from './io.ts'
import { saveQuery } from './saved-query.ts'

interface QueryOptions {
  views?: true | undefined
  saved?: string | undefined
  save?: string | undefined
  about?: string | undefined
  limit: number
  output: (typeof QUERY_OUTPUTS)[number]
  headers: boolean
}

export async function query(context: Context, sql: string | undefined, options: QueryOptions): Promise<void> {
  const { saved, save, about } = options
  if (about !== undefined && save === undefined) throw new UsageError('--about describes a query that --save saves')
  if ([options.views, saved, save].filter((one) => one !== undefined).length > 1)
    throw new UsageError('--views, --saved and --save exclude each other')
  if (options.views === true) {
    if (sql !== undefined) throw new UsageError('--views does not accept a query')
    return printViews(context, options)
  }
  if (saved !== undefined) {
    if (sql !== undefined) throw new UsageError(`--saved runs the query ${saved}; omit the SQL`)
    return query(context, (await context.client().get(path`/saved-queries/${saved}`, savedQueryViewSchema)).sql, {
      ...options,
      saved: undefined,
    })
  }
  if (save !== undefined) return saveQuery(context, { name: save, sql, about })
  if (sql === undefined) throw new UsageError('query needs a SELECT: skerry query "SELECT name FROM clusters"')
  print(context, await context.client().send('POST', '/query', sqlAnswerSchema, { sql, limit: options.limit }), options)
}

function print(context: Context, { columns, rows, truncated }: SqlAnswer, { output, headers, limit }: QueryOptions): void {
  const { stdout, stderr } = context.io
  if (output === 'json') {
    const items = rows.map((row) => Object.fromEntries(columns.map((name, i) => [name, row[i] ?? null])))
    stdout.write(`${JSON.stringify({ columns, items, truncated }, null, 2)}\n`)
    return
  }
  if (output === 'csv') stdout.write(csvText(headers ? [columns, ...rows] : rows))
  else if (rows.length === 0) stderr.write('no rows\n')
  else stdout.write(tableText(context, columns, rows, headers))
  if (truncated) stderr.write(`only the first ${rows.length} rows are shown (limit ${limit}); use --limit or narrow the query\n`)
}

function tableText({ io }: Context, columns: readonly string[], rows: readonly SqlCell[][], headers: boolean): string {
  const shown = columns.map((name, i): Column<SqlCell[]> => ({ title: name.toUpperCase(), value: (row) => row[i] ?? null, colour: true }))
  return renderTable(shown, rows, { wide: false, headers, colours: usesColour(io) })
}

async function printViews(context: Context, options: QueryOptions): Promise<void> {
  const { items } = await context.client().get('/query/views', listOf(sqlViewSchema), {})
  const columns = ['view', 'column', 'type', 'meaning']
  const rows = items.flatMap(({ name, columns: described }) =>
    described.map((one) => [name, one.name, one.type, one.about.replaceAll('`', '')]),
  )
  print(context, { columns, rows, truncated: false, elapsedMs: 0 }, options)
}
