// Comma-separated values (RFC 4180).

const CELL = /[",\r\n]/
/** A spreadsheet takes a text that begins so for a formula. */
const FORMULA = /^[=+@\t\r]|^-(?!\d+(?:\.\d+)?$)/

export function csvText(rows: ReadonlyArray<ReadonlyArray<string | number | null>>): string {
  return rows.map((row) => `${row.map(cellText).join(',')}\r\n`).join('')
}

function cellText(value: string | number | null): string {
  if (value === null) return ''
  if (typeof value === 'number') return String(value)
  const text = FORMULA.test(value) ? `'${value}` : value
  return CELL.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
