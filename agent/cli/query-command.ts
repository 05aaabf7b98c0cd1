// `skerry-agent query`: read-only SQL over the state of this site, for a person who may read the data folder. Works
// without a network, beside a running agent.
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { fitting, SQL_MS_MAX, SQL_ROWS_DEFAULT, SQL_ROWS_MAX, type SqlAnswer, type SqlCell } from '../../shared/model/fleet-sql.ts'
import { csvText } from '../../shared/runtime/csv.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { parseQuery } from '../../shared/sql/parse.ts'
import { writeQuery } from '../../shared/sql/write.ts'
import { agentFiles } from '../agent.ts'
import { RUN_OPTIONS } from '../config.ts'
import { examples } from './edge-commands.ts'
import { SITE_VIEWS, siteViewSql } from './site-views.ts'

export interface QueryIo {
  out(text: string): void
  format(): string
  nowMs(): number
}

const MEMORY_BYTES = 256 * 1_024 * 1_024

export function addQueryCommand(program: Command, { out, format, nowMs }: QueryIo): void {
  program
    .command('query')
    .description('Answer a read-only SQL query over the state of this site')
    .argument('[sql]', 'one SELECT over the views; --views lists them')
    .addHelpText(
      'before',
      examples(
        `query "SELECT service, health, message FROM services WHERE health <> 'Healthy'"`,
        'query "SELECT kind, count(*) AS n FROM inventory GROUP BY kind ORDER BY n DESC" -o json',
        'query --views',
      ),
    )
    .option('--views', 'list the views and their columns')
    .option('--csv', 'print CSV')
    .option('--limit <count>', `maximum number of rows, at most ${SQL_ROWS_MAX}`, String(SQL_ROWS_DEFAULT))
    .addOption(new Option('--data <DIR>', 'data folder of the agent').env('SKERRY_DATA').default(RUN_OPTIONS.data.default))
    .action((sql: string | undefined, options: { views?: true; csv?: true; limit: string; data: string }) => {
      const answer = options.views === true ? viewsAnswer() : answerOf(sql, options, nowMs())
      if (options.csv === true) out(csvText([answer.columns, ...answer.rows]))
      else if (format() === 'text')
        out(`${tableText(answer)}${answer.truncated ? `only the first ${answer.rows.length} rows; use --limit\n` : ''}`)
      else
        out(
          `${JSON.stringify({ columns: answer.columns, items: answer.rows.map((row) => itemOf(answer.columns, row)), truncated: answer.truncated }, null, 2)}\n`,
        )
    })
}

type Answer = Pick<SqlAnswer, 'columns' | 'rows' | 'truncated'>

const badOptions = (detail: string, remedy: string) => new AppError('bad_options', { doing: 'query this site', detail, remedy })

function answerOf(text: string | undefined, { limit: limitText, data }: { limit: string; data: string }, nowMs: number): Answer {
  if (text === undefined) throw badOptions('a SELECT is missing', 'Write skerry-agent query "SELECT service, health FROM services".')
  const limit = Number(limitText)
  if (!/^\d{1,5}$/.test(limitText) || limit < 1 || limit > SQL_ROWS_MAX)
    throw badOptions(`--limit is "${limitText}"`, `Use a whole number from 1 to ${SQL_ROWS_MAX}.`)
  const { state } = agentFiles(resolve(data))
  if (!existsSync(state))
    throw badOptions(
      `${resolve(data)} is not the data folder of an agent`,
      'Set --data or SKERRY_DATA. For an agent in a pod, run the command inside the pod.',
    )
  const viewNames = Object.keys(SITE_VIEWS)
  const { sql, columns } = writeQuery(parseQuery(text), { engine: 'sqlite', nowMs, rowsMax: limit + 1, viewNames, view: siteViewSql })
  const guard = endAfter(SQL_MS_MAX)
  const db = openSqlite(state, { readonly: true })
  try {
    db.run('PRAGMA query_only=ON')
    db.run('PRAGMA temp_store=MEMORY')
    db.run(`PRAGMA hard_heap_limit=${MEMORY_BYTES}`)
    const statement = db.prepare(sql)
    try {
      return { columns: [...columns], ...fitting(statement.values(), limit) }
    } finally {
      statement.finalize()
    }
  } catch (error) {
    const outOfMemory = error instanceof Error && /out of memory|NOMEM/i.test(error.message)
    if (outOfMemory)
      throw new AppError('query_limit', { doing: 'run the query', detail: `it took more than ${MEMORY_BYTES / 1_048_576} MiB of memory` })
    throw new AppError('bad_query', { doing: 'run the query', detail: error instanceof Error ? error.message : String(error) })
  } finally {
    db.run('PRAGMA hard_heap_limit=0')
    db.close()
    guard.terminate()
  }
}

/** SQLite runs in the main thread and blocks it: another thread ends the process. */
function endAfter(ms: number): Worker {
  const message = `skerry-agent: run the query: it was ended after ${ms / 1_000} s\\n`
  const wait = `Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${ms})`
  const source = `${wait}; require('node:fs').writeSync(2, '${message}'); process.kill(process.pid, 'SIGKILL')`
  const worker = new Worker(URL.createObjectURL(new Blob([source], { type: 'application/javascript' })))
  return worker
}

const itemOf = (columns: readonly string[], row: readonly SqlCell[]) => Object.fromEntries(columns.map((name, i) => [name, row[i] ?? null]))

function viewsAnswer(): Answer {
  const rows = Object.entries(SITE_VIEWS).flatMap(([view, { columns }]) =>
    Object.entries(columns).map(([name, { type, about }]): SqlCell[] => [view, name, type, about.replaceAll('`', '')]),
  )
  return { columns: ['view', 'column', 'type', 'meaning'], rows, truncated: false }
}

/** Control characters of values are not for a terminal. */
const cellText = (cell: SqlCell): string => (cell === null ? '-' : String(cell).replaceAll(/[\p{Cc}\p{Cf}]/gu, ' '))

function tableText({ columns, rows }: Answer): string {
  const table = [columns.map((name) => name.toUpperCase()), ...rows.map((row) => row.map(cellText))]
  const widths = columns.map((_, i) => Math.max(...table.map((cells) => (cells[i] ?? '').length)))
  const lineOf = (cells: readonly string[]) =>
    cells.map((cell, i) => (i === cells.length - 1 ? cell : cell.padEnd((widths[i] ?? 0) + 3))).join('')
  return rows.length === 0 ? 'no rows\n' : table.map((cells) => `${lineOf(cells)}\n`).join('')
}
