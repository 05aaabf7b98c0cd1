// Fleet queries: the form of SQL queries over views of the fleet in the API, the command line and the agent.
import { z } from 'zod'
import { SQL_CHARS_MAX } from './saved-queries.ts'

export interface SqlViewColumn {
  type: 'text' | 'integer'
  about: string
}

/** Rows of an answer, unless more are asked for. */
export const SQL_ROWS_DEFAULT = 1_000
export const SQL_ROWS_MAX = 10_000
/** Characters of all cells of an answer together. */
export const SQL_ANSWER_CHARS_MAX = 16_000_000
export const SQL_MS_MAX = 10_000

export const sqlQuestionSchema = z.strictObject({
  sql: z.string().min(1).max(SQL_CHARS_MAX),
  limit: z.number().int().min(1).max(SQL_ROWS_MAX).default(SQL_ROWS_DEFAULT),
})
export type SqlQuestion = z.infer<typeof sqlQuestionSchema>

export const sqlAnswerSchema = z.object({
  columns: z.array(z.string()),
  rows: z.array(z.array(z.union([z.string(), z.number(), z.null()]))),
  /** There are more rows than the limit, or more text than an answer may have. */
  truncated: z.boolean(),
  elapsedMs: z.number(),
})
export type SqlAnswer = z.infer<typeof sqlAnswerSchema>
export type SqlCell = SqlAnswer['rows'][number][number]

export const sqlViewSchema = z.object({
  name: z.string(),
  about: z.string(),
  columns: z.array(z.object({ name: z.string(), type: z.enum(['text', 'integer']), about: z.string() })),
})
export type SqlView = z.infer<typeof sqlViewSchema>

/** The first rows that fit into an answer. */
export function fitting(rows: readonly (readonly unknown[])[], rowsMax: number): Pick<SqlAnswer, 'rows' | 'truncated'> {
  const kept: SqlCell[][] = []
  let chars = 0
  for (const row of rows) {
    const cells = row.map(cellOf)
    for (const cell of cells) chars += typeof cell === 'string' ? cell.length : 8
    if (kept.length >= rowsMax || chars > SQL_ANSWER_CHARS_MAX) return { rows: kept, truncated: true }
    kept.push(cells)
  }
  return { rows: kept, truncated: false }
}

/** SQLite has no booleans; PostgreSQL has more types than a query can ask for. */
function cellOf(value: unknown): SqlCell {
  if (value === null || value === undefined) return null
  if (typeof value === 'string' || typeof value === 'number') return value
  return typeof value === 'boolean' ? Number(value) : String(value)
}
