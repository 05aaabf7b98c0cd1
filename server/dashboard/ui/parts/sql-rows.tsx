// The answer to a query as a table: numbers to the right, times in the reader's zone, names of clusters and services as
// links.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { SqlAnswer, SqlCell } from '../../../../shared/model/fleet-sql.ts'
import { number } from '../format.ts'
import { pages } from '../state/place.ts'
import { more } from '../words/later.ts'
import { Empty } from './states.tsx'
import { Moment } from './time.tsx'

const ROWS_SHOWN = 200
const words = more.query

export function SqlRows({ answer: { columns, rows, truncated, elapsedMs } }: { answer: SqlAnswer }) {
  const [shown, setShown] = useState(ROWS_SHOWN)
  if (rows.length === 0) return <Empty title={words.none} next={words.took(elapsedMs)} />
  const isNumber = columns.map((name, at) => !isTime(name) && rows.every((row) => row[at] === null || typeof row[at] === 'number'))
  return (
    <>
      <div class="row spread list-top small muted">
        <span role="status">
          {words.rows(number(rows.length), truncated)} · {words.took(elapsedMs)}
        </span>
        <button type="button" class="quiet" onClick={() => download(csv(columns, rows))}>
          {words.csv}
        </button>
      </div>
      <div class="table-wrap tall" tabIndex={0} role="group" aria-label={words.result}>
        <table class="sql" aria-label={words.result}>
          <thead>
            <tr>
              {columns.map((name, at) => (
                <th key={at} scope="col" class={isNumber[at] ? 'is-number' : undefined}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, shown).map((row, index) => (
              <tr key={index}>
                {row.map((cell, at) => (
                  <td key={at} class={isNumber[at] ? 'is-number' : undefined}>
                    {cellOf(cell, at, columns, row)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {shown < rows.length && (
        <div class="list-foot">
          <button type="button" onClick={() => setShown(shown + 5 * ROWS_SHOWN)}>
            {words.more(number(rows.length - shown))}
          </button>
        </div>
      )}
    </>
  )
}

const isTime = (column: string): boolean => column.endsWith('_ms')

function cellOf(cell: SqlCell, at: number, columns: readonly string[], row: readonly SqlCell[]): JSX.Element | string {
  if (cell === null) return <span class="faint">{words.absent}</span>
  const column = columns[at] ?? ''
  if (typeof cell === 'number') return isTime(column) ? <Moment ms={cell} /> : String(cell)
  const href = hrefOf(column, cell, columns, row)
  if (href !== null)
    return (
      <a class="linked mono" href={href}>
        {cell}
      </a>
    )
  return (
    <span class="cell-text" title={cell}>
      {cell}
    </span>
  )
}

function hrefOf(column: string, cell: string, columns: readonly string[], row: readonly SqlCell[]): string | null {
  const of = (name: string): string => String(row[columns.indexOf(name)] ?? '')
  if (column === 'cluster') return pages.cluster(cell)
  if (column !== 'service' || of('project') === '') return null
  return of('cluster') === '' ? pages.service(of('project'), cell) : pages.placement(of('cluster'), of('project'), cell)
}

function csv(columns: readonly string[], rows: ReadonlyArray<readonly SqlCell[]>): string {
  // A leading = + - @ would be a formula for spreadsheets.
  const quoted = (cell: SqlCell) => {
    if (cell === null) return ''
    if (typeof cell === 'number') return String(cell)
    return `"${(/^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell).replaceAll('"', '""')}"`
  }
  return [columns, ...rows].map((row) => row.map(quoted).join(',')).join('\r\n')
}

function download(content: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([content], { type: 'text/csv' }))
  link.download = 'skerry-query.csv'
  link.click()
  URL.revokeObjectURL(link.href)
}
