// The surroundings of every command, and how results and errors reach a person.
import { AppError } from '../../shared/runtime/error.ts'
import type { Client } from './client.ts'
import { type Column, plainText, renderTable, type TableStyle, WIDE_COLUMNS } from './columns.ts'
import type { Connection } from './contexts/connection.ts'
import type { CliIo } from './io.ts'
import type { Output } from './outputs.ts'
import { customColumns, documentText } from './printing/documents.ts'
import type { OwnVersion } from './version.ts'

export type { Output }

export interface Context {
  io: CliIo
  /** Made when first asked for: `--help` and `version` need no server. `token`: in place of the one that options,
   *  environment or context name. */
  client(token?: string): Client
  /** Where `client` goes. Throws if the contexts file is unusable or has no such context. */
  connection(): Connection
  ownVersion(): Promise<OwnVersion>
  /** Sets the exit code of a command that does not fail; 0 unless it is called. */
  exit(code: number): void
}

export interface PrintOptions {
  output?: Output
  headers?: boolean
}

/** CL22: as wide as the terminal, and at least as wide as the rule says. */
export const wideStyle = (output: Output, { columns = 0 }: Pick<CliIo, 'columns'>): Pick<TableStyle, 'wide' | 'fit'> =>
  output === 'wide' ? { wide: true, fit: Math.max(WIDE_COLUMNS, columns) } : { wide: false }

export const usesColour = ({ isTty, env }: CliIo): boolean => isTty && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb'

/** `single`: an item that was requested by name, shown alone and not as a list. */
export function printItems<T>(
  { io }: Context,
  items: readonly T[],
  what: { columns: readonly Column<T>[]; nameOf(item: T): string; single: boolean; none: string },
  { output, headers = true }: PrintOptions,
): void {
  const document = documentText(what.single ? items[0] : { items }, output)
  if (document !== null) io.stdout.write(document)
  else if (output === 'name') io.stdout.write(items.map((item) => `${what.nameOf(item)}\n`).join(''))
  else if (items.length === 0) io.stderr.write(`${what.none}\n`)
  else {
    const columns = customColumns<T>(output) ?? what.columns
    io.stdout.write(renderTable(columns, items, { ...wideStyle(output, io), headers, colours: usesColour(io) }))
  }
}

/** The message of an error: the problem, its place and the next step. */
export function errorText(error: unknown): string {
  if (!(error instanceof AppError)) return `error: ${plainText(error instanceof Error ? error.message : String(error))}\n`
  const problems = (error.data.problems ?? []).map(({ path, message }) => `  ${plainText(path)}: ${plainText(message)}\n`)
  const hint = error.remedy === '' ? '' : `hint: ${plainText(error.remedy)}\n`
  return `error: ${plainText(error.message)}\n${problems.join('')}${hint}`
}
